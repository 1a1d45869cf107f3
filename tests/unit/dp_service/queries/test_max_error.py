"""`max_error`: the fewest units that are expected to be as exact, from public numbers alone."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dp_service.parameters.release import HavingCondition
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.errors import PolicyError, QuestionError
from dp_service.queries.max_error import MaxError
from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.exactness import at_other_prices, at_units, of_other_prices
from dp_service.releases.keys import NoiseKey
from dp_service.releases.kinds import kind_of
from dp_service.releases.resolving import resolve_question
from dp_service.releases.translation import IssueContext, plan_for
from dp_service.terms import Comparison
from tests.support.typical import typically

BLOCK = "{bound: in_query, units: 10, least_units: 2, most_units: 40"
NAMES = ", longest_list: 75"
MORE = ", sums: {max_members: 1000000, max_rows: 100000000}"
LIST = "SELECT a, COUNT(DISTINCT m) AS n FROM t GROUP BY a ORDER BY n DESC LIMIT 10"
SMALL = "SELECT d, COUNT(DISTINCT m) AS n FROM t GROUP BY d"
QUESTIONS = {
    "a list": LIST,
    "a known domain": SMALL,
    "events": "SELECT a, COUNT(*) AS n FROM t GROUP BY a",
    "a total": "SELECT COUNT(DISTINCT m) FROM t",
    "sums": "SELECT d, COUNT(DISTINCT m), SUM(v) FROM t GROUP BY d",
    "a second count": "SELECT d, COUNT(DISTINCT m), COUNT(DISTINCT m) FILTER (WHERE d = 'x') FROM t GROUP BY d",
    "a series": "SELECT DATE_TRUNC('month', day), COUNT(DISTINCT m) FROM t WHERE day >= '2024-01-01' AND day < "
    "'2025-01-01' GROUP BY 1",
    "a funnel": "SELECT FUNNEL_COUNT(STEPS(d = 'x', d = 'y'), CORRELATE_BY(m)) FROM t",
}


def policy(block: str = f"{BLOCK}{NAMES}{MORE}}}") -> Policy:
    """Return a policy whose table has this block; empty: contributions are not bounded."""
    contributions = f"    contributions: {block}\n" if block else ""
    text = f"""
epsilon_per: 0.15
delta: 1e-11
count_noise: gaussian
tables:
  t:
    member: m
    time: {{column: day, type: date{", buckets: {month: 12}" if "sums" in block else ""}}}
{contributions}    measures: {{distinct_members: true, events: {{tau: 3, tau_is: clipped}}}}
    columns:
      a: {{type: string, group_by: true}}
      d: {{type: string, group_by: true, domain: [x, y, z], filter: [in]}}
      e: {{type: string, group_by: true, domain: [p, q]}}
"""
    text += "    values: {v: {type: int64, lower: 0, upper: 100}}\n" if "sums" in block else ""
    return parse_policy(typically(8, text) if block else text)


RANGE = policy()


def answered(text: str, of: Policy = RANGE) -> Any:
    """Return how a question is answered."""
    return resolve_question(parse_sql(text, of), of, now=0)


def error_of(parameters: Any) -> float:
    """Return the mean error that is stated of a count."""
    found = kind_of(parameters).accuracy().mean_error
    assert found is not None
    return found


def paid(text: str, of: Policy = RANGE) -> int:
    """Return the units that a question costs."""
    return int(kind_of(answered(text, of).parameters).mechanism.worst_case_cost().information)


@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.parametrize("shape", [f"{BLOCK}{MORE}}}", f"{BLOCK}{NAMES}{MORE}}}"])
def test_each_kind_takes_the_fewest_units_with_which_the_stated_error_is_within(
    kind: str, shape: str
) -> None:
    """Against policies that state each number of units: one look, two looks, relative counts, sums, funnels."""
    text = QUESTIONS[kind]
    fixed = {
        units: policy(shape.replace("units: 10, least_units: 2, most_units: 40", f"units: {units}"))
        for units in range(2, 41)
    }
    errors = {units: error_of(answered(text, of).parameters) for units, of in fixed.items()}
    assert all(one > other for one, other in itertools.pairwise(errors.values()))
    ranged = policy(shape)
    for wanted in (errors[40], errors[17], errors[17] + 0.001, errors[2], 10.0**6):
        expected = min(units for units, error in errors.items() if error <= round(wanted, 3))
        found = answered(f"{text} OPTION(max_error={wanted:.3f})", ranged)
        assert found == answered(text, fixed[expected])
        assert found.parameters == at_units(answered(text, fixed[40]).parameters, expected)
    assert paid(text, ranged) == paid(text, fixed[10])
    with pytest.raises(
        QuestionError, match=f"expected at least {errors[40]} counts.*, 40 information"
    ) as refused:
        answered(f"{text} OPTION(max_error={errors[40] - 0.001:.3f})", ranged)
    assert refused.value.field == "max_error"


def test_the_same_units_by_another_error_are_the_same_question() -> None:
    """One query_id, so one release and one charge; without an error it is the policy's price, as one that says so."""

    def query_id(text: str, of: Policy = RANGE) -> str:
        plan = plan_for(answered(text, of), "v", NoiseKey(bytes(32)), IssueContext(0, bytes(32)))
        return plan.query_id

    assert query_id(f"{LIST} OPTION(max_error=16)") == query_id(f"{LIST} OPTION(max_error=15.9)")
    assert query_id(f"{LIST} OPTION(max_error=16)") != query_id(f"{LIST} OPTION(max_error=30)")
    assert query_id(f"{LIST} OPTION(max_error={error_of(answered(LIST).parameters)})") == query_id(LIST)
    assert query_id(LIST) == query_id(LIST, policy(f"{{bound: in_query, units: 10{NAMES}{MORE}}}"))


def test_fixed_units_are_checked_and_never_changed() -> None:
    """So are mechanisms that have no units to choose: Laplace and Gumbel noise, which cost what they cost."""
    fixed = policy(f"{{bound: in_query, units: 10{NAMES}}}")
    for of in (fixed, policy("")):
        for text in (LIST, f"{SMALL} ORDER BY n DESC LIMIT 3"):
            error = error_of(answered(text, of).parameters)
            assert answered(f"{text} OPTION(max_error={error})", of) == answered(text, of)
            assert paid(f"{text} OPTION(max_error=1000)", of) == paid(text, of)
            with pytest.raises(
                QuestionError, match=f"at least {error} counts.*, {paid(text, of)} information"
            ):
                answered(f"{text} OPTION(max_error={error - 0.001:.3f})", of)


def test_a_part_is_of_the_largest_public_number_that_counts_are_not_below() -> None:
    """HAVING's bound on the count, what the author expects at rank k, or a fixed threshold at the usual units."""
    assert paid(f"{SMALL} HAVING n >= 100 OPTION(max_error='5%')") == paid(f"{SMALL} OPTION(max_error=5)")
    assert paid(f"{SMALL} HAVING n > 100 OPTION(max_error=5 %)") == paid(f"{SMALL} OPTION(max_error=5)")
    for no_bound in ("", " HAVING n < 100", " HAVING n >= -5"):
        with pytest.raises(QuestionError, match="HAVING on the count would"):
            answered(f"{SMALL}{no_bound} OPTION(max_error=5%)")
    usual = kind_of(answered(LIST).parameters).accuracy()
    assert paid(f"{LIST} OPTION(max_error=20%)") == paid(
        f"{LIST} OPTION(max_error={(usual.found_half or 0) / 5})"
    )
    expected = policy(f"{BLOCK}{NAMES}, expected: {{a: [{{rank: 10, count: 300}}]}}}}")
    assert paid(f"{LIST} OPTION(max_error=10%)", expected) == paid(f"{LIST} OPTION(max_error=30)", expected)
    with pytest.raises(QuestionError, match="HAVING on the count would"):
        answered(f"{LIST} OPTION(max_error=10%)", policy(""))


EXPECTED = f"{BLOCK}{NAMES}, expected: {{a: [{{rank: 10, count: 300}}, {{rank: 50, count: 200}}]}}}}"


def test_between_ranks_the_count_of_the_later_one_is_expected() -> None:
    """None that is too high is made up."""
    of = policy(EXPECTED)
    at_11 = LIST.replace("LIMIT 10", "LIMIT 11")
    assert at_11 != LIST
    assert paid(f"{at_11} OPTION(max_error=10%)", of) == paid(f"{at_11} OPTION(max_error=20)", of)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("expected: {a:", "expected: {nobody:", "nobody: expected a column"),
        ("rank: 10,", "rank: 60,", "ascending ranks"),
        ("count: 300", "count: 30", "do not rise"),
    ],
)
def test_expectations_that_cannot_be_are_refused(old: str, new: str, problem: str) -> None:
    """Of columns that questions may group by, with ascending ranks and falling counts."""
    assert old in EXPECTED
    with pytest.raises(PolicyError, match=problem):
        policy(EXPECTED.replace(old, new))


def test_a_question_without_counts_has_no_error() -> None:
    """Quantiles and rankings show none."""
    ranking = HistogramQuery("t", ("a",), Measure.DISTINCT_MEMBERS, k=5, omit_counts=True, max_error="5")
    with pytest.raises(QuestionError, match="shows no counts"):
        resolve_question(ranking, RANGE, now=0)


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "0.0",
        "-1",
        "nan",
        "inf",
        "1e400",
        "%",
        "101%",
        "1,5",
        "١٦",
        "16%%",
        "9" * 13,
        "1." + "0" * 13,
        " 16",
        "½",
    ],
)
def test_what_is_no_error_is_refused(text: str) -> None:
    """As text of a message, and in SQL, where the statement is not repeated."""
    with pytest.raises(QuestionError, match="expected how far a count may be off") as refused:
        MaxError.of(text)
    assert refused.value.field == "max_error"
    with pytest.raises(QuestionError) as refused:
        parse_sql(f"{LIST} OPTION(max_error='{text}')", RANGE)
    assert "sql" == refused.value.field
    assert len(text) < 4 or text not in str(refused.value)


@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("OPTION(timeoutMs=5)", "max_error alone"),
        ("OPTION max_error=5", "OPTION"),
        ("OPTION(max_error 5)", "max_error alone"),
        ("OPTION(max_error=5", "expected \\)"),
        ("OPTION(max_error=5) OPTION(max_error=6)", "OPTION"),
        ("OPTION(max_error=5) LIMIT 3", "each clause once"),
    ],
)
def test_an_option_that_is_written_otherwise_is_refused(option: str, problem: str) -> None:
    """By what was expected; one option, behind the whole statement."""
    with pytest.raises(QuestionError, match=problem):
        parse_sql(f"{SMALL} {option}", RANGE)


def test_an_error_is_no_part_of_what_is_asked() -> None:
    """Of two texts that differ in it alone, the questions are equal but for it; EXPLAIN and ; stand beside it."""
    with_error = parse_sql(f"EXPLAIN {SMALL} option ( MAX_ERROR = '7.5' ) ;", RANGE)
    assert with_error.explained
    assert with_error.max_error == "7.5"
    assert replace(with_error, max_error="") == parse_sql(SMALL, RANGE)


@pytest.mark.parametrize(
    ("block", "key"),
    [
        ("{bound: in_query, units: 10, least_units: 11}", "least_units"),
        ("{bound: in_query, units: 10, most_units: 9}", "most_units"),
        ("{bound: in_query, units: 10, least_units: 0}", "least_units"),
    ],
)
def test_a_policy_whose_units_are_in_disorder_is_refused(block: str, key: str) -> None:
    """`units` lies between the other two."""
    with pytest.raises(PolicyError) as refused:
        policy(block)
    assert any(each.key.endswith(f"contributions.{key}") for each in refused.value.problems)


def test_half_and_twice_the_price_are_said() -> None:
    """5 and 20 units of 10, and between which the policy lets a question choose."""
    priced = tuple(at_other_prices(answered(LIST).parameters))
    assert [each.units for each in priced] == [5, 20]
    (said,) = of_other_prices(priced, range(2, 41))
    assert said.code == "accuracy.other_prices"
    assert said.values == ("5", "17", "20", "8.51")
    assert "2 to 40 units" in said.text
    for text, of in ((LIST, policy("")), (LIST, policy("{bound: in_query, units: 1}"))):
        assert [each.units for each in at_other_prices(answered(text, of).parameters)] == (
            [2] if of.tables[0].contributions else []
        )


def test_having_on_a_sum_says_nothing_of_counts() -> None:
    """Only the count's own conditions from below do."""
    asked = parse_sql("SELECT d, COUNT(DISTINCT m), SUM(v) FROM t GROUP BY d", RANGE)
    of_sum = HavingCondition(0, Comparison.AT_LEAST, Fraction(10**6))
    with pytest.raises(QuestionError, match="HAVING on the count would"):
        resolve_question(replace(asked, having=(of_sum,), max_error="5%"), RANGE, now=0)
