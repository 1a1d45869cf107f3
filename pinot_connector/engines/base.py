"""What the connector asks of an engine, and what an engine must promise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import Protocol, TypeAlias

from pinot_connector.views import called

Element: TypeAlias = str | int | bool

CELL_COLUMN = "gris_cell"
"""The last column of the elements, where a query asks how many members have their value in each cell of a grid."""
COUNT_COLUMN = "gris_count"
"""The column behind those of the elements in every answer."""
FIRST_COUNT_COLUMN = "gris_first_count"
"""The column behind it, where a query asks of how many members each element is the first."""


def sum_column(place: int) -> str:
    """Returns the name of the column with the centred sums of the value column in a place, from 0 on."""
    return f"gris_sum_{place + 1}"


def own_count_column(place: int) -> str:
    """Returns the name of the place-th own count of a column that is summed, from 0 on."""
    return f"gris_own_count_{place + 1}"


class ColumnType(Enum):
    """The type of a column that elements come from."""

    STRING = "string"
    INT64 = "int64"
    BOOL = "bool"
    DATE = "date"
    TIMESTAMP = "timestamp"


class TimeUnit(Enum):
    """What an integer that stands for a time counts: days of a zone, or another unit since 1970-01-01T00:00Z."""

    DAYS = "days"
    SECONDS = "seconds"
    MILLISECONDS = "milliseconds"
    MICROSECONDS = "microseconds"


class ValueType(Enum):
    """The type of a column that is summed, or whose quantiles are asked for.

    Decimal and floating-point numbers are read as IEEE doubles; days are not summed.
    """

    INT64 = "int64"
    DECIMAL = "decimal"
    DATE = "date"


class Feature(Enum):
    """What an engine must have, beyond its dialect, to run a query."""

    PINOT_MULTISTAGE = "Pinot's multi-stage engine"
    BOUNDED_COPY = "a bounded copy that says how it was made"
    CLOSED_STREAM = "a table that holds every row of a stream from before the end of a period"


@dataclass(frozen=True)
class ExpectedColumn:
    """A column of the answer: the name under which dp_service selected it, and its type in the policy.

    `alias` is what a question in SQL calls it, None where it gives no name.
    """

    name: str
    type: ColumnType
    alias: str | None = None

    @property
    def title(self) -> str:
        """What to call the column where a result is displayed."""
        return self.alias or self.name


@dataclass(frozen=True)
class CellColumn(ExpectedColumn):
    """The column of an answer that holds the cells of quantiles, behind those of the elements; no result shows it."""


def shown_columns(columns: tuple[ExpectedColumn, ...]) -> tuple[ExpectedColumn, ...]:
    """Returns the columns that a result shows, of those of an answer."""
    return tuple(column for column in columns if not isinstance(column, CellColumn))


@dataclass(frozen=True)
class ReadColumn:
    """A column that a query names, however it does, and what the query was written for.

    `type` None: the member column, which the policy does not list; to an engine that stores no NULL it is a text.
    `null_value` is what such an engine stores where a value is missing (days since 1970-01-01 for a day, microseconds
    for a timestamp of the engine's own type); None: nothing that is a day. `numbers` are the smallest and the largest
    integer that the column is compared with; None: none. `time_unit` is what the integers of a column of timestamps
    count; None: such a column has the engine's own type.
    """

    name: str
    type: ColumnType | None
    null_value: Element | None
    numbers: tuple[int, int] | None = None
    time_unit: TimeUnit | None = None

    @property
    def declared(self) -> str:
        """The policy's type in the policy's words, with its unit; the member column may have none."""
        unit = "" if self.time_unit is None else f" in {self.time_unit.value}"
        return "" if self.type is None else f"{self.type.value}{unit}"

    @property
    def held_as(self) -> ColumnType | None:
        """The type that the engine has to have: timestamps with a unit are stored as integers."""
        return ColumnType.INT64 if self.time_unit is not None else self.type


@dataclass(frozen=True)
class ReadValue:
    """A column that a query sums, or that quantiles are of, and what the query was written for.

    Some engines store no NULL but another value in its place. `null_value` is the number that must be stored there;
    None: it must be an infinity, or no number.
    """

    name: str
    type: ValueType
    null_value: Fraction | None


@dataclass(frozen=True)
class BoundedCopy:
    """What a bounded copy says of itself: the arguments that `gris bound` was given for it."""

    table: str
    member: str
    elements: tuple[str, ...]
    typical: int
    period: str


class CompleteBy(Enum):
    """How it is known that every row of a closed period has been taken in."""

    OFFSETS = "offsets"
    DELAY = "delay"


@dataclass(frozen=True)
class ClosedStream:
    """What a table that takes in a stream has to hold: every row with a time from `start` to before `end`.

    The numbers are values of `time_column`, whose period is closed before a query with them is made.
    `replaced_until_closed`: newer rows may replace older ones, but none of a closed period. `offline_days_are_whole`:
    an offline part of the table, if it has one, holds every row of each day up to its last one. Where rows are
    replaced, `member` has to be part of their key, unless `replaced_by_same_member`: rows with one key are of one
    member.
    """

    time_column: str
    start: int
    end: int
    complete_by: CompleteBy
    replaced_until_closed: bool = False
    offline_days_are_whole: bool = False
    member: str = field(default="", metadata=called("member_column"))
    replaced_by_same_member: bool = False


@dataclass(frozen=True)
class EngineQuery:
    """A query that dp_service rendered for one engine.

    `table` is the engine's name of the table. The answer of `sql` has `columns`, in that order, and then
    `gris_count`. A whole answer has at most `row_limit` rows. `requires` is what the engine must have to run it,
    and `reads` are the columns that it names: a table in which one of them is something else must not be asked. With
    `Feature.BOUNDED_COPY` among `requires`, the table's file must say of itself that it is `bounded_copy`. With
    `first_counts` the answer has one column more behind the counts, `gris_first_count`: integers, as the counts are.
    `sums` are the columns that it sums, without a name where rows are counted: for each, the answer has one more column
    behind all counts, and behind these `own_counts` columns with the counts of those that have one of their own.
    `quantiles` is the column whose quantiles are asked for, None: there is none; `columns` then end with a
    `CellColumn`. With `Feature.CLOSED_STREAM` the table must hold the rows of `stream`.
    """

    table: str
    sql: str
    columns: tuple[ExpectedColumn, ...]
    row_limit: int
    requires: frozenset[Feature] = frozenset()
    reads: tuple[ReadColumn, ...] = ()
    bounded_copy: BoundedCopy | None = None
    first_counts: bool = False
    sums: tuple[ReadValue, ...] = ()
    quantiles: ReadValue | None = None
    bins: tuple[ReadValue, ...] = ()
    own_counts: int = 0
    stream: ClosedStream | None = None

    @property
    def read_values(self) -> tuple[ReadValue, ...]:
        """The columns of numbers that it reads, to be checked as `reads` are; where rows are counted there is none."""
        of_sums = (*(each for each in self.sums if each.name), *self.bins)
        return of_sums if self.quantiles is None else (*of_sums, self.quantiles)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The names of the columns of the answer behind its elements: counts, centred sums, and own counts of these."""
        firsts = (FIRST_COUNT_COLUMN,) if self.first_counts else ()
        own = map(own_count_column, range(self.own_counts))
        return (COUNT_COLUMN, *firsts, *map(sum_column, range(len(self.sums))), *own)

    def answer(
        self,
        elements: tuple[list[Element], ...],
        numbers: Sequence[list[int]],
        data_version: str,
        coverage: object = None,
    ) -> EngineAnswer:
        """Returns an answer to this query, whose columns behind the elements are given in the order of `numbers`."""
        counts, *others = numbers
        firsts = tuple(others.pop(0)) if self.first_counts else ()
        return EngineAnswer(elements, counts, data_version, coverage, firsts, tuple(others))


@dataclass(frozen=True)
class EngineAnswer:
    """An answer, column by column. No noise may be drawn from it before the engine has confirmed it.

    `elements` has one list for each column of the query, all as long as `counts`; days are integers since
    1970-01-01. `data_version` is the version of the data that the counts were asked of. `coverage` is whatever the
    engine itself needs to confirm the answer. `first_counts` are as long as `counts` where the query asks for them, and
    otherwise empty. `sums` has one list for each column that the query sums, and then one for each own count.
    """

    elements: tuple[list[Element], ...]
    counts: list[int]
    data_version: str
    coverage: object = None
    first_counts: tuple[int, ...] = ()
    sums: tuple[list[int], ...] = ()


class Engine(Protocol):
    """Answers rendered queries.

    Engines are synchronous and thread-safe: a client calls them in up to 32 threads at once. An engine interrupts a
    query that takes longer than its own time-out, which is below `Timeouts.engine`: the client can only stop waiting
    for a thread, which then still runs.

    Engines promise that an answer that they confirm is whole, and they raise rather than answer on part of the data.
    No error repeats SQL, literals, counts or statistics. It is raised outside of the `except` block that met the
    library's error; otherwise Python attaches that error, with its SQL, as cause or context.

    A query's `FROM` names the table as the policy does, in the quotes of the dialect. The engine decides what the name
    stands for: a view over a file, a name in a session of its own, or the database's own table.

    `tests/support/engine_conformance.py` tries answers, versions, errors, `check` and eight threads on every engine.
    An engine's own tests have to try the rest: its time-out, answers on part of the data, summed columns of another
    type, and 32 threads.
    """

    dialect: str
    """The name under which dp_service renders queries for this engine."""

    def data_version(self, table: str) -> str:
        """Returns the present version of a table.

        Args:
            table: the engine's name of the table.

        Returns:
            1 to 256 characters that must change whenever the data do: they go into noise and ids, so old answers would
            pass for new ones, and other counts would get the same noise. They should stay while the data stay: another
            version makes every question another one, which is paid for again, and one under way may end in
            `DataChanged`.

        Raises:
            EngineUnavailable: the engine cannot be reached, or took too long.
            EngineRefused: it does not know the table, or its configuration is not safe.
        """
        ...

    def check(self, query: EngineQuery) -> None:
        """Checks that the engine has what a query requires; called before anything is reserved for it.

        It is called only for queries that require something.

        Args:
            query: a query with `requires`.

        Raises:
            EngineRefused: the engine lacks what the query requires.
            EngineUnavailable: it cannot find out what it has.
        """
        ...

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """Answers a query on a version of the data; `confirm` then checks that it was exactly that one.

        Checks before the query that each column of `query.reads` is what the query was written for, because in a filter
        a column of another type silently means something else.

        Args:
            query: the query.
            data_version: a version that `data_version` returned before.

        Returns:
            The true elements and counts, in the order of the query.

        Raises:
            DataChanged: the data had another version before the query.
            IncompleteAnswer: the answer is partial, has other columns or values, or too many rows.
            EngineUnavailable: the engine cannot be reached, or took too long.
            EngineRefused: it refused the query, or a column is not what the query was written for.
        """
        ...

    def confirm(self, query: EngineQuery, answer: EngineAnswer) -> None:
        """Returns if an answer of `run` is whole and the data still have its version.

        Noise is drawn from the answer only once it has returned.

        Args:
            query: the query that was run.
            answer: what `run` returned for it.

        Raises:
            DataChanged: the data have another version now.
            IncompleteAnswer: the answer does not cover all data.
            EngineUnavailable: the engine cannot be reached, or took too long.
            EngineRefused: its configuration changes answers.
        """
        ...

    def close(self) -> None:
        """Releases connections and memory. Closing twice is allowed."""
        ...
