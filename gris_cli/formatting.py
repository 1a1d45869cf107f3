"""Units as text for people."""

from __future__ import annotations

from fractions import Fraction


def format_currency(epsilon_per: Fraction | str, delta: Fraction | str, unit_id: str) -> str:
    """Return what a unit of the budget is."""
    return f"epsilon_per {float(epsilon_per):g}, delta {float(delta):g}; unit {unit_id}"


def format_published(rho: Fraction | str, delta: Fraction | str) -> str:
    """Return what a domain was published for."""
    return f"published at rho {float(rho):g}, delta {float(delta):g}"
