"""Columns with a grid: what a policy must not say, what a question resolves to, and what makes it another release."""

from __future__ import annotations

import datetime
from dataclasses import replace
from fractions import Fraction

import pytest

from dp_service.queries.asked_numbers import AskedQuantile
from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.errors import PolicyError, QuestionError, RefusedByPolicyError
from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.kinds import kind_of, versions
from dp_service.releases.release_ids import release_specification
from dp_service.terms import CountNoise, MechanismName, MemberValue, RankFunction
from dp_service.values.cells import Grid
from tests.support.queries.as_in_plans import carried
from tests.support.queries.quantiles import DAYS, NAMES, NUMBERS, WHOLES, asked, days_policy, policy
from tests.support.queries.sums import NOW

POLICY = """
epsilon_per: 1
delta: 1e-6
tables:
  t:
    member: member
    measures: {distinct_members: true}
    columns:
      member: {type: string}
      text: {type: string, group_by: true, domain: [a, b]}
    quantiles:
      number: {type: decimal, quantum: '0.01', member_value: total, max_rows: 1000,
               grid: {scale: linear, from: 0, to: 20, cells: 10}}
"""


def test_bounds_of_rows_are_those_of_the_grid_and_of_sums_0() -> None:
    """A value is clamped to the grid, whose last value is one step below its end."""
    (number,) = parse_policy(POLICY).table("t").quantiles
    assert (number.bounds.totals.low, number.bounds.totals.high) == (0, 1999)
    assert (number.bounds.rows.low, number.bounds.rows.high) == (0, 2000)
    above = POLICY.replace("from: 0", "from: 5")
    assert parse_policy(above).table("t").quantiles[0].bounds.rows.low == 0
    one = above.replace("total, max_rows: 1000", "largest")
    assert parse_policy(one).table("t").quantiles[0].bounds.rows.low == 500


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
        ("max_rows: 1000,", "", "number.max_rows", "the largest number of rows"),
        ("max_rows: 1000,", "max_rows: 10000000000000,", "number.max_rows", "could reach 2^53"),
        ("total, max_rows: 1000", "largest, max_rows: 1000", "number.max_rows", "only totals and means"),
        ("total", "median", "member_value", "'one_row'"),
        ("max_rows: 1000,", "max_rows: 1000, row_lower: 30,", "number.row_upper", "more than row_lower"),
        ("max_rows: 1000,", "max_rows: 1000, nulls: keep,", "number.null_value", "stands for NULL"),
        ("distinct_members: true", "events: {tau: 1, tau_is: clipped}", "distinct_members", "expected true"),
        ("text: {", "gris_cell: {type: string}\n      text: {", "gris_cell", "another name"),
        ("      number: {type", "      member: {type", "member", "other than the member column"),
        ("      number: {type", "      MEMBER: {type", "quantiles.MEMBER", "differ in more than case"),
        ("      number: {type", "      text: {type", "quantiles.text", "the type, int64"),
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
        ("largest,", "total, max_rows: 10,", "day.member_value", "days are not added up"),
        ("largest,", "largest, quantum: 2,", "day.quantum", "whole days"),
        ("largest,", "largest, nulls: keep,", "day.nulls", "expected drop"),
        ("text: {", "day: {type: int64}\n      text: {", "quantiles.day", "the table's columns give, int64"),
    ],
)
def test_a_column_of_days_with_a_fault_is_refused_by_key(old: str, new: str, key: str, message: str) -> None:
    """Steps that do not divide the days, days that are none, and what only numbers have."""
    text = DAYS.format(rule="largest", epsilon="1")
    assert old in text
    with pytest.raises(PolicyError) as error:
        parse_policy(text.replace(old, new, 1))
    assert any(key in each.key and message in each.message for each in error.value.problems), error.value


def test_days_have_a_grid_of_equally_many_and_are_never_summed() -> None:
    """Its edges are those of the calendar; a sum of days means nothing."""
    (day,) = days_policy().table("t").quantiles
    assert Grid.of(day.spec) == Grid.days(datetime.date(2011, 1, 1), datetime.date(2011, 1, 29), 7)
    parameters = resolve(asked("day"), days_policy(), now=NOW).parameters
    assert carried(parameters) == parameters
    with pytest.raises(PolicyError, match="days are not summed"):
        parse_policy(POLICY + "    values: {number: {type: date, lower: 0, upper: 1}}\n")


def test_a_grid_that_doubles_cannot_divide_is_refused() -> None:
    """The number of quanta times that of cells stays below 2^53."""
    wide = (
        "type: decimal, quantum: '0.01', member_value: largest, grid: {scale: linear, from: 0, to: 2000000000"
    )
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


@pytest.mark.parametrize(
    ("by", "delta_0", "m", "units"),
    [((), 2, 1, 1), ((), 2, 9, 4), (("text",), 2, 3, 4), (("text",), 9, 1, 3)],
)
def test_the_price_follows_from_the_question_and_the_bound(
    by: tuple[str, ...], delta_0: int, m: int, units: int
) -> None:
    """Levels times the elements that a member can be in; `units` of the policy's counts have no part in it."""
    parameters = resolve(asked("number", by=by, m=m), policy(delta_0=delta_0), now=NOW).parameters
    cost = kind_of(parameters).mechanism.worst_case_cost()
    assert (cost.information, cost.calls) == (units, 0)
    assert parameters.contributions is not None
    assert (parameters.contributions.units, parameters.contributions.shifted) == (units, False)
    assert (parameters.mechanism, parameters.with_counts) == (MechanismName.QUANTILE_GUMB, False)
    assert kind_of(parameters).noise_scale is None
    assert carried(parameters) == parameters


@pytest.mark.parametrize(
    ("m", "delta_0", "units", "names"),
    [(1, 2, 4 + 2, 7), (9, 2, 4 + 8, 7), (1, 9, 4 + 7, 7), (999, 9, 4 + 20, 2)],
)
def test_over_an_unknown_domain_two_looks_have_one_price(
    m: int, delta_0: int, units: int, names: int
) -> None:
    """3.5 units of the first look are paid as 4; of 999 values no more than two elements can have theirs."""
    resolution = resolve(asked("number", m=m), policy(delta_0=delta_0, names=NAMES), now=NOW)
    parameters = resolution.parameters
    mechanism, bounded = kind_of(parameters).mechanism, parameters.contributions
    assert (mechanism.worst_case_cost().information, mechanism.worst_case_cost().calls) == (units, 1)
    assert bounded is not None
    assert bounded.names is not None
    assert (bounded.units, bounded.names.units, bounded.names.most_names) == (units, Fraction(4), names)
    assert carried(parameters) == parameters
    assert carried(resolution.query) == resolution.query


def test_columns_without_a_domain_need_a_first_look() -> None:
    """One look over an unknown domain would choose in elements that a member's rows decide about."""
    one_look = policy(names=NAMES).table("t")
    assert one_look.contributions is not None
    block = one_look.contributions.model_copy(update={"names": None})
    table = one_look.model_copy(update={"contributions": block})
    with pytest.raises(RefusedByPolicyError, match="text: quantiles are offered by"):
        resolve(asked("number"), replace(policy(names=NAMES), tables=(table,)), now=NOW)


def test_quantiles_without_groups_need_neither_a_bound_nor_gaussian_counts() -> None:
    """Each member has one value, whatever the table says of elements."""
    under = parse_policy(POLICY)
    assert under.count_noise is CountNoise.LAPLACE
    parameters = resolve(asked("number", by=(), m=3), under, now=NOW).parameters
    assert parameters.contributions is None
    assert kind_of(parameters).mechanism.worst_case_cost().information == 2


OTHERS: list[Policy] = [
    policy(rule=MemberValue.MEAN),
    policy(rule=MemberValue.ONE_ROW),
    policy(number=NUMBERS[0].replace("cells: 40", "cells: 41")),
    policy(number=NUMBERS[0].replace("to: 20", "to: 21")),
    policy(number=NUMBERS[0].replace("geometric", "linear")),
    policy(number=NUMBERS[0].replace("'0.01', member", "'0.005', member")),
    policy(number=NUMBERS[0].replace("RULE", "RULE, row_upper: 7")),
    policy(number=NUMBERS[0].replace("RULE", "RULE, null_value: 7")),
    policy(delta_0=1),
    policy(epsilon="2"),
]


def test_everything_that_changes_a_draw_makes_another_release() -> None:
    """Grid, rule, bounds and what is asked for; the order in which quantiles are shown, and their aliases, do not."""
    query = asked("number")
    first = specification(resolve(query, policy(), now=NOW))
    found = {specification(resolve(query, other, now=NOW)) for other in OTHERS}
    least = AskedQuantile(RankFunction.SMALLEST, "number")
    most = AskedQuantile(RankFunction.LARGEST, "number")
    for quantiles in (
        (*query.quantiles, least),
        (*query.quantiles, most),
        query.quantiles[:2],
        (least,),
        (most,),
    ):
        found.add(specification(resolve(replace(query, quantiles=quantiles), policy(), now=NOW)))
    assert len(found) == len(OTHERS) + 5
    assert first not in found
    turned = tuple(replace(each, alias="q" * place) for place, each in enumerate(query.quantiles[::-1]))
    assert specification(resolve(replace(query, quantiles=turned), policy(), now=NOW)) == first
    assert resolve(query, policy(whole=WHOLES[1]), now=NOW).query == resolve(query, policy(), now=NOW).query


def test_sql_and_the_structured_form_mean_the_same() -> None:
    """Percent are quantiles, whatever digits they have."""
    sql = "SELECT PERCENTILE(number, 99.95) AS top_value, PERCENTILE(number, 5) FROM t"
    question = parse_sql(sql, policy())
    assert [each.q for each in question.quantiles] == [Fraction(1999, 2000), Fraction(1, 20)]
    assert question.quantiles[0].alias == "top_value"


@pytest.mark.parametrize(
    ("order", "ordered_by", "smallest_first"),
    [
        ("ORDER BY p DESC", 0, False),
        ("ORDER BY p, text LIMIT 1000", 0, True),
        ("ORDER BY 3 DESC", 1, False),
        ("ORDER BY MAX(number)", 1, True),
        ("ORDER BY QUANTILE(number, 0.5) DESC LIMIT 1000", 0, False),
        ("ORDER BY text", None, False),
    ],
)
def test_a_list_of_percentiles_is_in_the_order_of_one(
    order: str, ordered_by: int | None, smallest_first: bool
) -> None:
    """It is another view of the same release: tools order by what they draw."""
    sql = "SELECT text, PERCENTILE(number, 50) AS p, MAX(number) FROM t GROUP BY text"
    question = parse_sql(f"{sql} {order}", policy())
    assert (question.ordered_by, question.smallest_first) == (ordered_by, smallest_first)
    ordered, plain = (
        specification(resolve(each, policy(), now=NOW)) for each in (question, parse_sql(sql, policy()))
    )
    assert ordered == plain


@pytest.mark.parametrize(
    "order", ["COUNT(DISTINCT member) DESC", "SUM(number)", "MIN(number)", "PERCENTILES(number, 50, 25)"]
)
def test_a_list_of_percentiles_is_in_no_order_that_is_not_released(order: str) -> None:
    """Counts are another release."""
    sql = " ".join(["SELECT text, PERCENTILE(number, 50) FROM t GROUP BY text ORDER BY", order])
    with pytest.raises(QuestionError, match=r"column 67: .*one of them that is selected"):
        parse_sql(sql, policy())


def test_how_much_is_chosen_is_limited_by_public_numbers() -> None:
    """At most 2,000 values and 10^6 cells, of all elements together."""
    domain = ", ".join(f"e{i}" for i in range(1200))
    text = (
        POLICY.replace(
            "epsilon_per: 1\ndelta: 1e-6\n", "epsilon_per: 1\ndelta: 1e-6\ncount_noise: gaussian\n"
        )
        .replace("[a, b]", f"[{domain}]")
        .replace(
            "member: member\n",
            "member: member\n    contributions: {bound: in_query, delta_0: 1, units: 1}\n",
            1,
        )
    )

    def fault(m: int, policy_text: str) -> str:
        with pytest.raises(QuestionError) as error:
            resolve(asked("number", m=m), parse_policy(policy_text), now=NOW)
        return str(error.value)

    assert resolve(asked("number", m=1), parse_policy(text), now=NOW).row_limit == 12_000
    assert "at most 2000 values" in fault(2, text)
    assert "at most 1000000 cells" in fault(1, text.replace("cells: 10", "cells: 1000"))


def test_the_spare_members_of_extremes_follow_from_the_grid() -> None:
    """And from epsilon_per; a finer grid leaves more members to spare."""
    query = HistogramQuery(
        "t", (), asked("number").measure, quantiles=(AskedQuantile(RankFunction.LARGEST, "number"),)
    )
    spares = []
    for number in (NUMBERS[0], NUMBERS[0].replace("cells: 40", "cells: 400")):
        under = policy(number=number)
        mechanism = kind_of(resolve(query, under, now=NOW).parameters).mechanism
        assert mechanism.among.cells == len(Grid.of(under.table("t").quantile("number").spec))
        spares.append(mechanism.spare)
    assert 0 < spares[0] < spares[1]
