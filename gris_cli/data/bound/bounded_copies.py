"""Bounded copies: which rows they keep, as SQL that DuckDB and Spark run alike.

Of each member and period, the pairs of member and element are ordered by `dp_service.bounding.order`, and rows of
pairs beyond the first Delta are left out. Only members with more than Delta elements are ordered at all.
"""

# ruff: noqa: S608  (names and texts are quoted)
from __future__ import annotations

from dataclasses import dataclass

from dp_service.bounding.order import salt_id, salt_prefix
from gris_cli.data.bound.engine import CopyEngine
from gris_cli.data.bound.local_times import first_day
from gris_cli.data.bound.source import ROWS, Columns
from gris_cli.data.dialects import DataDialect, constant
from gris_cli.data.names import require_table_name
from pinot_connector.engines.bounded_copy import ONE_PERIOD, RULE, CopyStatement

_PAIRS = "gris_pairs"
_SALTS = "gris_salts"
_LEFT_OUT = "gris_left_out"
_SALT_BYTES = 32


@dataclass(frozen=True)
class BoundedCopyRequest:
    """What is to be made.

    Attributes:
        table: The name of the table in the policy; with the period it makes the public salt.
        columns: Who is a member, what is an element, what is a period.
        typical: How many elements of a member are kept in each period.
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

    def statement(self, rows: int, rows_without_values: int) -> CopyStatement:
        """Return what a copy with so many rows says of itself."""
        return CopyStatement(
            table=self.table,
            member=self.columns.member,
            elements=self.columns.elements,
            typical=self.typical,
            period=self.columns.stated_period,
            rule=RULE,
            salt=salt_id(self.table),
            drops_nulls=self.drops_nulls,
            rows_without_values=rows_without_values,
            rows=rows,
        )


@dataclass(frozen=True)
class Bounded:
    """What was read and kept. These are true counts, for the owner of the data."""

    rows: int
    rows_without_values: int
    rows_kept: int
    pairs: int
    pairs_kept: int
    members: int
    members_bounded: int


def read_pairs(engine: CopyEngine, columns: Columns) -> None:
    """Make the table of pairs of a period, as canonical texts, with how many rows of `ROWS` each has."""
    named = ", ".join(f"{text} AS {name}" for name, text in _texts(engine.dialect, columns).items())
    query = (
        f"SELECT {named}, count(*) AS row_count FROM {ROWS} AS given "
        f"WHERE {is_complete(engine.dialect, columns)} GROUP BY ALL"
    )
    engine.table(_PAIRS, query, "reading pairs")


def row_counts(engine: CopyEngine, columns: Columns) -> tuple[int, int]:
    """Return how many rows there are, and how many have all needed values."""
    rows, complete = engine.row(
        f"SELECT count(*), count(*) FILTER (WHERE {is_complete(engine.dialect, columns)}) FROM {ROWS} AS given"
    )
    return rows, complete


def choose(engine: CopyEngine, asked: BoundedCopyRequest, rows: int, complete: int) -> Bounded:
    """Make, of the table of pairs, that of those that are left out; return what is kept of so many rows."""
    length = constant(_SALT_BYTES.to_bytes(8, "big"))
    salt = f"{constant(salt_prefix(asked.table))} || {engine.dialect.field('period')}"
    engine.table(
        _SALTS,
        f"SELECT period, {length} || unhex({engine.dialect.sha256(salt)}) AS salt "
        f"FROM (SELECT DISTINCT period FROM {_PAIRS})",
    )
    engine.table(_LEFT_OUT, _left_out(engine.dialect, asked), "choosing elements")
    pairs, members = engine.row(f"SELECT count(*), count(DISTINCT member) FROM {_PAIRS}")
    pairs_out, heavy, rows_out = engine.row(
        f"SELECT count(*), count(DISTINCT member), coalesce(CAST(sum(row_count) AS BIGINT), 0) FROM {_LEFT_OUT}"
    )
    return Bounded(rows, rows - complete, complete - rows_out, pairs, pairs - pairs_out, members, heavy)


def kept_rows(dialect: DataDialect, columns: Columns) -> str:
    """Write the query for all columns of the rows that are kept."""
    same = " AND ".join(f"{_LEFT_OUT}.{name} = {text}" for name, text in _texts(dialect, columns).items())
    return f"SELECT given.* FROM {ROWS} AS given ANTI JOIN {_LEFT_OUT} ON {same} WHERE {is_complete(dialect, columns)}"


def _left_out(dialect: DataDialect, asked: BoundedCopyRequest) -> str:
    """Write the query for the pairs that are left out. Hexadecimal texts are ordered as their bytes are."""
    names = list(_texts(dialect, asked.columns))
    elements = [f"pairs.{name}" for name in names if name not in ("period", "member")]
    hashed = " || ".join([f"{_SALTS}.salt", *map(dialect.field, ("pairs.member", *elements))])
    order = ", ".join([dialect.sha256(hashed), *elements])
    return (
        f"SELECT {', '.join(names)}, row_count FROM (SELECT {', '.join(f'pairs.{name}' for name in names)}, "
        f"pairs.row_count, row_number() OVER (PARTITION BY pairs.period, pairs.member ORDER BY {order}) AS place "
        f"FROM {_PAIRS} AS pairs JOIN {_SALTS} ON {_SALTS}.period = pairs.period "
        f"SEMI JOIN (SELECT period, member FROM {_PAIRS} GROUP BY period, member HAVING count(*) > {asked.typical}) "
        f"AS heavy ON heavy.period = pairs.period AND heavy.member = pairs.member) WHERE place > {asked.typical}"
    )


def _texts(dialect: DataDialect, columns: Columns) -> dict[str, str]:
    """Return SQL for the canonical texts of a row of `given`: period, member and each value of the element."""
    named = {"member": columns.member}
    named |= {f"element_{place}": name for place, name in enumerate(columns.elements)}
    return {"period": _period(dialect, columns)} | {
        own: f"CAST(given.{dialect.quoted(name)} AS STRING)" for own, name in named.items()
    }


def _period(dialect: DataDialect, columns: Columns) -> str:
    """Return SQL for a row's period; one of a calendar is called by its first day."""
    if not columns.period:
        return dialect.of_questions.text(ONE_PERIOD)
    if not columns.calendar:
        return f"CAST(given.{dialect.quoted(columns.period)} AS STRING)"
    return f"CAST({first_day(dialect, columns)} AS STRING)"


def is_complete(dialect: DataDialect, columns: Columns) -> str:
    """Write the condition that a row of `given` has all needed values."""
    return " AND ".join(f"given.{dialect.quoted(name)} IS NOT NULL" for name in columns.needed)
