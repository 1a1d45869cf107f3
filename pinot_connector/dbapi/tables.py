"""A release in the form of PEP 249: rows, and a description of their columns."""

from __future__ import annotations

import datetime
from collections.abc import Container, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any, TypeAlias, TypeVar

from pinot_connector.dbapi.types import KIND_OF_COLUMN, NUMBER, STRING, TYPE_OF_KIND, Kind, Type
from pinot_connector.parameters import IntervalKind
from pinot_connector.results import PrivateResult, Row
from pinot_connector.shown_values import ShownValue
from pinot_connector.value_parameters import ShownNumber

# Name, type, display size, internal size, precision, scale, whether it can be NULL.
Column: TypeAlias = tuple[str, Type, None, None, None, None, bool]
# Elements and counts, each of the type in `description`.
Values: TypeAlias = tuple[Any, ...]

Group = TypeVar("Group")

COUNT_NAME = "count"
_OF_INTERVAL, _OF_CELL = ("_lower", "_upper"), ("_cell_from", "_cell_to")
EXPLANATION_DESCRIBED: tuple[Column, ...] = (
    ("property", STRING, None, None, None, None, False),
    ("value", STRING, None, None, None, None, False),
)
"""The description of the two columns of EXPLAIN."""


def one_described(name: str) -> tuple[Column, ...]:
    """Returns the description of the one column of SELECT 1."""
    return ((name, NUMBER, None, None, None, None, False),)


def described(release: PrivateResult, *, intervals: bool) -> tuple[Column, ...]:
    """Returns the columns: those of the elements as selected, the count, sums and averages, and ends of intervals.

    They are in the order of SELECT, and a count that SQL does not select is left out. All have the question's
    aliases. Without one the count is called `count`, a sum `sum_<column>` and an average
    `average_<column>_per_member`, over rows `sum_<column>_of_rows` and `average_<column>_per_row`; a quantile is
    `<column>_p<percent>`, `min_<column>` or `max_<column>`; an interval is `<name>_lower` and `<name>_upper`, and
    the cell of a quantile `<name>_cell_from` and `<name>_cell_to`. A name that another column has already gets
    underscores at its end.
    """
    columns = _columns(release, intervals=intervals)
    return tuple(
        (name, TYPE_OF_KIND[kind], None, None, None, None, null) for name, (kind, null) in columns.items()
    )


def kinds(release: PrivateResult, *, intervals: bool) -> list[tuple[str, Kind]]:
    """Returns the names of the columns that `described` returns, and what they hold.

    It follows from the question and the policy, so that it is the same before a question is answered (LIMIT 0).
    """
    return [(name, kind) for name, (kind, _) in _columns(release, intervals=intervals).items()]


def _columns(release: PrivateResult, *, intervals: bool) -> dict[str, tuple[Kind, bool]]:
    groups = [[(column.title, KIND_OF_COLUMN[column.type], False)] for column in release.columns]
    # The cell of a quantile is no confidence interval.
    ends = _OF_INTERVAL if release.parameters.quantiles is None else _OF_CELL
    for title, kind, may_be_null in _numbers_named(release):
        groups.append([(name, kind, may_be_null) for name in _with_ends(title, ends, intervals=intervals)])
    columns: dict[str, tuple[Kind, bool]] = {}
    for name, kind, may_be_null in chain.from_iterable(_selected(groups, release)):
        columns[_free(name, columns)] = (kind, may_be_null)
    return columns


def _selected(groups: Sequence[Group], release: PrivateResult) -> Sequence[Group]:
    """Returns what is shown of columns, the count and values in the order in which SQL selects them."""
    return [groups[place] for place in release.selected] if release.selected else groups


def _numbers_named(release: PrivateResult) -> Iterator[tuple[str, Kind, bool]]:
    """Yields the name of the count and of each value, what it holds, and whether it can be NULL."""
    parameters = release.parameters
    if release.interval_kind is not IntervalKind.NONE:
        counts = Kind.WHOLE if parameters.denominator == 1 else Kind.REAL
        yield release.count_alias or COUNT_NAME, counts, False
    for aggregate in parameters.values:
        may_be_missing = isinstance(aggregate, ShownNumber) and aggregate.may_be_missing
        yield aggregate.title, Kind.DAY if parameters.has_days else Kind.REAL, may_be_missing


def _with_ends(name: str, ends: tuple[str, str], *, intervals: bool) -> tuple[str, ...]:
    return (name, *(f"{name}{end}" for end in ends)) if intervals else (name,)


def tabulated(release: PrivateResult, *, intervals: bool) -> Iterator[Values]:
    """Returns the rows, ranked, in the columns that `described` returns."""
    return (_values(row, release, intervals=intervals) for row in release.rows)


def _values(row: Row, release: PrivateResult, *, intervals: bool) -> Values:
    if not release.selected:
        return (*row.element, *_counted(row.noisy_count, row.interval, row.values, intervals=intervals))
    groups = [
        *((value,) for value in row.element),
        *_groups(row.noisy_count, row.interval, row.values, intervals=intervals),
    ]
    return tuple(chain.from_iterable(_selected(groups, release)))


def _counted(
    count: float | None,
    interval: tuple[int, int] | None,
    values: Iterable[ShownValue | None],
    *,
    intervals: bool,
) -> Values:
    return tuple(chain.from_iterable(_groups(count, interval, values, intervals=intervals)))


def _groups(
    count: float | None,
    interval: tuple[int, int] | None,
    values: Iterable[ShownValue | None],
    *,
    intervals: bool,
) -> Iterator[Values]:
    """Yields the count and each value with its ends."""
    # Quantiles come without counts, and a ranking alone without any number.
    if count is not None:
        yield (count, *((interval or ()) if intervals else ()))
    for value in values:
        yield _numbers(value, intervals=intervals)


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
