"""Checks of arguments; each error names the argument and says what was expected."""

from __future__ import annotations

from fractions import Fraction

MAX_UNITS = 2**53
"""No budget holds more units than this, so that sums and products of them are exact everywhere."""

MAX_EPSILON_PER = 10
"""More for a single unit would protect nobody; policies allow no more either."""


def require_epsilon(name: str, value: Fraction, *, at_most: int | None = None) -> None:
    """Raise ValueError unless `value` is a positive exact number, of at most `at_most` if that is given."""
    limit = "" if at_most is None else f" of at most {at_most}"
    if not _is_exact(value) or value <= 0 or (at_most is not None and value > at_most):
        raise ValueError(f"{name} must be a positive exact number{limit}, got {_format(value)}")


def require_probability(name: str, value: Fraction) -> None:
    """Raise ValueError unless `value` is an exact number strictly between 0 and 1."""
    if not _is_exact(value) or not 0 < value < 1:
        raise ValueError(f"{name} must be an exact number strictly between 0 and 1, got {_format(value)}")


def require_units(name: str, value: int, *, at_least: int = 0) -> None:
    """Raise ValueError unless `value` is an integer from `at_least` to 2^53."""
    # True is an integer to Python; as a number of units it is a mistake.
    if not isinstance(value, int) or isinstance(value, bool) or not at_least <= value <= MAX_UNITS:
        raise ValueError(f"{name} must be an integer from {at_least} to 2^53, got {value!r}")


def _format(value: object) -> str:
    return str(value) if _is_exact(value) else repr(value)


def _is_exact(value: object) -> bool:
    # A float would mean the binary fraction that it is, not the decimal that was typed.
    return isinstance(value, Fraction | int) and not isinstance(value, bool)
