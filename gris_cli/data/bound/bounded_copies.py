"""Prepared copies: how much each member counts in each of its elements, as SQL that DuckDB and Spark run alike.

A copy has one row for each period, member and element. Its weight is that of `dp_service.bounding.weights`: within the
period, over all elements of the member. So rows of a later period change no row of an earlier one.
"""

# ruff: noqa: S608  (names and texts are quoted)
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dp_service.terms import GRID
from gris_cli.data.bound.local_times import first_day
from gris_cli.data.bound.source import ROWS, Columns
from gris_cli.data.dialects import DataDialect
from gris_cli.data.errors import InputError
from gris_cli.data.names import require_table_name
from pinot_connector.engines.bounded_copy import ONE_PERIOD, RULE, WEIGHT_COLUMN, CopyStatement

COPY = "gris_copy"
"""What an engine calls the rows of `weighted_rows`, which `counts_of_copy` counts."""

_MOST_BYTES = 512
"""Pinot cuts texts of more characters where a schema does not say otherwise, and none has fewer bytes than those."""


@dataclass(frozen=True)
class BoundedCopyRequest:
    """What is to be made.

    Attributes:
        table: The name of the table in the policy.
        columns: Who is a member, what is an element, what is a period.
        typical: How many elements of a member count in full in each period.
        drops_nulls: Rows without member, element or period are left out and counted; else they are refused.
        memory: How much memory DuckDB may use, as it writes sizes: 2GB.
    """

    table: str
    columns: Columns
    typical: int
    drops_nulls: bool = False
    memory: str = "2GB"

    def __post_init__(self) -> None:
        """Raise InputError for a table that no policy can name."""
        require_table_name(self.table)

    def statement(self, made: Bounded) -> CopyStatement:
        """Return what a copy says of itself."""
        return CopyStatement(
            table=self.table,
            member=self.columns.member,
            elements=self.columns.elements,
            typical=self.typical,
            period=self.columns.stated_period,
            rule=RULE,
            rows=made.pairs,
        )


@dataclass(frozen=True)
class Bounded:
    """What was read, and how many rows the copy has: one for each pair. These are true counts, for the owner alone."""

    rows: int
    rows_without_values: int
    pairs: int
    members: int
    members_bounded: int


def row_counts(dialect: DataDialect, columns: Columns) -> str:
    """Write the query for how many rows there are, and how many have all needed values."""
    return f"SELECT count(*), count(*) FILTER (WHERE {is_complete(dialect, columns)}) FROM {ROWS} AS given"


def counts_of_copy(dialect: DataDialect, columns: Columns) -> str:
    """Write the query for what `counted` takes: how many pairs there are, and so on."""
    member = dialect.quoted(columns.member)
    bounded = f"CASE WHEN {WEIGHT_COLUMN} < {GRID} THEN {member} END"
    texts = [f"CAST({dialect.quoted(name)} AS STRING)" for name in columns.elements]
    cut = " OR ".join(f"bit_length({text}) > {8 * _MOST_BYTES} OR contains({text}, chr(0))" for text in texts)
    return (
        f"SELECT count(*) FILTER (WHERE {cut}), count(*), count(DISTINCT {member}), count(DISTINCT {bounded}) "
        f"FROM {COPY}"
    )


def counted(rows: int, complete: int, of_copy: Iterable[int]) -> Bounded:
    """Return what a copy has, by the answer to `counts_of_copy`.

    Raises:
        InputError: Pinot would cut an element, so that several of a member could become one with all their weights.
    """
    cut, *others = of_copy
    if cut:
        raise InputError(
            f"{cut} pairs have an element of more than {_MOST_BYTES} bytes, or with a character of code 0: Pinot would "
            "cut it, and a member could count several times in what is left"
        )
    return Bounded(rows, rows - complete, *others)


def weighted_rows(dialect: DataDialect, asked: BoundedCopyRequest) -> str:
    """Write the query for the rows of a copy.

    Names are given at the end only: a column of the input may have any. FLOOR(SQRT(FLOOR(D / n))) is exact in floats.
    """
    columns, full = asked.columns, asked.typical
    values = {name: f"given.{dialect.quoted(name)}" for name in columns.needed}
    if columns.calendar:
        # A period of a calendar is one row, at the first of its times that the member has in the element.
        values[columns.period] = f"min({values[columns.period]})"
    grouped = ", ".join(f"{value} AS value_{place}" for place, value in enumerate(values.values()))
    pairs = (
        f"SELECT {grouped}, {_period(dialect, columns)} AS period FROM {ROWS} AS given "
        f"WHERE {is_complete(dialect, columns)} GROUP BY ALL"
    )
    counted = f"SELECT *, count(*) OVER (PARTITION BY period, value_0) AS held FROM ({pairs}) AS pairs"
    root = f"FLOOR(SQRT(FLOOR(CAST({full * GRID**2} AS DOUBLE) / held)))"
    weight = f"CAST(CASE WHEN held > {full} THEN {root} ELSE {GRID} END AS INT)"
    named = ", ".join(f"value_{place} AS {dialect.quoted(name)}" for place, name in enumerate(values))
    return f"SELECT {named}, {weight} AS {WEIGHT_COLUMN} FROM ({counted}) AS counted"


def _period(dialect: DataDialect, columns: Columns) -> str:
    """Return SQL for a row's period; one of a calendar is called by its first day."""
    if not columns.period:
        return dialect.of_questions.text(ONE_PERIOD)
    return first_day(dialect, columns) if columns.calendar else f"given.{dialect.quoted(columns.period)}"


def is_complete(dialect: DataDialect, columns: Columns) -> str:
    """Write the condition that a row of `given` has all needed values."""
    return " AND ".join(f"given.{dialect.quoted(name)} IS NOT NULL" for name in columns.needed)
