"""The block `contributions` of a policy: what is refused, and what it makes of a question."""

from __future__ import annotations

import datetime
import re
from fractions import Fraction

import pytest

from dp_service.noise.gaussian_price import DISCRETENESS
from dp_service.parameters.contributions import BoundedContributions, NamesLook
from dp_service.parameters.numbers import Plain
from dp_service.queries.asked_numbers import AskedNumber, Measure, Part
from dp_service.queries.contributions import MAXIMUM_ROWS, PreparedCopy
from dp_service.queries.errors import PolicyError, QuestionError, RefusedByPolicyError
from dp_service.queries.filters import In, TimeRange
from dp_service.queries.policy import Policy, parse_policy, read_policy
from dp_service.queries.policy_review import review
from dp_service.queries.render import Feature, render, required_features
from dp_service.queries.resolution import NAMES_TO_COME, Resolution, resolve, second_look
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.kinds import kind_of
from dp_service.terms import GRID, AggregateFunction, BoundedBy, Bounding, CountNoise, MechanismName
from tests.support.typical import typically

HEADER = "epsilon_per: 0.15\ndelta: 1e-10\ncount_noise: gaussian\n"
IN_QUERY = "bound: in_query, units: 20"
PREPARED = "bound: prepared, delta: 32, units: 20, elements: [page, kind]"
MEASURES = "{distinct_members: true, events: {tau: 3, tau_is: clipped}}"


def text_of(
    block: str,
    *,
    header: str = HEADER,
    measures: str = "",
    table: str = "",
    columns: str = "",
    typical: int = 32,
) -> str:
    """Return the text of a policy whose table bounds contributions so; of a prepared copy, members alone count.

    `typical` is of queries that bound members.
    """
    is_prepared = "bound: prepared" in block
    measures = measures or ("{distinct_members: true}" if is_prepared else MEASURES)
    # A copy of one period, or of periods of another column, has no days.
    has_days = not re.search("period: (all|p)(,|$)", block)
    time = "    time: {column: day, type: date}\n" if has_days else ""
    columns += "      day: {type: date}\n" if has_days else ""
    text = f"""{header}tables:
  t:
    member: m
{time}    contributions: {{{block}}}
    measures: {measures}
{table}    columns:
      page: {{type: string, group_by: true, filter: [in]}}
      kind: {{type: string, group_by: true, domain: [a, b, c]}}
{columns}"""
    return typically(typical, text) if "in_query" in block else text


def policy_of(block: str) -> Policy:
    """Return the policy whose table bounds contributions so."""
    return parse_policy(text_of(block))


def resolved(
    policy: Policy, *by: str, k: int | None = None, measure: Measure = Measure.DISTINCT_MEMBERS
) -> Resolution:
    """Return what a question resolves to."""
    return resolve(HistogramQuery("t", by or ("page",), measure, k=k), policy, now=0)


FAULTS = {
    "no units": ("bound: in_query", "contributions.units: expected this key"),
    "no bound": ("units: 20", "contributions.bound: expected in_query, prepared or assumed"),
    "hoped": (
        "bound: hoped, units: 20",
        "contributions.bound: expected in_query, prepared or assumed",
    ),
    "units of 0": (
        "bound: in_query, units: 0",
        "contributions.units: expected a number greater than 0",
    ),
    "half a unit": (
        "bound: in_query, units: 0.5",
        "contributions.units: expected a whole number",
    ),
    "huge units": (
        "bound: in_query, units: 1000001",
        "contributions.units: expected a number less than or equal",
    ),
    "min_count of 0": (
        f"{IN_QUERY}, min_count: 0",
        "contributions.min_count: expected a number greater than 0",
    ),
    "huge min_count": (
        f"{IN_QUERY}, min_count: 10000000000",
        "contributions.min_count: expected a number less than or equal",
    ),
    "unknown key": (
        f"{IN_QUERY}, typic: 4",
        "contributions.typic: there is no such key beside bound: in_query",
    ),
    "no name": (
        f"{IN_QUERY}, longest_list: 0",
        "contributions.longest_list: expected a number greater than 0",
    ),
    "too many names": (
        f"{IN_QUERY}, longest_list: 501",
        "contributions.longest_list: expected a number less than or equal",
    ),
    "elements in a query": (
        f"{IN_QUERY}, elements: [page]",
        "contributions.elements: there is no such key beside bound: in_query",
    ),
    "a period that is assumed": (
        "bound: assumed, delta: 1, units: 1, period: all",
        "contributions.period: there is no such key beside bound: assumed",
    ),
    "a promise beside a bound": (f"{IN_QUERY}, delta: 3", "contributions.delta: there is no such key beside"),
    "no promise": ("bound: assumed, units: 1", "contributions.delta: expected this key"),
    "what is typical beside a promise": (
        "bound: assumed, delta: 1, units: 1, typical: 1",
        "contributions.typical: there is no such key beside bound: assumed",
    ),
    "no elements": (
        "bound: prepared, delta: 1, units: 1, period: all",
        "contributions.elements: expected this key",
    ),
    "no period": (PREPARED, "contributions.period: expected this key"),
    "how many periods": (
        f"{PREPARED}, period: month",
        "contributions.periods: expected this key with a period that is a column",
    ),
    "one period, twice": (
        f"{PREPARED}, period: all, periods: 3",
        "contributions.periods: expected this key with a period that is a column, and none with all",
    ),
    "no periods": (
        f"{PREPARED}, period: month, periods: 0",
        "contributions.periods: expected how many periods the copy has, from 1 to 100000",
    ),
    "a calendar of another column": (
        f"{PREPARED}, period: month, periods: month",
        "contributions.period: expected day, the time column",
    ),
    "years": (
        f"{PREPARED}, period: year, periods: year",
        "contributions.periods: expected how many periods",
    ),
    "a column that is not grouped by": (
        "bound: prepared, delta: 1, units: 1, period: all, elements: [page, kind, day]",
        "contributions.elements: day: expected a column that questions may group by",
    ),
    "a column that the copy is not bounded by": (
        "bound: prepared, delta: 1, units: 1, period: all, elements: [page]",
        "contributions.elements: a copy is bounded by these columns alone: expected no group_by for kind",
    ),
}


@pytest.mark.parametrize(("block", "expected"), FAULTS.values(), ids=FAULTS.keys())
def test_a_block_with_a_fault_is_refused_by_its_key(block: str, expected: str) -> None:
    """Every number out of range, and every key that says too little or too much."""
    with pytest.raises(PolicyError) as refusal:
        policy_of(block)
    assert f"tables.t.{expected}" in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            text_of(IN_QUERY, header="epsilon_per: 0.15\ndelta: 1e-10\n"),
            "contributions: expected count_noise: gaussian",
        ),
        (text_of(IN_QUERY, table="    d_bar: 100\n"), "t.d_bar: expected none beside contributions"),
        (
            text_of(IN_QUERY, columns="      c: {type: string, delta: 3}\n"),
            "columns.c.delta: expected none beside",
        ),
        (
            text_of(IN_QUERY, measures="{events: {tau: 3, tau_is: assumed}}"),
            "measures.events: expected rows instead",
        ),
        (
            text_of(
                "bound: in_query, units: 100000, least_units: 1",
                typical=100000,
                measures="{rows: 500000}",
            ),
            "contributions.units: expected more, or fewer rows of a member",
        ),
    ],
)
def test_a_block_that_contradicts_the_rest_is_refused_by_its_key(text: str, expected: str) -> None:
    """No key may be left without a meaning, and no noise without one that can be drawn."""
    with pytest.raises(PolicyError) as refusal:
        parse_policy(text)
    assert expected in str(refusal.value)


def test_every_question_of_the_table_is_answered_by_bound_gauss() -> None:
    """Over an unknown domain with threshold and smallest count, over a known one with neither."""
    unknown = resolved(policy_of(f"{IN_QUERY}, min_count: 5"), "page", k=50)
    assert unknown.parameters.contributions == BoundedContributions(
        BoundedBy.IN_QUERY,
        typical=32,
        periods=1,
        of_events=False,
        units=20,
        min_count=5,
        salt="",
        bounding=Bounding.WEIGHTS,
    )
    assert (unknown.parameters.mechanism, unknown.parameters.count_noise) == (
        MechanismName.BOUND_GAUSS,
        CountNoise.GAUSSIAN,
    )
    assert (unknown.parameters.delta_l0, unknown.parameters.d_bar, unknown.row_limit) == (
        None,
        None,
        MAXIMUM_ROWS,
    )
    # Twenty units, one call; the variance of 32 elements, and the threshold of the page's doctest for m = 5.
    look = kind_of(unknown.parameters).mechanism
    assert (look.worst_case_cost().information, look.worst_case_cost().calls) == (20, 1)
    known = resolved(policy_of(IN_QUERY), "kind")
    assert known.parameters.contributions is not None
    assert known.parameters.contributions.min_count is None
    # A member can be in no more elements than there are.
    assert (known.parameters.delta_l0, known.parameters.contributions.typical, known.row_limit) == (3, 3, 3)
    assert kind_of(known.parameters).mechanism.worst_case_cost().calls == 0


@pytest.mark.parametrize("k", [None, 1, 100_000])
def test_k_neither_changes_the_release_nor_is_it_lowered(k: int | None) -> None:
    """No max_k applies, none is needed, and the question stays the same question."""
    policy = policy_of(IN_QUERY)
    found, other = resolved(policy, k=k), resolved(policy, k=7)
    assert (found.parameters.k, found.requested_k) == (k, None)
    assert found.parameters.specified(drawn_by=(1, 1)) == other.parameters.specified(drawn_by=(1, 1))


def test_the_scale_of_the_noise_is_rounded_up() -> None:
    """Sigma is irrational: 16.8654811... of a variance of 2560 / 9 and 1 / 11 on the grid."""
    scale = kind_of(resolved(policy_of(IN_QUERY)).parameters).noise_scale
    assert scale == Fraction(16_865_482, 10**6)
    assert (scale - Fraction(1, 10**6)) ** 2 < Fraction(2560, 9) + DISCRETENESS / GRID**2 <= scale**2


def within(first: datetime.date, last: datetime.date) -> TimeRange:
    """Return the range from one day to the end of another."""
    start, end = (datetime.datetime.combine(day, datetime.time.min, datetime.UTC) for day in (first, last))
    return TimeRange(start, end + datetime.timedelta(days=1))


@pytest.mark.parametrize(
    ("calendar", "first", "last", "periods"),
    [
        ("month", (2024, 2, 1), (2024, 2, 29), 1),
        ("month", (2023, 12, 1), (2024, 12, 31), 13),
        ("week", (2024, 1, 1), (2024, 1, 7), 1),
        ("week", (2024, 1, 1), (2024, 1, 14), 2),
        ("day", (2024, 2, 28), (2024, 3, 1), 3),
    ],
)
def test_the_calendar_and_the_range_say_how_many_periods_a_question_sees(
    calendar: str, first: tuple[int, int, int], last: tuple[int, int, int], periods: int
) -> None:
    """The variance of the noise grows with them at the same price."""
    policy = policy_of(f"{PREPARED}, period: day, periods: {calendar}")
    range_ = within(datetime.date(*first), datetime.date(*last))
    found = resolve(
        HistogramQuery("t", ("page",), Measure.DISTINCT_MEMBERS, time_range=range_), policy, now=0
    )
    assert found.copy == PreparedCopy("t", "m", ("page", "kind"), 32, f"{calendar}(day)")
    assert found.parameters.contributions is not None
    assert found.parameters.contributions.periods == periods
    look = kind_of(found.parameters).mechanism
    assert look.worst_case_cost().information == 20
    assert look.bound.squared_distance == periods * 32 * GRID**2


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (None, None),
        (None, (2022, 1, 1)),
        ((2022, 1, 1), None),
        ((2022, 1, 2), (2022, 2, 1)),
        ((2022, 1, 1), (2022, 1, 31)),
    ],
)
def test_a_range_of_parts_of_periods_is_refused(
    start: tuple[int, int, int] | None, end: tuple[int, int, int] | None
) -> None:
    """A copy does not say in which part of a month a member was there, and nothing else says how many are seen."""
    ends = (None if each is None else datetime.datetime(*each, tzinfo=datetime.UTC) for each in (start, end))
    asked = HistogramQuery("t", ("page",), Measure.DISTINCT_MEMBERS, time_range=TimeRange(*ends))
    with pytest.raises(QuestionError, match="one range of time that begins and ends with a month"):
        resolve(asked, policy_of(f"{PREPARED}, period: day, periods: month"), now=0)


def test_a_calendar_of_timestamps_is_one_of_their_zone() -> None:
    """A month that began an hour earlier elsewhere is another one, so the copy has to name the zone too."""
    text = text_of(f"{PREPARED}, period: seen, periods: month").replace(
        "{column: day, type: date}", "{column: seen, type: timestamp, zone: Europe/Berlin}"
    )
    text = text.replace("      day: {type: date}\n", "")
    range_ = TimeRange(
        datetime.datetime(2024, 2, 29, 23, tzinfo=datetime.UTC),
        datetime.datetime(2024, 3, 31, 22, tzinfo=datetime.UTC),
    )
    asked = HistogramQuery("t", ("page",), Measure.DISTINCT_MEMBERS, time_range=range_)
    found = resolve(asked, parse_policy(text), now=0)
    assert found.copy == PreparedCopy("t", "m", ("page", "kind"), 32, "month(seen, Europe/Berlin)")


def test_stated_periods_count_in_every_question() -> None:
    """In twelve periods a member moves counts, in square, by as much as 384 elements do."""
    found = resolved(policy_of(f"{PREPARED}, period: p, periods: 12"))
    assert kind_of(found.parameters).mechanism.bound.squared_distance == 384 * GRID**2
    assert found.copy == PreparedCopy("t", "m", ("page", "kind"), 32, "p")


def test_members_of_a_small_domain_count_in_full() -> None:
    """A member is in no more elements than there are, in however many periods."""
    policy = policy_of(f"{PREPARED}, period: p, periods: 12")
    for by, within_domain in ((("kind",), 3), ((), 1)):
        found = resolve(HistogramQuery("t", by, Measure.DISTINCT_MEMBERS), policy, now=0)
        assert kind_of(found.parameters).mechanism.bound.squared_distance == within_domain
        assert "COUNT(DISTINCT" in render(found, "duckdb")


def test_every_engine_is_asked_to_bound() -> None:
    """Pinot needs its multi-stage engine, an error instead of a window that leaves rows out, and a limit."""
    found = resolved(policy_of(f"{IN_QUERY}, min_count: 5"))
    for dialect in ("duckdb", "spark", "pinot"):
        query, is_pinot = render(found, dialect), dialect == "pinot"
        assert ("COUNT(*) OVER (PARTITION BY" in query) is (dialect != "duckdb")
        assert ('COUNT(*) AS "gris_square" FROM "gris_members" GROUP BY' in query) is (dialect == "duckdb")
        assert ">= 500" in query
        assert ("LIMIT 100000000" in query) is is_pinot
        assert query.startswith("SET maxRowsInWindow=100000000; SET windowOverflowMode='THROW'; ") is is_pinot
        assert required_features(found, dialect) == ((Feature.PINOT_MULTISTAGE,) if is_pinot else ())


def test_the_weights_of_one_period_are_added_up_by_every_engine() -> None:
    """By the elements of the copy no query is nested, so any Pinot takes it; others ask how the file was made."""
    found = resolved(policy_of(f"{PREPARED}, period: all, min_count: 5"), "page", "kind")
    for dialect in ("duckdb", "spark", "pinot"):
        query, is_pinot = render(found, dialect), dialect == "pinot"
        quote = "`" if dialect == "spark" else '"'
        assert query.count("SELECT") == 1
        assert f"SUM({quote}weight{quote})" in query
        assert f" AND {quote}weight{quote} >= 12 GROUP BY" in query
        assert " >= 500 ORDER BY" in query
        assert required_features(found, dialect) == (() if is_pinot else (Feature.BOUNDED_COPY,))


@pytest.mark.parametrize(
    ("period", "by"),
    [("period: all", ("page",)), ("period: p, periods: 12", ("page", "kind"))],
    ids=["fewer columns than the copy's", "several periods"],
)
def test_a_member_of_several_rows_in_an_element_has_the_largest_weight(
    period: str, by: tuple[str, ...]
) -> None:
    """The sum of its weights could be several times as large as what the noise is for."""
    found = resolved(policy_of(f"{PREPARED}, {period}"), *by)
    for dialect in ("duckdb", "spark", "pinot"):
        query = render(found, dialect)
        quote = "`" if dialect == "spark" else '"'
        assert f"MAX({quote}weight{quote})" in query
        assert f"SUM({quote}weight{quote})" not in query
    assert required_features(found, "pinot") == (Feature.PINOT_MULTISTAGE,)


REFUSED = {
    "measures": text_of(f"{PREPARED}, period: all", measures=MEASURES),
    "sums": text_of(f"{PREPARED}, period: all, sums: {{max_members: 9, max_rows: 9}}"),
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_a_copy_has_nothing_but_members_to_count(text: str) -> None:
    """Rows, values and their quantiles are not in it."""
    with pytest.raises(
        PolicyError, match=r"contributions\.bound: a prepared copy has members, elements and w"
    ):
        parse_policy(text)


def test_a_column_that_is_not_in_the_copy_is_refused() -> None:
    """A question about it would fail where the copy is asked."""
    text = text_of(f"{PREPARED}, period: all", columns="      score: {type: int64, filter: [in]}\n")
    with pytest.raises(PolicyError, match="the copy has no column score"):
        parse_policy(text)


def test_no_column_of_a_copy_has_the_name_of_the_weights() -> None:
    """A question would add up its values."""
    text = text_of(f"{PREPARED}, period: all").replace("page", "Weight")
    with pytest.raises(PolicyError, match="weight: a copy calls the weights of members so"):
        parse_policy(text)


def test_a_second_count_of_a_copy_is_refused() -> None:
    """Its weights are of members, and a member counts once."""
    asked = HistogramQuery(
        "t",
        ("page", "kind"),
        Measure.DISTINCT_MEMBERS,
        aggregates=(AskedNumber(Plain(Part(AggregateFunction.MEMBERS, condition=(In("page", ("a",)),)))),),
    )
    with pytest.raises(RefusedByPolicyError, match="ask for each count apart"):
        resolve(asked, policy_of(f"{PREPARED}, period: all"), now=0)


def test_a_count_of_the_rows_of_a_copy_is_refused_and_the_copy_named() -> None:
    """The policy offers none, and a user who reads so would look for a key that offers it."""
    with pytest.raises(RefusedByPolicyError, match=r"t is a prepared copy.*; it offers COUNT\(DISTINCT m\)"):
        resolved(policy_of(f"{PREPARED}, period: all"), measure=Measure.EVENTS)


def test_a_copy_answers_no_part_of_a_text() -> None:
    """Several elements of a member may have the same one."""
    policy = policy_of(f"{PREPARED}, period: all")
    asked = parse_sql("SELECT LEFT(page, 1), COUNT(DISTINCT m) FROM t GROUP BY 1", policy)
    with pytest.raises(RefusedByPolicyError, match="bins and parts of texts are not offered"):
        resolve(asked, policy, now=0)


def test_promises_are_warned_of() -> None:
    """What nothing checks: an assumed bound, a copy in Pinot, the number of its periods."""
    for block, expected in (
        ("bound: assumed, delta: 3, units: 1", "contributions.bound: an assumed bound is a promise"),
        (f"{PREPARED}, period: p, periods: 3", "contributions.periods: a promise that nothing checks"),
        (f"{PREPARED}, period: all", "contributions.bound: a prepared copy is checked on DuckDB alone"),
    ):
        found = review(read_policy(text_of(block).encode(), "policy.yaml"))
        assert any(expected in str(warning) for warning in found.warnings)
        assert any("periods:" in str(warning) for warning in found.warnings) is ("periods:" in block)
        assert not any(default.key.endswith(("d_bar", "page.delta")) for default in found.defaults)


NAMES = f"{IN_QUERY}, min_count: 5, longest_list: 75"


@pytest.mark.parametrize(
    ("by", "of_names", "typical"),
    [(("page",), 16, 32), (("page", "number"), 512, 75), (("page", "other"), 512, 75)],
)
def test_two_looks_are_resolved_from_the_policy_alone(
    by: tuple[str, ...], of_names: int, typical: int
) -> None:
    """Units are shared exactly; M is the policy's, whatever k is, and bounds the second look too."""
    columns = "      number: {type: int64, group_by: true}\n      other: {type: string, group_by: true}\n"
    policy = parse_policy(text_of(NAMES, columns=columns))
    found = resolved(policy, *by, k=50).parameters
    assert found.contributions is not None
    assert found.contributions.names == NamesLook(of_names, Fraction(15, 2), 75)
    assert (found.contributions.typical, found.delta_l0) == (typical, None)
    assert resolved(policy, *by, k=100).requested_k == 100
    assert resolved(policy, *by, k=100).parameters.k == 75


def test_a_first_look_names_75_by_half_of_delta_and_three_eighths_of_the_units() -> None:
    """Half is rounded up."""
    policy = parse_policy(text_of("bound: in_query, units: 20, longest_list: 75", typical=5))
    found = resolved(policy, k=50).parameters.contributions
    assert found is not None
    assert (found.typical, found.names) == (5, NamesLook(3, Fraction(15, 2), 75))


def test_so_many_names_fit_as_texts_they_have() -> None:
    """Each text of an element may be as long as a text can be, so several in one leave room for fewer."""
    columns = "      other: {type: string, group_by: true}\n"
    block = NAMES.replace("longest_list: 75", "longest_list: 500")
    policy = parse_policy(text_of(block, columns=columns))
    most = [resolved(policy, *by).parameters.contributions for by in (("page",), ("page", "other"))]
    assert [each.names.most_names for each in most if each is not None and each.names is not None] == [
        500,
        250,
    ]


def test_few_names_bound_the_second_look() -> None:
    """A member can be in no more elements than are named."""
    found = resolved(
        policy_of(NAMES.replace("longest_list: 75", "longest_list: 10"))
    ).parameters.contributions
    assert found is not None
    assert found.typical == 10


def test_a_copy_has_one_bound_for_both_looks() -> None:
    """Nothing in its query bounds members."""
    found = resolved(policy_of(f"{PREPARED}, period: all, longest_list: 75"), "page")
    assert found.parameters.contributions is not None
    assert found.parameters.contributions.names == NamesLook(32, Fraction(15, 2), 75)
    second = second_look(found, (("a",), ("it's",)))
    for dialect in ("duckdb", "spark", "pinot"):
        assert " HAVING" not in render(second, dialect)
        assert " IN ('a', 'it" in render(second, dialect)
        assert "LIMIT 2" in render(second, dialect)


def test_the_first_query_has_its_own_bound_and_the_second_counts_the_names_alone() -> None:
    """Their condition acts where the question's own do; no count is too small there."""
    found = resolved(policy_of(NAMES), "page")
    first, second = render(found, "duckdb"), render(second_look(found, (("a",), ("b",))), "duckdb")
    assert 'WHEN "gris_square" > 16 THEN' in first
    assert 'WHERE "gris_weighted" >= 12' in first
    assert 'HAVING CAST(SUM("gris_weighted") AS BIGINT) >= 500' in first
    assert 'WHEN "gris_square" > 32 THEN' in second
    assert 'WHERE "gris_weighted"' not in second
    assert "HAVING" not in second
    assert second.index("\"page\" IN ('a', 'b')") < second.index('GROUP BY "gris_member"')
    read = render(second_look(found, NAMES_TO_COME), "duckdb")
    assert '"page" IN (:names)' in read


def test_a_key_of_several_columns_is_named_by_all_of_them() -> None:
    """Not every engine compares tuples, so each name is written out, with the values of every type."""
    columns = (
        "      flag: {type: bool, group_by: true}\n      number: {type: int64, group_by: true}\n"
        "      at: {type: date, group_by: true}\n"
    )
    policy = parse_policy(text_of(NAMES, columns=columns))
    found = second_look(resolved(policy, "flag", "number", "at"), ((False, -3, 0), (True, 2**62, 19_000)))
    assert (
        '(("flag" = FALSE AND "number" = -3 AND "at" = DATE \'1970-01-01\') OR '
        '("flag" = TRUE AND "number" = 4611686018427387904 AND "at" = DATE \'2022-01-08\'))'
    ) in render(found, "duckdb")
