"""An audit from one release: many canaries, each in the table by a coin of its own, and a guess about every one.

An attacker who knows all but the coins guesses. What the guesses prove is `estimating.chance_of_guesses`: nearly all
of what Laplace noise loses, and little of what Gaussian noise does, whose loss is in its tails.
"""

# ruff: noqa: S608  (the SQL is the tests' own)
from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from pinot_connector import sql_question, structured_question
from pinot_connector.results import Row
from pinot_connector.shown_values import AggregateValue
from tests.support.typical import typically

from .estimating import FALSE_ALARM, chance_of_guesses, epsilon_of_guesses
from .world import WITH, WITHOUT, World, running_services, sums_of

_PIECES = 4
_DELTA = 1e-9
# Canary i is alone in its place, a known element, and in its name, which is unknown.
_TABLE = """
    member: member_id
    consistency: fresh
    measures: {{distinct_members: true}}
    columns:
      member_id: {{type: int64}}
      place: {{type: string, group_by: true, {delta} domain: [{places}]}}
      name: {{type: string, group_by: true}}
"""
_BOUNDED = f"""
    contributions: {{{{bound: in_query, units: 1, sums: {{{{max_members: 100000, max_rows: 100000}}}}}}}}
    values:
      pieces: {{{{type: int64, lower: 0, upper: {_PIECES}}}}}
"""
LAPLACE = ("epsilon_per: 4\ncount_noise: laplace", _TABLE, "delta: 1,")
GAUSSIAN = ("epsilon_per: 0.25\ncount_noise: gaussian", typically(1, _TABLE + _BOUNDED), "")


def _count(row: Row) -> float:
    return float(row.noisy_count or 0)


def _centred_sum(row: Row) -> float:
    (found,) = row.values
    assert isinstance(found, AggregateValue)
    return float(found.value) / _PIECES - _count(row) / 2


@dataclass(frozen=True)
class OneRun:
    """A question whose one answer tells of all canaries, and the (epsilon, delta) that is promised of each.

    `score` is what is looked at of a canary's element, which is 0 if it is not shown; one with more than `threshold`
    is guessed to be in the table.
    """

    name: str
    policy: tuple[str, str, str]
    epsilon: float
    delta: float
    by: str = "place"
    sums: tuple[str, ...] = ()
    score: Callable[[Row], float] = _count
    threshold: float = 1 / 2

    def about(self, table: str) -> object:
        """Return the question to ask of a table."""
        if self.sums:
            return sql_question(sums_of(table, self.by, self.sums))
        return structured_question(table, self.by, k=None)


COUNTS = OneRun("KnownLap", LAPLACE, epsilon=2, delta=0.0)
# Gaussian noise of a unit of 0.25 adds far less than another 1e-9 at an epsilon of 1.
NAMES = OneRun("BoundGauss", GAUSSIAN, epsilon=1, delta=2 * _DELTA, by="name", score=lambda _: 1.0)
SUMS = OneRun("BoundMoments", GAUSSIAN, 1, _DELTA, sums=("pieces",), score=_centred_sum, threshold=1 / 4)
RUNS = {LAPLACE: (COUNTS,), GAUSSIAN: (NAMES, SUMS)}
FAULTS = {
    COUNTS: ("half_the_noise", "noise_of_a_fixed_seed"),
    NAMES: ("no_threshold_for_names",),
    SUMS: ("sums_without_noise",),
}


@dataclass(frozen=True)
class Guesses:
    """How many canaries were guessed rightly, of all."""

    run: OneRun
    correct: int
    canaries: int

    @property
    def breaks_the_promise(self) -> bool:
        """Whether so many are right at most once in 10^6 runs of what is promised."""
        epsilon, delta = self.run.epsilon, self.run.delta
        chance = chance_of_guesses(self.correct, self.canaries, self.canaries, epsilon=epsilon, delta=delta)
        return chance <= FALSE_ALARM

    def proven_epsilon(self, error: float) -> float:
        """Return the largest epsilon that is ruled out, which is wrong with this probability."""
        return epsilon_of_guesses(
            self.correct, self.canaries, self.canaries, delta=self.run.delta, error=error
        )


@dataclass(frozen=True)
class Canaries:
    """Running services over a table of canaries and one of nobody, and who is in the first."""

    world: World
    are_in: NDArray[np.bool_]

    def guessed(self, run: OneRun, fault: str = "") -> Guesses:
        """Ask the right build or a broken one once, and guess."""
        if not fault:
            return self._guessed(run)
        with self.world.broken(fault) as address:
            return self._guessed(run, address, takes_off=fault == "noise_of_a_fixed_seed")

    def _guessed(self, run: OneRun, dp: str = "", *, takes_off: bool = False) -> Guesses:
        """Guess by what is shown; an attacker on noise that repeats `takes_off` what is shown of nobody."""
        scores = self._scores(run, WITH, dp) - (self._scores(run, WITHOUT, dp) if takes_off else 0)
        correct = int(((scores > run.threshold) == self.are_in).sum())
        return Guesses(run, correct, len(self.are_in))

    def _scores(self, run: OneRun, table: str, dp: str) -> NDArray[np.float64]:
        (result,) = asyncio.run(self.world.answers(run, table, 1, dp))
        shown = {row.element: run.score(row) for row in result.rows}
        return np.array([shown.get((_element(canary),), 0.0) for canary in range(len(self.are_in))])


@contextmanager
def running_canaries(directory: Path, policy: tuple[str, str, str], canaries: int) -> Iterator[Canaries]:
    """Toss the coins, write the tables and run both services."""
    are_in = np.random.default_rng().random(canaries) < 1 / 2
    members = [(int(canary), _element(int(canary))) for canary in np.nonzero(are_in)[0]]
    for name, rows in ((WITH, members), (WITHOUT, [])):
        # One more has no canary's place.
        values = ", ".join(map(str, [(-1, "elsewhere"), *rows]))
        query = f"SELECT *, place AS name, {_PIECES} AS pieces FROM (VALUES {values}) AS t(member_id, place)"
        duckdb.execute(f"COPY ({query}) TO '{directory / name}.parquet' (FORMAT parquet)")
    head, table, delta = policy
    columns = table.format(delta=delta, places=", ".join(map(_element, range(canaries))))
    text = f"{head}\ndelta: {_DELTA}\ntables:\n  {WITH}:{columns}  {WITHOUT}:{columns}"
    with running_services(directory, text) as world:
        yield Canaries(world, are_in)


def _element(canary: int) -> str:
    return f"canary {canary}"
