"""The long audit: `python -m tests.campaigns audit --asks 10000`.

The exit code is 1 if a promise is broken or a fault is not found.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .estimating import FALSE_ALARM, Finding
from .one_run import FAULTS as RUN_FAULTS
from .one_run import RUNS, running_canaries
from .world import (
    BOUND_GAUSS,
    BOUND_GAUSS_KNOWN,
    BOUND_MOMENTS,
    BOUNDED_POLICY,
    BOUNDED_QUESTIONS,
    KNOWN_GUMB_ORDER,
    KNOWN_LAP,
    POLICY,
    QUESTIONS,
    SERIES,
    SHIFT,
    TWO_LOOKS,
    UNK_GUMB,
    Question,
    running_world,
)

FAULTS = (
    ("half_the_noise", KNOWN_LAP),
    ("half_the_noise_of_choices", KNOWN_GUMB_ORDER),
    ("threshold_without_tau", UNK_GUMB),
)
BOUNDED_FAULTS = (
    ("half_the_gaussian_noise", BOUND_GAUSS_KNOWN),
    ("threshold_without_min_count", BOUND_GAUSS),
    ("bounds_nobody", SERIES),
    ("no_threshold_for_names", TWO_LOOKS),
    ("total_without_noise", SHIFT),
    ("sums_without_noise", BOUND_MOMENTS),
)
WORLDS = ((POLICY, QUESTIONS, FAULTS), (BOUNDED_POLICY, BOUNDED_QUESTIONS, BOUNDED_FAULTS))


def main() -> int:
    """Audit every mechanism, then the broken builds, and print what was proven of each."""
    parser = argparse.ArgumentParser("python -m tests.campaigns audit", description=__doc__)
    parser.add_argument(
        "--asks", type=int, default=10_000, help="how often each table is asked each question"
    )
    parser.add_argument(
        "--canaries", type=int, default=1_000, help="how many members one run has, 1000 at most"
    )
    parser.add_argument("--only", default="", help="a pattern of the names of the mechanisms that are wanted")
    arguments = parser.parse_args()
    asks, is_wanted = arguments.asks, re.compile(arguments.only).search
    print(f"{asks} answers of each table; a right build is accused once in {1 / FALSE_ALARM:.0e} audits")
    print(
        f"{'build':27}{'mechanism':18}{'epsilon':>8}{'delta':>7}{'proven epsilon':>16}{'proven delta':>14}  by"
    )
    as_expected = True
    for policy, questions, faults in WORLDS:
        if wanted := [each for each in questions if is_wanted(each.name)]:
            as_expected &= _audited(policy, wanted, [each for each in faults if each[1] in wanted], asks)
    if any(is_wanted(run.name) for runs in RUNS.values() for run in runs):
        as_expected &= _guessed(arguments.canaries)
    return 0 if as_expected else 1


def _guessed(canaries: int) -> bool:
    """Audit by one release of many canaries; return whether all is as it should be."""
    print(
        f"{'build':27}{'mechanism':18}{'epsilon':>8}{'delta':>7}{'proven':>8}{'at 95 %':>9}  right, of {canaries}"
    )
    as_expected = True
    for policy, runs in RUNS.items():
        with (
            tempfile.TemporaryDirectory() as folder,
            running_canaries(Path(folder), policy, canaries) as world,
        ):
            for run in runs:
                for fault in ("", *RUN_FAULTS[run]):
                    found = world.guessed(run, fault)
                    as_expected &= found.breaks_the_promise == bool(fault)
                    proven = f"{found.proven_epsilon(FALSE_ALARM):8.2f}{found.proven_epsilon(0.05):9.2f}"
                    promise = f"{run.name:18}{run.epsilon:8g}{run.delta:7g}"
                    print(f"{fault or 'as it is':27}{promise}{proven}  {found.correct}", flush=True)
    return as_expected


def _audited(
    policy: str, questions: Sequence[Question], faults: Sequence[tuple[str, Question]], asks: int
) -> bool:
    """Audit the questions of a policy, then its broken builds; return whether all is as it should be."""
    as_expected = True
    with tempfile.TemporaryDirectory() as directory, running_world(Path(directory), policy) as world:
        for question in questions:
            finding = world.audit(question, asks)
            as_expected &= finding.proven_delta <= question.delta
            _print("as it is", question, finding)
        for fault, question in faults:
            with world.broken(fault) as address:
                finding = world.audit(question, asks, address)
            as_expected &= finding.proven_delta > question.delta
            _print(fault, question, finding)
    return as_expected


def _print(build: str, question: Question, finding: Finding) -> None:
    promise = f"{question.epsilon:8g}{question.delta:7g}"
    print(
        f"{build:27}{question.name:18}{promise}{finding.proven_epsilon:16.2f}{finding.proven_delta:14.4f}  "
        f"{finding.event}, {finding.order}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
