"""Policies with public grids, and what a question for quantiles should count of hard rows: members by cell."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from dp_service.bounding.order import kept, table_salt
from dp_service.queries.asked_numbers import AskedQuantile, Measure
from dp_service.queries.canonical import canonicalise
from dp_service.queries.columns import Nulls
from dp_service.queries.policy import parse_policy
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Policy
from dp_service.queries.value_columns import QuantileColumn
from dp_service.terms import MemberValue, RankFunction, ValueType
from dp_service.values.cells import Grid
from dp_service.values.member_value import member_value
from dp_service.values.quantum import Value
from tests.support.cells import cell_of
from tests.support.queries.sums import Row

DOMAIN = ("a", "b", "z")
POLICY = """
epsilon_per: {epsilon}
delta: 1e-6
count_noise: gaussian
tables:
  {table}:
    member: member
    contributions: {{bound: in_query, typical: {typical}, units: 10, shift: true}}
    measures: {{distinct_members: true}}
    columns:
      member: {{type: string}}
      text: {{type: string, group_by: true, domain: [a, b, z]}}
    quantiles:
      whole: {whole}
      number: {number}
"""
WHOLES = (
    "{type: int64, member_value: RULE, grid: {scale: linear, from: -5, to: 15, cells: 7}}",
    "{type: int64, member_value: RULE, nulls: keep, null_value: 2, row_lower: -3, row_upper: 20, "
    "grid: {scale: linear, from: -6, to: 6, cells: 12}}",
    "{type: int64, quantum: 3, null_value: 3, member_value: RULE, "
    "grid: {scale: geometric, from: 3, to: 90, cells: 9}}",
)
NUMBERS = (
    "{type: decimal, quantum: '0.01', member_value: RULE, grid: {scale: geometric, from: '0.01', to: 20, cells: 40}}",
    "{type: decimal, quantum: '0.25', nulls: keep, null_value: '-0.5', member_value: RULE, "
    "grid: {scale: linear, from: -10, to: 10, cells: 9}}",
    "{type: decimal, quantum: 2, null_value: 6, row_lower: -20, row_upper: 30, member_value: RULE, "
    "grid: {scale: linear, from: 4, to: 100, cells: 5}}",
)


def policy(
    rule: MemberValue = MemberValue.TOTAL,
    *,
    whole: str = WHOLES[0],
    number: str = NUMBERS[0],
    typical: int = 2,
    table: str = "t",
    epsilon: str = "1",
) -> Policy:
    """Return a policy whose queries bound members, with one rule for the value of a member."""
    stated = rule.value
    if rule in (MemberValue.TOTAL, MemberValue.MEAN):
        stated += ", max_rows: 100000"
    return parse_policy(
        POLICY.format(
            table=table,
            typical=typical,
            whole=whole.replace("RULE", stated),
            number=number.replace("RULE", stated),
            epsilon=epsilon,
        )
    )


def asked(column: str, by: tuple[str, ...] = ("text",), *, table: str = "t", m: int = 3) -> HistogramQuery:
    """Return a question for m quantiles."""
    quantiles = tuple(
        AskedQuantile(RankFunction.QUANTILE, column, Fraction(place, m + 1)) for place in range(1, m + 1)
    )
    return HistogramQuery(table, by, Measure.DISTINCT_MEMBERS, quantiles=quantiles)


def reference(query: HistogramQuery, policy: Policy, rows: Sequence[Row]) -> list[tuple[object, ...]]:
    """Return what an engine should answer: elements, cells and how many members are there, in the query's order."""
    table = policy.table(query.table)
    column = table.quantile(query.quantiles[0].column)
    meant = canonicalise(query, table, closed_before=None).quantiles
    assert meant is not None
    by_member: dict[str, dict[str, list[Value]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        value = read_value(getattr(row, column.name), column)
        element = "" if not query.dimensions else row.text if row.text in DOMAIN else None
        if row.member is not None and element is not None and column.bounds.row(value) is not None:
            by_member[row.member][element].append(value)
    bound = 1 if table.contributions is None else table.contributions.typical or 1
    counts: Counter[tuple[str, int]] = Counter()
    for member, values in by_member.items():
        for element in kept(table_salt(table.name, "all"), member, list(values), bound):
            found = member_value(
                column.member_value, values[element], column.bounds, salt=meant.salt, member=member
            )
            assert found is not None
            counts[element, cell_of(Grid.of(column.spec), found)] += 1
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return [(*((element,) if query.dimensions else ()), cell, count) for (element, cell), count in ordered]


def read_value(value: Value, column: QuantileColumn) -> Value:
    """Return what a query reads: no value where the number stands for NULL and such rows are left out."""
    if column.type is ValueType.DECIMAL and isinstance(value, int | Decimal):
        value = float(value)
    if column.nulls is Nulls.KEEP:
        return column.null_value if column.bounds.row(value) is None else value  # type: ignore[return-value]
    return None if column.null_value is not None and value == column.null_value else value


DAYS = """
epsilon_per: {epsilon}
delta: 1e-6
count_noise: gaussian
tables:
  t:
    member: member
    contributions: {{bound: in_query, typical: 1, units: 10}}
    measures: {{distinct_members: true}}
    columns:
      member: {{type: string}}
      text: {{type: string, group_by: true, domain: [a, b]}}
    quantiles:
      day: {{type: date, member_value: {rule}, grid: {{scale: dates, from: 2011-01-01, to: 2011-01-29, step: 7}}}}
"""
"""Four weeks."""


def days_policy(rule: MemberValue = MemberValue.LARGEST, *, epsilon: str = "1") -> Policy:
    """Return a policy with quantiles of a column of days."""
    return parse_policy(DAYS.format(rule=rule.value, epsilon=epsilon))
