"""Runs campaigns and prints what they found; the exit code is 1 if a promise was broken.

python -m tests.campaigns kills --store sqlite postgres --minutes 10 --seed 1
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.campaigns.kills.campaign import Outcome, Plan, run
from tests.campaigns.kills.checker import Fault
from tests.campaigns.kills.history import NOTHING
from tests.campaigns.kills.stage import STORES

SHOWN_FINDINGS = 20


def main() -> int:
    """Run one campaign for each store."""
    options = _parser().parse_args()
    broken = False
    for store in options.store:
        with tempfile.TemporaryDirectory(prefix="gris-kills-") as folder:
            plan = Plan(store, options.minutes * 60, options.kills, options.seed)
            outcome = asyncio.run(run(plan, Path(folder)))
            if outcome.findings:
                sys.stderr.write((Path(folder) / "log").read_text()[-20_000:])
        for row, figure in _rows(outcome):
            print(f"{row:66}{figure:>10,}", flush=True)
        for finding in outcome.findings[:SHOWN_FINDINGS]:
            print(f"{finding.fault.value}: {finding.where}", file=sys.stderr)
        if not outcome.after.journal:
            print("nothing was answered, so nothing was shown to hold", file=sys.stderr)
        broken = broken or bool(outcome.findings) or not outcome.after.journal
    return int(broken)


def _rows(outcome: Outcome) -> list[tuple[str, int]]:
    heard, after = outcome.heard, outcome.after
    arrived = {(each.account, each.query_id) for each in heard.shown}
    without_answer = sum((line.account, line.query_id) not in arrived for line in after.journal)
    faults = Counter(finding.fault for finding in outcome.findings)
    return [
        (outcome.plan.store, 0),
        ("seconds", round(outcome.seconds)),
        *((f"kill -9 of {name}", number) for name, number in outcome.kills.items()),
        ("files replaced", outcome.replaced),
        ("answers", len(heard.shown)),
        ("of those, charged", sum(each.charged != NOTHING and not each.replayed for each in heard.shown)),
        ("of those, by a request id that was sent before", sum(each.replayed for each in heard.shown)),
        ("callers who left", heard.left),
        *((f"refused: {reason}", number) for reason, number in sorted(heard.refused.items())),
        ("charges in the journal", len(after.journal)),
        ("of those, of answers that never arrived", without_answer),
        ("information charged", sum(line.cost.information for line in after.journal)),
        ("releases charged", len({line.release_id for line in after.journal})),
        ("accounts", len({line.account for line in after.journal})),
        ("budgets looked at meanwhile", len(heard.seen)),
        ("asked again by those who paid", len(after.again)),
        ("asked by a new account", len(after.anew)),
        ("request ids sent again", len(after.repeated)),
        *((fault.value, faults[fault]) for fault in Fault),
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.campaigns kills", description=__doc__)
    parser.add_argument("--store", nargs="+", choices=list(STORES), default=list(STORES))
    parser.add_argument(
        "--minutes", type=float, default=10.0, help="how long things are killed, for each store"
    )
    parser.add_argument("--kills", type=int, default=0, help="processes to kill at least")
    parser.add_argument("--seed", type=int, default=1)
    return parser


if __name__ == "__main__":
    sys.exit(main())
