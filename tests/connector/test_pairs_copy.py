"""A pairs copy on DuckDB gives the raw table's counts, and another copy than the manifest's is refused."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import datetime
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.filters import In, NotIn, TimeRange
from dp_service.queries.policy import Policy, read_policy
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.structured import HistogramQuery
from gris_data.bound.pairs_source import PairsCopyRequest
from gris_data.bound.source import Columns
from pinot_connector import PrivateClient
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.base import EngineAnswer, EngineQuery
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import EngineRefused, EngineUnavailable
from tests.support.clients import blocking_client_of
from tests.support.embedded import embedded
from tests.support.engine_queries import engine_query
from tests.support.pairs_copies import START, UNTIL, asked, make, mixed, policy_text, random_rows, write
from tests.support.rings import needs
from tests.support.some import some

MIDNIGHT = datetime.time(tzinfo=datetime.UTC)
SQL = "SELECT what, COUNT(DISTINCT who) FROM visits WHERE day >= '2024-02-01' AND day < '2024-05-01' GROUP BY what"
TIME = "{column: at, type: timestamp, zone: Europe/Berlin}"
DOMAIN = ", domain: [e0, e1, e2, e3], delta: 4"


def at(day: datetime.date) -> datetime.datetime:
    """Return when a day begins."""
    return datetime.datetime.combine(day, MIDNIGHT)


def policy_at(folder: Path, name: str = "copy/manifest.json", **options: str) -> Policy:
    """Return a policy whose copy has the manifest of that name."""
    return read_policy(policy_text(name, **options).encode(), str(folder / "policy.yaml")).policy


def raw(policy: Policy, query: HistogramQuery) -> Resolution:
    """Return the same question to the raw table."""
    bare = replace(policy, tables=tuple(each.model_copy(update={"prepared": None}) for each in policy.tables))
    return resolve(query, bare, now=0)


def counts(engine: DuckDBEngine, resolution: Resolution) -> EngineAnswer:
    """Return the confirmed answer."""
    query = engine_query(resolution, "duckdb")
    if query.requires:
        engine.check(query)
    answer = engine.run(query, engine.data_version(query.table))
    engine.confirm(query, answer)
    return answer


def random_question(chosen: Random, calendar: str) -> HistogramQuery:
    """Return a question of whole periods, or one that sees all before a period."""
    months = [datetime.date(2024, month, 1) for month in range(1, 8)]
    monday = datetime.date(2023, 12, 25)
    weeks = [monday + datetime.timedelta(weeks=number) for number in range(27)]
    start, end = sorted(chosen.sample(months if calendar == "month" else weeks, 2))
    filters = chosen.choice(
        [(), (In("country", ("FR",)),), (NotIn("country", ("FR", "US")), In("what", ("e1", "e2")))]
    )
    begins = None if chosen.random() < 0.3 else at(start)
    return HistogramQuery(
        "visits", ("what",), Measure.DISTINCT_MEMBERS, filters, TimeRange(begins, at(end)), k=5
    )


@pytest.mark.slow
@pytest.mark.parametrize("calendar", ["month", "week"])
@pytest.mark.parametrize("options", [{}, {"what": DOMAIN}], ids=["unknown", "known"])
def test_a_copy_has_the_counts_of_the_table_for_any_range(
    tmp_path: Path, calendar: str, options: dict[str, str]
) -> None:
    """Members come back to their elements in many periods; over domains and with attributes, too."""
    source = write(tmp_path / "visits.parquet", random_rows(3000, seed=3))
    until = UNTIL if calendar == "month" else datetime.date(2024, 6, 24)
    make(source, tmp_path / "copy", asked(calendar, until))
    policy = policy_at(tmp_path, **options)
    engine = DuckDBEngine({"visits": source, "visits_pairs": tmp_path / "copy" / "manifest.json"})
    chosen = Random(4)
    for _ in range(25):
        query = random_question(chosen, calendar)
        of_copy = resolve(query, policy, now=0)
        assert of_copy.query.table == "visits_pairs"
        left, right = counts(engine, of_copy), counts(engine, raw(policy, query))
        assert (left.elements, left.counts) == (right.elements, right.counts)
    engine.close()


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table, its copy and one of two builds, which tests only read."""
    folder = tmp_path_factory.mktemp("held")
    mixed(folder, random_rows(2000, seed=5))
    return folder


@pytest.fixture(scope="module")
@needs("process")
def services(held: Path) -> Iterator[EmbeddedServices]:
    """Both services, whose policy names the copy; each client has an account of its own."""
    with embedded(held, policy_text("copy/manifest.json", what=DOMAIN)) as running:
        yield running


def client_of(services: EmbeddedServices, **tables: Path) -> PrivateClient:
    """Return a client of an engine over these files."""
    return blocking_client_of(services, DuckDBEngine(tables))


def test_a_question_is_answered_by_the_copy_and_says_so(services: EmbeddedServices, held: Path) -> None:
    """In SQL and as a message; a repeat is free; a question that the copy cannot answer goes to the table."""
    engine = {"visits": held / "visits.parquet", "visits_pairs": held / "copy" / "manifest.json"}
    with client_of(services, **engine) as client:
        whole = (datetime.date(2024, 2, 1), datetime.date(2024, 5, 1))
        first = client.histogram("visits", "what", time_range=whole)
        again = client.sql(SQL)
        assert first.rows
        assert (again.release_id, again.charged.information) == (first.release_id, 0)
        part = client.histogram("visits", "what", time_range=(START, datetime.date(2024, 5, 2)))
        assert part.release_id != first.release_id
        explained = client.explain(SQL)
        assert "The prepared copy visits_pairs answers for visits" in " ".join(explained.sentences)


def doubled(held: Path, folder: Path) -> Path:
    """Return a table in which the copy was loaded twice."""
    return _table(held, folder, "SELECT * FROM copy UNION ALL SELECT * FROM copy")


def older(held: Path, folder: Path) -> Path:
    """Return a table that lacks the last period."""
    return _table(held, folder, "SELECT * FROM copy WHERE gris_period < 19874")


def elsewhere(held: Path, folder: Path) -> Path:
    """Return a table whose rows are a year earlier."""
    return _table(held, folder, "SELECT * REPLACE (gris_period - 365 AS gris_period) FROM copy")


def of_two_builds(held: Path, folder: Path) -> Path:
    """Return a table with one period of a copy that was made earlier; each period has as many rows as it should."""
    return _table(held, folder, "SELECT * FROM copy", "mixed")


def one_for_another(held: Path, folder: Path) -> Path:
    """Return a table in which a row is missing and another one of the same period is there twice."""
    numbered = "SELECT *, row_number() OVER (PARTITION BY gris_period) AS place FROM copy"
    places = "(SELECT unnest([1, 2]) AS time)"
    return _table(
        held,
        folder,
        f"SELECT * EXCLUDE (place, time) FROM ({numbered}) CROSS JOIN {places} "
        "WHERE (time = 1 AND place <> 2) OR (time = 2 AND place = 1)",
    )


def without_previous_periods(held: Path, folder: Path) -> Path:
    """Return a table that has lost its previous periods: a number that is missing is this one to Pinot."""
    return _table(held, folder, "SELECT * REPLACE ((-2147483648)::INTEGER AS gris_previous) FROM copy")


def with_another_previous_period(held: Path, folder: Path) -> Path:
    """Return a table in which those who came back in May are said to have been away since January."""
    came_back = "gris_period = 19844 AND gris_previous > 19723"
    return _table(
        held,
        folder,
        f"SELECT * REPLACE (CASE WHEN {came_back} THEN 19723 ELSE gris_previous END AS gris_previous) FROM copy",
    )


def _table(held: Path, folder: Path, rows: str, copy: str = "copy") -> Path:
    files = f"read_parquet('{held}/{copy}/periods/*.parquet')"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (WITH copy AS (SELECT * FROM {files}) {rows}) TO '{folder}/other.parquet'")
    return folder / "other.parquet"


def exchanged(held: Path, folder: Path) -> Path:
    """Return a copy of the files of which one is another than the manifest names."""
    shutil.copytree(held / "copy", folder / "exchanged")
    shutil.copy(
        folder / "exchanged/periods/2024-01-01.parquet", folder / "exchanged/periods/2024-02-01.parquet"
    )
    return folder / "exchanged" / "manifest.json"


def an_older_manifest(held: Path, folder: Path) -> Path:
    """Return the copy before its last period was appended."""
    make(held / "visits.parquet", folder / "before", asked(until=datetime.date(2024, 6, 1)))
    return folder / "before" / "manifest.json"


@pytest.mark.slow
def test_parts_of_two_builds_would_count_a_member_twice(tmp_path: Path) -> None:
    """What is refused is no formality: each period has as many rows as it should, and the count is wrong."""
    mixed(tmp_path, random_rows(300, seed=5))
    counted = []
    for copy in ("copy", "mixed"):
        with duckdb.connect() as connection:
            (count,) = connection.execute(
                f"SELECT count(*) FROM read_parquet('{tmp_path}/{copy}/periods/*.parquet') "
                f"WHERE who = 'm99' AND what = 'e0' AND gris_period >= 19723 AND gris_previous < 19723"
            ).fetchone() or (0,)
            counted.append(count)
    assert counted == [1, 2]


WRONG = [
    doubled,
    older,
    elsewhere,
    exchanged,
    an_older_manifest,
    of_two_builds,
    one_for_another,
    without_previous_periods,
    with_another_previous_period,
]


@pytest.mark.parametrize("wrong", WRONG)
def test_another_copy_than_the_manifests_answers_nothing(
    services: EmbeddedServices, held: Path, tmp_path: Path, wrong: Callable[[Path, Path], Path]
) -> None:
    """Nothing is charged, and no count is in the message; a range that it holds as it should is answered.

    Numbers of rows alone show neither parts of two builds nor one row in the place of another, and sums of check
    numbers alone no other previous period.
    """
    with client_of(services, visits=held / "visits.parquet", visits_pairs=wrong(held, tmp_path)) as client:
        before = client.remaining()
        with pytest.raises(EngineRefused, match="manifest") as refused:
            client.histogram("visits", "what", time_range=(datetime.date(2024, 2, 1), UNTIL))
        assert not any(each.isdigit() and int(each) > 3 for each in str(refused.value).split())
        assert before == client.remaining()
        if wrong in (older, an_older_manifest):
            assert client.histogram("visits", "what", time_range=(START, datetime.date(2024, 6, 1))).rows


@pytest.mark.slow
def test_a_new_period_is_used_once_the_manifest_names_it(tmp_path: Path) -> None:
    """What counted before is the same release as before."""
    source, folder = write(tmp_path / "visits.parquet", random_rows(2000, seed=5)), tmp_path / "growing"
    make(source, folder, asked(until=datetime.date(2024, 6, 1)))
    engine = DuckDBEngine({"visits": source, "visits_pairs": folder / "manifest.json"})
    of_may, of_june = (
        HistogramQuery(
            "visits", ("what",), Measure.DISTINCT_MEMBERS, (), TimeRange(at(START), at(until)), k=5
        )
        for until in (datetime.date(2024, 6, 1), UNTIL)
    )
    before = policy_at(tmp_path, "growing/manifest.json")
    assert resolve(of_june, before, now=0).query.table == "visits"
    first = counts(engine, resolve(of_may, before, now=0))
    make(source, folder)
    after = policy_at(tmp_path, "growing/manifest.json")
    assert resolve(of_may, after, now=0) == resolve(of_may, before, now=0)
    assert counts(engine, resolve(of_may, after, now=0)).counts == first.counts
    whole = resolve(of_june, after, now=0)
    assert whole.query.table == "visits_pairs"
    assert counts(engine, whole).counts == counts(engine, raw(after, of_june)).counts
    engine.close()


@pytest.mark.slow
def test_timestamps_belong_to_the_periods_of_their_zone(tmp_path: Path) -> None:
    """Around midnight in Berlin, in summer and winter; one that some engine cannot hold is in no period."""
    chosen, hour = Random(8), datetime.timedelta(hours=1)
    edges = [datetime.datetime(2024, month, 1) for month in (2, 4, 7)]
    times = [edge + chosen.randrange(-4, 4) * hour for edge in edges for _ in range(100)]
    times += [datetime.datetime(1650, 1, 1), datetime.datetime(2300, 1, 1)]
    rows = [(f"m{chosen.randrange(9)}", f"e{chosen.randrange(4)}", at_) for at_ in times]
    kinds = [("who", pa.string()), ("what", pa.string()), ("at", pa.timestamp("us"))]
    columns = [list(column) for column in zip(*rows, strict=True)]
    source = tmp_path / "visits.parquet"
    pq.write_table(pa.table(columns, schema=pa.schema(kinds)), source)
    of_zone = PairsCopyRequest(
        "visits", Columns("who", ("what",), "at", "month", "Europe/Berlin"), (), None, UNTIL
    )
    made = make(source, tmp_path / "copy", of_zone)
    assert made.left_out.time == 2
    assert made.rows_of_open_periods > 0
    text = policy_text("copy/manifest.json").replace("{column: day, type: date}", TIME)
    text = "\n".join(line for line in text.splitlines() if not line.startswith("      day:"))
    policy = read_policy(text.encode(), str(tmp_path / "policy.yaml")).policy
    engine = DuckDBEngine({"visits": source, "visits_pairs": tmp_path / "copy" / "manifest.json"})
    berlin = ZoneInfo("Europe/Berlin")
    months = [
        datetime.datetime(2024, month, 1, tzinfo=berlin).astimezone(datetime.UTC) for month in (2, 4, 5, 7)
    ]
    for start, end in some(combinations(months, 2)):
        query = HistogramQuery("visits", ("what",), Measure.DISTINCT_MEMBERS, (), TimeRange(start, end), k=5)
        of_copy = resolve(query, policy, now=0)
        assert of_copy.query.table == "visits_pairs"
        left, right = counts(engine, of_copy), counts(engine, raw(policy, query))
        assert (left.elements, left.counts) == (right.elements, right.counts)
    # A month of UTC is none of Berlin; and without a lower end the null value lies in the range, which is not counted.
    for other in (TimeRange(months[0], at(datetime.date(2024, 4, 1))), TimeRange(None, months[1])):
        query = HistogramQuery("visits", ("what",), Measure.DISTINCT_MEMBERS, (), other, k=5)
        assert resolve(query, policy, now=0).query.table == "visits"
    engine.close()


class Counting(DuckDBEngine):
    """An engine that answers slowly what a copy holds, fails the first time if `fails`, and counts how often."""

    def __init__(self, manifest: Path, *, fails: bool) -> None:
        super().__init__({"visits_pairs": manifest})
        self.runs = 0
        self.fails = fails
        self.several = threading.Event()

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """Gives others the time to ask as well."""
        if query.pairs_copy is None:
            self.runs += 1
            if self.runs > 1:
                self.several.set()
            self.several.wait(0.5)
            if self.fails and self.runs == 1:
                raise EngineUnavailable("the engine took too long")
        return super().run(query, data_version)


@pytest.mark.slow
@pytest.mark.parametrize("fails", [False, True])
def test_what_a_copy_holds_is_asked_once_by_all_who_come_at_the_same_time(
    tmp_path: Path, fails: bool
) -> None:
    """Such as the questions of one dashboard; if that fails, it fails for them, and who comes later asks again."""
    make(write(tmp_path / "visits.parquet", random_rows(300, seed=5)), tmp_path / "copy")
    engine = Counting(tmp_path / "copy" / "manifest.json", fails=fails)
    chosen, policy = Random(6), policy_at(tmp_path)
    asking = [
        engine_query(resolve(random_question(chosen, "month"), policy, now=0), "duckdb") for _ in range(8)
    ]
    together = threading.Barrier(len(asking))

    def check(query: EngineQuery) -> BaseException | None:
        together.wait(20)
        try:
            engine.check(query)
        except EngineUnavailable as error:
            return error
        return None

    with ThreadPoolExecutor(len(asking)) as threads:
        failed = [each for each in threads.map(check, asking) if each is not None]
    engine.check(asking[0])
    assert engine.runs == 1 + fails
    assert bool(failed) == fails
    # Each has an error of its own.
    assert len(set(map(id, failed))) == len(failed)
    engine.close()
