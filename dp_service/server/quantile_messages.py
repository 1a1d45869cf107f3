"""Quantiles as messages: what is resolved for them, what they are, and what the catalogue says of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from gris_api.dp.v1 import dp_pb2, question_pb2
from numpy.typing import NDArray

from dp_service.parameters.aggregates import ShownQuantile
from dp_service.queries.columns import QuantileColumn
from dp_service.queries.elements import date_of
from dp_service.releases.kinds import AnyKind
from dp_service.releases.kinds.views import ShownCells
from dp_service.server.messages import numbers
from dp_service.terms import GridScale, GridSpec, MemberValue, RankFunction
from dp_service.values.cells import Grid

RANK_FUNCTIONS = numbers(RankFunction, question_pb2.RankFunction.DESCRIPTOR)
_SCALES = numbers(GridScale, dp_pb2.GridScale.DESCRIPTOR)
_MEMBER_VALUES = numbers(MemberValue, dp_pb2.MemberValue.DESCRIPTOR)
STATED_ALPHA = Fraction(1, 20)
"""With which probability the rank error that is stated before a question is asked may be exceeded."""


def quantile_column(column: QuantileColumn) -> dp_pb2.QuantileColumn:
    """Return a column whose quantiles may be asked for, as the catalogue shows it."""
    return _column(column.name, column.bounds.quantum.size, column.grid, column.rule)


def quantiles_message(kind: AnyKind) -> dp_pb2.Quantiles | None:
    """Return of what quantiles are released; None: of nothing."""
    stated, mechanism = kind.parameters.quantiles, kind.ranked
    if stated is None or mechanism is None:
        return None
    # The errors are the same whatever cells were chosen.
    errors = kind.shown_cells((np.zeros(0, dtype=np.int64),) * mechanism.size, alpha=STATED_ALPHA)
    has_extremes = mechanism.smallest or mechanism.largest
    return dp_pb2.Quantiles(
        column=_column(stated.column, stated.quantum, stated.grid, stated.rule),
        shown=map(_shown, stated.asked, errors),
        spare_members=mechanism.spare if has_extremes else 0,
    )


def quantile_values(shown: ShownCells, rows: slice = slice(None)) -> dp_pb2.QuantileValues:
    """Return the values of some elements."""
    return dp_pb2.QuantileValues(
        values=_texts(shown.values[rows], shown.scale),
        lower=_texts(shown.lower[rows], shown.scale),
        upper=_texts(shown.upper[rows], shown.scale),
        rank_error=str(shown.rank_error),
    )


def chosen_cells(cells: Sequence[NDArray[np.int64]], rows: slice) -> Iterator[dp_pb2.ChosenCells]:
    """Yield the cells of some elements, as they are kept."""
    return (dp_pb2.ChosenCells(cells=column[rows].tolist()) for column in cells)


def _texts(values: Sequence[Fraction], scale: GridScale) -> Iterator[str]:
    """Yield exact numbers; or days, that in the middle of two being the first of them."""
    if scale is GridScale.DATES:
        return (date_of(math.floor(value)).isoformat() for value in values)
    return map(str, values)


def _shown(asked: ShownQuantile, error: ShownCells) -> dp_pb2.ShownQuantile:
    return dp_pb2.ShownQuantile(
        function=RANK_FUNCTIONS[asked.function],
        q="" if asked.q is None else str(asked.q),
        alias=asked.alias,
        rank_error=str(error.rank_error),
        cuts=[dp_pb2.RankCut(position=position, part=str(part)) for position, part in error.cuts],
    )


def _column(name: str, quantum: Fraction, spec: GridSpec, rule: MemberValue) -> dp_pb2.QuantileColumn:
    edges = Grid.of(spec).edges
    lower, upper = _texts((edges[0] * quantum, (edges[-1] - 1) * quantum), spec.scale)
    return dp_pb2.QuantileColumn(
        name=name,
        member_value=_MEMBER_VALUES[rule],
        quantum=str(quantum),
        scale=_SCALES[spec.scale],
        lower=lower,
        upper=upper,
        cells=len(Grid.of(spec)),
    )
