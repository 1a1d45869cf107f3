"""A release in the form of PEP 249: rows, and a description of their columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from pinot_connector.dbapi.types import NUMBER, TYPE_OF_COLUMN, Type
from pinot_connector.results import IntervalKind, PrivateResult, Row

# Name, type, display size, internal size, precision, scale, whether it can be NULL.
Column: TypeAlias = tuple[str, Type, None, None, None, None, bool]
# Elements and counts, each of the type in `description`.
Values: TypeAlias = tuple[Any, ...]

COUNT_NAME = "count"
ONE_DESCRIBED: tuple[Column, ...] = (("1", NUMBER, None, None, None, None, False),)
"""The description of the one column of SELECT 1."""


def described(release: PrivateResult, *, intervals: bool) -> tuple[Column, ...]:
    """Returns the columns: those of the elements as selected, the count, and the ends of its interval.

    Columns and the count have the question's aliases. Without one the count is called `count`; its interval is
    `<count>_lower` and `<count>_upper`. A name that another column has already gets underscores at its end.
    """
    columns = {column.title: TYPE_OF_COLUMN[column.type] for column in release.columns}
    if release.interval_kind is not IntervalKind.NONE:
        count = release.count_alias or COUNT_NAME
        for name in (count, f"{count}_lower", f"{count}_upper") if intervals else (count,):
            columns[_free(name, columns)] = NUMBER
    return tuple((name, kind, None, None, None, None, False) for name, kind in columns.items())


def tabulated(release: PrivateResult, *, intervals: bool) -> Iterator[Values]:
    """Returns the rows, ranked, in the columns that `described` returns."""
    return (_values(row, intervals=intervals) for row in release.rows)


def _values(row: Row, *, intervals: bool) -> Values:
    if row.noisy_count is None:
        return row.element
    return (*row.element, row.noisy_count, *((row.interval or ()) if intervals else ()))


def _free(name: str, taken: dict[str, Type]) -> str:
    while name in taken:
        name += "_"
    return name
