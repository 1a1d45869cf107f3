"""The engine against a real Pinot with two servers: every answer that it gives is the truth, every other is refused."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import duckdb
import pytest

from deploy.pinot.cluster import PinotCluster
from examples.load import TABLES, load
from pinot_connector.engines.base import ColumnType, EngineAnswer, EngineQuery
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import (
    DataChanged,
    EngineError,
    EngineRefused,
    EngineUnavailable,
    IncompleteAnswer,
)
from tests.engines.pinot.facts import NOT_ALL_SEGMENTS, Facts
from tests.engines.pinot.loading import create_table, has_table, plain_count, upload, wait_for_rows
from tests.engines.pinot.plain_http import HTTP
from tests.engines.pinot.queries import confirmed, count_members
from tests.engines.pinot.trimmed_table import TrimmedTable
from tests.engines.pinot.waiting import wait_until

ARTICLES = count_members("cofacts_feedback", ("article_id", ColumnType.STRING))


def ask(engine: PinotEngine, query: EngineQuery) -> EngineAnswer:
    """Return the answer on the present version of the table; an outdated one is found out and left."""
    try:
        return confirmed(engine, query)
    except DataChanged:
        return confirmed(engine, query)


def histogram(answer: EngineAnswer) -> dict[Any, int]:
    """Return the answer as counts by element, a tuple where there are several columns."""
    keys = zip(*answer.elements, strict=True)
    return {key if len(key) > 1 else key[0]: count for key, count in zip(keys, answer.counts, strict=True)}


def truth(parquet: Path, columns: str) -> dict[Any, int]:
    """Return the distinct members by element, straight from the file."""
    sql = f"SELECT {columns}, count(DISTINCT member_id) FROM read_parquet(?) GROUP BY {columns}"  # noqa: S608
    with duckdb.connect() as connection:
        found = connection.execute(sql, [str(parquet)]).fetchall()
    return {row[:-1] if len(row) > 2 else row[0]: row[-1] for row in found}


def load_rows(cluster: PinotCluster, table: str, select: str, folder: Path, segments: int = 2) -> Path:
    """Make a table of the rows of a DuckDB query; return them as a file."""
    parquet = folder / f"{table}.parquet"
    with duckdb.connect() as connection:
        connection.sql(select).write_parquet(str(parquet))
    load(parquet, table, controller=cluster.controller_url, broker=cluster.broker_url, segments=segments)
    return parquet


def test_an_answer_is_the_truth(loaded_pinot: PinotCluster, engine: PinotEngine) -> None:
    """All 6,982 articles have the counts of the published file."""
    assert truth(TABLES["cofacts_feedback"], "article_id") == histogram(ask(engine, ARTICLES))


def test_an_answer_on_a_trimmed_table_is_the_truth(trimmed_table: TrimmedTable, engine: PinotEngine) -> None:
    """Where plain SQL names no true leader, the engine's top ten is right."""
    answer = ask(engine, count_members("nasty", ("article_id", ColumnType.STRING), limit=10))
    assert dict(trimmed_table.top(10)) == histogram(answer)


def test_every_type_comes_back_as_the_policy_says(
    pinot_cluster: PinotCluster, engine: PinotEngine, tmp_path: Path
) -> None:
    """Dates are days since 1970, Booleans are Booleans, integers keep all their digits."""
    big = 2**53 + 1
    rows = f"""SELECT * FROM (VALUES ('a', true, DATE '2019-01-01', {big}), ('b', true, DATE '2019-01-01', {big}),
                 ('b', false, DATE '1969-12-31', -1)) AS t(member_id, flag, day, number)"""  # noqa: S608
    load_rows(pinot_cluster, "typed", rows, tmp_path)
    kinds = (("flag", ColumnType.BOOL), ("day", ColumnType.DATE), ("number", ColumnType.INT64))
    answer = ask(engine, count_members("typed", *kinds))
    assert answer.elements == ([True, False], [17897, -1], [big, -1])
    assert answer.counts == [2, 1]


def test_percent_signs_in_literals_reach_pinot(
    pinot_cluster: PinotCluster, engine: PinotEngine, tmp_path: Path
) -> None:
    """Whatever stands in a literal, it means itself."""
    names = ["100%", "100%%", "%(x)s", "%s", "%(", "it''s"]
    values = ", ".join(f"('m{i}', '{name}')" for i, name in enumerate(names))
    rows = f"SELECT * FROM (VALUES {values}) AS t(member_id, name)"  # noqa: S608
    load_rows(pinot_cluster, "percent", rows, tmp_path)
    for name in names:
        query = count_members("percent", ("name", ColumnType.STRING), where=f"WHERE name = '{name}'")
        assert histogram(ask(engine, query)) == {name.replace("''", "'"): 1}


def test_an_answer_without_rows_is_whole(loaded_pinot: PinotCluster, engine: PinotEngine) -> None:
    """Nothing found is an answer, whatever types Pinot gives the missing values."""
    query = count_members("cofacts_feedback", ("day", ColumnType.DATE), where="WHERE day > 100000")
    answer = ask(engine, query)
    assert answer.elements == ([],)
    assert answer.counts == []


def test_more_rows_than_the_limit_are_refused(loaded_pinot: PinotCluster, engine: PinotEngine) -> None:
    """A query that was rendered with too large a LIMIT gives nothing."""
    query = count_members("cofacts_feedback", ("article_id", ColumnType.STRING), limit=11, row_limit=10)
    with pytest.raises(IncompleteAnswer):
        ask(engine, query)


def test_another_type_than_the_policy_says_is_refused(
    loaded_pinot: PinotCluster, engine: PinotEngine
) -> None:
    """An integer is not taken for a string."""
    with pytest.raises(IncompleteAnswer):
        ask(engine, count_members("cofacts_feedback", ("score", ColumnType.STRING)))


def test_a_reached_limit_of_groups_is_refused(
    pinot_cluster: PinotCluster, engine: PinotEngine, facts: Facts, tmp_path: Path
) -> None:
    """Pinot 0.11 stops at 100,000 groups in a segment with no more than a flag; 1.x goes on, as the query asks it."""
    rows = "SELECT format('m{}', i) AS member_id FROM range(100001) AS t(i)"
    load_rows(pinot_cluster, "wide", rows, tmp_path, segments=1)
    query = count_members("wide", ("member_id", ColumnType.STRING), limit=100_001)
    if facts.group_limit_can_be_raised:
        assert [1] * 100_001 == ask(engine, query).counts
    else:
        with pytest.raises(IncompleteAnswer, match="limit"):
            ask(engine, query)


def test_a_segment_that_is_pruned_by_the_broker_is_not_missing(
    pruned_table: str, engine: PinotEngine
) -> None:
    """A broker that knows that a segment cannot match leaves it out, and the answer is whole."""
    query = count_members(pruned_table, ("day", ColumnType.DATE), where="WHERE day >= 17010")
    assert histogram(ask(engine, query)) == {17010: 2, 17020: 3}


@pytest.fixture
def pruned_table(pinot_cluster: PinotCluster) -> str:
    """A table whose broker leaves out segments by their time."""
    table = "pruned"
    if has_table(pinot_cluster, table):
        return table
    create_table(pinot_cluster, table, {"member_id": "STRING"}, routing={"segmentPrunerTypes": ["time"]})
    for i in range(3):
        rows: list[dict[str, object]] = [{"member_id": f"m{j}", "day": 17000 + 10 * i} for j in range(i + 1)]
        upload(pinot_cluster, table, f"{table}_{i}", rows)
    wait_for_rows(pinot_cluster, table, 6)
    return table


def test_replaced_segments_are_neither_counted_nor_waited_for(
    pinot_cluster: PinotCluster, engine: PinotEngine, tmp_path: Path
) -> None:
    """After one segment has replaced two, a whole answer covers the one, under a new version."""
    rows = "SELECT format('m{}', i) AS member_id, 'old' AS name FROM range(4) AS t(i)"
    load_rows(pinot_cluster, "lineage", rows, tmp_path)
    query = count_members("lineage", ("name", ColumnType.STRING))
    before = ask(engine, query)
    replace_all_segments(pinot_cluster, "lineage", [{"member_id": f"m{i}", "name": "new"} for i in range(5)])
    after = ask(engine, query)
    assert (histogram(before), histogram(after)) == ({"old": 4}, {"new": 5})
    assert before.data_version != after.data_version


def replace_all_segments(cluster: PinotCluster, table: str, rows: list[dict[str, object]]) -> None:
    """Replace all segments by one, in the way that leaves the old ones to be deleted later."""
    url = f"{cluster.controller_url}/segments/{table}"
    listed = HTTP.get(url, params={"type": "OFFLINE"}).json()[0]["OFFLINE"]
    body = {"segmentsFrom": listed, "segmentsTo": [f"{table}_merged"]}
    started = HTTP.post(
        f"{url}/startReplaceSegments", params={"type": "OFFLINE"}, json=body
    ).raise_for_status()
    upload(cluster, table, f"{table}_merged", rows)
    wait_until(lambda: _is_online(cluster, table, f"{table}_merged"))
    entry = {"type": "OFFLINE", "segmentLineageEntryId": started.json()["segmentLineageEntryId"]}
    HTTP.post(f"{url}/endReplaceSegments", params=entry).raise_for_status()
    wait_for_rows(cluster, table, len(rows))


def _is_online(cluster: PinotCluster, table: str, segment: str) -> bool:
    view = HTTP.get(f"{cluster.controller_url}/tables/{table}/externalview").json()["OFFLINE"]
    return "ONLINE" in view.get(segment, {}).values()


def test_a_question_on_a_version_that_is_gone_is_refused(
    pinot_cluster: PinotCluster, engine: PinotEngine, tmp_path: Path
) -> None:
    """A table that is loaded anew between translation and answer gives DataChanged, then answers on the new data."""
    rows = "SELECT format('m{{}}', i) AS member_id, 'x' AS name FROM range({}) AS t(i)"
    load_rows(pinot_cluster, "reloaded", rows.format(4), tmp_path)
    query = count_members("reloaded", ("name", ColumnType.STRING))
    old = engine.data_version("reloaded")
    load_rows(pinot_cluster, "reloaded", rows.format(5), tmp_path)
    with pytest.raises(DataChanged):
        confirmed(engine, query, old)
    assert histogram(ask(engine, query)) == {"x": 5}


def test_a_refresh_with_as_many_rows_never_answers_under_the_wrong_version(
    pinot_cluster: PinotCluster, engine: PinotEngine, tmp_path: Path
) -> None:
    """While a segment is replaced by another of the same size, each version has one answer."""
    rows = "SELECT format('m{}', i) AS member_id, 'v0' AS name FROM range(4) AS t(i)"
    load_rows(pinot_cluster, "refreshed", rows, tmp_path, segments=1)
    segment = next(iter(HTTP.get(f"{pinot_cluster.controller_url}/segments/refreshed_OFFLINE/crc").json()))
    query = count_members("refreshed", ("name", ColumnType.STRING))
    seen: dict[str, set[str]] = {}
    is_over = Event()

    def keep_asking() -> None:
        while not is_over.is_set():
            try:
                answer = ask(engine, query)
            except (DataChanged, IncompleteAnswer):
                continue
            seen.setdefault(answer.data_version, set()).update(str(name) for name in answer.elements[0])

    # Several, so that some answer falls into the moment in which the controller is ahead of the servers.
    askers = [Thread(target=keep_asking) for _ in range(3)]
    for asker in askers:
        asker.start()
    try:
        for content in ("v0", "v1", "v2"):
            upload(
                pinot_cluster,
                "refreshed",
                segment,
                [{"member_id": f"m{i}", "name": content} for i in range(4)],
            )
            wait_until(lambda content=content: any(content in names for names in seen.values()))  # type: ignore[misc]
    finally:
        is_over.set()
        for asker in askers:
            asker.join()
    assert sorted(map(sorted, seen.values())) == [["v0"], ["v1"], ["v2"]]


@pytest.mark.parametrize(
    "change",
    [
        {"query": {"useApproximateFunction": True}},
        {"query": {"expressionOverrideMap": {"day": "score"}}},
        {
            "fieldConfigList": [
                {
                    "name": "member_id",
                    "encodingType": "DICTIONARY",
                    "properties": {"isSegmentPartitioned": "true"},
                }
            ]
        },
    ],
    ids=["approximate", "override", "partitioned"],
)
def test_a_table_whose_counts_are_inexact_is_refused(
    changed_table: Callable[[dict[str, Any]], None], engine: PinotEngine, change: dict[str, Any]
) -> None:
    """Pinot itself accepts these settings and counts something else, without a word."""
    changed_table(change)
    with pytest.raises(EngineRefused, match="table setting"):
        engine.data_version("cofacts_feedback")


@pytest.fixture
def changed_table(loaded_pinot: PinotCluster) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Changes the configuration of the table `cofacts_feedback` for one test."""
    url = f"{loaded_pinot.controller_url}/tables/cofacts_feedback"
    original = HTTP.get(url).json()["OFFLINE"]
    yield lambda change: _put(url, original | change)
    _put(url, original)


def _put(url: str, content: dict[str, Any]) -> None:
    HTTP.put(url, json=content, timeout=30).raise_for_status()


def test_a_cluster_whose_counts_are_inexact_is_refused(
    loaded_pinot: PinotCluster, engine: PinotEngine
) -> None:
    """A setting for all tables is noticed as well, and so is its end."""
    url, name = f"{loaded_pinot.controller_url}/cluster/configs", "enable.distinct.count.bitmap.override"
    HTTP.post(url, json={name: "true"}).raise_for_status()
    try:
        with pytest.raises(EngineRefused, match="cluster setting"):
            engine.data_version("cofacts_feedback")
    finally:
        HTTP.delete(f"{url}/{name}").raise_for_status()
    assert engine.data_version("cofacts_feedback")


@pytest.mark.parametrize("query", [
    EngineQuery("cofacts_feedback", "SELECT secret_column FROM cofacts_feedback", (), 10),
    EngineQuery("cofacts_feedback", "SELECT ((( secret_column", (), 10),
    EngineQuery("cofacts_feedback", "SELECT COUNT(*) AS gris_count FROM secret_column", (), 10),
], ids=["column", "syntax", "table"])  # fmt: skip
def test_a_refusal_says_nothing_of_the_query(
    loaded_pinot: PinotCluster, engine: PinotEngine, query: EngineQuery
) -> None:
    """Pinot's messages hold SQL and are not passed on, not even as the cause of an error."""
    with pytest.raises(EngineRefused) as caught:
        ask(engine, query)
    assert str(caught.value) == "Pinot refused the query"
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_table_that_does_not_exist_is_refused(pinot_cluster: PinotCluster, engine: PinotEngine) -> None:
    """A question cannot be asked of a table that Pinot does not know."""
    with pytest.raises(EngineRefused):
        engine.data_version("nowhere")


def test_a_killed_server_never_shows_in_an_answer(
    loaded_pinot: PinotCluster, engine: PinotEngine, facts: Facts
) -> None:
    """First Pinot reports the loss, then it answers on half the data, then it is whole again.

    Pinot 0.11 says nothing of what is missing from the half, 1.x names it. Every answer of the engine is the truth, and
    everything else an error without a result.
    """
    expected = truth(TABLES["cofacts_feedback"], "article_id")
    version = engine.data_version("cofacts_feedback")

    def is_refused() -> bool:
        try:
            answer = confirmed(engine, ARTICLES, version)
        except IncompleteAnswer:
            return True
        assert expected == histogram(answer)
        return False

    def is_half() -> bool:
        answer = plain_count(loaded_pinot, "cofacts_feedback")
        assert is_refused()
        codes = {each["errorCode"] for each in answer["exceptions"]}
        is_settled = codes == ({NOT_ALL_SEGMENTS} if facts.losses_are_reported else set())
        return is_settled and answer["resultTable"]["rows"] == [[37_006]]

    loaded_pinot.kill_server(0)
    wait_until(is_half, seconds=120)
    loaded_pinot.start_server(0)
    wait_until(lambda: not is_refused())


# A broker starts again after it.
@pytest.mark.nightly
def test_a_broker_that_is_gone_is_said_at_once(loaded_pinot: PinotCluster, engine: PinotEngine) -> None:
    """Without a broker there is an error within a second, and an answer again once it is back."""
    version = engine.data_version("cofacts_feedback")
    loaded_pinot.stop_broker()
    started = time.monotonic()
    with pytest.raises(EngineUnavailable):
        confirmed(engine, ARTICLES, version)
    assert time.monotonic() - started < 1
    loaded_pinot.start_broker()

    def answers() -> bool:
        try:
            return bool(confirmed(engine, ARTICLES, version).counts)
        except EngineError:
            return False

    wait_until(answers)
