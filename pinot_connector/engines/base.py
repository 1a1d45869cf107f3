"""What the connector asks of an engine, and what an engine must promise."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypeAlias

Element: TypeAlias = str | int | bool

COUNT_COLUMN = "gris_count"
"""The last column of every answer."""


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


class Feature(Enum):
    """What an engine must have, beyond its dialect, to run a query."""

    PINOT_MULTISTAGE = "Pinot's multi-stage engine"


@dataclass(frozen=True)
class ExpectedColumn:
    """A column of the answer: the name under which dp_service selected it, and its type in the policy."""

    name: str
    type: ColumnType


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
class EngineQuery:
    """A query that dp_service rendered for one engine.

    `table` is the engine's name of the table. The answer of `sql` has `columns`, in that order, and then
    `gris_count`. A whole answer has at most `row_limit` rows. `requires` is what the engine must have to run it,
    and `reads` are the columns that it names: a table in which one of them is something else must not be asked.
    """

    table: str
    sql: str
    columns: tuple[ExpectedColumn, ...]
    row_limit: int
    requires: frozenset[Feature] = frozenset()
    reads: tuple[ReadColumn, ...] = ()


@dataclass(frozen=True)
class EngineAnswer:
    """An answer, column by column. Nothing that it led to may be shown before the engine has confirmed it.

    `elements` has one list for each column of the query, all as long as `counts`; days are integers since
    1970-01-01. `data_version` is the version of the data that the counts were asked of. `coverage` is whatever the
    engine itself needs to confirm the answer.
    """

    elements: tuple[list[Element], ...]
    counts: list[int]
    data_version: str
    coverage: object = None


class Engine(Protocol):
    """Answers rendered queries.

    Engines are synchronous and thread-safe: a client calls them in up to 32 threads at once, and may call `confirm` for
    an answer while noise is drawn from it. An engine interrupts a query that takes longer than its own time-out, which
    is below `Timeouts.engine`: the client can only stop waiting for a thread, which then still runs.

    Engines promise that an answer that they confirm is whole, and they raise rather than answer on part of the data.
    No error repeats SQL, literals, counts or statistics. Nor does an error of the engine's library hang on it as its
    cause or context: it is raised outside of the `except` block that met the library's error.

    A query's `FROM` names the table as the policy does, in the quotes of the dialect. The engine decides what the name
    stands for: a view over a file, a name in a session of its own, or the database's own table.

    `tests/support/engine_conformance.py` tests these promises for every engine.
    """

    dialect: str
    """The name under which dp_service renders queries for this engine."""

    def data_version(self, table: str) -> str:
        """Returns the present version of a table.

        Args:
            table: the engine's name of the table.

        Returns:
            1 to 256 characters that change whenever the data do, and only then: they go into noise and ids, so another
            version makes every question another one, which is paid for again.

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

        It may be called while noise is drawn from the answer, and must have returned before anything is released.

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
