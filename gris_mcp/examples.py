"""Examples of arguments: of the tables that are served, and shown only after they were found to be accepted."""

# ruff: noqa: S608  (the SQL is an example for readers, of the policy's own names)

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from gris_mcp.descriptions import FUNCTIONS
from pinot_connector.catalog import ColumnEntry, FilterOperator, TableEntry
from pinot_connector.engines.base import ColumnType
from pinot_connector.json_values import MOST_EXACT_INTEGER, to_json
from pinot_connector.questions import Measure
from pinot_connector.shown_values import ShownScalar

Given = dict[str, Any]

# Of listed values, which strangers may have written, those of one plain word.
_PLAIN = re.compile(r"[\w-]{1,24}", re.ASCII)
_RANGE = re.compile(r">= '(\d{4}-\d\d-\d\d)' AND \S+ < '(\d{4}-\d\d-\d\d)'")
_DAYS = ("2025-01-01", "2025-07-01")
_VALUES: dict[ColumnType, ShownScalar] = {
    ColumnType.INT64: 1,
    ColumnType.BOOL: True,
    ColumnType.STRING: "one",
}
_TIMES = (ColumnType.DATE, ColumnType.TIMESTAMP)
FIXED: dict[str, Given] = {
    "k": {"k": 10},
    "counts": {"counts": False},
    "having": {"having": ["count >= 100"]},
    "confidence": {"confidence": 0.95},
    "most": {"most": 5},
}
"""Examples that need no table."""


def examples_of(table: TableEntry, *, column: str = "", is_large: bool = False) -> dict[str, Given]:
    """Return arguments by the field that they are an example of, as far as the table has what that needs.

    Args:
        table: What the catalogue says of it.
        column: The one that a condition is wanted of, if the table has it.
        is_large: Whether a condition is wanted with an integer that clients change.
    """
    return FIXED | dict(_examples(table, column, is_large=is_large))


def whole_question(table: TableEntry) -> Given:
    """Return a question of a table: by a column if there is one that it may be grouped by."""
    found: Given = {"table": table.name, "by": _groups(table)[:1]}
    if found["by"]:
        found |= FIXED["k"]
    is_default = any(each.measure is Measure.DISTINCT_MEMBERS for each in table.measures)
    return found if is_default else found | {"measure": table.measures[0].text}


def _examples(table: TableEntry, column: str, *, is_large: bool) -> Iterator[tuple[str, Given]]:
    yield "table", whole_question(table)
    groups, (since, until) = _groups(table), _range(table)
    measure = table.measures[0]
    if groups:
        counted = measure.in_sql(table.member)
        listed = f"GROUP BY {groups[0]} ORDER BY 2 DESC LIMIT 10"
        yield "sql", {"sql": f"SELECT {groups[0]}, {counted} FROM {table.name} {listed}"}
        yield "by", {"by": groups[:1]}
    yield "measure", {"measure": measure.text}
    for condition in _conditions(table, column, is_large=is_large):
        yield "where", {"where": [condition]}
        written = _in_sql(condition)
        yield "condition", {"condition": written}
        yield "numbers", {"numbers": [f"members where {written}"]}
        break
    if table.time is not None:
        for name in ("since", "until"):
            yield name, {"since": since, "until": until}
        for length in [each for each in table.time.buckets if each == "month"] or table.time.buckets[-1:]:
            bucket = f"{length}:{table.time.column}"
            yield "bucket", {"bucket": bucket, "since": since, "until": until}
            yield "ranked", {"bucket": bucket, "since": since, "until": until, "ranked": True}
    for each in table.values[:1]:
        yield "sums", {"sums": [each.name]}
        yield "averages", {"averages": [each.name]}
        yield "order_by", {"sums": [each.name], "order_by": f"sum:{each.name}"}
    for quantile in table.quantiles[:1]:
        yield "quantiles", {"quantiles": [{"column": quantile.name, "of": ["0.5", "max"]}]}
    if len(groups) > 1:
        yield "totals_by", {"by": groups[:2], "totals_by": groups[0]}
    yield from ((each.code, {"by": [each.text]}) for each in table.functions if each.code in FUNCTIONS)


def _groups(table: TableEntry) -> list[str]:
    """Return the columns that may be grouped by: those of listed values first, and then texts."""
    found = [each for each in table.columns if each.mechanism is not None]
    return [
        each.name for each in sorted(found, key=lambda c: (c.domain is None, c.type is not ColumnType.STRING))
    ]


def _range(table: TableEntry) -> tuple[str, str]:
    """Return a range of days in which the table has rows, as far as the catalogue's own examples know one."""
    found = (_RANGE.search(each.sql) for each in table.functions)
    return next(((each[1], each[2]) for each in found if each is not None), _DAYS)


def _conditions(table: TableEntry, column: str, *, is_large: bool) -> Iterator[Given]:
    """Yield conditions: of the column first, then of listed values, then of days and numbers."""

    def last(each: ColumnEntry) -> tuple[bool, bool, bool]:
        return each.name != column, each.domain is None, each.type is ColumnType.STRING

    day, _ = _range(table)
    for each in sorted(table.columns, key=last):
        is_in, is_range = (kind in each.filters for kind in (FilterOperator.IN, FilterOperator.RANGE))
        if is_large and (each.type is not ColumnType.INT64 or each.domain is not None or not is_in):
            continue
        plain = [value for value in each.domain or () if _PLAIN.fullmatch(str(value))]
        values = plain if each.domain else [_VALUES.get(each.type, day)]
        if is_in and (is_large or values):
            yield {
                "column": each.name,
                "one_of": [str(MOST_EXACT_INTEGER + 1)] if is_large else [to_json(values[0])],
            }
        elif is_range and each.type is not ColumnType.STRING:
            yield {"column": each.name, "at_least": day if each.type in _TIMES else 1}


def _in_sql(condition: Given) -> str:
    (value,) = condition.get("one_of", [condition.get("at_least")])
    compared = "=" if "one_of" in condition else ">="
    literal = f"'{value}'" if isinstance(value, str) else str(value).upper()
    return f"{condition['column']} {compared} {literal}"
