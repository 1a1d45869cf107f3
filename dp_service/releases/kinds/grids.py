"""What is said of a public grid: its ends and values, as messages have them."""

from __future__ import annotations

import math
from fractions import Fraction

from dp_service.queries.elements import date_of
from dp_service.releases.kinds.kind import Fields
from dp_service.terms import GridScale, GridSpec, MemberValue
from dp_service.values.cells import Grid

RULES = {
    MemberValue.TOTAL: "the sum of its rows",
    MemberValue.MEAN: "the mean of its rows",
    MemberValue.LARGEST: "the largest of its rows",
}
"""Which one value of a member counts, in words."""
SCALES = {
    GridScale.LINEAR: "equally wide",
    GridScale.GEOMETRIC: "wider by a common factor each",
    GridScale.DATES: "of equally many days each",
}
"""How the cells of a grid are made, in words."""


def column_said(name: str, quantum: Fraction, grid: GridSpec) -> Fields:
    """Return what a message says of a column whose quantiles may be asked for."""
    lower, upper = ends_of(grid, quantum)
    return {
        "name": name,
        "quantum": quantum,
        "scale": grid.scale,
        "lower": in_text(lower, grid.scale),
        "upper": in_text(upper, grid.scale),
        "cells": len(Grid.of(grid)),
    }


def in_text(value: Fraction, scale: GridScale) -> str:
    """Return a value of a grid: an exact number, or a day; that in the middle of two is the first of them."""
    return date_of(math.floor(value)).isoformat() if scale is GridScale.DATES else str(value)


def ends_of(grid: GridSpec, quantum: Fraction) -> tuple[Fraction, Fraction]:
    """Return the first and the last value of a grid, in the units of the column."""
    edges = Grid.of(grid).edges
    return edges[0] * quantum, (edges[-1] - 1) * quantum
