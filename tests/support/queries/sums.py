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

from dp_service.bounding.weights import least_kept
from dp_service.parameters.aggregates import SumsReleased
from dp_service.parameters.numbers import Average
from dp_service.queries.asked_numbers import AskedNumber, Measure, Part, sum_of
from dp_service.queries.canonical_columns import QueryValue
from dp_service.queries.columns import Nulls
from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Policy, Table
from dp_service.queries.value_columns import ValueColumn
from dp_service.terms import GRID, AggregateFunction, ValueType
from dp_service.values.quantum import Value
from tests.support.bounding import weight
from tests.support.member_sums import SummedColumn, group_sums

NOW = 1_700_000_000
POLICY = """
epsilon_per: 1
delta: 1e-6
count_noise: gaussian
tables:
  {table}:
    member: member
    contributions:
      {{bound: {bound}, units: 10, min_count: {min_count},
        sums: {{max_members: 1000, max_rows: 100000}}}}
    measures: {{distinct_members: true, rows: 4}}
    columns:
      member: {{type: string}}
      text: {{type: string, group_by: true, typical: {typical}{domain}}}
    values:
      whole: {whole}
      number: {number}
"""
WHOLES = (
    "{type: int64, lower: 0, upper: 10}",
    "{type: int64, lower: -7, upper: 5, row_lower: -3, row_upper: 20, nulls: keep, null_value: 2}",
    "{type: int64, quantum: 3, lower: -9, upper: 12, row_lower: -6, row_upper: 6, null_value: 3}",
    "{type: int64, lower: 2, upper: 10, row_lower: -4, row_upper: 15, null_value: 3, rows: 2}",
)
NUMBERS = (
    "{type: decimal, quantum: '0.01', lower: 0, upper: 20, row_upper: '5.5'}",
    "{type: decimal, quantum: '0.25', lower: -10, upper: 10, nulls: keep, null_value: '-0.5'}",
    "{type: decimal, quantum: 2, lower: 4, upper: 100, row_lower: -20, row_upper: 30, null_value: 6}",
    "{type: decimal, quantum: '0.01', lower: 1, upper: 50, row_lower: -4, row_upper: 15, rows: 1}",
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


SIZES = (2, 5, 50, 10_000)


def many_elements(typical: int) -> tuple[Policy, list[Row]]:
    """Return members of up to 10,000 elements, and a policy that lists all of these.

    Of each size, one has large, small and missing amounts, and many rows in one element; one has a single row in each,
    with the largest amount.
    """
    amounts = (1500, 1500, 1500, 1, 0, 40, 1499, None, 700)
    rows = [
        Row(f"m{size}", str(element), amounts[element % len(amounts)], None)
        for size in SIZES
        for element in range(size)
    ]
    rows += [Row(f"u{size}", str(element), 1500, 10.0) for size in SIZES for element in range(size)]
    rows += [Row(f"m{size}", "7", 1500, 15.0) for size in SIZES for _ in range(6)]
    every = ", ".join(f"'{element}'" for element in range(SIZES[-1]))
    return parse_policy(
        POLICY.format(
            table="t",
            bound="in_query",
            typical=typical,
            min_count=1,
            domain=f", domain: [{every}]",
            whole="{type: int64, lower: 0, upper: 1500}",
            number="{type: decimal, quantum: '0.01', lower: 0, upper: 20, row_upper: 10, rows: 1}",
        )
    ), rows


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
    """Return what an engine should answer: elements, n, sums and own counts, in the order of the query."""
    table, asked = policy.table(query.table), resolve(query, policy, now=NOW)
    values = [value for value in asked.query.values if isinstance(value, QueryValue)]
    by_member: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        element = _element(row, query, table)
        if row.member is not None and element is not None:
            by_member[row.member][element].append(row)
    tau, bounded = asked.parameters.tau if query.sums_rows else 1, asked.parameters.contributions
    members = [
        {
            element: _of_member(of_element, values, table, tau, asked.parameters.sums)
            for element, of_element in elements.items()
        }
        for elements in by_member.values()
    ]
    nothing = [0] * (1 + len(values) + sum(value.has_own_count for value in values))
    least = 1
    if query.dimensions and bounded is not None:
        domain = next(column.domain for column in table.columns if column.name == "text")
        least = _least(table)
        # Of a known domain that is no larger than Delta, every member may count in all.
        if domain is None or bounded.typical < len(domain):
            cut, least = (1, 1) if domain is not None else (least_kept(GRID), least * GRID)
            members = [weighted_numbers(of_member, bounded.typical, cut) for of_member in members]
    found: dict[str, list[int]] = {}
    for element, numbers in (each for of_member in members for each in of_member.items()):
        found[element] = [
            before + each.number for before, each in zip(found.get(element, nothing), numbers, strict=True)
        ]
    if not query.dimensions:
        return [tuple(found.get("", nothing))]
    answers = sorted(found.items(), key=lambda each: (-each[1][0], each[0]))
    return [(element, *numbers) for element, numbers in answers if numbers[0] >= least]


class Added(NamedTuple):
    """What a member adds to one number in an element: its cell there, how much counts in full, whether in own steps.

    `typical` is in how many elements it counts in full; None: in as many as in the count.
    """

    number: int
    cell: int
    full: int
    is_fine: bool = False
    typical: int | None = None


def _of_member(
    rows: Sequence[Row], values: Sequence[QueryValue], table: Table, tau: int, stated: SumsReleased | None
) -> list[Added]:
    counted = min(len(rows), tau)
    added, own = [Added(counted, counted, tau)], []
    columns = () if stated is None else stated.columns
    for value, of_column in zip(values, columns, strict=True):
        column, typical = table.value(value.name), of_column.typical
        read = [[_read(getattr(row, value.name), column)] for row in rows]
        stands = (
            column.bounds.quantum.exact_steps(column.null_value or Fraction(0)) if value.keeps_nulls else None
        )
        summed = SummedColumn(value.bounds, stands, has_own_count=True)
        (found,) = group_sums([read], [summed], rows_of_member=value.rows).columns
        is_fine = value.rows is not None or value.bounds.totals.is_fine
        if value.has_own_count:
            assert found.count is not None
            added.append(Added(found.centred, found.count, value.rows or 1, is_fine, typical))
            own.append(Added(found.count, found.count, value.rows or 1, typical=typical))
        else:
            step = value.bounds.totals.cell_step
            full = -(-value.bounds.totals.largest // step)
            added.append(Added(found.centred, -(-abs(found.centred) // 2 // step), full, is_fine, typical))
    return added + own


def weighted_numbers(cells: dict[str, list[Added]], typical: int, least: int) -> dict[str, list[Added]]:
    """Return the numbers of a weighted member: those of values in their own steps, rounded towards 0."""
    weights = [
        weight(
            (each[0].typical or typical) * each[0].full ** 2 * GRID**2, sum(one.cell**2 for one in each) or 1
        )
        for each in zip(*cells.values(), strict=True)
    ]
    return {
        element: [
            one._replace(number=int(Fraction(by * one.number, GRID)) if one.is_fine else by * one.number)
            for by, one in zip(weights, numbers, strict=True)
        ]
        for element, numbers in cells.items()
        if weights[0] * numbers[0].number >= least
    }


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
    is_null = column.nulls is Nulls.DROP and column.null_value is not None and value == column.null_value
    return None if is_null else value
