"""Policies with value columns, rows that are hard to sum, and what a question for sums should count of them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from random import Random
from typing import NamedTuple

from hypothesis import strategies as st

from dp_service.bounding.weights import least_kept, weight
from dp_service.parameters.numbers import Average
from dp_service.queries.asked_numbers import AskedNumber, Measure, Part, sum_of
from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Policy, Table
from dp_service.queries.value_columns import ValueColumn, ValueNulls
from dp_service.terms import GRID, AggregateFunction, ValueType
from dp_service.values.quantum import Value
from tests.support.member_sums import GroupSums, SummedColumn, group_sums

NOW = 1_700_000_000
POLICY = """
epsilon_per: 1
delta: 1e-6
count_noise: gaussian
tables:
  {table}:
    member: member
    contributions:
      {{bound: {bound}, typical: {typical}, units: 10, min_count: {min_count},
        sums: {{max_members: 1000, max_rows: 100000}}}}
    measures: {{distinct_members: true, rows: 4}}
    columns:
      member: {{type: string}}
      text: {{type: string, group_by: true{domain}}}
    values:
      whole: {whole}
      number: {number}
"""
WHOLES = (
    "{type: int64, lower: 0, upper: 10}",
    "{type: int64, lower: -7, upper: 5, row_lower: -3, row_upper: 20, nulls: keep, null_value: 2}",
    "{type: int64, quantum: 3, lower: -9, upper: 12, row_lower: -6, row_upper: 6, null_value: 3}",
    "{type: int64, lower: 2, upper: 10, row_lower: -4, row_upper: 15, nulls: own_count, null_value: 3}",
)
NUMBERS = (
    "{type: decimal, quantum: '0.01', lower: 0, upper: 20, row_upper: '5.5'}",
    "{type: decimal, quantum: '0.25', lower: -10, upper: 10, nulls: keep, null_value: '-0.5'}",
    "{type: decimal, quantum: 2, lower: 4, upper: 100, row_lower: -20, row_upper: 30, null_value: 6}",
    "{type: decimal, quantum: '0.25', lower: 1, upper: 10, row_lower: -4, row_upper: 15, nulls: own_count}",
)


class Row(NamedTuple):
    """A row of the small table."""

    member: str | None
    text: str | None
    whole: int | None
    number: float | None


@cache
def policy(
    *,
    whole: str = WHOLES[0],
    number: str = NUMBERS[0],
    typical: int = 2,
    min_count: int = 1,
    known: bool = False,
    table: str = "t",
) -> Policy:
    """Return a policy whose queries bound members."""
    domain = ", domain: [a, b, z]" if known else ""
    return parse_policy(
        POLICY.format(
            table=table,
            bound="in_query",
            typical=typical,
            min_count=min_count,
            domain=domain,
            whole=whole,
            number=number,
        )
    )


def asked(
    *columns: str,
    by: tuple[str, ...] = ("text",),
    table: str = "t",
    measure: Measure = Measure.DISTINCT_MEMBERS,
) -> HistogramQuery:
    """Return a question for the sum and the average of columns, over members' totals or rows."""
    numbers: list[AskedNumber] = []
    for column in columns:
        part = Part(AggregateFunction.SUM, column)
        numbers += [sum_of(column), AskedNumber(Average(part))]
    return HistogramQuery(table, by, measure, aggregates=tuple(numbers))


WHOLE_VALUES = (
    st.none() | st.integers(-30, 30) | st.sampled_from([2**63 - 1, -(2**63), -(2**63) + 1, 2**53 + 1, 0, 3])
)
NUMBER_VALUES = (
    st.none()
    | st.floats(-40, 40, width=32)
    | st.sampled_from([math.nan, math.inf, -math.inf, 1.7976931348623157e308, -1.7976931348623157e308])
    | st.sampled_from([2.0**63, -(2.0**63), -0.0, 0.005, 0.015, 1.005, 5e-324, 6.0, -0.5, 1e300])
)
MEMBERS = st.none() | st.sampled_from(["ada", "bob", "eve"])
ROWS = st.lists(
    st.builds(Row, MEMBERS, st.sampled_from(["a", "b", "c"]), WHOLE_VALUES, NUMBER_VALUES), max_size=30
)


def reference(query: HistogramQuery, policy: Policy, rows: Sequence[Row]) -> list[tuple[object, ...]]:
    """Return what an engine should answer: elements, n, centred sums and own counts, in the order of the query."""
    table = policy.table(query.table)
    names = sorted({part.column for each in query.aggregates for part in each.parts})
    columns = [table.value(name) for name in names]
    by_member: dict[str, dict[str, list[list[Value]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        values = [_read(getattr(row, column.name), column) for column in columns]
        is_usable = all(
            column.nulls is not ValueNulls.DROP or column.bounds.row(value) is not None
            for column, value in zip(columns, values, strict=True)
        )
        element = _element(row, query, table)
        if row.member is not None and element is not None and is_usable:
            by_member[row.member][element].append(values)
    summed = list(map(_summed, columns))
    asked = resolve(query, policy, now=NOW).parameters
    tau, bounded = asked.tau if query.sums_rows else None, asked.contributions
    cells = [
        {
            element: _numbers(group_sums([values], summed, rows_of_member=tau))
            for element, values in elements.items()
        }
        for elements in by_member.values()
    ]
    nothing = _numbers(group_sums([], summed))
    least = 1
    if query.dimensions and bounded is not None:
        domain = next(column.domain for column in table.columns if column.name == "text")
        least = _least(table)
        # Of a known domain that is no larger than Delta, every member may count in all.
        if domain is None or bounded.typical < len(domain):
            cut, least = (1, 1) if domain is not None else (least_kept(GRID), least * GRID)
            narrow = [not column.bounds.totals.is_fine if tau is None else False for column in columns]
            on_grid = [True, *narrow, *(True for _ in nothing[1 + len(columns) :])]
            squared = bounded.typical * (tau or 1) ** 2 * GRID**2
            cells = [weighted_numbers(of_member, squared, on_grid, cut) for of_member in cells]
    found: dict[str, tuple[int, ...]] = {}
    for element, numbers in (each for of_member in cells for each in of_member.items()):
        found[element] = tuple(map(sum, zip(found.get(element, nothing), numbers, strict=True)))
    if not query.dimensions:
        return [found.get("", nothing)]
    answers = sorted(found.items(), key=lambda each: (-each[1][0], each[0]))
    return [(element, *numbers) for element, numbers in answers if numbers[0] >= least]


def weighted_numbers(
    cells: dict[str, tuple[int, ...]], squared: int, on_grid: Sequence[bool], least: int
) -> dict[str, tuple[int, ...]]:
    """Return the numbers of a member where it is weighted: those of values in their own steps, rounded towards 0."""
    by = weight(squared, sum(numbers[0] ** 2 for numbers in cells.values()))
    return {
        element: tuple(
            by * number if is_on_grid else int(Fraction(by * number, GRID))
            for number, is_on_grid in zip(numbers, on_grid, strict=True)
        )
        for element, numbers in cells.items()
        if by * numbers[0] >= least
    }


def _numbers(sums: GroupSums) -> tuple[int, ...]:
    own = (column.count for column in sums.columns if column.count is not None)
    return (sums.count, *(column.centred for column in sums.columns), *own)


def odd_rows(count: int) -> list[Row]:
    """Return rows of members with up to six texts, with every value that is hard to sum.

    Two more members have a text of their own, and no value.
    """
    chosen = Random(23)
    wholes = (None, 2**63 - 1, -(2**63) + 1, 2**53 + 1, 3, *range(-9, 9))
    numbers = (
        None,
        math.nan,
        math.inf,
        -math.inf,
        1.7976931348623157e308,
        2.0**63,
        -0.0,
        0.005,
        1.005,
        -0.5,
        6.0,
    )
    return [
        Row(
            f"m{chosen.randrange(20)}",
            chosen.choice("abcdef"),
            chosen.choice(wholes),
            chosen.choice((*numbers, chosen.uniform(-30, 30))),
        )
        for _ in range(count)
    ] + [Row(f"n{number}", "g", None, None) for number in range(2)]


def nulls_in_pinot(policy: Policy, table: str) -> dict[str, int | float]:
    """Return what Pinot's schema has to state for missing values, by column; without it an infinity stands for them."""
    found = policy.table(table)
    whole, number = (
        (found.value(name) if found.values else found.quantile(name)).null_value
        for name in ("whole", "number")
    )
    return {
        **({} if whole is None else {"whole": int(whole)}),
        **({} if number is None else {"number": float(number)}),
    }


def as_in_pinot(
    policy: Policy, table: str, rows: Sequence[Row]
) -> list[tuple[str | None, str | None, int, str]]:
    """Return rows as Pinot stores them: a number of the policy, or an infinity, where a value is missing."""
    nulls = nulls_in_pinot(policy, table)
    stands = float(nulls.get("number", -math.inf))
    return [
        (
            row.member,
            row.text,
            int(nulls.get("whole", 0)) if row.whole is None else row.whole,
            _double(stands if row.number is None else row.number),
        )
        for row in rows
    ]


def _double(number: float) -> str:
    """Return a number as Java reads it."""
    return (
        str(number)
        if math.isfinite(number)
        else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(number)]
    )


def _least(table: Table) -> int:
    is_known = any(column.domain is not None for column in table.columns)
    return 1 if is_known or table.contributions is None else table.contributions.min_count


def _element(row: Row, query: HistogramQuery, table: Table) -> str | None:
    if not query.dimensions:
        return ""
    domain = next(column.domain for column in table.columns if column.name == "text")
    return row.text if domain is None or row.text in domain else None


def _read(value: Value, column: ValueColumn) -> Value:
    """Return what a query reads: no value where the number stands for NULL and such rows are left out."""
    if column.type is ValueType.DECIMAL and isinstance(value, int | Decimal):
        value = float(value)
    is_null = (
        column.nulls is not ValueNulls.KEEP and column.null_value is not None and value == column.null_value
    )
    return None if is_null else value


def _summed(column: ValueColumn) -> SummedColumn:
    stands = None
    if column.nulls is ValueNulls.KEEP and column.null_value is not None:
        stands = column.bounds.quantum.exact_steps(column.null_value)
    return SummedColumn(column.bounds, stands, has_own_count=column.nulls is ValueNulls.OWN_COUNT)
