"""A release in the form of PEP 249: rows, and a description of their columns."""

from __future__ import annotations

import datetime
from collections.abc import Container, Iterator
from fractions import Fraction
from typing import Any, TypeAlias

from pinot_connector.dbapi.types import NUMBER, TYPE_OF_COLUMN, Type
from pinot_connector.engines.base import ColumnType
from pinot_connector.parameters import IntervalKind
from pinot_connector.questions import AggregateFunction
from pinot_connector.results import PrivateResult, Row
from pinot_connector.shown_values import ShownValue

# Name, type, display size, internal size, precision, scale, whether it can be NULL.
Column: TypeAlias = tuple[str, Type, None, None, None, None, bool]
# Elements and counts, each of the type in `description`.
Values: TypeAlias = tuple[Any, ...]

COUNT_NAME = "count"
ONE_DESCRIBED: tuple[Column, ...] = (("1", NUMBER, None, None, None, None, False),)
"""The description of the one column of SELECT 1."""


def described(release: PrivateResult, *, intervals: bool) -> tuple[Column, ...]:
    """Returns the columns: those of the elements as selected, the count, sums and averages, and ends of intervals.

    All have the question's aliases. Without one the count is called `count`, a sum `sum_<column>` and an average
    `average_<column>_per_member`, over rows `sum_<column>_of_rows` and `average_<column>_per_row`; a quantile is
    `<column>_p<percent>`, `min_<column>` or `max_<column>`; an interval is
    `<name>_lower` and `<name>_upper`. A name that another column has already gets underscores at its end.
    """
    totals = release.parameters.totals
    columns = {
        # A total has a value of its own column alone.
        column.title: (TYPE_OF_COLUMN[column.type], totals is not None and column.name != totals.column)
        for column in release.columns
    }
    numbers = (
        [] if release.interval_kind is IntervalKind.NONE else [(release.count_alias or COUNT_NAME, False)]
    )
    for aggregate in release.parameters.values:
        numbers.append((aggregate.title, aggregate.function is AggregateFunction.AVERAGE))
    kind = TYPE_OF_COLUMN[ColumnType.DATE] if release.parameters.has_days else NUMBER
    for title, may_be_null in numbers:
        for name in (title, f"{title}_lower", f"{title}_upper") if intervals else (title,):
            columns[_free(name, columns)] = (kind, may_be_null)
    return tuple((name, kind, None, None, None, None, null) for name, (kind, null) in columns.items())


def tabulated(release: PrivateResult, *, intervals: bool) -> Iterator[Values]:
    """Returns the rows, ranked, in the columns that `described` returns; behind them totals, as SQL writes them.

    A total has NULL in the column that it adds up over.
    """
    return (_values(row, intervals=intervals) for row in (*release.rows, *_totals(release)))


def row_count(release: PrivateResult) -> int:
    """Returns how many rows `tabulated` has."""
    return len(release.rows) + len(release.totals or ())


def _totals(release: PrivateResult) -> Iterator[Row]:
    """Yields totals as rows."""
    stated = release.parameters.totals
    for total in (release.totals or ()) if stated is not None else ():
        element: tuple[Any, ...] = tuple(
            total.value if stated is not None and column.name == stated.column else None
            for column in release.columns
        )
        yield Row(element, total.noisy_count, total.interval, total.sums)


def _values(row: Row, *, intervals: bool) -> Values:
    if row.noisy_count is None and not row.values:
        return row.element
    # Quantiles come without counts.
    counted = () if row.noisy_count is None else (row.noisy_count,)
    numbers = (*counted, *((row.interval or ()) if intervals else ()))
    return (
        *row.element,
        *numbers,
        *(each for value in row.values for each in _numbers(value, intervals=intervals)),
    )


def _numbers(value: ShownValue | None, *, intervals: bool) -> tuple[float | datetime.date | None, ...]:
    """Returns a sum, an average or a quantile as the nearest float, or its day; NULL where there is none to show."""
    ends: tuple[Fraction | datetime.date | None, ...] = (
        (None, None, None) if value is None else (value.value, *value.interval)
    )
    shown = ends[: 3 if intervals else 1]
    return tuple(float(end) if isinstance(end, Fraction) else end for end in shown)


def _free(name: str, taken: Container[str]) -> str:
    while name in taken:
        name += "_"
    return name
