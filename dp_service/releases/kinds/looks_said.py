"""What is said of looks and bounds, in statements and in messages."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from dp_service.mechanisms.bounded import BoundGauss, TwoLooks
from dp_service.parameters.contributions import BoundedContributions
from dp_service.releases.kinds.kind import Fields
from dp_service.releases.kinds.parts import WHAT_HELPS
from dp_service.releases.statements import Statement, elements, units
from dp_service.terms import BoundedBy


def only_named(looks: TwoLooks) -> Statement:
    """Return which elements of an unknown domain two looks show."""
    first = looks.names_look
    return Statement(
        "list.named",
        f"Only elements that a first look names are shown: the largest of those whose noisy count in it exceeds "
        f"{in_counts(first)}, at most {looks.most_names}. {WHAT_HELPS}",
        values=(in_counts(first) or "", str(looks.most_names)),
    )


def in_counts(look: BoundGauss) -> str | None:
    """Return the threshold of a look in counts, None over a known domain: exactly, as the grid is a power of ten."""
    return None if look.threshold is None else str(Decimal(look.threshold) / look.bound.grid)


def variance_in_counts(look: BoundGauss) -> Fraction:
    """Return the variance parameter of the noise of a look in counts."""
    return look.variance / look.bound.grid**2


def bound_said(stated: BoundedContributions) -> Fields:
    """Return what a message says of a bound."""
    return {
        "bounded_by": stated.bounded_by,
        "typical": stated.typical,
        "periods": stated.periods,
        "grid": stated.grid,
    }


def names_said(looks: TwoLooks) -> Fields:
    """Return what a message says of the first of two looks."""
    first = looks.names_look
    return {
        "typical": first.bound.typical,
        "units": first.units,
        "max_names": looks.most_names,
        "min_count": first.min_count,
        "threshold": in_counts(first),
        "noise_variance": variance_in_counts(first),
    }


BOUNDED_BY = {
    BoundedBy.IN_QUERY: "the query counts no more of them",
    BoundedBy.ASSUMED: "the author of the policy promises it, and nothing checks it",
}


def named(looks: TwoLooks) -> Statement:
    """Return what the first of two looks does."""
    first = looks.names_look
    return Statement(
        "method.first_look",
        f"A first look, for {units(first.units)}, {_counts_each(first)}. "
        f"All elements that count at least {looks.min_count} in it are fetched; of those whose noisy count exceeds "
        f"{in_counts(first)}, it names the largest, at most {looks.most_names}. Its counts are thrown away.",
    )


def counted(looks: TwoLooks) -> Statement:
    """Return what the second of two looks counts."""
    second = looks.counts_look
    return Statement(
        "method.second_look",
        f"A second look, for {units(second.units)}, counts what was named. Within that, it {_counts_each(second)}.",
    )


def _counts_each(look: BoundGauss) -> str:
    """Return how a look counts a member."""
    typical = elements(look.bound.typical)
    if look.bound.grid > 1:
        return (
            f"weights each member so that the squares of what it adds sum to no more than those of {typical}"
        )
    return f"counts each member in at most {typical}"
