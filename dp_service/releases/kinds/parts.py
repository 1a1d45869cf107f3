"""What several kinds are made of: constants, mechanisms that are kept, sentences and intervals that they share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.intervals import CountIntervals
from dp_service.parameters.aggregates import SummedValue
from dp_service.parameters.release import ReleaseParameters
from dp_service.releases.kinds.views import IntervalKind
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.releases.statements import Statement, percent
from dp_service.values.bounds import Clamp

_Made = TypeVar("_Made")
HALF = Fraction(1, 2)
MOSTLY = Fraction(19, 20)
"""With which probability an element is expected to be found, and a count to lie in its interval."""

# Their variances and thresholds are found once for as long as they are kept.
_MAX_KEPT = 256


class IncompleteParametersError(Exception):
    """Parameters without a number that their mechanism needs: a bug in this program, never a fault of a question."""


def made(mechanism: Callable[..., _Made], *parameters: Hashable) -> _Made:
    """Return the mechanism with these parameters; one of the last 256 is not made again."""
    found: _Made = _kept(mechanism, *parameters)
    return found


@lru_cache(_MAX_KEPT)
def _kept(mechanism: Callable[..., Any], *parameters: Hashable) -> Any:
    return mechanism(*parameters)


def needed(number: int | None) -> int:
    """Return a number that the parameters of a kind have."""
    if number is None:
        raise IncompleteParametersError
    return number


def clamp_of(column: SummedValue) -> Clamp:
    """Return the ends of what a release adds up."""
    return Clamp(column.low, column.high, column.is_centred)


WHAT_HELPS = "Fewer columns, longer buckets, a longer time or wider conditions make counts larger."
"""What is said beside whatever hides elements."""


def clipped(parameters: ReleaseParameters) -> Iterator[Statement]:
    """Yield how many rows, or values, of a member count in an element."""
    if parameters.contributions is not None and parameters.contributions.values_of:
        yield _of_values(parameters.contributions.values_of, parameters)
        return
    if parameters.clips:
        rows = "1 row" if parameters.tau == 1 else f"{parameters.tau} rows"
        text = (
            f"At most {rows} of a member count in each element; counts and intervals are without the others."
        )
        yield Statement("counts.clipped", text, values=(str(parameters.tau),))


def _of_values(column: str, parameters: ReleaseParameters) -> Statement:
    """Return how many values of a member count in an element."""
    each = "" if parameters.domain == ((),) else " in each element"
    text = (
        f"Counts are of distinct values of {column}, among at most {parameters.tau} of each member{each}, and so are "
        "intervals: but for noise no count is larger than that of all values."
    )
    return Statement("counts.distinct", text, column=column, values=(str(parameters.tau),))


def covering(kind: IntervalKind, confidence: float, *, bounds: bool) -> Statement:
    """Return what intervals of counts cover, by the condition under which they hold; or what lower bounds do."""
    missing = 1 - Fraction(str(confidence))
    each, every, often = "Each interval covers", "The intervals of all counts cover", percent(1 - missing)
    if bounds:
        each, every = "Each lower bound is at most", "The lower bounds of all counts are at most"
        often = percent(1 - missing / 2)
    match kind:
        case IntervalKind.NONE:
            text = "No counts were asked for, so there are no intervals."
        case IntervalKind.PLAIN:
            text = f"{each} the number before noise with {often}."
        case IntervalKind.GIVEN_SHOWN:
            text = (
                f"{each} the number before noise with {often}, given that its element is shown; counts "
                "that hardly sufficed for that say little, so their intervals may reach far down."
            )
        case IntervalKind.SIMULTANEOUS:
            text = (
                f"{every} the numbers before noise together with {often}, and so do those "
                "of each column's values, also of what is not shown: the list was cut in another order than that of "
                "its counts, or filtered by what was released."
            )
    return Statement(f"intervals.{kind.name.lower()}", text, values=(often,) if often in text else ())


def counts_of(drawn: MechanismOutput) -> NDArray[np.int64]:
    """Return the noisy counts of a release that has some."""
    counts = drawn.selection.noisy_counts
    if counts is None:
        raise IncompleteParametersError
    return counts


def some_intervals(intervals: Sequence[tuple[int, int]]) -> CountIntervals:
    """Return pairs of ends as intervals."""
    ends = np.array(intervals, dtype=np.int64).reshape(-1, 2)
    return CountIntervals(ends[:, 0], ends[:, 1])
