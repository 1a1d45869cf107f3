"""From the parameters of a release to its kind: the one place that tells kinds apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dp_service.mechanisms import Currency, UnkLap
from dp_service.mechanisms.count_noise import require_drawable_counts
from dp_service.noise.source import SAMPLER_VERSION
from dp_service.parameters.release import ReleaseParameters
from dp_service.queries.policy import Policy
from dp_service.queries.time_buckets import MAX_BUCKETS
from dp_service.releases.kinds.bounded import BoundedCounts, contributions_of
from dp_service.releases.kinds.gumbel import Gumbel
from dp_service.releases.kinds.kind import AnyKind
from dp_service.releases.kinds.laplace import Laplace
from dp_service.releases.kinds.moments import Moments
from dp_service.releases.kinds.parts import IncompleteParametersError
from dp_service.releases.kinds.quantiles import Quantiles
from dp_service.releases.kinds.reached import Reached
from dp_service.releases.kinds.relative import Relative
from dp_service.terms import CountNoise, MechanismName

# A call asks a dozen times for the kind of the same parameters.
_last: tuple[ReleaseParameters, AnyKind] | None = None


class UnusableParametersError(Exception):
    """Parameters of a policy for which no noise can be drawn: the scale is too large or too small, or delta is tiny."""

    reason = "POLICY_UNUSABLE"

    def __init__(self) -> None:
        super().__init__(
            "the policy's epsilon_per, delta, tau and Delta leave no noise that can be drawn here"
        )


def kind_of(parameters: ReleaseParameters) -> AnyKind:
    """Return the kind of answer that the parameters describe.

    Raises:
        UnusableParametersError: No noise can be drawn for them.
    """
    global _last  # noqa: PLW0603 - one assignment, of a pair that belongs together
    last = _last
    if last is not None and last[0] is parameters:
        return last[1]
    try:
        found = _KINDS[parameters.mechanism](parameters, Currency(parameters.epsilon_per, parameters.delta))
    except ValueError as error:
        raise UnusableParametersError from error
    if parameters.funnel:
        if not isinstance(found, Laplace | BoundedCounts):
            raise IncompleteParametersError
        found = Reached.of(found)
    _last = parameters, found
    return found


def _bounded(parameters: ReleaseParameters, currency: Currency) -> AnyKind:
    stated = contributions_of(parameters)
    if stated.shifted:
        return Relative.of(parameters, currency)
    return BoundedCounts.of(parameters, currency)


_KINDS: Mapping[MechanismName, Callable[[ReleaseParameters, Currency], AnyKind]] = {
    MechanismName.KNOWN_LAP: Laplace.of,
    MechanismName.UNK_LAP: Laplace.of,
    MechanismName.KNOWN_GUMB: Gumbel.of,
    MechanismName.UNK_GUMB: Gumbel.of,
    MechanismName.BOUND_GAUSS: _bounded,
    MechanismName.BOUND_MOMENTS: Moments.of,
    MechanismName.QUANTILE_GUMB: Quantiles.of,
}


def versions(parameters: ReleaseParameters) -> tuple[int, int]:
    """Return the versions of mechanism and sampler with which this program draws such a release."""
    # Gaussian counts of a Gumbel mechanism have a version of their own, so that Laplace ones keep theirs.
    own = int(parameters.mechanism.is_gumbel and parameters.count_noise is CountNoise.GAUSSIAN)
    return kind_of(parameters).mechanism.version + own, SAMPLER_VERSION


def require_usable(policy: Policy) -> None:
    """Make sure that noise can be drawn for every table of a policy.

    Raises:
        UnusableParametersError: Some table's measures or sensitivities leave no noise that can be drawn.
    """
    currency = policy.currency
    for table in policy.tables:
        deltas = [column.delta for column in table.columns if column.delta is not None]
        deltas += [MAX_BUCKETS] if table.buckets and table.contributions is None else []
        for tau in (1, table.measures.events.tau if table.measures.events else 1):
            try:
                UnkLap(Currency(currency.epsilon_per, currency.delta), max(deltas, default=1), 1, tau)
                require_drawable_counts(currency.count_noise, currency.epsilon_per / (2 * tau))
            except ValueError as error:
                raise UnusableParametersError from error
