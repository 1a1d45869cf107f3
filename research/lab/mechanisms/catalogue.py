"""All mechanisms that can answer one question, with the same parameters."""

from contextlib import suppress

from dp_service.mechanisms.known_gumb import KnownGumb
from dp_service.mechanisms.known_lap import KnownLap
from dp_service.mechanisms.parameters import Currency
from dp_service.mechanisms.unk_gumb import UnkGumb
from dp_service.mechanisms.unk_lap import UnkLap
from research.lab.mechanisms.fixed_threshold import FixedThreshold
from research.lab.mechanisms.interface import ComparedMechanism
from research.lab.mechanisms.limited_domain import LimitDom, StrictLimitDom
from research.lab.mechanisms.limited_domain_laplace import LaplaceLimitDom
from research.lab.mechanisms.one_shot_laplace import OneShotLaplace
from research.lab.mechanisms.peeling import Peeling
from research.lab.mechanisms.permute_and_flip import PermuteAndFlip
from research.lab.mechanisms.served import Served


def catalogue(
    currency: Currency, *, k: int, d_bar: int, delta_l0: int, tau: int
) -> tuple[ComparedMechanism, ...]:
    """Return every mechanism with these parameters, the served ones first.

    Where a mechanism has one epsilon for the whole release it gets k epsilon_per, so that all choose at about
    the same price. The fixed threshold looks at k elements, the only number for which it is meant. One-shot
    Laplace is there only where its theorem holds.

    Raises:
        ValueError: If the parameters do not fit together, as each mechanism says.
    """
    whole = Currency(k * currency.epsilon_per, currency.delta)
    mechanisms: list[ComparedMechanism] = [
        Served(KnownLap(currency, delta_l0, tau)),
        Served(KnownGumb(currency, k, tau, with_counts=False)),
        Served(UnkLap(currency, delta_l0, d_bar, tau)),
        Served(UnkGumb(currency, k, d_bar, tau, with_counts=False)),
        LimitDom(currency, k, d_bar, tau, delta_l0),
        StrictLimitDom(currency, k, d_bar, tau),
        LaplaceLimitDom(whole, k, d_bar, delta_l0, tau),
        FixedThreshold(currency, k, tau),
        Peeling(currency, k, tau),
        PermuteAndFlip(currency, k, tau),
    ]
    # Beyond its theorem nothing is promised, so there is nothing to compare.
    with suppress(ValueError):
        mechanisms.append(OneShotLaplace(whole, k, tau))
    return tuple(mechanisms)
