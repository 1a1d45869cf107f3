"""Scores of runs, kept in a file as soon as they are known, so that what is stopped goes on where it was."""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from random import Random
from typing import Any

from research.privolap import kept
from research.privolap.questions import Budget, System
from research.privolap.scoring import score, truth_of
from research.privolap.scripts import SCRIPTS


@dataclass(frozen=True)
class Setting:
    """For which promise so many questions of each of some scripts are asked."""

    epsilon: float
    delta: float
    scripts: tuple[str, ...]
    most: int


@dataclass(frozen=True)
class Run:
    """One system, asked one script once."""

    system: str
    script: str
    run: int
    epsilon: float
    delta: float
    most: int


class Results:
    """Useful answers by run; a run that is known is not measured again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._useful = kept.read(path, "score", _score_of)

    def measure(self, systems: Sequence[System], setting: Setting, runs: int) -> None:
        """Measure what is missing, a run of all systems after the other, so that all have equally many."""
        with tempfile.TemporaryDirectory() as directory:
            data = {name: SCRIPTS[name][0](_folder(directory, name)) for name in setting.scripts}
            for run in range(runs):
                for script in setting.scripts:
                    keys = {each: _key(each, script, run, setting) for each in systems}
                    missing = [each for each in systems if keys[each] not in self._useful]
                    asked = SCRIPTS[script][1](data[script], Random(run))  # noqa: S311 - what is asked is no secret
                    budget = Budget(setting.epsilon, setting.delta, tuple(asked))
                    state = Path(directory) / f"{script}-{run}" / "state"
                    truth = truth_of(data[script], budget.script[: setting.most]) if missing else {}
                    for system in missing:
                        try:
                            useful = score(system, data[script], budget, state, truth).useful
                            self._keep(keys[system], useful, system.version())
                        finally:
                            system.close()

    def _keep(self, run: Run, useful: int, version: str) -> None:
        self._useful[run] = useful
        kept.keep(self._path, {**asdict(run), "useful": useful}, version)

    def of(self, system: str, script: str, setting: Setting) -> tuple[int, ...]:
        """Return what is known of a system with a script."""
        wanted = Run(system, script, 0, setting.epsilon, setting.delta, setting.most)
        return tuple(useful for run, useful in self._useful.items() if replace(run, run=0) == wanted)


def mean_and_error(found: Sequence[int]) -> tuple[float, float]:
    """Return a mean and its standard error; of no run nothing is known, and of one run no error."""
    if not found:
        return math.nan, math.nan
    error = statistics.stdev(found) / math.sqrt(len(found)) if len(found) > 1 else math.nan
    return statistics.mean(found), error


def _folder(directory: str, name: str) -> Path:
    folder = Path(directory) / name
    folder.mkdir()
    return folder


def _key(system: System, script: str, run: int, setting: Setting) -> Run:
    return Run(system.name, script, run, setting.epsilon, setting.delta, setting.most)


def _score_of(line: Mapping[str, Any]) -> tuple[Run, int]:
    return Run(**{each.name: line[each.name] for each in fields(Run)}), int(line["useful"])
