"""What a question groups by: a column, a function of one row, or a function of all of a member's rows.

    country                                              a column of the policy
    DATE_TRUNC('month', day)                             the bucket of time that a row is in
    EXTRACT(HOUR FROM viewed_at)                         a part of its time
    CASE WHEN age < 30 THEN 'young' ELSE 'old' END       the first of some conditions that it meets
    FUNNEL_COUNT(STEPS(a, b), CORRELATE_BY(member))      the deepest step that a member's rows reach
    DATE_TRUNC('month', MIN(day))                        the bucket that a member's first time is in
    DATE_DIFF('month', MIN(day), day)                    how many buckets after its first a member's row is in

Every function is of one row, or of the rows of one member within the other columns, so no member's rows change what
stands for another's. All values that a function can have follow from the question and the policy, so its domain is
known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dp_service.queries.answer_columns import BUCKET_COLUMN, CASE_COLUMN
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.filters import Filter, Value, column_filters, require_valid, type_of
from dp_service.queries.time_parts import TimePart

MAXIMUM_BRANCHES = 100
MOST_STEPS = 10
STEP_COLUMN, FIRST_COLUMN, LATER_COLUMN = "gris_step", "gris_first", "gris_later"
_OF_CASES = tuple(CASE_COLUMN if place == 1 else f"{CASE_COLUMN}_{place}" for place in range(1, 5))
NAMES_OF_FUNCTIONS = frozenset(
    {
        BUCKET_COLUMN,
        *(f"gris_{part}" for part in TimePart),
        *_OF_CASES,
        *(STEP_COLUMN, FIRST_COLUMN, LATER_COLUMN),
    }
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


Dimension = str | Truncated | Extracted | Cases | Funnel | FirstSeen | Later
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
        case Funnel(steps=steps):
            return frozenset(each.column for step in steps for each in column_filters(step))
        case Cases(branches=branches):
            return frozenset(each.column for condition, _ in branches for each in column_filters(condition))


def answer_columns(dimensions: Iterable[Dimension]) -> tuple[str, ...]:
    """Return what queries call each dimension: a column by its name; a function by a name that no policy lists."""
    cases = iter(_OF_CASES)
    return tuple(next(cases) if isinstance(each, Cases) else _answer_column(each) for each in dimensions)


def _answer_column(dimension: str | Truncated | Extracted | Funnel | FirstSeen | Later) -> str:
    match dimension:
        case str():
            return dimension
        case Truncated():
            return BUCKET_COLUMN
        case Funnel():
            return STEP_COLUMN
        case FirstSeen():
            return FIRST_COLUMN
        case Later():
            return LATER_COLUMN
        case Extracted(part=part):
            return f"gris_{part}"


def label_of(dimension: Dimension) -> str | None:
    """Return the name that an answer gives a function where the question gives it none; None: a column has its own."""
    match dimension:
        case str():
            return None
        case Truncated(length=named) | Extracted(part=named):
            return str(named)
        case Cases() | Funnel():
            return "case" if isinstance(dimension, Cases) else "step"
        case FirstSeen(length=length):
            return f"first_{length}"
        case Later(length=length):
            return f"{length}s_later"


def is_of_time(dimension: Dimension) -> bool:
    """Return whether a dimension is a function of the table's time column."""
    return isinstance(dimension, Truncated | Extracted | FirstSeen | Later)


def is_series(dimension: Dimension) -> bool:
    """Return whether a list by a dimension is in the order of its values where nothing else is said: times, steps."""
    return is_of_time(dimension) or isinstance(dimension, Funnel)
