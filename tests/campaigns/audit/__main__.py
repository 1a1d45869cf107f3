"""The long audit: `python -m tests.campaigns.audit --asks 10000`.

The exit code is 1 if a promise is broken or a fault is not found.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from .estimating import FALSE_ALARM, Finding
from .world import KNOWN_GUMB_ORDER, KNOWN_LAP, QUESTIONS, UNK_GUMB, Question, running_world

FAULTS = (
    ("half_the_noise", KNOWN_LAP),
    ("half_the_noise_of_choices", KNOWN_GUMB_ORDER),
    ("threshold_without_tau", UNK_GUMB),
)


def main() -> int:
    """Audit every mechanism, then the broken builds, and print what was proven of each."""
    parser = argparse.ArgumentParser("python -m tests.campaigns.audit", description=__doc__)
    parser.add_argument(
        "--asks", type=int, default=10_000, help="how often each table is asked each question"
    )
    asks = parser.parse_args().asks
    print(f"{asks} answers of each table; a right build is accused once in {1 / FALSE_ALARM:.0e} audits")
    print(
        f"{'build':27}{'mechanism':18}{'epsilon':>8}{'delta':>7}{'proven epsilon':>16}{'proven delta':>14}  by"
    )
    as_expected = True
    with tempfile.TemporaryDirectory() as directory, running_world(Path(directory)) as world:
        for question in QUESTIONS:
            finding = world.audit(question, asks)
            as_expected &= finding.proven_delta <= question.delta
            _print("as it is", question, finding)
        for fault, question in FAULTS:
            with world.broken(fault) as address:
                finding = world.audit(question, asks, address)
            as_expected &= finding.proven_delta > question.delta
            _print(fault, question, finding)
    return 0 if as_expected else 1


def _print(build: str, question: Question, finding: Finding) -> None:
    promise = f"{question.epsilon:8g}{question.delta:7g}"
    print(
        f"{build:27}{question.name:18}{promise}{finding.proven_epsilon:16.2f}{finding.proven_delta:14.4f}  "
        f"{finding.event}, {finding.order}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
