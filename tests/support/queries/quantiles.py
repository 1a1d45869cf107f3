"""Policies with public grids, and what a question for quantiles should count of hard rows: members by cell."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial

from dp_service.bounding.order import table_salt
from dp_service.noise.encoding import length_prefixed
from dp_service.queries.asked_numbers import AskedQuantile, Measure
from dp_service.queries.canonical import canonicalise
from dp_service.queries.canonical_query import QueryQuantiles
from dp_service.queries.columns import Nulls
from dp_service.queries.policy import parse_policy
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Policy
from dp_service.queries.value_columns import QuantileColumn
from dp_service.terms import MemberValue, RankFunction, ValueType
from dp_service.values.cells import Grid
from dp_service.values.quantum import Value
from tests.support.bounding import kept
from tests.support.cells import cell_of
from tests.support.queries.sums import Row
from tests.support.values import row_steps

DOMAIN = ("a", "b", "z")
POLICY = """
epsilon_per: {epsilon}
delta: 1e-6
count_noise: gaussian
tables:
  {table}:
    member: member
    contributions: {{bound: in_query, units: 10,
                    sums: {{max_members: 1000, max_rows: 100000}}}}
    measures: {{distinct_members: true, rows: {rows}}}
    columns:
      member: {{type: string}}
      text: {{type: string, group_by: true, typical: {typical}, domain: [a, b, z]}}
    values:
      whole: {whole}
      number: {number}
"""
WHOLES = (
    "{type: int64, grid: {scale: linear, from: -5, to: 15, cells: 7}}",
    "{type: int64, nulls: keep, null_value: 2, row_lower: -3, row_upper: 20, "
    "grid: {scale: linear, from: -6, to: 6, cells: 12}}",
    "{type: int64, quantum: 3, null_value: 3, grid: {scale: geometric, from: 3, to: 90, cells: 9}}",
)
NUMBERS = (
    "{type: decimal, quantum: '0.01', grid: {scale: geometric, from: '0.01', to: 20, cells: 40}}",
    "{type: decimal, quantum: '0.25', nulls: keep, null_value: '-0.5', "
    "grid: {scale: linear, from: -10, to: 10, cells: 9}}",
    "{type: decimal, quantum: 2, null_value: 6, row_lower: -20, row_upper: 30, "
    "grid: {scale: linear, from: 4, to: 100, cells: 5}}",
)


def policy(
    *,
    whole: str = WHOLES[0],
    number: str = NUMBERS[0],
    typical: int = 2,
    tau: int = 2,
    table: str = "t",
    epsilon: str = "1",
) -> Policy:
    """Return a policy whose queries bound members."""
    return parse_policy(
        POLICY.format(
            table=table, typical=typical, rows=tau * typical, whole=whole, number=number, epsilon=epsilon
        )
    )


def asked(
    column: str,
    by: tuple[str, ...] = ("text",),
    *,
    of: MemberValue = MemberValue.TOTAL,
    table: str = "t",
    m: int = 3,
) -> HistogramQuery:
    """Return a question for m quantiles."""
    quantiles = tuple(
        AskedQuantile(RankFunction.QUANTILE, column, Fraction(place, m + 1), of) for place in range(1, m + 1)
    )
    return HistogramQuery(table, by, Measure.DISTINCT_MEMBERS, quantiles=quantiles)


def reference(query: HistogramQuery, policy: Policy, rows: Sequence[Row]) -> list[tuple[object, ...]]:
    """Return what an engine should answer: elements, cells and how many members are there, in the query's order."""
    table = policy.table(query.table)
    column = table.quantile(query.quantiles[0].column)
    asked_so = canonicalise(query, table, closed_before=None)
    meant = asked_so.quantiles
    assert meant is not None
    by_member: dict[str, dict[str, list[Value]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        value = read_value(getattr(row, column.name), column)
        element = "" if not query.dimensions else row.text if row.text in DOMAIN else None
        if row.member is not None and element is not None and row_steps(column.bounds, value) is not None:
            by_member[row.member][element].append(value)
    bound = 1 if table.contributions is None else table.most_typical
    grid = Grid.of(column.cells_of(meant.rule))
    counts: Counter[tuple[str, int]] = Counter()
    for member, values in by_member.items():
        for element in kept(table_salt(table.name, "all"), member, list(values), bound):
            found_steps = (row_steps(column.bounds, value) for value in values[element])
            steps = [step for step in found_steps if step is not None]
            for found in values_of_member(meant, steps, member, asked_so.clip):
                counts[element, cell_of(grid, column.bounds.totals(found))] += 1
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return [(*((element,) if query.dimensions else ()), cell, count) for (element, cell), count in ordered]


def values_of_member(meant: QueryQuantiles, steps: Sequence[int], member: str, most: int | None) -> list[int]:
    """Return the values of a member in an element: one, or at most so many of its rows; its rows have these steps.

    A mean is rounded as rows are: to the nearest step, of two the upper one.
    """
    match meant.rule:
        case MemberValue.TOTAL:
            return [sum(steps)]
        case MemberValue.MEAN:
            return [(2 * sum(steps) + len(steps)) // (2 * len(steps))]
        case MemberValue.LARGEST:
            return [max(steps)]
        case MemberValue.ROWS:
            copies = [(step, copy) for step, often in Counter(steps).items() for copy in range(1, often + 1)]
            return [step for step, _ in sorted(copies, key=partial(order_of_row, meant.salt, member))[:most]]


def order_of_row(salt: bytes, member: str, row: tuple[int, int]) -> bytes:
    """Return the bytes by which a member's rows are ordered: by its step, and its number among equal ones."""
    texts = (member, *map(str, row))
    return hashlib.sha256(length_prefixed(salt, *(text.encode() for text in texts))).digest()


def read_value(value: Value, column: QuantileColumn) -> Value:
    """Return what a query reads: no value where the number stands for NULL and such rows are left out."""
    if column.type is ValueType.DECIMAL and isinstance(value, int | Decimal):
        value = float(value)
    if column.nulls is Nulls.KEEP:
        return column.null_value if row_steps(column.bounds, value) is None else value  # type: ignore[return-value]
    return None if column.null_value is not None and value == column.null_value else value


DAYS = """
epsilon_per: {epsilon}
delta: 1e-6
count_noise: gaussian
tables:
  t:
    member: member
    contributions: {{bound: in_query, units: 10}}
    measures: {{distinct_members: true, rows: 1}}
    columns:
      member: {{type: string}}
      text: {{type: string, group_by: true, typical: 1, domain: [a, b]}}
    values:
      day: {{type: date, grid: {{scale: dates, from: 2011-01-01, to: 2011-01-29, step: 7}}}}
"""
"""Four weeks."""


def days_policy(*, epsilon: str = "1") -> Policy:
    """Return a policy with quantiles of a column of days."""
    return parse_policy(DAYS.format(epsilon=epsilon))
