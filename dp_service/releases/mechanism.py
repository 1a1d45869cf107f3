"""The mechanism that resolved parameters describe, and the noise of its counts."""

from __future__ import annotations

from fractions import Fraction
from typing import assert_never

from dp_service.mechanisms.count_noise import require_drawable_counts
from dp_service.mechanisms.known_gumb import KnownGumb
from dp_service.mechanisms.known_lap import KnownLap
from dp_service.mechanisms.parameters import Currency
from dp_service.mechanisms.unk_gumb import UnkGumb
from dp_service.mechanisms.unk_lap import UnkLap
from dp_service.noise.source import SAMPLER_VERSION
from dp_service.queries.policy import Policy
from dp_service.release_parameters import ReleaseParameters
from dp_service.terms import MechanismName

ResolvedMechanism = KnownLap | KnownGumb | UnkLap | UnkGumb


class IncompleteParametersError(Exception):
    """Parameters without a number that their mechanism needs: a bug in this program, never a fault of a question."""


class UnusableParametersError(Exception):
    """Parameters of a policy for which no noise can be drawn: the scale is too large or too small, or delta is tiny."""

    reason = "POLICY_UNUSABLE"

    def __init__(self) -> None:
        super().__init__(
            "the policy's epsilon_per, delta, tau and Delta leave no noise that can be drawn here"
        )


def mechanism_of(parameters: ReleaseParameters) -> ResolvedMechanism:
    """Return the mechanism that the parameters describe.

    Raises:
        UnusableParametersError: No noise can be drawn for them.
    """
    try:
        return _mechanism_of(parameters)
    except ValueError as error:
        raise UnusableParametersError from error


def _mechanism_of(parameters: ReleaseParameters) -> ResolvedMechanism:
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
        case _:
            assert_never(parameters.mechanism)


def require_usable(policy: Policy) -> None:
    """Make sure that noise can be drawn for every table of a policy.

    Raises:
        UnusableParametersError: Some table's measures or sensitivities leave no noise that can be drawn.
    """
    currency = policy.currency
    for table in policy.tables:
        deltas = [column.delta for column in table.columns if column.delta is not None]
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
    """Return the scale of the Laplace noise, or the sigma of the Gaussian, in the counts; None: no counts are shown."""
    return 1 / mechanism_of(parameters).count_inverse_scale if parameters.with_counts else None


def information_per_element(parameters: ReleaseParameters) -> int:
    """Return what one element more adds to the information of the worst case; 0: its price does not depend on k."""
    if not parameters.k_changes_the_release:
        return 0
    # One choice, and one count if there are counts.
    return 2 if parameters.with_counts else 1
