"""Bounds that several packages keep."""

from __future__ import annotations

LARGEST_RHO = 10**24
"""No publication costs more; sums of 100,000 of them stay within what zCDP is converted for."""
