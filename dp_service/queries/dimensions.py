"""What a question groups by: a column, a function of one row, or a function of all of a member's rows.

    country                                              a column of the policy
    DATE_TRUNC('month', day)                             the bucket of time that a row is in
    EXTRACT(HOUR FROM viewed_at)                         a part of its time
    CASE WHEN age < 30 THEN 'young' ELSE 'old' END       the first of some conditions that it meets
    FLOOR(price / 10) * 10                               the bin of a number
    SPLIT_PART(email, '@', 2)                            a part of a text
    FUNNEL_COUNT(STEPS(a, b), CORRELATE_BY(member))      the deepest step that a member's rows reach
    DATE_TRUNC('month', MIN(day))                        the bucket that a member's first time is in
    DATE_DIFF('month', MIN(day), day)                    how many buckets after its first a member's row is in

Every function is of one row, or of the rows of one member within the other columns, so no member's rows change what
stands for another's. All values that a function can have follow from the question and the policy, so its domain is
known; that of a part of a text is where the column's is.
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
MOST_STEPS = 10
STEP_COLUMN, FIRST_COLUMN, LATER_COLUMN = "gris_step", "gris_first", "gris_later"
# As many as a question may group by.
_SEVERAL = {
    name: tuple(name if place == 1 else f"{name}_{place}" for place in range(1, 5))
    for name in (CASE_COLUMN, BIN_COLUMN, PART_OF_TEXT_COLUMN)
}
NAMES_OF_FUNCTIONS = frozenset(
    {BUCKET_COLUMN, STEP_COLUMN, FIRST_COLUMN, LATER_COLUMN, *(f"gris_{part}" for part in TimePart)}
    | {name for each in _SEVERAL.values() for name in each}
)
"""What queries call functions: no column of a policy has such a name."""


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


@dataclass(frozen=True)
class Funnel:
    """The deepest step that a member reaches: of each step up to it, some row of the member meets the condition.

    In which order the rows are makes no difference. A member without a row that meets the first is left out.

    Attributes:
        steps: The conditions, 2 to 10.
    """

    steps: tuple[Filter, ...]

    def __post_init__(self) -> None:
        require_valid(
            2 <= len(self.steps) <= MOST_STEPS,
            "dimensions",
            f"expected 2 to {MOST_STEPS} steps in FUNNEL_COUNT",
        )

    def __str__(self) -> str:
        return "FUNNEL_COUNT(STEPS(..))"


@dataclass(frozen=True)
class FirstSeen:
    """The bucket of a member's first time, of all its rows before the end of the question's range.

    Members whose first time is before the range are left out.
    """

    column: str
    length: BucketLength

    def __str__(self) -> str:
        return f"DATE_TRUNC('{self.length}', MIN({self.column}))"


@dataclass(frozen=True)
class Later:
    """How many buckets after that of its member's first time a row is in; of members as `FirstSeen` has them."""

    column: str
    length: BucketLength

    def __str__(self) -> str:
        return f"DATE_DIFF('{self.length}', MIN({self.column}), {self.column})"


Dimension = str | Truncated | Extracted | Cases | Binned | PartOfText | Funnel | FirstSeen | Later
"""A column by its name, or a function."""


def is_of_member(dimension: Dimension) -> bool:
    """Return whether a dimension is a function of all of a member's rows."""
    return isinstance(dimension, Funnel | FirstSeen | Later)


def require_together(dimensions: tuple[Dimension, ...]) -> None:
    """Refuse functions that have no meaning beside each other.

    Raises:
        QuestionError: `field` is `dimensions`.
    """
    funnels = [each for each in dimensions if isinstance(each, Funnel)]
    since = [each for each in dimensions if isinstance(each, FirstSeen | Later)]
    require_valid(len(funnels) <= 1, "dimensions", "expected one FUNNEL_COUNT: ask for each funnel apart")
    require_valid(
        len({(each.column, each.length) for each in since}) <= 1,
        "dimensions",
        "expected first times and what is later than them in buckets of one length",
    )
    require_valid(
        not (since and any(isinstance(each, Truncated | Extracted) for each in dimensions)),
        "dimensions",
        "expected no buckets or parts of the time itself beside first times, which are of rows of any time: ask for "
        "each apart, or for how much later members come back, DATE_DIFF('month', MIN(day), day)",
    )
    require_valid(
        not any(
            isinstance(each, Cases)
            and each.otherwise is None
            and columns_of(each) & {one.column for one in since}
            for each in dimensions
        ),
        "dimensions",
        "expected ELSE in a CASE on the time beside first times: without it the CASE would leave out rows that are "
        "earlier, and make later ones the first",
    )
    require_valid(
        not (funnels and any(isinstance(each, Later) for each in since)),
        "dimensions",
        "expected no FUNNEL_COUNT beside how much later members come back: it is of all rows of a member",
    )


def conditions_of_dimensions(dimensions: Iterable[Dimension]) -> Iterator[Filter]:
    """Yield the conditions that dimensions consist of."""
    for each in dimensions:
        if isinstance(each, Cases):
            yield from (condition for condition, _ in each.branches)
        elif isinstance(each, Funnel):
            yield from each.steps


def columns_of(dimension: Dimension) -> frozenset[str]:
    """Return the columns of the policy that a dimension is of."""
    match dimension:
        case str():
            return frozenset({dimension})
        case (
            Truncated(column=column)
            | Extracted(column=column)
            | FirstSeen(column=column)
            | Later(column=column)
        ):
            return frozenset({column})
        case Binned(column=column) | PartOfText(column=column):
            return frozenset({column})
        case Funnel(steps=steps):
            return frozenset(each.column for step in steps for each in column_filters(step))
        case Cases(branches=branches):
            return frozenset(each.column for condition, _ in branches for each in column_filters(condition))


def answer_columns(dimensions: Iterable[Dimension]) -> tuple[str, ...]:
    """Return what queries call each dimension: a column by its name; a function by a name that no policy lists."""
    names = {name: iter(each) for name, each in _SEVERAL.items()}
    own = map(_answer_column, dimensions)
    return tuple(next(names[name]) if name in names else name for name in own)


_OF_FUNCTIONS: dict[type[object], str] = {
    Truncated: BUCKET_COLUMN,
    Cases: CASE_COLUMN,
    Binned: BIN_COLUMN,
    PartOfText: PART_OF_TEXT_COLUMN,
    Funnel: STEP_COLUMN,
    FirstSeen: FIRST_COLUMN,
    Later: LATER_COLUMN,
}


def _answer_column(dimension: Dimension) -> str:
    match dimension:
        case str():
            return dimension
        case Extracted(part=part):
            return f"gris_{part}"
        case _:
            return _OF_FUNCTIONS[type(dimension)]


def labels_of(dimensions: Iterable[Dimension]) -> tuple[str | None, ...]:
    """Return the names that an answer gives functions where the question gives none; None: a column has its own."""
    given = tuple(dimensions)
    return tuple(map(_label, given, answer_columns(given)))


def _label(dimension: Dimension, name: str) -> str | None:
    match dimension:
        case str():
            return None
        case Truncated(length=length):
            return str(length)
        case FirstSeen(length=length):
            return f"first_{length}"
        case Later(length=length):
            return f"{length}s_later"
        case _:
            return name.removeprefix("gris_")


def is_of_time(dimension: Dimension) -> bool:
    """Return whether a dimension is a function of the table's time column."""
    return isinstance(dimension, Truncated | Extracted | FirstSeen | Later)


def is_series(dimension: Dimension) -> bool:
    """Return whether a list by a dimension is in the order of its values where nothing else is said: times, steps."""
    return is_of_time(dimension) or isinstance(dimension, Funnel)
