"""How many members reached each step of a funnel, from counts of those whose deepest step it is.

What is drawn are counts of the deepest steps: one member is in one of them, so a funnel costs what one count costs. Who
reached step j are those whose deepest step is j or a later one, so these counts are added up, and so is their noise:
the count of step j of n carries that of n - j + 1 draws. Sums are a function of what was drawn, and nothing else is
kept or shown. Intervals are plain, from the exact law of so many draws (`mechanisms.added_noise`); those of a list
that is cut in the order of its counts are at alpha divided by how many there are, so they cover together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms.added_noise import added_gaussian_width, added_laplace_width
from dp_service.mechanisms.intervals import CountIntervals
from dp_service.mechanisms.selection import Selection
from dp_service.noise.source import KeyedNoise
from dp_service.releases.histogram import TypedHistogram
from dp_service.releases.kinds.bounded import BoundedCounts, in_counts_outwards
from dp_service.releases.kinds.kind import Fields, Kind
from dp_service.releases.kinds.laplace import Laplace
from dp_service.releases.kinds.parts import MOSTLY, IncompleteParametersError, counts_of
from dp_service.releases.kinds.views import ExpectedAccuracy, IntervalKind, ReleaseView
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.releases.statements import Statement
from dp_service.terms import Element, Scalar


@dataclass(frozen=True, eq=False)
class Reached(Kind[Any]):
    """Counts of those who reached each step of a funnel, or a deeper one.

    Attributes:
        deepest: What is released: counts of those whose deepest step each is.
    """

    deepest: Laplace | BoundedCounts

    counts_called = "Counts of those who reached a step, and none beyond it,"

    @classmethod
    def of(cls, deepest: Laplace | BoundedCounts) -> Reached:
        """Return the kind, whose mechanism is that of the deepest steps."""
        return cls(deepest.parameters, deepest.mechanism, deepest)

    @property
    def said(self) -> Fields:
        """What a message says of it: how the deepest steps are counted."""
        return self.deepest.said

    @property
    def denominator(self) -> int:
        """What divides the counts of the deepest steps."""
        return self.deepest.denominator

    def draw(
        self, rows: TypedHistogram, known: tuple[Element, ...] | None, noise: KeyedNoise
    ) -> MechanismOutput:
        """Draw noise for the counts of the deepest steps, and add them up."""
        drawn = self.deepest.draw(rows, known, noise)
        counts = np.empty_like(counts_of(drawn))
        counts[drawn.selection.indices] = counts_of(drawn)
        reached = np.array([int(counts[places].sum()) for places in self._places()], dtype=np.int64)
        order = np.argsort(-reached, kind="stable")
        return MechanismOutput(Selection(order.astype(np.int64), reached[order], ended_in_bottom=False))

    def _places(self) -> list[list[int]]:
        """Return for each element the places of those of the same other values with its step or a later one."""
        found = {place: chain[step:] for chain in self._chains() for step, place in enumerate(chain)}
        return [found[place] for place in range(len(found))]

    def _chains(self) -> list[list[int]]:
        """Return for each of the other values the places of its elements, by their steps."""
        (at,), domain = self.parameters.funnel, self.parameters.domain
        if domain is None:
            raise IncompleteParametersError
        of_others: dict[tuple[Scalar, ...], list[int]] = {}
        for place, element in enumerate(domain):
            # In a domain in ascending order, so are the steps of the same other values.
            of_others.setdefault((*element[:at], *element[at + 1 :]), []).append(place)
        return list(of_others.values())

    def shown(self, drawn: MechanismOutput, alpha: Fraction) -> ReleaseView:
        """Return the first elements, with intervals of as many draws as were added up."""
        count, released = self.shown_count(drawn), drawn.selection.indices.size
        is_cut = count < released
        level = alpha / released if is_cut else alpha
        kind = IntervalKind.SIMULTANEOUS if is_cut else IntervalKind.PLAIN
        return self._view(drawn, tuple(range(count)), level, kind)

    def shown_rows(self, drawn: MechanismOutput, rows: tuple[int, ...], alpha: Fraction) -> ReleaseView:
        """Return what is shown of some rows."""
        return self._view(drawn, rows, alpha, IntervalKind.PLAIN)

    def _view(
        self, drawn: MechanismOutput, rows: tuple[int, ...], alpha: Fraction, kind: IntervalKind
    ) -> ReleaseView:
        if not self.parameters.with_counts:
            return ReleaseView(len(rows), None, IntervalKind.NONE)
        some = drawn.of_rows(rows)
        widths, noisy = self._widths(some.selection.indices, alpha), counts_of(some)
        found = CountIntervals(np.maximum(noisy - widths, 0), np.maximum(noisy + widths, 0))
        return ReleaseView(len(rows), in_counts_outwards(found, self.denominator), kind)

    def _widths(self, elements: NDArray[np.int64], alpha: Fraction) -> NDArray[np.int64]:
        draws = [len(places) for places in self._places()]
        return np.array([self._width(draws[place], alpha) for place in elements.tolist()], dtype=np.int64)

    def _width(self, draws: int, alpha: Fraction) -> int:
        """Return how far the sum of so many noisy counts may be off, in their steps."""
        if isinstance(self.deepest, Laplace):
            return added_laplace_width(self.deepest.mechanism.count_inverse_scale, draws, alpha)
        return added_gaussian_width(self.deepest.count_noise, draws, alpha)

    @property
    def gloss(self) -> str:
        """What the mechanism of the deepest steps does."""
        return self.deepest.gloss

    def meaning(self, columns: Sequence[str], confidence: float) -> Iterator[Statement]:
        """Yield what the deepest steps mean, and that they are added up."""
        yield from self.deepest.meaning(columns, confidence)
        steps = self._steps
        yield Statement(
            "counts.reached",
            f"The count of a step is of members who reached it or a later one: of {steps} steps, counts of those who "
            f"stopped at each are released, and added up. So that of step 1 carries the noise of {steps} of them, and "
            f"that of step {steps} of one.",
            values=(str(steps),),
        )

    @property
    def _steps(self) -> int:
        return max(map(len, self._places()))

    def _count_scale(self) -> Fraction:
        return self.deepest._count_scale()

    def accuracy(self) -> ExpectedAccuracy:
        """Return how exact the count of the first step will be, which has the noise of all."""
        of_one = self.deepest.accuracy()
        if not self.parameters.with_counts:
            return of_one
        # The mean of |Z_1 + .. + Z_m| is at most sqrt(m) standard deviations, and near sqrt(m) times that of one.
        mean = round(math.sqrt(self._steps) * (of_one.mean_error or 0.0), 3)
        width = -(-self._width(self._steps, 1 - MOSTLY) // self.denominator)
        return replace(of_one, half_width=width, mean_error=mean)
