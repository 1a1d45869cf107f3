"""The parameters that mechanisms share, and their checks."""

from dataclasses import dataclass
from fractions import Fraction

from dp_service.noise.discrete_laplace import MAX_INVERSE_SCALE, MIN_INVERSE_SCALE

MAX_INTEGER = 2**53
"""No parameter is larger than a count can be; sums of two such numbers fit everywhere."""

MAX_ROWS = 10**7
"""The largest d_bar: its rows are held in memory."""

_MAX_TERM = 2**512


@dataclass(frozen=True)
class Currency:
    """The two prices of a deployment.

    `epsilon_per` is what one unit of information buys: one epsilon_per-BR mechanism. `delta` is what one call
    buys. Both are exact: build them from decimal strings, as in `Fraction("0.15")`.

    Raises:
        ValueError: Unless epsilon_per is positive, delta lies strictly between 0 and 1, and both have terms
            below 2^512.
    """

    epsilon_per: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        require_rational("epsilon_per", self.epsilon_per)
        require_rational("delta", self.delta)
        if self.delta >= 1:
            raise ValueError(f"delta must be below 1, got {self.delta}")


@dataclass(frozen=True)
class Cost:
    """The price of a release: `information` in units of epsilon_per, `calls` in units of delta."""

    information: int
    calls: int


def require_positive_integer(name: str, value: int, *, at_most: int = MAX_INTEGER) -> None:
    """Raise ValueError unless `value` is an integer from 1 to `at_most`."""
    # True is an integer to Python; as a count of anything it is a mistake.
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= at_most:
        raise ValueError(f"{name} must be a positive integer of at most {at_most}, got {value!r}")


def require_within_domain(k: int, domain_size: int) -> None:
    """Raise ValueError if more elements are asked for than the domain has."""
    if k > domain_size:
        raise ValueError(f"k must be at most the size of the domain, {domain_size}, got {k}")


def require_outcome(is_possible: bool) -> None:
    """Raise ValueError unless a mechanism can have such an outcome."""
    if not is_possible:
        raise ValueError("released and ended_in_bottom must be an outcome that the mechanism can have")


def require_rational(name: str, value: Fraction) -> None:
    """Raise ValueError unless `value` is a positive Fraction with terms below 2^512."""
    if not isinstance(value, Fraction) or value <= 0:
        raise ValueError(f"{name} must be a positive Fraction, got {value!r}")
    if max(value.numerator, value.denominator) >= _MAX_TERM:
        raise ValueError(f"{name} must have a numerator and a denominator below 2^512")


def require_drawable(inverse_scale: Fraction) -> None:
    """Raise ValueError, in terms of the caller's parameters, unless noise of this scale can be drawn."""
    if not MIN_INVERSE_SCALE <= inverse_scale <= MAX_INVERSE_SCALE:
        scale = 1 / inverse_scale if inverse_scale else "an infinite one"
        raise ValueError(
            "epsilon_per, tau and delta_l0 must give a noise scale from "
            f"{1 / MAX_INVERSE_SCALE} to {1 / MIN_INVERSE_SCALE}, got {scale}"
        )
