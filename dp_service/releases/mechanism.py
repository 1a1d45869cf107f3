"""The mechanism that resolved parameters describe, and the noise of its counts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import assert_never

from dp_service.mechanisms.aggregates import (
    BoundMoments,
    CellsOfGroups,
    DrillDown,
    MomentsOfNames,
    QuantilesOfNames,
    RankedValues,
    SumShare,
    total_bound,
)
from dp_service.mechanisms.bounded import BoundGauss, ContributionBound, Counted, Shift, TwoLooks
from dp_service.mechanisms.count_noise import require_drawable_counts
from dp_service.mechanisms.known_gumb import KnownGumb
from dp_service.mechanisms.known_lap import KnownLap
from dp_service.mechanisms.parameters import Currency
from dp_service.mechanisms.unk_gumb import UnkGumb
from dp_service.mechanisms.unk_lap import UnkLap
from dp_service.noise.source import SAMPLER_VERSION
from dp_service.parameters.aggregates import QuantilesReleased, SumsReleased, TotalsReleased
from dp_service.parameters.contributions import BoundedContributions, NamesLook
from dp_service.parameters.release import ReleaseParameters
from dp_service.queries.policy import Policy
from dp_service.queries.time_buckets import MAX_BUCKETS
from dp_service.terms import CountNoise, MechanismName
from dp_service.values.bounds import Clamp
from dp_service.values.cells import Grid

OfCells = RankedValues | QuantilesOfNames
ResolvedMechanism = (
    KnownLap
    | KnownGumb
    | UnkLap
    | UnkGumb
    | BoundGauss
    | TwoLooks
    | Shift
    | BoundMoments
    | MomentsOfNames
    | DrillDown
    | OfCells
)

_MICRO = 10**6
# Their variances and thresholds are found once for as long as they are kept.
MAX_KEPT = 256


class IncompleteParametersError(Exception):
    """Parameters without a number that their mechanism needs: a bug in this program, never a fault of a question."""


class UnusableParametersError(Exception):
    """Parameters of a policy for which no noise can be drawn: the scale is too large or too small, or delta is tiny."""

    reason = "POLICY_UNUSABLE"

    def __init__(self) -> None:
        super().__init__(
            "the policy's epsilon_per, delta, tau and Delta leave no noise that can be drawn here"
        )


@dataclass(frozen=True)
class _Description:
    """What of a release's parameters decides its mechanism: whatever has the same description has the same one."""

    mechanism: MechanismName
    epsilon_per: Fraction
    delta: Fraction
    tau: int
    delta_l0: int | None
    d_bar: int | None
    k: int | None
    with_counts: bool
    count_noise: CountNoise
    domain_size: int | None
    contributions: BoundedContributions | None
    sums: SumsReleased | None
    quantiles: QuantilesReleased | None
    totals: TotalsReleased | None

    @classmethod
    def of(cls, parameters: ReleaseParameters) -> _Description:
        return cls(
            mechanism=parameters.mechanism,
            epsilon_per=parameters.epsilon_per,
            delta=parameters.delta,
            tau=parameters.tau,
            delta_l0=parameters.delta_l0,
            d_bar=parameters.d_bar,
            k=parameters.k,
            with_counts=parameters.with_counts,
            count_noise=parameters.count_noise,
            domain_size=None if parameters.domain is None else len(parameters.domain),
            contributions=parameters.contributions,
            sums=parameters.sums,
            quantiles=parameters.quantiles,
            totals=parameters.totals,
        )


def mechanism_of(parameters: ReleaseParameters) -> ResolvedMechanism:
    """Return the mechanism that the parameters describe; one of the last 256 is not made again.

    Raises:
        UnusableParametersError: No noise can be drawn for them.
    """
    global _last  # noqa: PLW0603 - one assignment, of a pair that belongs together
    last = _last
    if last is not None and last[0] is parameters:
        return last[1]
    try:
        found = _described(_Description.of(parameters))
    except ValueError as error:
        raise UnusableParametersError from error
    _last = parameters, found
    return found


# A call asks a dozen times for the mechanism of the same parameters, and comparing fractions takes its time.
_last: tuple[ReleaseParameters, ResolvedMechanism] | None = None


@lru_cache(MAX_KEPT)
def _described(parameters: _Description) -> ResolvedMechanism:
    currency = Currency(parameters.epsilon_per, parameters.delta)
    tau = parameters.tau
    count_noise = parameters.count_noise
    match parameters.mechanism:
        case MechanismName.KNOWN_LAP:
            return KnownLap(currency, _needed(parameters.delta_l0), tau)
        case MechanismName.KNOWN_GUMB:
            return KnownGumb(currency, _needed(parameters.k), tau, parameters.with_counts, count_noise)
        case MechanismName.UNK_LAP:
            return UnkLap(currency, _needed(parameters.delta_l0), _needed(parameters.d_bar), tau)
        case MechanismName.UNK_GUMB:
            k, d_bar = _needed(parameters.k), _needed(parameters.d_bar)
            return UnkGumb(currency, k, d_bar, tau, parameters.with_counts, count_noise)
        case MechanismName.BOUND_GAUSS:
            return _with_totals(_bounded(currency, parameters), parameters.totals)
        case MechanismName.BOUND_MOMENTS | MechanismName.QUANTILE_GUMB:
            return _with_totals(_of_values(currency, parameters), parameters.totals)
        case _:
            assert_never(parameters.mechanism)


def _bounded(currency: Currency, parameters: _Description) -> BoundGauss | TwoLooks | Shift:
    stated = parameters.contributions
    if stated is None:
        raise IncompleteParametersError
    bound = _bound(stated, parameters.tau)
    if stated.shifted:
        return Shift(currency, Fraction(stated.units), bound, parameters.domain_size or 0)
    if stated.names is not None:
        return _looks(currency, stated, stated.names, bound)
    return BoundGauss(currency, Fraction(stated.units), bound, stated.min_count)


def _with_totals(rows: ResolvedMechanism, stated: TotalsReleased | None) -> ResolvedMechanism:
    """Return a release of rows, or if there are totals of both: each has its part of the units."""
    if stated is None:
        return rows
    if not isinstance(rows, BoundGauss | BoundMoments):
        raise IncompleteParametersError
    of_totals = replace(
        rows,
        units=rows.units * stated.share,
        bound=total_bound(rows.bound, has_one_value=stated.one_value),
        min_count=None,
    )
    return DrillDown(replace(rows, units=rows.units * (1 - stated.share)), of_totals, stated.one_value)


def _bound(stated: BoundedContributions, tau: int) -> ContributionBound:
    counted = Counted.EVENTS if stated.of_events else Counted.MEMBERS
    return ContributionBound(stated.delta_0, tau, stated.periods, counted)


def _looks(
    currency: Currency, stated: BoundedContributions, names: NamesLook, bound: ContributionBound
) -> TwoLooks:
    return TwoLooks(
        currency,
        stated.units,
        names.units,
        names_bound=replace(bound, delta_0=names.delta_1),
        counts_bound=bound,
        min_count=_needed(stated.min_count),
        most_names=names.most_names,
    )


def _of_values(currency: Currency, parameters: _Description) -> BoundMoments | MomentsOfNames | OfCells:
    if parameters.mechanism is MechanismName.QUANTILE_GUMB:
        return _ranked(currency, parameters)
    return _moments(currency, parameters)


def _moments(currency: Currency, parameters: _Description) -> BoundMoments | MomentsOfNames:
    stated, sums = parameters.contributions, parameters.sums
    if stated is None or sums is None or stated.shifted:
        raise IncompleteParametersError
    bound = _bound(stated, parameters.tau)
    columns = tuple(
        SumShare(Clamp(column.low, column.high), column.share, column.count_share) for column in sums.columns
    )
    if stated.names is not None:
        return MomentsOfNames(_looks(currency, stated, stated.names, bound), sums.share, columns)
    return BoundMoments(currency, Fraction(stated.units), bound, stated.min_count, sums.share, columns)


def _ranked(currency: Currency, parameters: _Description) -> OfCells:
    stated, bounded = parameters.quantiles, parameters.contributions
    names = None if bounded is None else bounded.names
    groups = parameters.domain_size if names is None else names.most_names
    if stated is None or groups is None or (bounded is None and groups != 1):
        raise IncompleteParametersError
    # Without a bound there is one group, in which each member has one value.
    bound = (
        ContributionBound(1)
        if bounded is None
        else ContributionBound(bounded.delta_0, periods=bounded.periods)
    )
    among = CellsOfGroups(groups, len(Grid.of(stated.grid)), bound)
    values = RankedValues(currency, among, stated.quantiles, stated.smallest, stated.largest)
    if bounded is None or names is None:
        return values
    return QuantilesOfNames(_looks(currency, bounded, names, bound), values)


def require_usable(policy: Policy) -> None:
    """Make sure that noise can be drawn for every table of a policy.

    Raises:
        UnusableParametersError: Some table's measures or sensitivities leave no noise that can be drawn.
    """
    currency = policy.currency
    for table in policy.tables:
        deltas = [column.delta for column in table.columns if column.delta is not None]
        deltas += [MAX_BUCKETS] if table.buckets and table.contributions is None else []
        for tau in (1, table.events.tau if table.events else 1):
            try:
                UnkLap(Currency(currency.epsilon_per, currency.delta), max(deltas, default=1), 1, tau)
                require_drawable_counts(currency.count_noise, currency.epsilon_per / (2 * tau))
            except ValueError as error:
                raise UnusableParametersError from error


def versions(parameters: ReleaseParameters) -> tuple[int, int]:
    """Return the versions of mechanism and sampler with which this program draws such a release."""
    return mechanism_of(parameters).version, SAMPLER_VERSION


def _needed(number: int | None) -> int:
    if number is None:
        raise IncompleteParametersError
    return number


def count_noise_scale(parameters: ReleaseParameters) -> Fraction | None:
    """Return the scale of the Laplace noise, or the sigma of the Gaussian, in the counts; None: no counts are shown.

    The sigma of bounded contributions is rounded up to six decimal places; their variance is exact. That of the shift
    is of the sum of two draws.
    """
    if not parameters.with_counts:
        return None
    mechanism = _rows_of(mechanism_of(parameters))
    if isinstance(mechanism, OfCells | DrillDown):
        raise IncompleteParametersError
    if not isinstance(mechanism, BoundGauss | TwoLooks | Shift | BoundMoments | MomentsOfNames):
        return 1 / mechanism.count_inverse_scale
    scaled = _count_variance(mechanism) * _MICRO**2
    root = math.isqrt(math.ceil(scaled))
    return Fraction(root + (root**2 < scaled), _MICRO)


def look_of(parameters: ReleaseParameters) -> BoundGauss | None:
    """Return the look whose counts are shown, with its exact variance and threshold; None: there is none."""
    mechanism = _rows_of(mechanism_of(parameters))
    if isinstance(mechanism, BoundGauss | TwoLooks | BoundMoments | MomentsOfNames):
        return _counting(mechanism)
    return None


def moments_of(parameters: ReleaseParameters) -> BoundMoments | None:
    """Return the mechanism that releases sums, of two looks that of the second one; None: nothing is summed.

    Beside totals it is that of the rows.
    """
    mechanism = _rows_of(mechanism_of(parameters))
    if isinstance(mechanism, MomentsOfNames):
        return mechanism.moments
    return mechanism if isinstance(mechanism, BoundMoments) else None


def drill_down_of(parameters: ReleaseParameters) -> DrillDown | None:
    """Return the mechanism if it releases totals beside the rows; else None."""
    mechanism = mechanism_of(parameters)
    return mechanism if isinstance(mechanism, DrillDown) else None


def _rows_of(mechanism: ResolvedMechanism) -> ResolvedMechanism:
    return mechanism.rows if isinstance(mechanism, DrillDown) else mechanism


def ranked_of(parameters: ReleaseParameters) -> RankedValues | None:
    """Return the mechanism if it releases quantiles, of two looks that of the second one; else None."""
    mechanism = mechanism_of(parameters)
    if isinstance(mechanism, QuantilesOfNames):
        return mechanism.values
    return mechanism if isinstance(mechanism, RankedValues) else None


def shift_of(parameters: ReleaseParameters) -> Shift | None:
    """Return the mechanism if counts are released relative to their total; else None."""
    mechanism = mechanism_of(parameters)
    return mechanism if isinstance(mechanism, Shift) else None


def two_looks_of(parameters: ReleaseParameters) -> TwoLooks | None:
    """Return the two looks that the mechanism takes, with the counts of the second one; None: it takes one.

    Of quantiles the second look draws no counts: of its looks, only names, units and prices mean something.
    """
    mechanism = mechanism_of(parameters)
    if isinstance(mechanism, MomentsOfNames | QuantilesOfNames):
        return mechanism.looks
    return mechanism if isinstance(mechanism, TwoLooks) else None


def _count_variance(mechanism: BoundGauss | TwoLooks | Shift | BoundMoments | MomentsOfNames) -> Fraction:
    return mechanism.error_variance if isinstance(mechanism, Shift) else _counting(mechanism).variance


def _counting(mechanism: BoundGauss | TwoLooks | BoundMoments | MomentsOfNames) -> BoundGauss:
    match mechanism:
        case TwoLooks():
            return mechanism.counts_look
        case BoundMoments():
            return mechanism.counts
        case MomentsOfNames():
            return mechanism.moments.counts
        case _:
            return mechanism


def information_per_element(parameters: ReleaseParameters) -> int:
    """Return what one element more adds to the information of the worst case; 0: its price does not depend on k."""
    if not parameters.k_changes_the_release:
        return 0
    # One choice, and one count if there are counts.
    return 2 if parameters.with_counts else 1
