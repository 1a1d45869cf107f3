"""Sums and averages through the real services: what is summed, what is free, what is refused, and how it is shown.

In the first table the noise is as small as it gets, so an answer can be compared with the pure reference
(`tests.support.slight_noise`).
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gris_api.app.v1 import app_pb2
from gris_api.dp.v1 import dp_pb2
from typer.testing import CliRunner

from dp_service.parameters.numbers import Average
from dp_service.queries import asked_numbers
from dp_service.queries.asked_numbers import AskedNumber, Part, sum_of
from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.kinds.parts import clamp_of
from dp_service.releases.kinds.views import ShownSums
from dp_service.server.messages import aggregate_message
from dp_service.terms import GRID, AggregateFunction
from gris_cli.app import app
from gris_gateway.messages import element_chunks, result_message
from pinot_connector import PrivateClient
from pinot_connector.coverage import Least, TwoSided
from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.element_messages import merged
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.errors import EngineRefused, IntegrityError, InvalidQuestion, RefusedByPolicy
from pinot_connector.parameters import IntervalKind, Mechanism
from pinot_connector.questions import Measure
from pinot_connector.release_store.receipts import with_elements, without_elements
from pinot_connector.results import PrivateResult
from pinot_connector.shown_values import AggregateValue, DayValue, ShownValue, aggregate_values
from pinot_connector.value_parameters import ShownNumber
from tests.support.clients import own_client
from tests.support.queries.sums import Row, asked, reference
from tests.support.slight_noise import MOST, is_near, require_near
from tests.support.some import some
from tests.support.sums_in_sql import summed
from tests.support.world import new_account

_TABLE = """
    member: member
    contributions:
      bound: in_query
      units: UNITS
      sums: {max_members: 1000000, max_rows: 1000000000}
    measures: {distinct_members: true, rows: 6}
    columns:
      member: {type: string}
      text: {type: string, group_by: true, typical: 2, filter: [in]}
    values:
      whole: {type: int64, lower: 0, upper: 10}
      number: {type: decimal, quantum: '0.5', lower: 0, upper: 20, row_upper: 5}
"""
UNITS = 40_000
MOST_NAMES = 4
NAMES = f"""
      longest_list: {MOST_NAMES}"""
# A third of the numbers and some of the whole ones are no values of their column.
APART = _TABLE.replace("upper: 10}", "upper: 10, null_value: 1}")
POLICY = f"""
epsilon_per: 10
delta: 1e-10
count_noise: gaussian
tables:
  t: {_TABLE.replace("UNITS", str(UNITS))}
  noisy: {_TABLE.replace("UNITS", "1")}
  looks: {_TABLE.replace("UNITS", f"{UNITS}{NAMES}")}
  apart: {APART.replace("UNITS", str(UNITS))}
  apart_looks: {APART.replace("UNITS", f"{UNITS}{NAMES}")}
"""
SQL = (
    "SELECT text, COUNT(DISTINCT member) AS people, SUM(number) AS spent, AVG(number) FROM "
    "(SELECT member, text, SUM(number) AS number FROM t GROUP BY member, text) GROUP BY text"
)


def rows() -> list[Row]:
    """Return rows of members with one to four texts, and values that are hard to sum."""
    chosen = random.Random(5)
    values = [None, 0.0, 1.25, 3.75, -2.0, 7.5, float("nan"), float("inf"), 2.0**70]
    return [
        Row(
            f"m{chosen.randrange(60)}",
            chosen.choice("abcdef"),
            chosen.randrange(-3, 9),
            chosen.choice(values),
        )
        for _ in range(400)
    ]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the rows as a Parquet file."""
    path = tmp_path_factory.mktemp("sums") / "t.parquet"
    columns = dict(zip(Row._fields, zip(*rows(), strict=True), strict=True))
    pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), path)
    return path


# Of the six texts one is outside once in 10^7 runs.
NEARLY_SURE = 1 - 1e-8
# What two numbers are that are computed before they are rounded to be shown, and after.
ROUNDED = Fraction(1, 4)
SUMMED_BESIDE = (Measure.DISTINCT_MEMBERS, Measure.EVENTS)


@pytest.fixture
def client(services: EmbeddedServices, file: Path, request: pytest.FixtureRequest) -> Iterator[PrivateClient]:
    """A client with an account of its own, and with another confidence where the test names one."""
    with own_client(
        services,
        dict.fromkeys(("t", "noisy", "looks", "apart", "apart_looks"), file),
        confidence=getattr(request, "param", 0.95),
    ) as client:
        yield client


Numbers = dict[str, tuple[Fraction, tuple[Fraction, ...]]]
"""By text the count, and each number of the question."""


def true_numbers(question: HistogramQuery, within: str = "abcdef") -> Numbers:
    """Return the numbers of a question by the pure reference, where members are weighted within some texts."""
    policy = parse_policy(POLICY)
    sums = resolve(question, policy, now=0).parameters.sums
    assert sums is not None
    found: Numbers = {}
    rows_within = [row for row in rows() if str(row.text) in within]
    for text, *answer in reference(question, policy, rows_within):
        n, *numbers = (Fraction(int(each)) for each in answer)  # type: ignore[call-overload]
        own = dict(zip(sums.own_counts, numbers[len(sums.columns) :], strict=True))
        values = []
        for each in sums.asked:
            (place,) = each.form.parts
            column, clamp = sums.columns[place], clamp_of(sums.columns[place])
            total = numbers[place] / column.grid(GRID)
            if place in own:
                total = (total + clamp.centre * own[place] / GRID) * GRID / own[place]
            values.append(total / 2 * column.quantum)
        found[str(text)] = n / GRID, tuple(values)
    return found


def of(*columns: str, table: str = "t", measure: Measure = Measure.DISTINCT_MEMBERS) -> HistogramQuery:
    """Return the question for sums and averages of columns."""
    return asked(*columns, table=table, measure=asked_numbers.Measure(measure.value))


def require_numbers(result: PrivateResult, expected: Numbers, most: float | Fraction = ROUNDED) -> None:
    """Assert that counts and numbers are these but for the least noise."""
    found = shown(result)
    require_near(
        {text: n for text, (n, _) in found.items()}, {text: float(n) for text, (n, _) in expected.items()}
    )
    for text, (_, values) in found.items():
        for value, true in zip(values, expected[text][1], strict=True):
            assert value is not None
            assert is_near(value.value, true, most), text


def shown(result: PrivateResult) -> dict[str, tuple[float | None, tuple[AggregateValue | None, ...]]]:
    """Return count and values by text."""
    return {str(row.element[0]): (row.noisy_count, tuple(map(number, row.values))) for row in result.rows}


def number(value: ShownValue | None) -> AggregateValue | None:
    """Return a sum or an average, which is never a day."""
    assert not isinstance(value, DayValue)
    return value


def test_counts_sums_and_averages_are_those_of_the_reference(client: PrivateClient) -> None:
    """As SQL asks for them."""
    result = client.sql(SQL)
    assert result.mechanism is Mechanism.BOUND_MOMENTS
    assert [each.title for each in result.parameters.aggregates] == ["spent", "average_number_per_member"]
    assert (result.count_alias, result.interval_kind) == ("people", IntervalKind.GIVEN_SHOWN)
    expected = true_numbers(of("number"))
    assert len(expected) == 6
    require_numbers(result, expected)
    for _, (total, average) in shown(result).values():
        for each in (total, average):
            assert each is not None
            assert each.interval[0] <= each.value


def test_numbers_of_the_rows_that_meet_a_condition_are_of_one_release(client: PrivateClient) -> None:
    """The count of all is what it is, and an order by one is free."""
    chosen = "COUNT(DISTINCT member) FILTER (WHERE text IN ('a', 'b'))"
    spent = "SUM(number) FILTER (WHERE text = 'b')"
    asked_for = f"SELECT text, COUNT(DISTINCT member), {chosen}, COUNT(*), {spent}{{}} FROM t GROUP BY text"  # noqa: S608
    result = client.sql(asked_for.format(""))
    again = client.sql(f"{asked_for.format('')} ORDER BY COUNT(*) DESC")
    assert again.release_id == result.release_id
    assert (again.charged.information, again.charged.calls) == (0, 0)
    assert [each.title for each in again.parameters.aggregates[:2]] == ["members_where_1", "rows"]
    assert set(shown(again)) == set("abcdef")
    for text, (count, (met, every, total)) in shown(again).items():
        assert met is not None
        assert every is not None
        assert total is not None
        assert count is not None
        assert is_near(met.value, count if text in "ab" else 0)
        assert count <= every.value <= 3 * count
        assert is_near(total.value, 0, Fraction(1, 2)) is (text != "b")
    part = client.sql(asked_for.format(f", 100 * {chosen} / COUNT(DISTINCT member) AS part"))
    assert part.release_id == again.release_id
    for count, values in shown(part).values():
        assert values[0] is not None
        assert values[3] is not None
        # Noise may make a number negative, or larger than the count; a part is still between nothing and all.
        unclamped = 100 * values[0].value / Fraction(count or 1)
        assert is_near(values[3].value, min(max(unclamped, Fraction(0)), Fraction(100)), MOST)


def test_numbers_of_several_are_computed_from_what_is_released_of_them(client: PrivateClient) -> None:
    """For the price of their parts; a list is in the order of one, too."""
    each, less = "SUM(number) / SUM(whole)", "SUM(number) - SUM(whole)"
    asked_for = f"COUNT(*), SUM(number), SUM(whole), {each} AS each, {less}"
    result = client.sql(f"SELECT text, {asked_for} FROM t GROUP BY text ORDER BY {each} DESC LIMIT 5")  # noqa: S608
    assert [column.title for column in result.parameters.aggregates[2:]] == [
        "each",
        "sum_number_of_rows_minus_sum_whole_of_rows",
    ]
    assert result.interval_kind is IntervalKind.SIMULTANEOUS
    order = []
    for _, values in shown(result).values():
        number, whole, quotient, difference = (found for found in values if found is not None)
        assert is_near(quotient.value, number.value / whole.value, ROUNDED)
        assert is_near(difference.value, number.value - whole.value, 1)
        for found in (quotient, difference):
            assert found.interval[0] <= found.value <= found.interval[-1]
        order.append(quotient.value)
    assert order == sorted(order, reverse=True)
    assert "numbers.arithmetic" in {said.code for said in result.statements}
    again = client.sql(
        f"SELECT text, COUNT(*), {each} AS each, {less} FROM t GROUP BY text HAVING {less} > -1000 "  # noqa: S608
        "ORDER BY each DESC"
    )
    assert (again.release_id, again.charged.information) == (result.release_id, 0)
    by_text = {text: values for text, (_, values) in shown(again).items()}
    for text, (_, values) in shown(result).items():
        assert [each and each.value for each in by_text[text]] == [each and each.value for each in values[2:]]


def test_numbers_in_another_order_are_the_same_release_with_their_own_values(client: PrivateClient) -> None:
    """Conditions have numbers in the order of each question, and a list filtered by one is free."""
    rows_of_a = "COUNT(*) FILTER (WHERE text = 'a') AS x"
    people = "COUNT(DISTINCT member) FILTER (WHERE text IN ('a', 'b')) AS y"
    asked_for = "SELECT text, COUNT(DISTINCT member), {}, {} FROM t GROUP BY text"
    one, other = (
        client.sql(asked_for.format(*numbers)) for numbers in ((rows_of_a, people), (people, rows_of_a))
    )
    assert one.release_id == other.release_id
    for text, (_, values) in shown(one).items():
        assert shown(other)[text][1] == values[::-1]
    filtered = client.sql(f"{asked_for.format(people, rows_of_a)} HAVING x > 10")
    assert [row.element for row in filtered.rows] == [("a",)]
    assert filtered.charged.information == 0
    said = [each.text for each in other.statements if each.code == "sums.number"]
    assert any(text.startswith("Of the rows where condition 2 holds, at most 3") for text in said)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("COUNT(*) * 2", "COUNT(*) * 3"),
        ("SUM(number) / COUNT(*)", "COUNT(*) / SUM(number)"),
        ("COUNT(*) * (COUNT(*) + 2)", "COUNT(*) * COUNT(*) + 2"),
    ],
)
def test_a_number_under_the_name_of_another_one_is_its_own(
    client: PrivateClient, first: str, second: str
) -> None:
    """Both are of one release, which a client shows from memory where it has shown the same of it."""
    one, other = (client.sql(f"SELECT {each} AS n FROM t") for each in (first, second))  # noqa: S608
    assert one.release_id == other.release_id
    assert one.rows[0].values != other.rows[0].values


def test_a_number_that_is_called_like_another_one_is_not_taken_for_it(client: PrivateClient) -> None:
    """Names have no parentheses; an alias tells the two apart."""
    both = "SUM(number) * (COUNT(*) + 2), SUM(number) * COUNT(*) + 2"
    result = client.sql(f"SELECT {both} FROM t")  # noqa: S608
    first, second = (column.title for column in result.parameters.aggregates)
    assert first == second
    with pytest.raises(InvalidQuestion, match="the only one so called"):
        result.part((), number=first)


def test_beside_counts_of_rows_sums_and_averages_are_over_rows(client: PrivateClient) -> None:
    """They have other names and other numbers than those of members, and are another release."""
    result = client.sql("SELECT text, COUNT(*), SUM(number), AVG(number) FROM t GROUP BY text")
    assert [each.title for each in result.parameters.aggregates] == [
        "sum_number_of_rows",
        "average_number_per_row",
    ]
    assert (result.parameters.tau, result.parameters.clipped) == (3, True)
    expected = true_numbers(of("number", measure=Measure.EVENTS))
    require_numbers(result, expected)
    of_members = client.sql(SQL)
    assert (of_members.charged.information, of_members.release_id == result.release_id) == (UNITS, False)
    assert expected != true_numbers(of("number"))


def test_over_rows_it_is_said_before_a_question_is_asked(client: PrivateClient) -> None:
    """What explains and lists questions tells an average per row from one per member."""
    sql = "SELECT text, COUNT(*), AVG(number) FROM t GROUP BY text"
    explained = "\n".join(client.explain(sql).sentences)
    assert "A row's value of number counts with 0 to 5" in explained
    assert "of a member at most 3" in explained
    entry = next(table for table in client.catalog().tables if table.name == "t")
    assert [(str(each.row_lower), str(each.row_upper)) for each in entry.values] == [("0", "5"), ("0", "10")]


def test_two_looks_sum_within_the_names_of_the_first(client: PrivateClient) -> None:
    """The largest texts are named by their counts, and members are bounded once more, within the names."""
    for measure in SUMMED_BESIDE:
        question = of("number", table="looks", measure=measure)
        first, of_rows = true_numbers(question), measure is Measure.EVENTS
        ask = partial(summed, "looks", "text", of_rows=of_rows, sums=["number"], averages=["number"])
        result = client.sql(ask())
        names = "".join(shown(result))
        last = sorted((n for n, _ in first.values()), reverse=True)[MOST_NAMES - 1]
        assert len(names) == MOST_NAMES
        assert all(first[text][0] >= last - 2 * MOST for text in names)
        expected = true_numbers(question, within=names)
        assert expected != {text: first[text] for text in names}
        require_numbers(result, expected)
        assert (result.charged.information, result.charged.calls) == (UNITS, 1)
        assert result.interval_kind is IntervalKind.PLAIN
        ordered = client.sql(ask(order="SUM(number)"))
        of_sum = {text: total.value for text, (_, (total, _)) in shown(ordered).items() if total is not None}
        assert list(of_sum) == sorted(expected, key=lambda text: (-of_sum[text], text))
        assert (ordered.charged.information, ordered.interval_kind) == (0, IntervalKind.PLAIN)


@pytest.mark.parametrize("table", ["apart", "apart_looks"])
@pytest.mark.parametrize("measure", SUMMED_BESIDE)
def test_averages_are_of_the_values_of_their_own_column(
    client: PrivateClient, table: str, measure: Measure
) -> None:
    """Counts are of all members, whatever is summed beside them and whichever members have a value."""
    both = ["number", "whole"]
    of_rows = measure is Measure.EVENTS
    ask = partial(summed, table, "text", of_rows=of_rows, averages=both)
    result = client.sql(ask())
    averaged = tuple(AskedNumber(Average(Part(AggregateFunction.SUM, name))) for name in both)
    question = replace(of(*both, table=table, measure=measure), aggregates=averaged)
    require_numbers(result, true_numbers(question, within="".join(shown(result))))
    # A kept release brings its own counts back, and so does the order of an average.
    again = client.sql(ask(order="AVG(number)"))
    assert (again.release_id, again.charged.information) == (result.release_id, 0)
    assert sorted(shown(again).items()) == sorted(shown(result).items())
    alone = client.sql(summed(table, "text", of_rows=of_rows, sums=["number"]))
    require_near(
        {text: n for text, (n, _) in shown(alone).items()},
        {text: float(n or 0) for text, (n, _) in shown(result).items()},
    )


def test_it_is_said_of_which_rows_a_column_with_an_own_count_is(client: PrivateClient) -> None:
    """Explain before, and the result, with the noise of that count."""
    question = "SELECT text, COUNT(*), AVG(number) FROM apart GROUP BY text"
    explained = client.explain(question)
    assert any("Rows without a value of number count" in each for each in explained.sentences)
    (column,) = explained.parameters.sums.columns if explained.parameters.sums else ()
    assert column.own_count is not None
    assert (column.share, column.own_count.share) == (Fraction(1, 4), Fraction(1, 4))
    assert client.sql(question).parameters.sums == explained.parameters.sums


def test_a_first_look_without_names_shows_no_sum(client: PrivateClient) -> None:
    """It is paid for, as any release is."""
    result = client.sql(summed("looks", "text", sums=["number"], where="text = 'nobody'"))
    assert (result.rows, result.charged.information) == ((), UNITS)


def test_sums_are_streamed_however_few_elements_are_present(
    client: PrivateClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the release of a large domain fits into one message must not depend on the rows behind it."""
    streamed = []
    real = DpServiceClient._streamed

    async def counted(self: DpServiceClient, method: Any, requests: Any) -> Any:
        streamed.append(len(requests))
        return await real(self, method, requests)

    monkeypatch.setattr(DpServiceClient, "_streamed", counted)
    assert client.sql(SQL).rows
    assert 1 == len(streamed)


def test_another_k_is_free_and_another_number_is_not(client: PrivateClient) -> None:
    """Another k shows another part of the same release; a sum is a number of its own, and so is each column."""
    first = client.sql(summed("t", "text", averages=["number"], k=2))
    assert (first.charged.information, first.charged.calls) == (UNITS, 1)
    more = client.sql(summed("t", "text", averages=["number"]))
    assert (more.charged.information, len(more.rows), more.release_id) == (0, 6, first.release_id)
    assert [len(row.values) for row in more.rows] == [1] * 6
    both = client.sql(summed("t", "text", sums=["number", "whole"]))
    assert both.charged.information == UNITS
    assert both.release_id != first.release_id
    question = replace(of("number"), aggregates=(sum_of("number"), sum_of("whole")))
    require_numbers(both, true_numbers(question), Fraction(1, 2))


def test_the_order_of_a_sum_or_an_average_is_free(client: PrivateClient) -> None:
    """However it is written, it shows the same release, of which another part may have been shown before."""
    first = client.sql(summed("t", "text", sums=["number"], averages=["number"], order="AVG(number)"))
    assert (first.charged.information, first.interval_kind) == (UNITS, IntervalKind.GIVEN_SHOWN)
    sums = {row.element[0]: [each.value for each in map(number, row.values) if each] for row in first.rows}
    by_sum, by_average = (
        sorted(map(str, sums), key=lambda text: (-sums[text][place], text)) for place in (0, 1)
    )
    assert by_average != by_sum
    assert list(shown(first)) == by_average
    orders = ("SUM(number)", "spent", "3")
    cut = [client.sql(f"{SQL} ORDER BY {order} DESC, text LIMIT 2") for order in orders]
    for result in cut:
        assert (result.release_id, result.charged.information) == (first.release_id, 0)
        assert result.interval_kind is IntervalKind.SIMULTANEOUS
        assert result.rows
        for row in result.rows:
            assert [each.value for each in map(number, row.values) if each] == sums[row.element[0]]
        assert list(shown(result)) == by_sum[:2]
    assert list(shown(client.sql(f"{SQL} ORDER BY 4 DESC"))) == by_average


def test_a_question_that_is_cut_by_a_sum_shows_nothing_else(client: PrivateClient) -> None:
    """Also where the release was never shown before, and its elements come in another order than they are kept in."""
    ask = partial(summed, "noisy", "text", sums=["number"], averages=["whole"])
    result, every = client.sql(ask(order="SUM(number)", k=2)), client.sql(ask())
    assert (every.release_id, every.charged.information) == (result.release_id, 0)
    values = shown(every)
    by_sum = sorted(values, key=lambda text: (-(each.value if (each := values[text][1][0]) else 0), text))
    assert list(shown(result)) == by_sum[:2]
    for row in some(result.rows):
        count, (total, _) = values[str(row.element[0])]
        assert row.noisy_count == count
        cut = number(row.values[0])
        assert cut is not None
        assert total is not None
        assert cut.value == total.value
        # alpha is divided by how many elements were released.
        assert cut.interval[0] < total.interval[0]


def test_a_receipt_in_the_order_of_a_sum_keeps_its_elements(client: PrivateClient) -> None:
    """They are not the first ones of the kept release, from which another receipt takes them."""
    ordered, plain = (
        client.sql(summed("t", "text", sums=["number"], order=by, k=2)) for by in ("SUM(number)", "")
    )
    for result, own in ((ordered, True), (plain, False)):
        (elements,) = element_chunks(result)
        past = app_pb2.PastRelease(result=result_message(result), elements=elements)
        assert (with_elements(without_elements(past), None) == past) is own


def test_a_total_sums_everything_for_no_call(client: PrivateClient) -> None:
    """There is one element, so nobody has to be bounded; filters act before."""
    totals = "SELECT member, SUM(whole) AS whole FROM t WHERE text IN ('a', 'b') GROUP BY member"
    result = client.sql(f"SELECT COUNT(*), SUM(whole) FROM ({totals})")  # noqa: S608
    question = replace(asked("whole", by=()), aggregates=(sum_of("whole"),))
    kept = [row for row in rows() if row.text in ("a", "b")]
    ((n, doubled),) = reference(question, parse_policy(POLICY), kept)
    (row,) = result.rows
    assert result.cost.calls == 0
    total = number(row.values[0])
    assert is_near(row.noisy_count, int(n))  # type: ignore[call-overload]
    assert total is not None
    assert is_near(total.value, Fraction(int(doubled), 2))  # type: ignore[call-overload]


@pytest.mark.parametrize("client", [NEARLY_SURE], indirect=True)
def test_with_noise_all_intervals_are_around_the_values(client: PrivateClient) -> None:
    """A smaller release: values are multiples of half a quantum, and cover what is true here."""
    result = client.sql(summed("noisy", "text", sums=["number"], averages=["number"]))
    expected = true_numbers(of("number", table="noisy"))
    assert result.rows
    for text, (n, (total, average)) in some(shown(result).items()):
        assert total is not None
        assert n is not None
        assert total.value * 4 == int(total.value * 4)
        assert isinstance(total.interval, Least)
        assert total.interval.at_least < total.value
        assert total.interval.at_least <= expected[text][1][0]
        assert average is None or average.interval[0] <= expected[text][1][1] <= average.interval[-1]


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        (["text"], RefusedByPolicy, "lists no values of a column"),
        (["numbre"], RefusedByPolicy, "did you mean number"),
        (["number", "number"], InvalidQuestion, "each sum and average once"),
    ],
)
def test_what_is_not_offered_is_refused_by_name(
    client: PrivateClient, columns: list[str], error: type[Exception], message: str
) -> None:
    """Columns without values, and a sum that is asked for twice."""
    with pytest.raises(error, match=message):
        client.sql(summed("t", "text", of_rows=True, sums=columns))


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (SQL.replace("SUM(number)", "SUM(DISTINCT number)"), "DISTINCT|other than columns"),
        (SQL.replace("SUM(number)", "SUM(number + 1)"), "arithmetic is not accepted"),
        (SQL.replace("SUM(number)", "MAX(number)"), "MAX"),
        (
            "SELECT text, COUNT(*), SUM(number) FROM t GROUP BY text ORDER BY SUM(whole) DESC LIMIT 2",
            "a number that is selected",
        ),
        (f"{SQL} ORDER BY 5 DESC LIMIT 2", "the count first"),
        (f"{SQL} ORDER BY spent LIMIT 2", "largest number first"),
        (SQL.replace("AS spent", "AS people"), "given twice"),
    ],
)
def test_sql_that_is_not_answered_is_refused_by_name(client: PrivateClient, sql: str, message: str) -> None:
    """Sums of expressions, and orders by what is not selected."""
    with pytest.raises(InvalidQuestion, match=message):
        client.sql(sql)


def test_a_column_of_another_type_than_the_policy_says_is_refused(
    services: EmbeddedServices, tmp_path: Path
) -> None:
    """Texts cannot be summed, and numbers that are not whole are not int64."""
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"member": ["a"], "text": ["b"], "whole": [1.5], "number": ["1"]}), path)
    with own_client(services, {"t": path}) as client:
        for column in ("whole", "number"):
            with pytest.raises(EngineRefused, match=f"the column {column} of the table .+ holds"):
                client.sql(summed("t", "text", sums=[column]))
        assert client.remaining()[-1].spent.information == 0


def test_explain_and_the_catalogue_say_what_a_sum_is(client: PrivateClient) -> None:
    """The price is that of a count, and bounds, steps and shares are stated before anything is paid."""
    explained = client.explain(SQL)
    assert explained.worst_case_cost.information == UNITS
    stated = " ".join(explained.sentences)
    assert "A member's total of number counts with 0 to 20, in steps of 0.5" in stated
    assert "The counts take 1/2 of the units." in stated
    values = client.catalog().tables[0].values
    assert [(each.name, each.quantum, each.upper) for each in values] == [
        ("number", Fraction(1, 2), Fraction(20)),
        ("whole", Fraction(1), Fraction(10)),
    ]


def test_the_command_line_asks_for_sums(services: EmbeddedServices, file: Path, tmp_path: Path) -> None:
    """`gris ask --sql` shows what the library does."""
    options = ["--dp", services.dp_address, "--budget", services.budget_address, "--data", f"t={file}"]
    account = new_account()
    flags = ["--account", account, "--releases", str(tmp_path / "releases.sqlite")]
    question = ["--sql", SQL, "--json"]
    outcome = CliRunner().invoke(app, ["ask", *options, *flags, *question])
    assert outcome.exit_code == 0, outcome.output
    stated = json.loads(outcome.output)
    assert [each["title"] for each in stated["parameters"]["bounded"]["sums"]["aggregates"]] == [
        "spent",
        "average_number_per_member",
    ]
    expected = true_numbers(of("number"))
    assert len(stated["rows"]) == len(expected)
    for row in stated["rows"]:
        n, true = expected[row["element"][0]]
        total = Fraction(row["values"][0]["value"])
        assert is_near(row["noisy_count"], n)
        assert is_near(total, true[0], ROUNDED)
    outcome = CliRunner().invoke(app, ["ask", *options, *flags, *question, "--confidence", "0.8"])
    again = json.loads(outcome.output)
    assert (again["confidence"], again["release_id"]) == (0.8, stated["release_id"])
    assert again["charged"]["information"] == 0
    wrong = CliRunner().invoke(app, ["ask", *options, *flags, *question, "--confidence", "1"])
    assert str(wrong.exception).startswith("--confidence: expected a number strictly between 0.5 and 1")


def test_sums_travel_as_steps_and_where_one_is_too_large_all_of_them_as_texts() -> None:
    """Either way the same exact numbers arrive; the form is that of all elements, so parts fit together."""
    small = ShownSums((3, -5), (2, -8), (6, 0), Fraction(1, 100))
    large = replace(small, upper=(6, 2**63))
    shown = ShownNumber("spent", small.quantum, False, TwoSided())
    for sums, form in ((small, "steps"), (large, "exact")):
        whole = aggregate_message(sums)
        parts = [aggregate_message(sums, rows) for rows in (slice(0, 1), slice(1, 2))]
        assert [each.WhichOneof("numbers") for each in (whole, *parts)] == [form] * 3
        read = aggregate_values(merged(dp_pb2.AggregateValues(), parts), shown)
        assert read == aggregate_values(whole, shown)
        assert [(each.value, *each.interval) for each in read if each is not None] == [
            (each.value, each.lower, each.upper) for each in sums.answers
        ]
    with pytest.raises(IntegrityError):
        aggregate_values(dp_pb2.AggregateValues(), shown)
