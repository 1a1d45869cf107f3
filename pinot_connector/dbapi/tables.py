"""A release in the form of PEP 249: rows, and a description of their columns."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any, TypeAlias, TypeVar

from pinot_connector.dbapi.types import KIND_OF_COLUMN, NUMBER, STRING, TYPE_OF_KIND, Kind, Type
from pinot_connector.parameters import IntervalKind
from pinot_connector.results import PrivateResult, Row
from pinot_connector.value_parameters import ShownNumber

# Name, type, display size, internal size, precision, scale, whether it can be NULL.
Column: TypeAlias = tuple[str, Type, None, None, None, None, bool]
# Elements and counts, each of the type in `description`.
Values: TypeAlias = tuple[Any, ...]

Group = TypeVar("Group")

COUNT_NAME = "count"
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
    `<column>_p<percent>`, `min_<column>` or `max_<column>`. Ends are called by what they say: `<name>_lower` and
    `<name>_upper` where nothing can be cut, `<name>_at_least` where it can, with `<name>_at_most` where the owner
    states how much, `<name>_noise_lower` and `<name>_noise_upper` of what counts alone, and `<name>_cell_from` and
    `<name>_cell_to` of a quantile. A name that another column has already gets underscores at its end.
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
    for title, kind, may_be_null, ends in _numbers_named(release):
        names = (title, *(f"{title}_{end}" for end in (ends if intervals else ())))
        groups.append([(name, kind, may_be_null) for name in names])
    columns: dict[str, tuple[Kind, bool]] = {}
    for name, kind, may_be_null in chain.from_iterable(_selected(groups, release)):
        columns[_free(name, columns)] = (kind, may_be_null)
    return columns


def _selected(groups: Sequence[Group], release: PrivateResult) -> Sequence[Group]:
    """Returns what is shown of columns, the count and values in the order in which SQL selects them."""
    return [groups[place] for place in release.selected] if release.selected else groups


def _numbers_named(release: PrivateResult) -> Iterator[tuple[str, Kind, bool, Sequence[str]]]:
    """Yields the name of the count and of each value, what it holds, whether it can be NULL, and names of its ends."""
    parameters = release.parameters
    if release.interval_kind is not IntervalKind.NONE:
        counts = Kind.WHOLE if parameters.denominator == 1 else Kind.REAL
        yield release.count_alias or COUNT_NAME, counts, False, parameters.coverage.names
    for aggregate, covers in zip(parameters.values, parameters.coverages, strict=True):
        may_be_missing = isinstance(aggregate, ShownNumber) and aggregate.may_be_missing
        yield aggregate.title, Kind.DAY if parameters.has_days else Kind.REAL, may_be_missing, covers.names


def tabulated(release: PrivateResult, *, intervals: bool) -> Iterator[Values]:
    """Returns the rows, ranked, in the columns that `described` returns."""
    nulls = [(None,) * (1 + len(each.names)) for each in release.parameters.coverages]
    return (_values(row, release, nulls, intervals=intervals) for row in release.rows)


def _values(row: Row, release: PrivateResult, nulls: Sequence[Values], *, intervals: bool) -> Values:
    groups = [*((value,) for value in row.element), *_groups(row, nulls, intervals=intervals)]
    return tuple(chain.from_iterable(_selected(groups, release)))


def _groups(row: Row, nulls: Sequence[Values], *, intervals: bool) -> Iterator[Values]:
    """Yields the count and each value with its ends; NULL where there is no value to show."""
    most = None if intervals else 1
    # Quantiles come without counts, and a ranking alone without any number.
    if row.noisy_count is not None:
        yield (row.noisy_count, *(row.interval or ()))[:most]
    # Those of a ranking alone are left out.
    for value, null in zip(row.values, nulls, strict=False):
        numbers = null if value is None else (value.value, *value.interval)
        # Exact numbers as the nearest floats.
        yield tuple(float(each) if isinstance(each, Fraction) else each for each in numbers[:most])


def _free(name: str, taken: Container[str]) -> str:
    while name in taken:
        name += "_"
    return name
