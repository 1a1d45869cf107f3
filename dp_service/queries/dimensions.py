"""What a question groups by: a column, or a function of one row.

    country                                              a column of the policy
    DATE_TRUNC('month', day)                             the bucket of time that a row is in
    EXTRACT(HOUR FROM viewed_at)                         a part of its time
    CASE WHEN age < 30 THEN 'young' ELSE 'old' END       the first of some conditions that it meets
    FLOOR(price / 10) * 10                               the bin of a number
    SPLIT_PART(email, '@', 2)                            a part of a text

Every function is of one row, so no member's rows change what stands for another's. All values that a function can have
follow from the question and the policy, so its domain is known; that of a part of a text is where the column's is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from dp_service.queries.answer_columns import BIN_COLUMN, BUCKET_COLUMN, CASE_COLUMN, PART_OF_TEXT_COLUMN
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.filters import Filter, Value, column_filters, require_valid, type_of
from dp_service.queries.text_functions import TextFunction
from dp_service.queries.time_parts import TimePart

MAXIMUM_BRANCHES = 100
# As many as a question may group by.
_SEVERAL = {
    name: tuple(name if place == 1 else f"{name}_{place}" for place in range(1, 5))
    for name in (CASE_COLUMN, BIN_COLUMN, PART_OF_TEXT_COLUMN)
}
NAMES_OF_FUNCTIONS = frozenset(
    {BUCKET_COLUMN, *(f"gris_{part}" for part in TimePart)}
    | {name for each in _SEVERAL.values() for name in each}
)
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


@dataclass(frozen=True)
class Binned:
    """The bin of a value column's number, by its label: the first of numbers below `edges[0]`, the last of those above.

    Attributes:
        column: The value column.
        edges: Where a bin ends and the next one begins, ascending; at most 100.
        labels: What stands for each bin, ascending: one more than there are edges.
    """

    column: str
    edges: tuple[Fraction, ...]
    labels: tuple[int, ...]

    def __post_init__(self) -> None:
        require_valid(
            1 <= len(self.edges) <= MAXIMUM_BRANCHES,
            "dimensions",
            f"{self.column}: expected bins with 1 to {MAXIMUM_BRANCHES} edges, got {len(self.edges)}",
        )
        ascending = all(low < high for low, high in pairwise(self.edges))
        require_valid(ascending, "dimensions", f"{self.column}: expected ascending edges of bins")

    def __str__(self) -> str:
        return f"bins of {self.column}"


@dataclass(frozen=True)
class PartOfText:
    """A part of the text that a column has, or the text with its letters small or large."""

    column: str
    function: TextFunction

    def __str__(self) -> str:
        return f"part of {self.column}"


Dimension = str | Truncated | Extracted | Cases | Binned | PartOfText
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
        case Binned(column=column) | PartOfText(column=column):
            return frozenset({column})
        case Cases(branches=branches):
            return frozenset(each.column for condition, _ in branches for each in column_filters(condition))


def answer_columns(dimensions: Iterable[Dimension]) -> tuple[str, ...]:
    """Return what queries call each dimension: a column by its name; a function by a name that no policy lists."""
    names = {name: iter(each) for name, each in _SEVERAL.items()}
    own = map(_answer_column, dimensions)
    return tuple(next(names[name]) if name in names else name for name in own)


def _answer_column(dimension: Dimension) -> str:
    match dimension:
        case str():
            return dimension
        case Truncated():
            return BUCKET_COLUMN
        case Extracted(part=part):
            return f"gris_{part}"
        case Cases():
            return CASE_COLUMN
        case Binned():
            return BIN_COLUMN
        case PartOfText():
            return PART_OF_TEXT_COLUMN


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
