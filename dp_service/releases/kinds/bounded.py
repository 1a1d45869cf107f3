"""Counts of bounded contributions, in one look or in two: of a known domain all of them, else those above a threshold.

Gaussian noise, whose price does not depend on k. Intervals are of the bounded counts; `coverage` says what they are of
those in the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dp_service.accounting.accuracy import mean_gaussian_error
from dp_service.mechanisms import Currency
from dp_service.mechanisms.bounded import BoundGauss, ContributionBound, Counted, TwoLooks
from dp_service.mechanisms.bounded.selected_intervals import selected_gaussian_interval
from dp_service.mechanisms.histogram import Histogram
from dp_service.mechanisms.intervals import CountIntervals, gaussian_half_width, gaussian_noise_interval
from dp_service.mechanisms.selection import selection_thresholds
from dp_service.noise.source import KeyedNoise
from dp_service.parameters.aggregates import SumsReleased
from dp_service.parameters.contributions import BoundedContributions, NamesLook
from dp_service.parameters.numbers import THE_COUNT
from dp_service.parameters.release import ReleaseParameters
from dp_service.queries.sums import MAXIMUM_VALUES_SHOWN
from dp_service.releases.histogram import TypedHistogram
from dp_service.releases.kinds import coverage
from dp_service.releases.kinds.coverage import of_number
from dp_service.releases.kinds.cutting import fitting_list
from dp_service.releases.kinds.gaussian_threshold import GaussianThreshold
from dp_service.releases.kinds.kind import Fields, Kind, Priced
from dp_service.releases.kinds.looks_said import (
    BOUNDED_BY,
    bound_said,
    counted,
    in_counts,
    named,
    names_said,
    only_named,
    variance_in_counts,
)
from dp_service.releases.kinds.numbers import NumberView, view_of
from dp_service.releases.kinds.parts import (
    HALF,
    MOSTLY,
    WHAT_HELPS,
    IncompleteParametersError,
    clipped,
    counts_of,
    made,
    needed,
)
from dp_service.releases.kinds.views import AnsweredAggregate, ExpectedAccuracy, IntervalKind, ReleaseView
from dp_service.releases.mechanism_output import MechanismOutput
from dp_service.releases.statements import Statement, elements
from dp_service.terms import BoundedBy, Element

_MICRO = 10**6
_Mechanism = TypeVar("_Mechanism", bound=Priced)


@dataclass(frozen=True, eq=False)
class Bounded(Kind[_Mechanism]):
    """What is the same for all kinds whose counts are of bounded contributions."""

    @property
    def stated(self) -> BoundedContributions:
        """How contributions are bounded."""
        return contributions_of(self.parameters)

    @property
    def look(self) -> BoundGauss | None:
        """The look whose counts are shown; None: counts are not shown as they were drawn."""
        return None

    @property
    def said(self) -> Fields:
        """What a message says of it."""
        own: dict[str, Any] = {
            "contributions": bound_said(self.stated),
            "units": self.stated.units,
            "noise_variance": self.count_variance,
            "noise_scale": self.noise_scale,
            **self.looks_said,
        }
        if self.parameters.sums is not None:
            own["sums"] = self._sums_said(self.parameters.sums)
        return {"bounded": own}

    def _sums_said(self, stated: SumsReleased) -> Fields:
        return {
            "share": stated.share,
            "columns": self.columns_said,
            "aggregates": [
                {
                    "title": each.alias or each.name,
                    "quantum": view.quantum,
                    "may_be_missing": view.may_be_missing,
                    **coverage.said(of_number(each.form, stated.columns, self.parameters)),
                }
                for each, view in zip(stated.asked, self.numbers, strict=True)
            ],
            "ordered_by": stated.ordered_by,
        }

    @property
    def columns_said(self) -> list[Fields]:
        """What a message says of each column that is summed."""
        return []

    @property
    def numbers(self) -> list[NumberView]:
        """What is shown of each number that the question asks for beside its counts."""
        stated = self.parameters.sums
        return [] if stated is None else [view_of(each.form, stated.columns) for each in stated.asked]

    @property
    def looks_said(self) -> Fields:
        """What a message says of how it looks at the data."""
        if self.first_look is not None:
            return {"names_look": names_said(self.first_look)}
        if self.look is None:
            raise IncompleteParametersError
        return {"one_look": {"min_count": self.look.min_count, "threshold": in_counts(self.look)}}

    @property
    def grows_with(self) -> str:
        """The bounds with which its threshold grows, of two looks those of the first one."""
        stated = self.stated
        bound = (
            f"typical = {stated.typical}"
            if stated.names is None
            else f"names.typical = {stated.names.typical}"
        )
        return f"{bound} and tau = {self.parameters.tau}" if stated.of_events else bound

    @property
    def _reach(self) -> str:
        if self.stated.grid == 1:
            return super()._reach
        return (
            f"any number of elements, in square by no more than {elements(self.stated.typical)} in full, by at most "
            f"{self.parameters.tau} each"
        )

    @property
    def most_found(self) -> int | None:
        """The names of a first look."""
        return None if self.first_look is None else self.first_look.most_names

    @property
    def denominator(self) -> int:
        """The grid, where members are weighted."""
        return self.stated.grid

    @property
    def count_variance(self) -> Fraction:
        """The exact variance parameter of the noise in a count."""
        if self.look is None:
            raise IncompleteParametersError
        return variance_in_counts(self.look)

    def by_count(
        self,
        drawn: MechanismOutput,
        look: BoundGauss,
        alpha: Fraction,
        aggregates: tuple[AnsweredAggregate, ...] = (),
    ) -> ReleaseView:
        """Return a list in the order of its counts, with intervals that hold given that its elements are shown."""
        count = self.shown_count(drawn)
        if not self.parameters.with_counts:
            return ReleaseView(count, None, IntervalKind.NONE, aggregates=aggregates)
        thresholds = selection_thresholds(drawn.selection, count)
        found = look_intervals(look, counts_of(drawn)[:count], thresholds, alpha)
        kind = IntervalKind.PLAIN if thresholds is None else IntervalKind.GIVEN_SHOWN
        return ReleaseView(count, found, kind, aggregates=aggregates)

    def _count_scale(self) -> Fraction:
        """Return the sigma, rounded up to six decimal places; the variance is exact."""
        scaled = self.count_variance * _MICRO**2
        root = math.isqrt(math.ceil(scaled))
        return Fraction(root + (root**2 < scaled), _MICRO)

    def accuracy(self) -> ExpectedAccuracy:
        """Return how exact counts will be, and how large they have to be."""
        threshold, counts = self._threshold(), self.parameters.with_counts
        grid, variance = self.stated.grid, self.count_variance
        width = -(-gaussian_half_width(variance * grid**2, 1 - MOSTLY) // grid) if counts else None
        return ExpectedAccuracy(
            half_width=width,
            mean_error=round(mean_gaussian_error(math.sqrt(variance)), 3) if counts else None,
            found_half=None if threshold is None else threshold.needed(HALF),
            found_mostly=None if threshold is None else threshold.needed(MOSTLY),
            is_fixed=threshold is not None,
        )

    def _threshold(self) -> GaussianThreshold | None:
        # Of two looks the first decides: an element has to be named.
        look = self.look if self.first_look is None else self.first_look.names_look
        return None if look is None else GaussianThreshold.of(look)

    @property
    def gloss(self) -> str:
        """What its mechanism does, in a few words."""
        return "Gaussian noise on every count of bounded contributions"

    def meaning(self, columns: Sequence[str], confidence: float) -> Iterator[Statement]:
        """Yield what bounding means for counts and intervals."""
        yield from clipped(self.parameters)
        if self.stated.can_cut or self.stated.bounded_by is BoundedBy.ASSUMED:
            yield Statement("counts.bounded", self._bounded(), values=(str(self.stated.typical),))
        if self.first_look is not None:
            yield only_named(self.first_look)
        elif self.look is not None and self.look.threshold is not None:
            yield Statement(
                "list.threshold",
                f"Only elements whose noisy count exceeds {in_counts(self.look)} are shown. {WHAT_HELPS}",
                values=(in_counts(self.look) or "",),
            )

    def _bounded(self) -> str:
        stated = self.stated
        of = "" if stated.names is None else " of those that a first look names"
        each = f" in each of {stated.periods} periods" if stated.periods > 1 else ""
        if stated.grid > 1:
            if self.parameters.tau > 1:
                return (
                    f"Counts are of bounded contributions: a member whose squared counts{of} sum to more than those of "
                    f"{elements(stated.typical)} with {self.parameters.tau} rows in each counts with a part of each."
                )
            return (
                f"Counts are of bounded contributions: a member of more than {elements(stated.typical)}{of}{each} "
                "counts with less than 1 in each: the squares of what it adds sum to no more than theirs."
            )
        return (
            f"Counts are of bounded contributions: a member counts in at most {elements(stated.typical)}{of}; "
            f"{BOUNDED_BY[stated.bounded_by]}."
        )

    def of_numbers(self, stated: SumsReleased) -> Iterator[Statement]:
        """Yield what the numbers mean, and in the order of which the list is."""
        yield from dict.fromkeys(each.said for each in self.numbers if each.said is not None)
        if stated.ordered_by is not None:
            first = stated.asked[stated.ordered_by]
            listing = self.parameters.listing
            direction = "ascending" if listing is not None and listing.smallest_first else "descending"
            yield Statement(
                "order.of_sum",
                f"The list is in {direction} order of {first.name}. Where it is cut, intervals "
                "are so wide that those of all counts that were released cover together, and so do those of the sums "
                "and averages of each column.",
                "" if first.place == THE_COUNT else stated.columns[first.place].name,
            )
        domain, most = self.parameters.domain, MAXIMUM_VALUES_SHOWN // len(stated.asked)
        if self.parameters.k == most and (domain is None or most < len(domain)):
            yield Statement(
                "list.at_most",
                f"At most {elements(most)} are shown: a result has at most {MAXIMUM_VALUES_SHOWN:,} sums "
                "and averages.",
                values=(str(most),),
            )

    def of_intervals(self, view: ReleaseView, confidence: float) -> Iterator[Statement]:
        """Yield what the intervals of a list cover, and where averages are missing."""
        yield from super().of_intervals(view, confidence)
        missing = len(frozenset().union(*(each.missing for each in view.aggregates)))
        if missing:
            yield Statement(
                "sums.missing",
                f"{elements(missing)} may have nothing to divide by, as far as the counts say: no average and no "
                "quotient is shown there.",
                values=(str(missing),),
            )

    def method(self) -> Iterator[Statement]:
        """Yield what is fetched and shown, and which looks are taken."""
        look = self.look
        if look is not None and look.threshold is not None:
            yield Statement(
                "method.threshold",
                f"All elements that count at least {self.stated.min_count} are fetched; those whose noisy count "
                f"exceeds {in_counts(look)} are shown.",
                values=(str(self.stated.min_count), in_counts(look) or ""),
            )
        if self.first_look is not None:
            yield named(self.first_look)
            yield counted(self.first_look)


@dataclass(frozen=True, eq=False)
class BoundedCounts(Bounded[BoundGauss | TwoLooks]):
    """Bounded counts with noise of their own."""

    @classmethod
    def of(cls, parameters: ReleaseParameters, currency: Currency) -> BoundedCounts:
        """Return the kind with its mechanism."""
        stated = contributions_of(parameters)
        bound = bound_of(stated, parameters.tau)
        if stated.names is not None:
            return cls(parameters, looks_of(currency, stated, stated.names, bound))
        return cls(parameters, made(BoundGauss, currency, Fraction(stated.units), bound, stated.min_count))

    @property
    def first_look(self) -> TwoLooks | None:
        """The two looks, if there are two."""
        return self.mechanism if isinstance(self.mechanism, TwoLooks) else None

    @property
    def look(self) -> BoundGauss:
        """The look whose counts are shown."""
        return self.mechanism.counts_look if isinstance(self.mechanism, TwoLooks) else self.mechanism

    @property
    def count_noise(self) -> Fraction:
        """The variance of the noise in each count, which is its own, on the grid."""
        return self.look.variance

    def meaning(self, columns: Sequence[str], confidence: float) -> Iterator[Statement]:
        """Yield what bounding means, and what is computed of counts."""
        yield from super().meaning(columns, confidence)
        if self.parameters.sums is not None:
            yield from self.of_numbers(self.parameters.sums)

    def draw(
        self, rows: TypedHistogram, known: tuple[Element, ...] | None, noise: KeyedNoise
    ) -> MechanismOutput:
        """Draw noise for all counts, of two looks for those of the names."""
        draw = self.mechanism.draw_counts if isinstance(self.mechanism, TwoLooks) else self.mechanism.run
        drawn = MechanismOutput(draw(Histogram.from_element_order(rows.counts), noise))
        return drawn if known is not None else fitting_list(rows.elements, drawn)

    def shown(self, drawn: MechanismOutput, alpha: Fraction) -> ReleaseView:
        """Return the first elements, with intervals that hold given that they are shown."""
        return self.by_count(drawn, self.look, alpha)


def look_intervals(
    look: BoundGauss,
    noisy: NDArray[np.int64],
    thresholds: NDArray[np.int64] | None,
    alpha: Fraction,
) -> CountIntervals:
    """Return the intervals of counts of a look.

    Args:
        look: The look.
        noisy: Some of its noisy counts, shape (n,).
        thresholds: What each had to reach to be shown, shape (n,); None: nothing was selected.
        alpha: The probability with which an interval may miss.
    """
    # Over an unknown domain nothing below the smallest count is shown.
    grid = look.bound.grid
    minimum = (look.min_count or 0) * grid
    if thresholds is None:
        found = gaussian_noise_interval(noisy, look.variance, alpha=alpha, minimum=minimum)
    else:
        found = selected_gaussian_interval(noisy, thresholds, look.variance, alpha=alpha, minimum=minimum)
    return in_counts_outwards(found, grid)


def in_counts_outwards(found: CountIntervals, grid: int) -> CountIntervals:
    """Return intervals on the grid in counts, rounded outwards."""
    return CountIntervals(found.lower // grid, -(-found.upper // grid))


def contributions_of(parameters: ReleaseParameters) -> BoundedContributions:
    """Return how contributions are bounded."""
    if parameters.contributions is None:
        raise IncompleteParametersError
    return parameters.contributions


def bound_of(stated: BoundedContributions, tau: int) -> ContributionBound:
    """Return what a member can change."""
    counted = Counted.EVENTS if stated.of_events else Counted.MEMBERS
    return ContributionBound(stated.typical, tau, stated.periods, counted, stated.grid)


def looks_of(
    currency: Currency, stated: BoundedContributions, names: NamesLook, bound: ContributionBound
) -> TwoLooks:
    """Return two looks, of which the second one has this bound."""
    of_names = replace(bound, typical=names.typical)
    return made(
        TwoLooks,
        currency,
        stated.units,
        names.units,
        of_names,
        bound,
        needed(stated.min_count),
        names.most_names,
    )
