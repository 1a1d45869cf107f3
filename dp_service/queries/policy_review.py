"""Reviews a valid policy file: what it promises without a check, and what it leaves to defaults."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from dp_service.queries.columns import Column
from dp_service.queries.domains import MAXIMUM_ELEMENTS, restricted_values
from dp_service.queries.errors import Problem
from dp_service.queries.filters import Value
from dp_service.queries.policy import PolicyFile
from dp_service.queries.policy_schema import TableSchema
from dp_service.queries.shown_elements import D_BAR_PER_K, DEFAULT_D_BAR
from dp_service.queries.table_contributions import Contributions
from dp_service.queries.tables import Policy, Table
from dp_service.queries.value_columns import QuantileColumn, ValueColumn
from dp_service.queries.versions import is_plain_hash
from dp_service.terms import BoundedBy, Consistency, CountNoise, ValueType
from gris_serving.yaml_texts import KeyPath

# Beyond these, the guarantee of one question alone is weak, or may fail for one in a million members.
_MUCH_EPSILON = Fraction(1)
_MUCH_DELTA = Fraction(1, 10**6)

_DEFAULT_D_BAR = (
    f"min(max({D_BAR_PER_K} k, {DEFAULT_D_BAR}), {MAXIMUM_ELEMENTS:,}), "
    f"or {DEFAULT_D_BAR} where the price does not depend on k"
)


@dataclass(frozen=True)
class Default:
    """A key that the file does not state, and what holds instead."""

    key: str
    value: str


@dataclass(frozen=True)
class Review:
    """What an operator should know about a policy before it is served."""

    warnings: tuple[Problem, ...]
    defaults: tuple[Default, ...]


def review(file: PolicyFile) -> Review:
    """Return warnings, each with its line, and the defaults that were taken."""
    found = [*_of_header(file.policy), *(each for table in file.policy.tables for each in _of_table(table))]
    return Review(
        warnings=tuple(file.document.problem(path, message) for path, message in found),
        defaults=tuple(_defaults(file)),
    )


_Warnings = Iterator[tuple[KeyPath, str]]


def _of_header(policy: Policy) -> _Warnings:
    if policy.currency.epsilon_per > _MUCH_EPSILON:
        yield ("epsilon_per",), "above 1: a single information unit pays for a large loss of privacy"
    if policy.currency.delta > _MUCH_DELTA:
        yield (
            ("delta",),
            "above 1e-6: with a million members, the guarantee may fail for one of them at every call",
        )
    if policy.count_noise is CountNoise.GAUSSIAN:
        yield (
            ("count_noise",),
            "gaussian: the guarantee of every account is by zCDP alone, for few units too",
        )

    if (blocks := policy.currency.blocks) is not None:
        yield (
            ("blocks",),
            "a promise that no question checks: over a window of the budget, all rows of a member are of "
            f"{blocks.times} {'blocks at most' if blocks.moves else 'block'}, in all tables together; "
            "`gris check --data` counts whether the data keep it, and `gris serve` refuses files that do not",
        )


def _of_table(table: Table) -> _Warnings:
    path: KeyPath = ("tables", table.name)
    if table.consistency is Consistency.FRESH:
        yield (
            (*path, "consistency"),
            "fresh: a repeated question gets new noise, and only the budget prevents averaging it away",
        )
    if (tau := table.measures.assumed_tau) is not None:
        yield (
            (*path, "measures", "events"),
            f"an assumed tau is a promise that nothing checks: no member has more than {tau} rows "
            "in one element; tau_is: clipped needs none",
        )
    if table.contributions is not None:
        yield from _of_contributions(table.contributions, (*path, "contributions"))
        yield from _of_buckets(table, table.contributions, (*path, "time", "buckets"))
    if table.member_column() is None:
        yield (
            (*path, "member"),
            "not among the columns: Pinot then counts all rows without a member as one member; list it with its type",
        )
    yield from _of_changes(table, path)
    for column in table.columns:
        yield from _of_column(column, table, (*path, "columns", column.name))


def _of_contributions(stated: Contributions, path: KeyPath) -> _Warnings:
    if stated.bounded_by is BoundedBy.ASSUMED:
        yield (
            (*path, "bound"),
            f"an assumed bound is a promise that nothing checks: no member has more than {stated.delta} elements in "
            "any question; `gris check --data` counts whether the data keep it, and bound: in_query needs none",
        )
    if stated.bounded_by is BoundedBy.PREPARED:
        yield (
            (*path, "bound"),
            "a prepared copy is checked on DuckDB alone; on Pinot it is a promise that the table was loaded from one",
        )
        if isinstance(stated.stated_periods, int):
            yield (
                (*path, "periods"),
                f"a promise that nothing checks: the copy has no more than {stated.stated_periods} periods, now and "
                "later",
            )
    if stated.sums is not None:
        yield (
            (*path, "sums"),
            f"promises that nothing checks: the table has no more than {stated.sums.max_members} members and "
            f"{stated.sums.max_rows} rows, now and later; beyond them an engine that sums in doubles may round",
        )


def _of_buckets(table: Table, stated: Contributions, path: KeyPath) -> _Warnings:
    """Yield what an assumed bound promises beyond the elements of columns, where buckets of time are offered."""
    if table.buckets and stated.bounded_by is BoundedBy.ASSUMED:
        yield (
            path,
            f"the assumed bound is about these buckets, too: no member counts in more than {stated.delta} of them, "
            "nor of their combinations with columns, in any range of time; `gris check --data` does not count "
            "that, and bound: in_query needs no promise",
        )


def _of_changes(table: Table, path: KeyPath) -> _Warnings:
    """Yield warnings about what happens to answers when the data change."""
    closed = table.time if table.time is not None and table.time.refresh is not None else None
    if closed is None and table.data_version is None:
        yield (
            path,
            "no data_version and no time.refresh: after every change of the data each question is paid for again",
        )
    if is_plain_hash(table.data_version or ""):
        yield (
            (*path, "data_version"),
            "with a plain hash of the data, anyone who sees this file can verify a guess of them: use a name, such as "
            "a date, or a keyed hash, such as hmac-sha256:...",
        )
    if closed is not None and closed.delay_minutes == 0:
        yield (
            (*path, "time", "delay_minutes"),
            "0: a row that arrives late, or a clock that is ahead, changes a closed period",
        )


def _of_column(column: Column, table: Table, path: KeyPath) -> _Warnings:
    if column.lookup is not None:
        yield (
            (*path, "lookup", "file"),
            "a promise that nothing checks: the file is public, and was not made from the data; its keys are in "
            f"queries, and its texts, of {len(column.lookup.entries)} keys, in answers",
        )
    null = column.value_for_null
    # With a domain, only its values are counted.
    counts_null = null is not None and (column.domain is None or null in column.domain)
    if is_promise(column, table):
        yield (
            (*path, "delta"),
            f"a promise that nothing checks: no member has more than {column.delta} of the column's values"
            + (f"; a kept NULL, {null!r}, is one of them" if counts_null else ""),
        )
    if column.group_by and null is not None and not counts_null:
        yield (
            (*path, "nulls"),
            f"keep, but the domain does not list the null value {null!r}: questions that group by the column leave out "
            "rows without a value",
        )
    is_key = any(each.lookup is not None and each.lookup.key.name == column.name for each in table.columns)
    if column not in table.usable_columns and column.name != table.member and not is_key:
        yield path, "listed, but questions may neither group by it nor filter on it"


def is_promise(column: Column, table: Table) -> bool:
    """Return whether the guarantee rests on the column's Delta, which nothing checks when a question is asked."""
    if column.lookup is not None and column.delta == column.lookup.key.delta:
        # It follows from what is promised of the key.
        return False
    return column.delta is not None and (
        _is_below_domain(column) or _is_left_to_delta(column, table) or _lends_its_delta(column, table)
    )


def _lends_its_delta(column: Column, table: Table) -> bool:
    """Return whether questions by what is looked up for the column rest on its Delta: they ask for no domain of it."""
    return any(
        each.group_by and each.lookup is not None and each.lookup.key.name == column.name
        for each in table.columns
    )


def _is_below_domain(column: Column) -> bool:
    """Return whether Delta is below the number of values that can be counted, so that a member could exceed it."""
    return column.domain is None or column.of_member_within != len(column.domain)


def _is_left_to_delta(column: Column, table: Table) -> bool:
    """Return whether the domains of some key are too long for a query, so that only Delta bounds a member."""
    grouped = [each for each in table.columns if each.group_by]
    return column.group_by and column.name not in restricted_values(grouped)


def _defaults(file: PolicyFile) -> Iterator[Default]:
    if "count_noise" not in file.schema.model_fields_set:
        yield Default("count_noise", file.policy.count_noise)
    if "max_k" not in file.schema.model_fields_set:
        yield Default("max_k", str(file.schema.max_k))
    for table in file.policy.tables:
        for key, value in _table_defaults(table, file.schema.tables[table.name]):
            yield Default(f"tables.{table.name}.{key}", value)


def _table_defaults(table: Table, schema: TableSchema) -> Iterator[tuple[str, str]]:
    stated = table.model_fields_set
    if "consistency" not in stated:
        yield "consistency", table.consistency
    if table.contributions is None:
        if "d_bar" not in stated:
            yield "d_bar", _DEFAULT_D_BAR
    elif "min_count" not in table.contributions.model_fields_set:
        yield "contributions.min_count", str(table.contributions.min_count)
    yield from _sums_defaults(table)
    if "reserve_first" not in stated:
        yield "reserve_first", "false"
    if table.time is not None:
        if "zone" not in table.time.model_fields_set:
            yield "time.zone", table.time.zone
        if table.time.refresh is not None and "delay_minutes" not in table.time.model_fields_set:
            yield "time.delay_minutes", str(table.time.delay_minutes)
    for column in table.columns:
        for key, value in _column_defaults(column, table) if column.name in schema.columns else ():
            yield f"columns.{column.name}.{key}", value


def _sums_defaults(table: Table) -> Iterator[tuple[str, str]]:
    """Yield what holds for sums where the policy does not say it."""
    found: dict[str, str] = {}
    for column in reversed(table.numbers):
        found |= {f"values.{column.name}.{key}": value for key, value in _value_defaults(column)}
    yield from found.items()


def _value_defaults(value: ValueColumn | QuantileColumn) -> Iterator[tuple[str, str]]:
    if value.type is ValueType.DATE:
        # Nothing of it has a default.
        return
    quantum, rows = value.bounds.quantum.size, value.bounds.rows
    held = {
        "quantum": str(quantum),
        "row_lower": str(rows.low * quantum),
        "row_upper": str(rows.high * quantum),
        "nulls": value.nulls,
    }
    yield from ((key, default) for key, default in held.items() if key not in value.model_fields_set)


def _column_defaults(column: Column, table: Table) -> Iterator[tuple[str, str]]:
    stated = column.model_fields_set
    if column.group_by and column.domain is None:
        yield "domain", "unknown"
    if column.group_by and column.delta is None and table.contributions is None:
        yield "delta", "any number"
    if "nulls" not in stated:
        yield "nulls", column.nulls
    if "null_value" not in stated and column.null_value is not None:
        yield "null_value", shown_value(column.null_value)


def shown_value(value: Value) -> str:
    """Return a value of the policy as text."""
    return value.isoformat() if isinstance(value, datetime.date) else repr(value)
