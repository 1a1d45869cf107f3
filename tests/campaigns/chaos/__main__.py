"""Runs campaigns and prints what they found; the exit code is 1 if a promise was broken.

python -m tests.campaigns chaos --store sqlite redis --charges 10000 --kills 60 --seed 1
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.campaigns.chaos.campaign import Plan, Result, run
from tests.campaigns.chaos.checker import Fault
from tests.campaigns.chaos.stage import STAGES

SHOWN_FINDINGS = 20


def main() -> int:
    """Run one campaign for each store."""
    options = _parser().parse_args()
    results = []
    for store in options.store:
        with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
            plan = Plan(store, options.charges, options.kills, options.seed)
            results.append(asyncio.run(run(plan, Path(folder))))
        _print_findings(results[-1])
    _print_table(results)
    return (
        1
        if any(result.report.findings or result.others_stuck or result.served_on for result in results)
        else 0
    )


def _print_findings(result: Result) -> None:
    for finding in result.report.findings[:SHOWN_FINDINGS]:
        print(f"{result.plan.store}: {finding.fault.value}: {finding.where}", file=sys.stderr)


def _print_table(results: list[Result]) -> None:
    columns = [_rows(result) for result in results]
    for row in columns[0]:
        print(f"{row:54}" + "".join(f"{column[row]:>12}" for column in columns))


def _rows(result: Result) -> dict[str, str]:
    report = result.report
    figures: dict[str, object] = {
        "store": result.plan.store,
        "charges acknowledged": report.acknowledged,
        "charges acknowledged as paid before": report.free,
        "charges refused": report.refused,
        "charges reported to have changed nothing": report.untouched,
        "charges unknown": report.unknown,
        "reservations forfeited": report.forfeited,
        "lines in the journal": report.journal_lines,
        "information acknowledged": report.acknowledged_information,
        "information spent": report.spent_information,
        "replays": report.replays,
        **{fault.value: report.count(fault) for fault in Fault},
        "kill -9 of a service": result.service_kills,
        "kill -9 of the store": result.store_kills,
        "pauses of a service or the store": result.pauses,
        "times all connections of a proxy were cut": result.cuts,
        "times a proxy lost replies": result.losses,
        "packets of replies lost": result.replies_lost,
        "services stopped between their round trips": result.held_up,
        "of those, that others did not go on after": result.others_stuck,
        "times the file of the ledger was exchanged": result.exchanged,
        "of those, that the service served on after": result.served_on,
        "limits lowered below what is spent": result.lowered,
        "first limits of levels in use": result.late,
        "trims of journals": result.trimmed,
        "accounts closed and opened again": result.returned,
        "seconds": round(result.seconds),
    }
    return {row: str(figure) for row, figure in figures.items()}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tests.campaigns chaos", description=__doc__)
    parser.add_argument("--store", nargs="+", choices=list(STAGES), default=list(STAGES))
    parser.add_argument("--charges", type=int, default=10_000, help="acknowledged charges to reach")
    parser.add_argument(
        "--kills", type=int, default=60, help="processes to kill, the store's and the services'"
    )
    parser.add_argument("--seed", type=int, default=1)
    return parser


if __name__ == "__main__":
    sys.exit(main())
