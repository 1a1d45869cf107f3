"""Columns with a grid: what a policy must not say, what a question resolves to, and what makes it another release."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.errors import PolicyError, RefusedByPolicyError
from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import Resolution, resolve
from dp_service.releases.kinds import kind_of, versions
from dp_service.releases.release_ids import release_specification
from dp_service.terms import MechanismName, MemberValue
from dp_service.values.cells import Grid
from tests.support.queries.as_in_plans import carried
from tests.support.queries.quantiles import DAYS, asked, days_policy, policy
from tests.support.queries.sums import NOW

POLICY = """
epsilon_per: 1
delta: 1e-6
count_noise: gaussian
tables:
  t:
    member: member
    measures: {distinct_members: true}
    contributions: {bound: in_query, units: 10, sums: {max_members: 100, max_rows: 1000}}
    columns:
      member: {type: string}
      text: {type: string, group_by: true, typical: 1, domain: [a, b]}
    values:
      number: {type: decimal, quantum: '0.01',
               grid: {scale: linear, from: 0, to: 20, cells: 10}}
"""


def test_bounds_of_rows_are_those_of_the_grid_and_of_sums_0() -> None:
    """A value is clamped to the grid, whose last value is one step below its end."""
    (number,) = parse_policy(POLICY).table("t").quantiles
    assert (number.bounds.totals.low, number.bounds.totals.high) == (0, 1999)
    assert (number.bounds.rows.low, number.bounds.rows.high) == (0, 2000)
    above = POLICY.replace("from: 0", "from: 5")
    assert parse_policy(above).table("t").quantiles[0].bounds.rows.low == 0


@pytest.mark.parametrize("scale", ["linear, from: 0", "geometric, from: 1"])
def test_no_cell_of_rows_is_beyond_the_largest_row(scale: str) -> None:
    """Where few rows are in cells noise chooses among those beyond as well; totals can be there."""
    text = POLICY.replace("number: {", "number: {row_upper: 5, ").replace("linear, from: 0", scale)
    (number,) = parse_policy(text).table("t").quantiles
    every = Grid.of(number.spec).edges
    for of in (MemberValue.ROWS, MemberValue.MEAN, MemberValue.LARGEST):
        edges = Grid.of(number.cells_of(of)).edges
        assert (edges[0], edges[-1]) == (every[0], 501)
        assert len(edges) < len(every)
    assert number.cells_of(MemberValue.TOTAL) == number.spec


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        ("cells: 10", "cells: 1", "grid.cells", "2"),
        ("cells: 10", "cells: 1000000", "grid.cells", "100000"),
        ("cells: 10", "cells: 2001", "number.grid", "cannot have 2001 cells"),
        ("linear, from: 0", "geometric, from: 0", "number.grid", "must begin with a positive number"),
        (
            "linear, from: 0, to: 20, cells: 10",
            "geometric, from: 1, to: 20, cells: 3000",
            "grid",
            "2000 cells",
        ),
        ("linear", "daily", "grid.scale", "'linear', 'geometric' or 'dates'"),
        ("linear", "dates", "number.type", "expected date"),
        ("cells: 10", "step: 5", "grid.step", "only a grid of dates"),
        ("from: 0, to: 20", "from: 2011-01-01, to: 20", "grid.from", "expected a number"),
        ("to: 20", "to: 0", "grid.to", "more than from"),
        ("to: 20", "to: '20.005'", "grid.to", "a multiple of the quantum"),
        ("to: 20", "to: '1e15'", "grid.to", "from -2^50 to 2^50"),
        ("quantum: '0.01'", "quantum: '0.03'", "number.quantum", "one divided by a whole number"),
        ("type: decimal", "type: int64", "number.quantum", "a whole number for an int64 column"),
        ("'0.01',", "'0.01', row_upper: 100000000000,", "values.number", "could reach 2^53"),
        ("'0.01',", "'0.01', member_value: total,", "number.member_value", "there is no such key"),
        ("'0.01',", "'0.01', row_lower: 30,", "number.row_upper", "more than row_lower"),
        ("'0.01',", "'0.01', nulls: keep,", "number.null_value", "stands for NULL"),
        ("distinct_members: true", "rows: 1", "distinct_members", "expected true"),
        ("      number: {type", "      member: {type", "member", "other than the member column"),
        ("      number: {type", "      MEMBER: {type", "values.MEMBER", "differ in more than case"),
        ("      number: {type", "      text: {type", "values.text", "the type, int64"),
    ],
)
def test_a_policy_with_a_fault_is_refused_by_key(old: str, new: str, key: str, message: str) -> None:
    """Grids of one cell or of 10^6, values that are not whole quanta, and sums that could be inexact."""
    text = POLICY.replace(old, new, 1)
    assert text != POLICY
    with pytest.raises(PolicyError) as error:
        parse_policy(text)
    assert any(key in each.key and message in each.message for each in error.value.problems), error.value


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        ("step: 7", "step: 5", "grid.step", "divides the 28 days"),
        ("step: 7", "step: 28", "grid.step", "from 2 to 100000 cells, and it makes 1"),
        ("step: 7", "cells: 4", "grid.step", "how many days each cell has"),
        ("step: 7", "step: 0", "grid.step", "greater than 0"),
        ("step: 7", "step: 7, cells: 4", "grid.cells", "step says how many days"),
        ("to: 2011-01-29", "to: 2011-02-30", "grid.to", "a day of the calendar"),
        ("to: 2011-01-29", "to: 2010-01-29", "grid.to", "a day after from"),
        ("from: 2011-01-01", "from: 5", "grid.from", "a day as YYYY-MM-DD"),
        (
            "from: 2011-01-01, to: 2011-01-29, step: 7",
            "from: 0001-01-01, to: 9999-12-31, step: 1",
            "grid.step",
            "and it",
        ),
        ("scale: dates", "scale: linear", "grid.scale", "expected dates"),
        ("type: date,", "type: int64,", "day.type", "expected date"),
        ("type: date,", "type: date, quantum: 2,", "day.quantum", "whole days"),
        ("type: date,", "type: date, nulls: keep,", "day.nulls", "expected drop"),
        ("text: {", "day: {type: int64}\n      text: {", "values.day", "the table's columns give, int64"),
    ],
)
def test_a_column_of_days_with_a_fault_is_refused_by_key(old: str, new: str, key: str, message: str) -> None:
    """Steps that do not divide the days, days that are none, and what only numbers have."""
    text = DAYS.format(epsilon="1")
    assert old in text
    with pytest.raises(PolicyError) as error:
        parse_policy(text.replace(old, new, 1))
    assert any(key in each.key and message in each.message for each in error.value.problems), error.value


def test_days_have_a_grid_of_equally_many_and_are_never_summed() -> None:
    """Its edges are those of the calendar; a sum of days means nothing."""
    (day,) = days_policy().table("t").quantiles
    assert Grid.of(day.spec) == Grid((14975, 14982, 14989, 14996, 15003))
    parameters = resolve(asked("day", of=MemberValue.LARGEST), days_policy(), now=NOW).parameters
    assert carried(parameters) == parameters
    with pytest.raises(PolicyError, match="days are not summed"):
        parse_policy(POLICY.replace("{type: decimal", "{lower: 0, upper: 1, type: date"))


def test_a_grid_that_doubles_cannot_divide_is_refused() -> None:
    """The number of quanta times that of cells stays below 2^53."""
    wide = "type: decimal, quantum: '0.01', grid: {scale: linear, from: 0, to: 2000000000"
    for cells, is_fine in ((40_000, True), (50_000, False)):
        text = POLICY.split("      number:", maxsplit=1)[0] + f"      number: {{{wide}, cells: {cells}}}}}\n"
        if is_fine:
            assert parse_policy(text)
        else:
            with pytest.raises(PolicyError, match="could reach 2"):
                parse_policy(text)


def specification(resolution: Resolution) -> bytes:
    """Return what names the release of a question."""
    parameters = resolution.parameters
    return release_specification(canonical_bytes(resolution.query), parameters, drawn_by=versions(parameters))


@pytest.mark.parametrize("of", [MemberValue.ROWS, MemberValue.LARGEST])
@pytest.mark.parametrize(
    ("by", "typical", "m", "units"),
    [((), 2, 1, 1), ((), 2, 9, 4), (("text",), 2, 3, 4), (("text",), 9, 1, 3)],
)
def test_the_price_follows_from_the_question_and_the_bound(
    by: tuple[str, ...], typical: int, m: int, units: int, of: MemberValue
) -> None:
    """Levels times the elements that a member can be in; `units` of the policy's counts have no part in it."""
    parameters = resolve(asked("number", by=by, of=of, m=m), policy(typical=typical), now=NOW).parameters
    cost = kind_of(parameters).mechanism.worst_case_cost()
    assert (cost.information, cost.calls) == (units, 0)
    assert parameters.contributions is not None
    assert (parameters.contributions.units, parameters.contributions.shifted) == (units, False)
    assert (parameters.mechanism, parameters.with_counts) == (MechanismName.QUANTILE_GUMB, False)
    assert kind_of(parameters).noise_scale is None
    assert carried(parameters) == parameters


def test_columns_without_a_domain_have_no_quantiles() -> None:
    """Two looks would name elements, and one look would choose in elements that a member's rows decide about."""
    known = policy().table("t")
    assert known.contributions is not None
    columns = tuple(
        column.model_copy(update={"domain": None}) if column.name == "text" else column
        for column in known.columns
    )
    for longest_list in (None, 7):
        block = known.contributions.model_copy(update={"longest_list": longest_list})
        table = known.model_copy(update={"contributions": block, "columns": columns})
        with pytest.raises(RefusedByPolicyError, match="text: quantiles are offered by"):
            resolve(asked("number"), replace(policy(), tables=(table,)), now=NOW)
