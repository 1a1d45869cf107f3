"""From a policy file to a Policy: shape first (`policy_schema`), then what the keys mean together.

A policy may name files of published domains; they are read here too, and their hashes are part of the policy's text.

All faults are reported together, each with its line and key path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from dp_service.queries.columns import Column, Nulls
from dp_service.queries.currency import Currency
from dp_service.queries.errors import PolicyError, Problem, first_problems
from dp_service.queries.policy_audiences import audiences_of
from dp_service.queries.policy_blocks import check_blocks
from dp_service.queries.policy_buckets import check_buckets
from dp_service.queries.policy_columns import column_of, timestamps_of
from dp_service.queries.policy_contributions import check_contributions
from dp_service.queries.policy_distinct import check_distinct
from dp_service.queries.policy_document import Document, read_document
from dp_service.queries.policy_faults import Faults
from dp_service.queries.policy_lookups import with_lookups
from dp_service.queries.policy_schema import DOMAIN_KINDS, ColumnSchema, PolicySchema, TableSchema
from dp_service.queries.policy_streams import check_streams
from dp_service.queries.policy_types import OFFLINE_SUFFIX
from dp_service.queries.policy_values import check_values, number_columns
from dp_service.queries.publications import MAXIMUM_STATEMENT_BYTES
from dp_service.queries.schema_errors import schema_error
from dp_service.queries.tables import Policy, Table
from dp_service.queries.times import TimeColumn
from dp_service.queries.value_columns import VALUE_KINDS
from dp_service.terms import ColumnType
from gris_serving.yaml_texts import KeyPath

__all__ = [
    "Policy",
    "PolicyFile",
    "parse_policy",
    "read_policy",
]

# Pydantic adds names of its own to the path of an error, for a key or for a kind; the file has no such keys.
_TAGS = (*DOMAIN_KINDS, *VALUE_KINDS.values(), "[key]")
_UNITS_OF_TIME_COLUMNS: dict[ColumnType, tuple[tuple[str | None, ...], str]] = {
    ColumnType.DATE: ((None,), "none for a date column"),
    ColumnType.INT64: (
        ("days", "seconds", "milliseconds"),
        "days, seconds or milliseconds for an int64 column",
    ),
    ColumnType.TIMESTAMP: (
        (None, "seconds", "milliseconds", "microseconds"),
        "seconds, milliseconds or microseconds for a timestamp column that is stored as integers, and none for one of "
        "the engine's own type",
    ),
}


@dataclass(frozen=True)
class PolicyFile:
    """A policy, and the file that it was read from: which keys it states, and on which lines."""

    policy: Policy
    schema: PolicySchema
    document: Document


def parse_policy(text: str) -> Policy:
    """Read the text of a policy that has no file.

    Raises:
        PolicyError: As `read_policy`.
    """
    return read_policy(text.encode(), source="policy").policy


def read_policy(content: bytes, source: str) -> PolicyFile:
    """Read the content of a policy file.

    Args:
        content: The content, YAML in UTF-8.
        source: The name of the file in errors; relative names in the policy refer to its directory.

    Raises:
        PolicyError: The policy has faults; the error has line, key and what was expected for each.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise PolicyError((Problem(source, 1, "", "expected a text in UTF-8"),)) from None
    document = read_document(text, source)
    try:
        schema = PolicySchema.model_validate(document.content)
    except ValidationError as error:
        problems = first_problems(_shape_problems(document, error), error.error_count())
        raise PolicyError(problems) from None
    fault = Faults(document, [])
    _refuse_equal_names({name: ("tables", name) for name in schema.tables}, fault)
    tables = tuple(
        _table(name, table, ("tables", name), fault, max_k=schema.max_k)
        for name, table in sorted(schema.tables.items())
    )
    policy = Policy(schema.resolved(Currency), tables, audiences_of(schema, tables, fault))
    check_blocks(policy, fault)
    check_contributions(policy, fault)
    check_distinct(policy, fault)
    check_values(policy, schema, fault)
    check_buckets(policy, fault)
    check_streams(policy, fault)
    _refuse_long_statement(policy, fault)
    if fault.problems:
        raise PolicyError(first_problems(fault.problems, len(fault.problems)))
    return PolicyFile(policy, schema, document)


def _refuse_long_statement(policy: Policy, fault: Faults) -> None:
    """Refuse a policy with more published domains than fit into the policy statement of a charge."""
    size = len(policy.statement.encode())
    if size > MAXIMUM_STATEMENT_BYTES:
        fault(
            ("tables",),
            f"expected fewer published domains: their policy statement has {size} bytes of at most "
            f"{MAXIMUM_STATEMENT_BYTES}; {len(policy.publications)} columns have one",
        )


def _shape_problems(document: Document, error: ValidationError) -> Iterable[Problem]:
    for each in error.errors(include_url=False, include_input=False):
        path = tuple(key for key in each["loc"] if key not in _TAGS)
        message = schema_error(each["type"], each["msg"])
        if path[2:3] == ("contributions",):
            path, message = _of_contributions(path, each["type"], message)
        yield document.problem(path, message)


def _of_contributions(path: KeyPath, kind: str, message: str) -> tuple[KeyPath, str]:
    """Return the key in the file, and what is wrong with it: pydantic puts the alternative into the path."""
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return (*path, "bound"), "expected in_query, prepared or assumed"
    beside = f" beside bound: {path[3]}" if kind == "extra_forbidden" and len(path) == 5 else ""
    return (*path[:3], *path[4:]), message + beside


def _refuse_equal_names(names: Mapping[str, KeyPath], fault: Faults) -> None:
    """Refuse names that differ only in case: an engine that ignores case takes them for one."""
    seen: set[str] = set()
    for name, path in names.items():
        if name.casefold() in seen:
            fault(path, "expected names that differ in more than case")
        seen.add(name.casefold())


def _names_of_columns(schema: TableSchema, path: KeyPath) -> dict[str, KeyPath]:
    """Return every name of a table's column and its key, in the first of the blocks that name the column."""
    time_names = () if schema.time is None else (schema.time.name,)
    blocks = {
        "columns": sorted({*schema.columns, schema.member, *time_names}),
        "values": sorted(schema.values),
    }
    found: dict[str, KeyPath] = {}
    for block, names in blocks.items():
        for name in names:
            found.setdefault(name, (*path, block, name))
    return found


def _table(name: str, schema: TableSchema, path: KeyPath, fault: Faults, *, max_k: int) -> Table:
    time_names = () if schema.time is None else (schema.time.name,)
    _refuse_equal_names(_names_of_columns(schema, path), fault)
    if schema.member in time_names:
        fault((*path, "time", "column"), "expected a column other than the member column")
    if not schema.measures.offered:
        fault((*path, "measures"), "expected at least one measure")
    zone = "UTC" if schema.time is None else schema.time.zone
    columns = [
        column_of(column, each, zone, (*path, "columns", column), fault)
        for column, each in sorted(schema.columns.items())
    ]
    columns = with_lookups(
        columns, schema.columns, (*path, "columns"), fault.directory, fault, member=schema.member
    )
    _protect_member(schema.member, columns, path, fault)
    if schema.time is not None:
        _add_time_column(schema.time, columns, (*path, "time"), fault)
    values, quantiles = number_columns(schema.values, (*path, "values"), fault)
    return schema.resolved(
        Table,
        name=name,
        columns=tuple(columns),
        max_k=max_k,
        values=values,
        quantiles=quantiles,
        forced=(),
    )


def _protect_member(member: str, columns: Iterable[Column], path: KeyPath, fault: Faults) -> None:
    """Refuse a policy under which questions could single out members."""
    member_path = (*path, "columns", member)
    for column in columns:
        if column.name == member and (column.group_by or column.operators):
            fault(member_path, "the member column may be neither grouped by nor filtered on")
        if column.name == member and column.type in (ColumnType.BOOL, ColumnType.TIMESTAMP):
            fault(
                (*member_path, "type"),
                "expected string, int64 or date: a truth value or a timestamp cannot identify members",
            )
        elif column.name == member and column.nulls is Nulls.KEEP:
            fault((*member_path, "nulls"), "expected drop: rows without a member belong to no member")


def _add_time_column(time: TimeColumn, columns: list[Column], path: KeyPath, fault: Faults) -> None:
    """Check the time column against its entry among the columns, and add one if there is none."""
    column_type = ColumnType(time.type)
    units, expected = _UNITS_OF_TIME_COLUMNS[column_type]
    if time.counts not in units:
        fault((*path, "unit"), f"expected {expected}")
        return
    states_delay = "delay_minutes" in time.model_fields_set
    if time.refresh is None and states_delay:
        fault((*path, "delay_minutes"), "expected a refresh period as well")
    if time.refresh is not None and not states_delay and _is_offline_part(path):
        fault(
            (*path, "delay_minutes"),
            "expected how many minutes after the end of a period the offline part of a Pinot table holds all of it; "
            f"for a table whose name ends with {OFFLINE_SUFFIX} there is no default",
        )
    listed = [column for column in columns if column.name == time.name]
    if not listed:
        columns.append(column_of(time.name, _schema_of(time, column_type), time.zone, path, fault))
    elif listed[0].type is not column_type:
        fault((*path, "type"), "expected the type that the table's columns give")
    elif listed[0].timestamps not in (None, timestamps_of(_schema_of(time, column_type), time.zone)):
        fault((*path, "unit"), "expected the unit and the zone that the table's columns give")
    elif time.refresh is not None and listed[0].nulls is Nulls.KEEP:
        # Rows without a time belong to no period: they could appear in closed periods or vanish from them.
        fault((*path, "refresh"), "expected a time column whose NULLs are dropped")


def _schema_of(time: TimeColumn, column_type: ColumnType) -> ColumnSchema:
    """Return what the time column would be among the table's columns."""
    is_timestamp = column_type is ColumnType.TIMESTAMP
    return ColumnSchema.model_validate({"type": column_type, "unit": time.counts if is_timestamp else None})


def _is_offline_part(path: KeyPath) -> bool:
    """Return whether the name is that of the offline part of a Pinot table, which gets its rows days later."""
    _, table, _ = map(str, path)
    return table.endswith(OFFLINE_SUFFIX)
