"""When an answer is useful, and which bounds are the best for so many units.

The best is one of those with useful answers, if there are any. It finds nearly as many of the true top k as any of
them, and among those its counts are nearly as exact as any. What is left are settings that do equally well; of these
the one that finds most. Bounds are powers of two, so that a choice tells little of the data that it was made on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, TypeVar

from research.lab.bound.looks import BothLooks, OneLook, Question, Sketch, Worth

NEARLY_AS_MANY = 0.02
"""Of the k elements, so many fewer are nearly as many."""

NEARLY_AS_EXACT = 1.1
"""An error that is larger by this factor is nearly as small."""


@dataclass(frozen=True)
class Quality:
    """When the answer to a top k is useful.

    Attributes:
        names: The part of the k largest elements that it shows, in whole elements.
        error: How far a shown count may be from the count before bounding on average, as a part of that count.
    """

    names: Fraction = Fraction(19, 20)
    error: Fraction = Fraction(1, 10)

    def is_met(self, worth: Worth, k: int) -> bool:
        """Return whether answers of this worth are useful on average."""
        is_exact = worth.error is not None and worth.error_part <= self.error
        return is_exact and worth.found >= math.floor(self.names * k)

    def within_reach(self, tried: Sequence[Worth], k: int) -> Quality:
        """Return this quality, lowered to nearly what the best of some settings reach."""
        most = max(worth.found for worth in tried)
        names = min(self.names, Fraction(most / k) - Fraction(NEARLY_AS_MANY))
        enough = (_part(worth) for worth in tried if worth.found >= math.floor(names * k))
        return Quality(names, max(self.error, Fraction(NEARLY_AS_EXACT * min(enough))))


USEFUL = Quality()

Look: TypeAlias = OneLook | BothLooks
_Look = TypeVar("_Look", bound=Look)


@dataclass(frozen=True)
class BestLooks:
    """The best one look and the best two looks for so many units."""

    one: OneLook
    two: BothLooks | None


def best_looks(sketch: Sketch, question: Question, units: int, quality: Quality) -> BestLooks:
    """Return the best settings; a single unit is never shared by two looks."""
    one = best(sketch.one_looks(units), question.k, quality)
    if units == 1:
        return BestLooks(one, None)
    return BestLooks(one, best(sketch.both_looks(units), question.k, quality))


def best(tried: Iterable[tuple[_Look, Worth]], k: int, quality: Quality) -> _Look:
    """Return the best of some settings by what they are worth; the earlier one of equals."""
    every = list(tried)
    found = [each for each in every if quality.is_met(each[1], k)] or every
    most = max(worth.found for _, worth in found)
    enough = [(look, worth) for look, worth in found if worth.found >= most - NEARLY_AS_MANY * k]
    least = min(_error(worth) for _, worth in enough)
    exact = [(look, worth) for look, worth in enough if _error(worth) <= NEARLY_AS_EXACT * least]
    look, _ = max(exact, key=lambda each: each[1].found)
    return look


def _error(worth: Worth) -> float:
    return float("inf") if worth.error is None else worth.error


def _part(worth: Worth) -> float:
    """Return a number that no error reaches where nothing is shown: `Fraction` knows no infinity."""
    return 1e9 if worth.error is None else worth.error_part
