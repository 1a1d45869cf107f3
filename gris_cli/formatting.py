"""Totals and units as text for people."""

from __future__ import annotations

from fractions import Fraction

from pinot_connector import formats
from pinot_connector.results import PrivateResult


def format_total(result: PrivateResult) -> str:
    """Return how many members count in any element, empty where that is no part of the release."""
    if result.total is None:
        return ""
    total = result.total
    return f"{total.noisy_count:,} members count in any of the elements, {formats.interval(total.interval)}"


def format_currency(epsilon_per: Fraction | str, delta: Fraction | str, unit_id: str) -> str:
    """Return what a unit of the budget is."""
    return f"epsilon_per {float(epsilon_per):g}, delta {float(delta):g}; unit {unit_id}"


def format_published(rho: Fraction | str, delta: Fraction | str) -> str:
    """Return what a domain was published for."""
    return f"published at rho {float(rho):g}, delta {float(delta):g}"
