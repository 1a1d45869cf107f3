"""Bounded contributions through the real services: what is counted, what is refused, what is free.

The noise of these policies is as small as it gets (`tests.support.slight_noise`), so an answer can be compared with the
pure reference, but for 2.
"""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import asyncio
import datetime
from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from dp_service.bounding.weights import least_kept
from dp_service.mechanisms import Currency
from dp_service.mechanisms.bounded import BoundGauss, ContributionBound, Counted
from dp_service.terms import GRID
from gris_cli.app import app
from pinot_connector import PrivateClient
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.base import BoundedCopy, ColumnType, EngineQuery, ExpectedColumn, Feature
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import DataUnreadable, EngineRefused, InvalidQuestion
from pinot_connector.parameters import BoundedBy, Contributions, IntervalKind, Mechanism, OneLook, Shift
from pinot_connector.questions import Measure
from pinot_connector.results import PrivateResult
from tests.support.bounding import weighted
from tests.support.clients import blocking_client_of, client_of, own_client
from tests.support.fake_pinot import FakePinot
from tests.support.slight_noise import is_near, require_list, require_near
from tests.support.some import some
from tests.support.statements import texts
from tests.support.world import COFACTS

TYPICAL = 8
UNITS = 40_000
POLICY = f"""
epsilon_per: 10
delta: 1e-10
count_noise: gaussian
tables:
  feedback:
    member: member_id
    time: {{column: day, type: date}}
    contributions: {{bound: in_query, units: {UNITS}, min_count: 3}}
    measures: {{distinct_members: true, rows: {2 * TYPICAL}}}
    columns: &columns
      member_id: {{type: string}}
      article_id: {{type: string, group_by: true, typical: {TYPICAL}, filter: [in, not_in]}}
      score: {{type: int64, group_by: true, typical: {TYPICAL}, filter: [in], domain: [-1, 0, 1]}}
  prepared:
    member: member_id
    contributions:
      bound: prepared
      delta: {TYPICAL}
      units: {UNITS}
      elements: [article_id]
      period: all
    measures: {{distinct_members: true}}
    columns:
      member_id: {{type: string}}
      article_id: {{type: string, group_by: true, filter: [in]}}
  monthly:
    member: member_id
    time: {{column: day, type: date}}
    contributions:
      bound: prepared
      delta: {TYPICAL}
      units: {UNITS}
      elements: [article_id]
      period: day
      periods: month
    measures: {{distinct_members: true}}
    columns:
      member_id: {{type: string}}
      article_id: {{type: string, group_by: true}}
  shifted:
    member: member_id
    contributions: {{bound: in_query, units: {UNITS}}}
    measures: {{distinct_members: true, rows: 8}}
    columns:
      member_id: {{type: string}}
      article_id: {{type: string, filter: [in]}}
      score: {{type: int64, group_by: true, typical: 4, filter: [in], domain: [-1, 0, 1, 7]}}
  many:
    member: member_id
    contributions: {{bound: assumed, delta: 1, units: {UNITS}}}
    measures: {{distinct_members: true}}
    columns:
      member_id: {{type: int64}}
      element: {{type: string, group_by: true}}
""".replace("&columns", "")
MANY = 150_000
Pairs = list[tuple[str, str, int, datetime.date]]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Give the file of each table; the prepared ones are made by `gris bound`."""
    folder = tmp_path_factory.mktemp("bounded")
    many = folder / "many.parquet"
    # Nine members have each element and every second one has a tenth, far above the threshold.
    duckdb.sql(
        f"COPY (SELECT i AS member_id, 'e' || (i % {MANY}) AS element FROM range({9 * MANY} + {MANY // 2}) AS t(i)) "
        f"TO '{many}'"
    )
    made = {"prepared": folder / "prepared.parquet", "monthly": folder / "monthly.parquet"}
    for name, period in (("prepared", []), ("monthly", ["--period", "day", "--calendar", "month"])):
        bound(COFACTS, made[name], name, *period)
    return {"feedback": COFACTS, "shifted": COFACTS, "many": many, **made}


def bound(source: Path, out: Path, table: str, *more: str, typical: int = TYPICAL) -> None:
    """Make a bounded copy by the command that its owner uses."""
    columns = ["--member", "member_id", "--elements", "article_id", "--typical", str(typical)]
    options = ["--input", str(source), "--out", str(out), "--table", table, *columns, *more]
    outcome = CliRunner().invoke(app, ["bound", *options])
    assert outcome.exit_code == 0, outcome.output


@pytest.fixture
def client(services: EmbeddedServices, tables: dict[str, Path]) -> Iterator[PrivateClient]:
    """A client with an account of its own."""
    with own_client(services, tables) as client:
        yield client


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a small file of opinions: whether a copy of it is refused depends on its metadata alone."""
    path = tmp_path_factory.mktemp("few") / "few.parquet"
    duckdb.sql(f"COPY (SELECT * FROM read_parquet('{COFACTS}') LIMIT 2000) TO '{path}'")
    return path


@cache
def rows() -> Pairs:
    """Return all opinions."""
    found = duckdb.execute(
        f"SELECT member_id, article_id, score, day FROM read_parquet('{COFACTS}') WHERE member_id IS NOT NULL"
    )
    return found.fetchall()


def copy_reference(given: Pairs, *, by_month: bool = False) -> Counter[str]:
    """Return the counts of articles in a prepared copy, to the nearest whole number, by the pure definition."""
    held: dict[tuple[str, str], list[str]] = defaultdict(list)
    for member, article, day in {(who, what, f"{day:%Y-%m}" * by_month) for who, what, _, day in given}:
        held[member, day].append(article)
    largest: Counter[tuple[str, str]] = Counter()
    for (member, _), articles in held.items():
        added = weighted([1] * len(articles), TYPICAL * GRID**2, least=least_kept(GRID))
        for article, weight in zip(articles, added, strict=True):
            largest[member, article] = max(largest[member, article], weight)
    counts: Counter[str] = Counter()
    for (_, article), weight in largest.items():
        counts[article] += weight
    return Counter({article: round(count / GRID) for article, count in counts.items() if count >= GRID})


def weighted_reference(given: Pairs, *, tau: int = 1, min_count: int = 3) -> Counter[str]:
    """Return the counts of articles when each member is weighted, to the nearest whole number."""
    held: dict[str, Counter[str]] = defaultdict(Counter)
    for member, article, _, _ in given:
        held[member][article] += 1
    counts: Counter[str] = Counter()
    for articles in held.values():
        cells = [min(count, tau) for count in articles.values()]
        added = weighted(cells, TYPICAL * tau**2 * GRID**2, least=least_kept(GRID))
        counts.update(dict(zip(articles, added, strict=True)))
    return Counter(
        {article: round(count / GRID) for article, count in counts.items() if count >= min_count * GRID}
    )


def look(tau: int = 1) -> BoundGauss:
    """Return the look of the first table."""
    counted = Counted.MEMBERS if tau == 1 else Counted.EVENTS
    bound = ContributionBound(TYPICAL, tau, 1, counted, GRID)
    return BoundGauss(Currency(Fraction(10), Fraction(1, 10**10)), Fraction(UNITS), bound, 3)


def shown(result: PrivateResult) -> list[tuple[str, float | None]]:
    """Return elements and counts."""
    return [(str(row.element[0]), row.noisy_count) for row in result.rows]


def require_counts(result: PrivateResult, true: Counter[str], k: int | None = None) -> None:
    """Assert that the list is that of these counts above the threshold."""
    assert result.bottom is not None
    require_list(some(shown(result)), true, result.bottom, k, is_rounded=result.parameters.grid > 1)


def test_a_question_counts_the_bounded_contributions_of_the_reference(client: PrivateClient) -> None:
    """Members of more than eight articles are weighted; hundreds of articles are above the threshold, all are shown."""
    result = client.histogram("feedback", "article_id")
    bounded = result.parameters.bounded
    assert bounded is not None
    assert bounded.contributions == Contributions(BoundedBy.IN_QUERY, TYPICAL, periods=1, grid=GRID)
    threshold = look().threshold
    assert threshold is not None
    assert (result.mechanism, bounded.looks) == (
        Mechanism.BOUND_GAUSS,
        OneLook(3, Fraction(threshold, GRID)),
    )
    assert result.bottom == threshold // GRID
    require_counts(result, weighted_reference(rows()))
    assert len(result.rows) > 300
    assert not result.ended_in_bottom
    assert (result.cost.information, result.cost.calls) == (UNITS, 1)


def test_filters_act_before_a_member_is_bounded(client: PrivateClient) -> None:
    """A member's weight follows from the articles that the question leaves."""
    result = client.top_k("feedback", "article_id", 100, where={"score": 1})
    chosen = [each for each in rows() if each[2] == 1]
    require_counts(result, weighted_reference(chosen), 100)
    assert len(result.rows) == 100
    articles = [article for article, _ in shown(result)[:3]]
    few = client.top_k("feedback", "article_id", 100, where={"article_id": articles})
    among = [each for each in rows() if each[1] in articles]
    require_counts(few, weighted_reference(among), 100)
    assert few.charged == few.cost


def test_events_are_clipped_and_bounded(client: PrivateClient) -> None:
    """At most two opinions of a member count in an article."""
    result = client.sql(
        "SELECT article_id, COUNT(*) FROM feedback GROUP BY article_id ORDER BY 2 DESC LIMIT 100000"
    )
    require_counts(result, weighted_reference(rows(), tau=2))
    threshold = look(tau=2).threshold
    assert threshold is not None
    assert result.bottom == threshold // GRID


def test_a_known_domain_is_counted_whole_and_for_no_call(client: PrivateClient) -> None:
    """Nobody has more than three scores, so nothing is cut; a score that nobody gave counts 0."""
    result = client.histogram("feedback", "score")
    expected = Counter(
        {score: len({member for member, _, each, _ in rows() if each == score}) for score in (-1, 0, 1)}
    )
    require_near({row.element[0]: row.noisy_count for row in result.rows}, expected)
    assert (result.cost.calls, result.bottom, result.interval_kind) == (0, None, IntervalKind.PLAIN)


def scores_of_members(given: Pairs) -> tuple[Counter[int], int]:
    """Return how many members have each score, and how many members there are."""
    held: dict[str, set[int]] = defaultdict(set)
    for member, _, score, _ in given:
        held[member].add(score)
    return Counter(score for scores in held.values() for score in scores), len(held)


def test_counts_of_a_small_domain_are_released_relative_to_their_total(client: PrivateClient) -> None:
    """A member may have all of them; all members that count are counted besides."""
    result = client.histogram("shifted", "score")
    expected, members = scores_of_members(rows())
    require_near({row.element[0]: row.noisy_count for row in result.rows}, {0: 0, 7: 0} | expected)
    assert result.total is not None
    assert is_near(result.total.noisy_count, members)
    assert (result.cost.information, result.cost.calls, result.interval_kind) == (
        UNITS,
        0,
        IntervalKind.PLAIN,
    )
    assert result.parameters.bounded is not None
    assert isinstance(result.parameters.bounded.looks, Shift)
    assert all(isinstance(row.noisy_count, float) for row in result.rows)
    assert "counts.relative" in {each.code for each in result.statements}


def test_another_k_of_a_shifted_release_is_free_and_the_same(client: PrivateClient) -> None:
    """The total is counted within the question's own conditions; a cut list has intervals given that it was cut."""
    articles = [article for article, _ in copy_reference(rows()).most_common(40)]
    where = {"article_id": articles}
    whole = client.histogram("shifted", "score", where=where)
    first = client.top_k("shifted", "score", 2, where=where)
    among = [each for each in rows() if each[1] in articles]
    _, members = scores_of_members(among)
    assert whole.total is not None
    assert whole.total == first.total
    assert is_near(whole.total.noisy_count, members)
    assert first.charged.information == 0
    assert [row.noisy_count for row in whole.rows[:2]] == [row.noisy_count for row in first.rows]
    assert first.interval_kind is IntervalKind.GIVEN_SHOWN
    events = client.sql("SELECT score, COUNT(*) FROM shifted GROUP BY score")
    assert events.total is not None


def test_another_k_of_a_paid_question_is_free(client: PrivateClient) -> None:
    """Smaller, larger, as SQL, and all of it: one release, paid once."""
    first = client.top_k("feedback", "article_id", 10)
    more = client.top_k("feedback", "article_id", 200)
    every = client.histogram("feedback", "article_id")
    fewer = client.sql(
        "SELECT article_id, COUNT(DISTINCT member_id) FROM feedback GROUP BY article_id ORDER BY 2 DESC LIMIT 5"
    )
    assert {first.release_id} == {each.release_id for each in (more, every, fewer)}
    assert [(each.charged.information, each.charged.calls) for each in (first, more, every, fewer)] == [
        (UNITS, 1),
        (0, 0),
        (0, 0),
        (0, 0),
    ]
    assert shown(every)[:200] == shown(more)
    assert shown(more)[:10] == shown(first)
    assert shown(first)[:5] == shown(fewer)
    assert [level.spent.information for level in client.remaining()][-1] == UNITS


def test_a_prepared_copy_counts_what_the_query_would(client: PrivateClient) -> None:
    """A condition only takes rows away: weights are over all elements of a member."""
    result = client.histogram("prepared", "article_id")
    true = copy_reference(rows())
    require_counts(result, true)
    assert true == weighted_reference(rows(), min_count=1)
    chosen = [str(row.element[0]) for row in result.rows[:20]]
    filtered = client.top_k("prepared", "article_id", 20, where={"article_id": chosen})
    require_near(
        {str(row.element[0]): row.noisy_count for row in filtered.rows}, {each: true[each] for each in chosen}
    )


def test_all_members_of_a_prepared_copy_count_in_full(client: PrivateClient) -> None:
    """In a total there is one element, and of it nobody has more than one."""
    (row,) = client.total("prepared").rows
    assert is_near(row.noisy_count, len({member for member, *_ in rows()}))


def test_a_copy_of_months_counts_each_month_of_the_range(client: PrivateClient) -> None:
    """A member has the largest of its weights, and the noise is that of as many months as the question sees."""
    days = (datetime.date(2018, 11, 1), datetime.date(2019, 2, 1))
    result = client.top_k("monthly", "article_id", 50, time_range=days)
    assert result.parameters.bounded is not None
    assert result.parameters.bounded.contributions.periods == 3
    seen = copy_reference([each for each in rows() if days[0] <= each[3] < days[1]], by_month=True)
    require_counts(result, seen, 50)
    assert len(result.rows) == 50
    with pytest.raises(InvalidQuestion, match="begins and ends with a month"):
        client.top_k("monthly", "article_id", 50)


def test_a_total_needs_no_bound(client: PrivateClient) -> None:
    """There is one element, so nobody is bounded; rows are clipped as they are anywhere."""
    of_members = (
        f"SELECT least(count(*), {2 * TYPICAL}) AS n FROM read_parquet('{COFACTS}') GROUP BY member_id"
    )
    (found,) = duckdb.execute(f"SELECT count(*), sum(n) FROM ({of_members})").fetchall()
    for measure, expected in zip((Measure.DISTINCT_MEMBERS, Measure.EVENTS), found, strict=True):
        result = client.total("feedback", measure=measure)
        (row,) = result.rows
        assert is_near(row.noisy_count, int(expected))
        assert Mechanism.BOUND_GAUSS is result.mechanism
        assert (UNITS, 0) == (result.cost.information, result.cost.calls)


@pytest.mark.parametrize(
    ("typical", "table", "expected"),
    [
        (TYPICAL + 1, "prepared", "typical is 9 in the file and 8 in the policy"),
        (TYPICAL, "another", 'table is "another" in the file and "prepared" in the policy'),
    ],
)
def test_a_copy_that_was_bounded_otherwise_is_refused_with_both_values(
    services: EmbeddedServices, few: Path, tmp_path: Path, *, typical: int, table: str, expected: str
) -> None:
    """Before anything is reserved: its members could change more than the noise hides."""
    other = tmp_path / "other.parquet"
    bound(few, other, table, typical=typical)
    assert_refused(services, other, expected)


def test_a_table_that_was_never_bounded_is_refused(
    services: EmbeddedServices, tables: dict[str, Path], tmp_path: Path
) -> None:
    """The raw table, a file whose metadata cannot be read, and a database, which has none."""
    assert_refused(services, COFACTS, "is none that gris bound made")
    spoilt = tmp_path / "spoilt.parquet"
    data = pq.read_table(tables["prepared"])
    pq.write_table(data.replace_schema_metadata({"gris_bound": "[1, 2"}), spoilt)
    assert_refused(services, spoilt, "is none that gris bound made")
    database = tmp_path / "data.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute(f"CREATE TABLE prepared AS SELECT * FROM read_parquet('{tables['prepared']}')")
    assert_refused(services, database, "a prepared bounded copy, which must be a Parquet file")


@pytest.mark.parametrize(
    ("period", "stated"),
    [
        # A row of any day can be in any of these: a range of time does not tell how many a question sees.
        (["--period", "score"], "score"),
        (["--period", "day"], "day"),
        (["--period", "day", "--calendar", "week"], "week(day)"),
        ([], "all"),
    ],
)
def test_a_copy_of_other_periods_than_the_calendars_is_refused(
    services: EmbeddedServices, few: Path, tmp_path: Path, period: list[str], stated: str
) -> None:
    """The noise is that of as many periods as the range has months; such a copy may hold more of them."""
    other = tmp_path / "other.parquet"
    bound(few, other, "monthly", *period)
    expected = f'period is "{stated}" in the file and "month(day)" in the policy'
    assert_refused(services, other, expected, table="monthly")


def assert_refused(services: EmbeddedServices, path: Path, expected: str, *, table: str = "prepared") -> None:
    """Ask the table in this file, and see that it is refused and that nothing was reserved or charged for it."""
    days = (datetime.date(2018, 11, 1), datetime.date(2019, 2, 1)) if table == "monthly" else None
    with own_client(services, {table: path}) as client:
        with pytest.raises(DataUnreadable) as refusal:
            client.top_k(table, "article_id", 5, time_range=days)
        assert expected in str(refusal.value)
        level = client.remaining()[-1]
        assert (level.spent.information, level.reserved.information) == (0, 0)


@pytest.mark.slow
def test_a_file_that_takes_the_place_of_the_copy_is_refused_when_it_is_read(
    tables: dict[str, Path], tmp_path: Path
) -> None:
    """The check before the reservation and the query each look at the file that is there."""
    path = tmp_path / "prepared.parquet"
    path.write_bytes(tables["prepared"].read_bytes())
    query = EngineQuery(
        "prepared",
        'SELECT article_id, COUNT(DISTINCT member_id) AS gris_count FROM "prepared" GROUP BY 1 ORDER BY 2 DESC, 1',
        (ExpectedColumn("article_id", ColumnType.STRING),),
        10**8,
        frozenset({Feature.BOUNDED_COPY}),
        bounded_copy=BoundedCopy("prepared", "member_id", ("article_id",), TYPICAL, "all"),
    )
    engine = DuckDBEngine({"prepared": path})
    engine.check(query)
    assert engine.run(query, engine.data_version("prepared")).counts
    path.unlink()
    path.write_bytes(COFACTS.read_bytes())
    with pytest.raises(DataUnreadable, match=r"prepared\.parquet is none that gris bound made"):
        engine.run(query, engine.data_version("prepared"))
    engine.close()


@pytest.fixture
def old_pinot() -> Iterator[FakePinot]:
    """A Pinot without a multi-stage engine."""
    fake = FakePinot()
    fake.replies |= {
        "/version": {"pinot-controller": "0.11.0"},
        "/tables/feedback": {"OFFLINE": {"tableName": "feedback_OFFLINE"}},
        "/tables/feedback/schema": {"schemaName": "feedback"},
        "/tables/feedback/idealstate": {"OFFLINE": {"s": {"server": "ONLINE"}}, "REALTIME": None},
        "/tables/feedback/externalview": {"OFFLINE": {"s": {"server": "ONLINE"}}, "REALTIME": None},
        "/segments/feedback": [{"OFFLINE": ["s"]}],
        "/segments/feedback_OFFLINE/metadata": {"s": {"segmentName": "s", "crc": 1, "totalDocs": 7}},
        "/segments/feedback_OFFLINE/crc": {"s": "1"},
        "/segments/feedback_OFFLINE/s/metadata": {"segment.crc": "1", "segment.total.docs": "7"},
    }
    with fake.serving():
        yield fake


def test_a_pinot_that_is_too_old_is_refused_by_name_before_anything_is_reserved(
    services: EmbeddedServices, old_pinot: FakePinot
) -> None:
    """It cannot bound members in a query; the refusal says what can be done instead, and Pinot is not asked."""
    engine = PinotEngine(controller=old_pinot.url, broker=old_pinot.url)
    with blocking_client_of(services, engine) as client:
        with pytest.raises(EngineRefused, match=r"Pinot 0\.11 cannot .* in_query.*prepared"):
            client.top_k("feedback", "article_id", 5)
        level = client.remaining()[-1]
        assert (level.spent.information, level.reserved.information) == (0, 0)
        assert old_pinot.queries == []
        assert {"duckdb", "pinot", "spark"} == {
            query.dialect
            for query in client.explain(
                "SELECT article_id, COUNT(DISTINCT member_id) FROM feedback GROUP BY article_id"
            ).queries
        }
    engine.close()


def test_hundreds_of_thousands_of_elements_are_answered_as_ten_are(client: PrivateClient) -> None:
    """No d_bar and no page: they are streamed, and no noise hides nine members."""
    result = client.histogram("many", "element")
    assert result.bottom is not None
    assert result.bottom < 7
    true = {f"e{i}": 9 + (i < MANY // 2) for i in range(MANY)}
    require_near({row.element[0]: row.noisy_count for row in result.rows}, true)
    (bounded,) = (each.text for each in result.statements if each.code == "counts.bounded")
    assert "the author of the policy promises it, and nothing checks it" in bounded


def test_guarantee_and_explanation_say_what_holds(client: PrivateClient) -> None:
    """Lower ends hold before bounding too, upper ends do not."""
    assert client.guarantee().own.guarantee is not None
    explanation = client.explain(
        "SELECT article_id, COUNT(DISTINCT member_id) FROM feedback GROUP BY article_id"
    )
    assert (explanation.worst_case_cost.information, explanation.worst_case_cost.calls) == (UNITS, 1)
    text = " ".join(explanation.sentences)
    assert f"a member of more than {TYPICAL} elements counts with less than 1 in each" in text
    assert "the number in the table is no less, with 97.5 %" in text
    entry = next(table for table in client.catalog().tables if table.name == "monthly")
    assert entry.contributions is not None
    assert (entry.contributions.periods, entry.contributions.units) == (None, UNITS)
    assert Mechanism.BOUND_GAUSS is entry.columns[0].mechanism


def test_results_say_so_in_json(client: PrivateClient) -> None:
    """A reader of counts has to know that they are of bounded contributions."""
    found = client.top_k("feedback", "article_id", 3).to_dict()["parameters"]["bounded"]
    assert found["contributions"] == {
        "bounded_by": "in_query",
        "typical": TYPICAL,
        "periods": 1,
        "grid": GRID,
    }
    assert found["one_look"]["min_count"] == 3
    assert Fraction(found["one_look"]["threshold"]) == Fraction(look().threshold or 0, GRID)


def test_the_threshold_is_said_as_a_count(client: PrivateClient) -> None:
    """And not as what lies above another one."""
    explanation = client.explain(
        "SELECT article_id, COUNT(DISTINCT member_id) FROM feedback GROUP BY article_id ORDER BY 2 DESC LIMIT 3"
    )
    accuracy = explanation.accuracy
    assert accuracy is not None
    needed = (look().threshold or 0) // GRID + 1
    assert (accuracy.found_half, accuracy.found_mostly, accuracy.is_fixed) == (needed, needed, True)
    passes = (
        f"An element passes the threshold with 50 % if its count is {needed}, with 95 % from {needed} on."
    )
    assert passes in texts(explanation.statements)


def test_questions_at_the_same_time_draw_one_release(
    services: EmbeddedServices, tables: dict[str, Path]
) -> None:
    """Any k at once, from one account: one is charged."""

    async def all_at_once() -> list[PrivateResult]:
        engine = DuckDBEngine(tables)
        async with client_of(services, engine) as client:
            found = await asyncio.gather(*(client.top_k("feedback", "article_id", k) for k in range(1, 9)))
        engine.close()
        return found

    found = asyncio.run(all_at_once())
    assert len({each.release_id for each in found}) == 1
    assert sum(each.charged.information for each in found) == UNITS
