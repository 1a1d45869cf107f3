"""The CPU of a new question in two versions of Gris, which take turns on the same machine.

    python -m bench cpu --beside DIRECTORY

DIRECTORY is a checkout of the other version; it needs no environment of its own, as it runs in this one's. Both ask the
same questions, a few at a time and each before the other in every second turn, so that whatever else keeps the machine
busy does so to both. What is compared is the CPU of each process, as the median of the turns.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TypeAlias

from bench.cpu import cpu_seconds
from bench.new_questions import READY, TABLE
from bench.tables import BUDGET
from examples.load import TABLES

HERE = Path(__file__).resolve().parent.parent
WARM_UP = 100
TURNS = 20
_PACKAGES = ("", "protos/generated")

Milliseconds: TypeAlias = dict[str, float]


@dataclass(frozen=True)
class Versions:
    """Milliseconds of CPU of a question, by process, in this version and in the other one; medians of turns.

    `ratio` is the median of the turns' own ratios, this version's sum to the other's.
    """

    here: Milliseconds
    beside: Milliseconds
    ratio: float


def compared(beside: Path, questions: int) -> Versions:
    """Returns what a question costs here and in the other checkout, which take turns of so many questions in all."""
    with ExitStack() as opened:
        versions = [opened.enter_context(_running_version(checkout)) for checkout in (HERE, beside.resolve())]
        for each in versions:
            each.ask(WARM_UP)
        size = max(1, questions // TURNS)
        turns = [_turn(versions, size, reverse=bool(number % 2)) for number in range(TURNS)]
    ratios = [sum(here.values()) / sum(there.values()) for here, there in turns]
    here, there = ([turn[which] for turn in turns] for which in (0, 1))
    return Versions(_medians(here), _medians(there), statistics.median(ratios))


@dataclass(frozen=True)
class _VersionProcess:
    """A process that asks when it is asked to."""

    process: subprocess.Popen[str]
    to: IO[str]
    said: IO[str]

    def ask(self, questions: int) -> Milliseconds:
        """Has so many questions asked, and returns the milliseconds of CPU of each."""
        before = cpu_seconds(self.process.pid)
        self.to.write(f"{questions}\n")
        self.to.flush()
        self.wait()
        after = cpu_seconds(self.process.pid)
        return {name: 1e3 * (after[name] - before.get(name, 0.0)) / questions for name in after}

    def wait(self) -> None:
        """Waits until it is ready for questions."""
        if self.said.readline().strip() != READY:
            raise RuntimeError("a version could not ask; what it wrote is above")


@contextmanager
def _running_version(checkout: Path) -> Iterator[_VersionProcess]:
    with TemporaryDirectory() as scratch:
        budget = Path(scratch) / "budget.yaml"
        budget.write_text(BUDGET)
        policy = checkout / "examples" / "policy.yaml"
        command = [sys.executable, "-P", str(HERE / "bench" / "new_questions.py"), "--policy", str(policy)]
        command += ["--budget", str(budget), "--parquet", str(TABLES[TABLE])]
        path = os.pathsep.join(str(checkout / package) for package in _PACKAGES)
        with subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": path},
            cwd=checkout,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            if process.stdin is None or process.stdout is None:
                raise RuntimeError("both are pipes")
            version = _VersionProcess(process, process.stdin, process.stdout)
            version.wait()
            yield version
            process.stdin.close()


def _turn(
    versions: list[_VersionProcess], questions: int, *, reverse: bool
) -> tuple[Milliseconds, Milliseconds]:
    first, second = reversed(versions) if reverse else versions
    found = first.ask(questions), second.ask(questions)
    return (found[1], found[0]) if reverse else found


def _medians(turns: list[Milliseconds]) -> Milliseconds:
    return {name: statistics.median(turn.get(name, 0.0) for turn in turns) for name in turns[0]}
