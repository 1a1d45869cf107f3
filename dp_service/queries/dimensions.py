"""What a question groups by: a column, or a function of one row.

    country                                              a column of the policy
    DATE_TRUNC('month', day)                             the bucket of time that a row is in
    EXTRACT(HOUR FROM viewed_at)                         a part of its time
    CASE WHEN age < 30 THEN 'young' ELSE 'old' END       the first of some conditions that it meets

Every function is of one row, so no member's rows change what stands for another's. All values that a function can have
follow from the question and the policy, so its domain is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dp_service.queries.answer_columns import BUCKET_COLUMN, CASE_COLUMN
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.filters import Filter, Value, column_filters, require_valid, type_of
from dp_service.queries.time_parts import TimePart

MAXIMUM_BRANCHES = 100
_OF_CASES = tuple(CASE_COLUMN if place == 1 else f"{CASE_COLUMN}_{place}" for place in range(1, 5))
NAMES_OF_FUNCTIONS = frozenset({BUCKET_COLUMN, *(f"gris_{part}" for part in TimePart), *_OF_CASES})
"""What queries call functions of a row: no column of a policy has such a name."""


@dataclass(frozen=True)
class Truncated:
    """The time column, divided into buckets of its zone's calendar, each named by its first day."""

    column: str
    length: BucketLength

    def __str__(self) -> str:
        return f"DATE_TRUNC('{self.length}', {self.column})"


@dataclass(frozen=True)
class Extracted:
    """A part of the time column in its zone's calendar."""

    column: str
    part: TimePart

    def __str__(self) -> str:
        return f"EXTRACT({self.part.in_sql} FROM {self.column})"


@dataclass(frozen=True)
class Cases:
    """The value beside the first condition that a row meets.

    Attributes:
        branches: Conditions and their values, of one type; at most 100.
        otherwise: The value of rows that meet none; None: they are left out.
    """

    branches: tuple[tuple[Filter, Value], ...]
    otherwise: Value | None

    def __post_init__(self) -> None:
        require_valid(
            1 <= len(self.branches) <= MAXIMUM_BRANCHES,
            "dimensions",
            f"expected 1 to {MAXIMUM_BRANCHES} conditions in CASE",
        )
        answers = [value for _, value in self.branches]
        answers += [] if self.otherwise is None else [self.otherwise]
        require_valid(
            len(set(map(type_of, answers))) == 1,
            "dimensions",
            "expected values of one type in CASE",
        )

    @property
    def values(self) -> tuple[Value, ...]:
        """All values that it can have, each once, in ascending order."""
        found = {value for _, value in self.branches}
        return tuple(sorted(found if self.otherwise is None else {*found, self.otherwise}))

    @property
    def values_as_texts(self) -> tuple[str, ...]:
        """The same as texts."""
        return tuple(map(str, self.values))

    def __str__(self) -> str:
        return "CASE .. END"


Dimension = str | Truncated | Extracted | Cases
"""A column by its name, or a function of a row."""


def conditions_of_dimensions(dimensions: Iterable[Dimension]) -> Iterator[Filter]:
    """Yield the conditions that dimensions consist of."""
    for each in dimensions:
        if isinstance(each, Cases):
            yield from (condition for condition, _ in each.branches)


def columns_of(dimension: Dimension) -> frozenset[str]:
    """Return the columns of the policy that a dimension is of."""
    match dimension:
        case str():
            return frozenset({dimension})
        case Truncated(column=column) | Extracted(column=column):
            return frozenset({column})
        case Cases(branches=branches):
            return frozenset(each.column for condition, _ in branches for each in column_filters(condition))


def answer_columns(dimensions: Iterable[Dimension]) -> tuple[str, ...]:
    """Return what queries call each dimension: a column by its name; a function by a name that no policy lists."""
    cases = iter(_OF_CASES)
    return tuple(next(cases) if isinstance(each, Cases) else _answer_column(each) for each in dimensions)


def _answer_column(dimension: str | Truncated | Extracted) -> str:
    match dimension:
        case str():
            return dimension
        case Truncated():
            return BUCKET_COLUMN
        case Extracted(part=part):
            return f"gris_{part}"


def labels_of(dimensions: Iterable[Dimension]) -> tuple[str | None, ...]:
    """Return the names that an answer gives functions where the question gives none; None: a column has its own."""
    given = tuple(dimensions)
    return tuple(
        None
        if isinstance(each, str)
        else str(each.length)
        if isinstance(each, Truncated)
        else name.removeprefix("gris_")
        for each, name in zip(given, answer_columns(given), strict=True)
    )


def is_of_time(dimension: Dimension) -> bool:
    """Return whether a list by a dimension is a series, which is in the order of time where nothing else is said."""
    return isinstance(dimension, Truncated | Extracted)
