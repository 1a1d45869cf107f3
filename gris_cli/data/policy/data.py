"""Which rows no question sees, and whether the data keep a policy's promises: counts for `gris check --data`.

They are true counts, of the owner's data and for the owner alone. No service imports this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.blocks import Blocks
from dp_service.queries.columns import Column, Nulls
from dp_service.queries.contributions import prepared_copy
from dp_service.queries.filters import MAXIMUM_TEXT_LENGTH, Value
from dp_service.queries.intervals import END_OF_TIMESTAMPS, FIRST_TIMESTAMP
from dp_service.queries.policy_review import shown_value
from dp_service.queries.render.dialects import DIALECTS
from dp_service.queries.render.distinct import values_salt
from dp_service.queries.suggestions import instead_of
from dp_service.queries.tables import Table
from dp_service.queries.value_columns import ValueColumn
from dp_service.terms import GRID, BoundedBy, ColumnType, ValueType
from gris_cli.data.errors import InputError
from gris_cli.data.policy.column_types import (
    fault_of_type,
    fault_of_unit,
    fault_of_value_type,
    stored_unit,
    types_of_csv,
)
from gris_cli.data.policy.promises import Promise, is_size, promises_of
from gris_cli.data.policy.rows import parameter_of, reading_column, rows_of_members, value_of
from gris_cli.data.policy.values import Clamped, clamped, unusable
from pinot_connector.engines.base import BoundedCopy
from pinot_connector.engines.bounded_copies import require_bounded_copy
from pinot_connector.engines.duckdb import DuckDBEngine, is_member_type
from pinot_connector.engines.parquet import count_unreadable, quoted
from pinot_connector.engines.parquet_files import is_parquet
from pinot_connector.errors import EngineError

EVERY = "every question"
NAMING = "questions that name it"
SHOWING = "answers that show it"
SUMMING = "questions that sum it"
RANKING = "questions for its quantiles"


@dataclass(frozen=True)
class LeftOut:
    """How many rows are left out for one reason: of which questions, and because of which column."""

    column: str
    reason: str
    rows: int
    of: str


@dataclass(frozen=True)
class Clipped:
    """How many rows the bounds of members leave out of counts of rows: by clipping, and where they weight members.

    Attributes:
        column: The column that questions group by; empty: a total.
        rows: The rows that such a question sees.
        cut: Those of them that are left out.
    """

    column: str
    rows: int
    cut: int


@dataclass(frozen=True)
class KeptValues:
    """How many distinct values are left of all once each member keeps those that count in an element.

    Attributes:
        distinct_of: The column whose values are counted.
        column: The column that questions group by, whose elements are added up; empty: a total.
        values: The values that there are.
        kept: Those of them that some member keeps.
    """

    distinct_of: str
    column: str
    values: int
    kept: int


@dataclass(frozen=True)
class DataReport:
    """A table's rows, how many of them no question sees, what else is left out, cut and clamped, and the promises."""

    table: str
    rows: int
    rows_in_no_question: int
    left_out: tuple[LeftOut, ...]
    promises: tuple[Promise, ...] = ()
    clipped: tuple[Clipped, ...] = ()
    clamped: tuple[Clamped, ...] = ()
    kept_values: tuple[KeptValues, ...] = ()


_UNREADABLE = "expected data that can be read to their end"
# What DuckDB makes of Ctrl-C.
_INTERRUPTED = "Query interrupted"


def examined(table: Table, path: Path, blocks: Blocks | None = None) -> DataReport:
    """Read a file and count what is left out of questions about a table.

    Raises InputError: the data cannot be read, are not the bounded copy that the policy says they are, or a column is
    missing or of another type than it says.
    """
    failure: BaseException
    try:
        with (
            closing(DuckDBEngine({table.name: path})) as engine,
            engine.reading(table.name, types_of_csv(table)) as connection,
        ):
            _require_columns(engine.types(connection, table.name), table)
            if (copy := prepared_copy(table)) is not None:
                require_bounded_copy(path, BoundedCopy(**asdict(copy)))
            for column in table.own_columns:
                fault = fault_of_unit(connection, table, column)
                if fault is not None:
                    raise InputError(fault)
            return _report(connection, table, path, blocks)
    except InputError:
        raise
    except EngineError as error:
        failure = InputError(str(error))
    except RuntimeError as error:
        failure = KeyboardInterrupt() if str(error) == _INTERRUPTED else InputError(_UNREADABLE)
    except Exception:
        # What DuckDB says may quote the data, and where Python cannot decode it, so does Python's error.
        failure = InputError(_UNREADABLE)
    raise failure


def _report(
    connection: duckdb.DuckDBPyConnection, table: Table, path: Path, blocks: Blocks | None
) -> DataReport:
    unseen, texts = count_unreadable(connection, path) if is_parquet(path) else (0, {})
    found = [LeftOut(column, "a text that is not UTF-8", rows, EVERY) for column, rows in texts.items()]
    found.extend(_counted(connection, table))
    seen = _count(connection, table, "TRUE")
    left_out = tuple(each for each in found if each.rows)
    return DataReport(
        table.name,
        seen + unseen,
        unseen,
        left_out,
        promises=tuple(_promises(connection, table, blocks)),
        clipped=tuple(_clipped(connection, table)),
        clamped=tuple(clamped(connection, table)),
        kept_values=tuple(_kept_values(connection, table)),
    )


def require_kept(table: Table, path: Path, blocks: Blocks | None = None) -> None:
    """Check that a file is as a policy says: columns, types, units, and what it promises of every member.

    Raises:
        InputError: It cannot be read or is not; of a broken promise the text says which, and no count.
    """
    broken = [promise.key for promise in examined(table, path, blocks).promises if not promise.is_kept]
    if sized := [key for key in broken if is_size(key)]:
        raise InputError(
            f"the table is larger than the policy promises ({', '.join(sized)}), and sums might not be exact"
        )
    if broken:
        raise InputError(
            f"members have more than the policy promises ({', '.join(broken)}), and too little noise would hide them"
        )


def _require_columns(types: Mapping[str, str], table: Table) -> None:
    names = [*(column.name for column in table.own_columns), *(value.name for value in table.numbers)]
    for name in (table.member, *names):
        if name.casefold() not in types:
            instead = instead_of(name, types)
            raise InputError(f"expected a column {name} in the data of {table.name}; {instead}")
    faults = [
        *(fault_of_type(column, types[column.name.casefold()]) for column in table.own_columns),
        *(fault_of_value_type(value, types[value.name.casefold()]) for value in table.numbers),
    ]
    if (fault := next((each for each in faults if each is not None), None)) is not None:
        raise InputError(fault)
    if table.member_column() is None and not is_member_type(types[table.member.casefold()]):
        raise InputError(f"expected the column {table.member} to be of a type that members can have")


def _counted(connection: duckdb.DuckDBPyConnection, table: Table) -> Iterator[LeftOut]:
    """Count rows that questions see, but not all of them."""
    if table.member_column() is None:
        rows = _count(connection, table, f"{quoted(table.member)} IS NULL")
        yield LeftOut(table.member, "no member", rows, EVERY)
    for column in table.columns:
        if column.lookup is not None:
            yield from _not_looked_up(connection, table, column)
            continue
        is_member = column.name == table.member
        for reason, of, condition, values in _reasons(column, is_member=is_member):
            with reading_column(column.name):
                rows = _count(connection, table, condition, *values)
            yield LeftOut(column.name, reason, rows, EVERY if is_member else of)
    for value, condition in unusable(table):
        with reading_column(value.name):
            rows = _count(connection, table, condition)
        if isinstance(value, ValueColumn):
            yield LeftOut(value.name, "no number that can be summed", rows, SUMMING)
        else:
            what = "day" if value.type is ValueType.DATE else "number"
            yield LeftOut(value.name, f"no {what} that can be in a cell", rows, RANKING)


def _not_looked_up(connection: duckdb.DuckDBPyConnection, table: Table, column: Column) -> Iterator[LeftOut]:
    """Count rows whose key the file of a lookup does not have, where they are left out."""
    if column.lookup is None or column.nulls is Nulls.KEEP:
        return
    key, held = value_of(column.lookup.key, "$null")
    null = column.lookup.key.null_value
    values: dict[str, Any] = {"keys": [parameter_of(each) for each, _ in column.lookup.entries]}
    if null is not None:
        values["null"] = parameter_of(null)
    sql = (
        f"SELECT count(*) FROM {quoted(table.name)} "  # noqa: S608 - names of the policy
        f"WHERE {held} AND {key} NOT IN (SELECT unnest($keys))"
    )
    found = connection.execute(sql, values).fetchone()
    yield LeftOut(
        column.name,
        "a key that the lookup's file does not have",
        0 if found is None else int(found[0]),
        NAMING,
    )


def _reasons(column: Column, *, is_member: bool) -> Iterator[tuple[str, str, str, list[Any]]]:
    """Yield why a row is left out, of what, and the condition for it with its parameters."""
    name = quoted(column.name)
    null = column.null_value
    if is_member:
        stands = "" if null is None else f" OR {name} = ?"
        yield "no member", EVERY, f"{name} IS NULL{stands}", [] if null is None else [parameter_of(null)]
    elif column.nulls is Nulls.DROP:
        yield "NULL, which is dropped", NAMING, f"{name} IS NULL", []
        if null is not None:
            yield f"{shown_value(null)}, the null_value", NAMING, f"{name} = ?", [parameter_of(null)]
    if column.type is ColumnType.DATE:
        days = f"{name} NOT BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
        yield "a day outside the years 1 to 9999", NAMING, days, []
    if column.type is ColumnType.TIMESTAMP and stored_unit(column) is None:
        ends = f"NOT ({name} >= ? AND {name} < ?)"
        yield "a timestamp outside the years 1700 to 2261", NAMING, ends, _ENDS_OF_TIMESTAMPS
    if column.type is ColumnType.STRING and column.group_by and column.domain is None:
        long = f"length({name}) > {MAXIMUM_TEXT_LENGTH}"
        yield f"a text of more than {MAXIMUM_TEXT_LENGTH:,} characters", SHOWING, long, []
    if column.group_by and column.domain is not None:
        yield "a value outside the domain", SHOWING, *_outside(column, column.domain)


_ENDS_OF_TIMESTAMPS = [parameter_of(each) for each in (FIRST_TIMESTAMP, END_OF_TIMESTAMPS)]


def _outside(column: Column, domain: tuple[Value, ...]) -> tuple[str, list[Any]]:
    name = quoted(column.name)
    held = f"{name} IS NOT NULL"
    if column.value_for_null is not None:
        # A kept NULL counts as its null value, which the domain may not list.
        name, held = f"coalesce({name}, ?)", "TRUE"
        return f"{held} AND {name} NOT IN (SELECT unnest(?))", [column.value_for_null, list(domain)]
    dropped = [] if column.null_value is None else [column.null_value]
    not_dropped = f" AND {name} <> ?" if dropped else ""
    return f"{held}{not_dropped} AND {name} NOT IN (SELECT unnest(?))", [*dropped, list(domain)]


def _count(connection: duckdb.DuckDBPyConnection, table: Table, condition: str, *values: Any) -> int:
    return _number(connection, table, "count(*)", condition, *values)


def _number(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    counted: str,
    condition: str = "TRUE",
    *values: Any,
) -> int:
    sql = f"SELECT {counted} FROM {quoted(table.name)} WHERE {condition}"  # noqa: S608 - names of the policy
    found = connection.execute(sql, list(values)).fetchone()
    return 0 if found is None else int(found[0])


def _promises(
    connection: duckdb.DuckDBPyConnection, table: Table, blocks: Blocks | None
) -> Iterator[Promise]:
    """Count what the policy promises of every member and no query enforces."""

    def most(columns: Sequence[Column], rows: bool, promised: int) -> tuple[int, int | None]:
        source = rows_of_members(table, columns)
        aggregate, key = ("count(*)", "member, element") if rows else ("count(DISTINCT element)", "member")
        found = connection.execute(
            "SELECT coalesce(max(counted), 0), count(DISTINCT member) FILTER (counted > $promised) FROM ("  # noqa: S608
            f"SELECT member, {aggregate} AS counted FROM ({source.sql}) GROUP BY {key})",
            {"promised": promised, **source.values},
        ).fetchone()
        return (0, 0) if found is None else (int(found[0]), int(found[1]))

    return promises_of(table, blocks, "duckdb", most, lambda counted: _number(connection, table, counted))


def _clipped(connection: duckdb.DuckDBPyConnection, table: Table) -> Iterator[Clipped]:
    """Count what clipping and weights leave out of a total, and of questions by each column."""
    if not table.measures.counts_rows or table.measures.assumed_tau is not None:
        return
    is_weighted = table.contributions is not None and table.contributions.bounded_by is BoundedBy.IN_QUERY
    for column in (None, *(each for each in table.columns if each.group_by)):
        source = rows_of_members(table, () if column is None else (column,))
        delta = 1 if column is None else column.of_member_within
        tau = table.tau(Measure.EVENTS, delta or 1)
        weight = "least(1, floor(sqrt($square // sum(cell * cell) OVER (PARTITION BY member))) / $grid)"
        square = {"square": (delta or 1) * (tau * GRID) ** 2, "grid": GRID} if is_weighted else {}
        found = connection.execute(
            f"SELECT coalesce(sum(counted), 0), coalesce(round(sum(counted - cell * weight)), 0) FROM ("  # noqa: S608
            f"SELECT counted, cell, {weight if is_weighted else 1} AS weight FROM ("
            "SELECT member, count(*) AS counted, least(count(*), $tau) AS cell "
            f"FROM ({source.sql}) GROUP BY member, element))",
            {"tau": tau, **square, **source.values},
        ).fetchone()
        counted, cut = found or (0, 0)
        yield Clipped("" if column is None else column.name, int(counted), int(cut))


def _kept_values(connection: duckdb.DuckDBPyConnection, table: Table) -> Iterator[KeptValues]:
    """Count what members keep of distinct values, in a total and by each column, whose elements are not bounded."""
    for name, most in sorted(table.measures.distinct.items()):
        counted = table.column(name).model_copy(update={"nulls": Nulls.DROP})
        others = (each for each in table.columns if each.group_by and each.name != name)
        for column in (None, *others):
            source = rows_of_members(table, (counted,) if column is None else (counted, column))
            value, element = ("element", "0") if column is None else ("element[1]", "element[2]")
            order = DIALECTS["duckdb"].order_hash(values_salt(table.name), ["member", "value"])
            found = connection.execute(
                "SELECT count(DISTINCT (element, value)), count(DISTINCT (element, value)) FILTER (place <= $most) "  # noqa: S608
                f"FROM (SELECT *, row_number() OVER (PARTITION BY member, element ORDER BY {order}, value) AS place "
                f"FROM (SELECT DISTINCT CAST(member AS VARCHAR) AS member, {element} AS element, "
                f"CAST({value} AS VARCHAR) AS value FROM ({source.sql})))",
                {"most": most, **source.values},
            ).fetchone()
            values, kept = found or (0, 0)
            yield KeptValues(name, "" if column is None else column.name, int(values), int(kept))
