"""Loading puts exactly the rows of a file into Pinot, once, on all servers."""

from pathlib import Path
from typing import Any

import duckdb
import httpx
import pytest

from deploy.pinot.cluster import PinotCluster
from examples import load as load_module
from examples.load import TABLES, LoadError, data_version, load, wait_for_pinot
from tests.engines.pinot.plain_http import HTTP
from tests.engines.pinot.waiting import wait_until


def write(parquet: Path, select: str) -> Path:
    """Write the rows of a DuckDB query."""
    with duckdb.connect() as connection:
        connection.sql(select).write_parquet(str(parquet))
    return parquet


def put(cluster: PinotCluster, parquet: Path, table: str) -> str:
    """Load a file into the cluster."""
    return load(parquet, table, controller=cluster.controller_url, broker=cluster.broker_url)


def push_times(cluster: PinotCluster, table: str) -> dict[str, str]:
    """Return when each segment was uploaded."""
    url = f"{cluster.controller_url}/segments/{table}_OFFLINE"
    segments = HTTP.get(f"{url}/crc").json()
    return {each: HTTP.get(f"{url}/{each}/metadata").json()["segment.push.time"] for each in segments}


def test_the_data_version_is_the_hash_of_the_file(tmp_path: Path) -> None:
    """Anyone can check it with a common program."""
    (tmp_path / "file").write_bytes(b"abc")
    expected = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert data_version(tmp_path / "file") == expected


def test_a_column_of_an_unsupported_type_is_refused_before_pinot_is_asked(tmp_path: Path) -> None:
    """A fraction is no element, and is not turned into something else silently."""
    parquet = write(tmp_path / "t.parquet", "SELECT 1.5::DOUBLE AS fraction")
    with pytest.raises(LoadError, match="fraction"):
        load(parquet, "t", controller="http://127.0.0.1:1", broker="http://127.0.0.1:1")


def test_both_servers_hold_a_part(loaded_pinot: PinotCluster) -> None:
    """A fault of one server can be noticed in any answer."""
    ideal = HTTP.get(f"{loaded_pinot.controller_url}/tables/cofacts_feedback/idealstate").json()["OFFLINE"]
    servers = [server for replicas in ideal.values() for server in replicas]
    assert sorted(servers.count(server) for server in set(servers)) == [2, 2]


def test_the_version_stands_in_the_configuration_of_the_table(loaded_pinot: PinotCluster) -> None:
    """An operator can see what a cluster serves."""
    config = HTTP.get(f"{loaded_pinot.controller_url}/tables/cofacts_feedback").json()["OFFLINE"]
    assert config["metadata"]["customConfigs"]["gris.data_version"] == data_version(
        TABLES["cofacts_feedback"]
    )


def test_loading_again_does_nothing_and_loading_other_rows_replaces(
    pinot_cluster: PinotCluster, tmp_path: Path
) -> None:
    """What is there already is left alone, and what is out of date goes."""
    parquet = write(
        tmp_path / "t.parquet", "SELECT i AS number, DATE '1970-01-02' AS day FROM range(9) AS t(i)"
    )
    first = put(pinot_cluster, parquet, "again")
    times = push_times(pinot_cluster, "again")
    assert put(pinot_cluster, parquet, "again") == first
    assert push_times(pinot_cluster, "again") == times
    write(parquet, "SELECT i AS number, DATE '1970-01-02' AS day FROM range(8) AS t(i)")
    assert put(pinot_cluster, parquet, "again") != first
    sql = {"sql": "SELECT COUNT(*), SUM(number), MIN(day), MAX(day) FROM again"}
    answer = HTTP.post(f"{pinot_cluster.broker_url}/query/sql", json=sql).json()
    assert answer["resultTable"]["rows"] == [[8, 28.0, 1.0, 1.0]]


def test_loading_that_was_interrupted_goes_on(
    pinot_cluster: PinotCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Segments that are there stay, the others come, and every row is there once."""
    parquet = write(tmp_path / "t.parquet", "SELECT i AS number FROM range(40) AS t(i)")
    really_upload = load_module._Pinot.upload

    def stopping(pinot: Any, table: str, segment: str, content: bytes) -> None:
        if segment.endswith("_2"):
            raise KeyboardInterrupt
        really_upload(pinot, table, segment, content)

    with monkeypatch.context() as patched:
        patched.setattr(load_module._Pinot, "upload", stopping)
        with pytest.raises(KeyboardInterrupt):
            put(pinot_cluster, parquet, "resumed")
    before = push_times(pinot_cluster, "resumed")
    assert 2 == len(before)
    put(pinot_cluster, parquet, "resumed")
    after = push_times(pinot_cluster, "resumed")
    assert 4 == len(after)
    assert before.items() <= after.items()
    sql = {"sql": "SELECT COUNT(*), SUM(number) FROM resumed"}
    answer = HTTP.post(f"{pinot_cluster.broker_url}/query/sql", json=sql).json()
    assert answer["resultTable"]["rows"] == [[40, 780.0]]


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (["--parquet", "t.parquet"], "needs one --table"),
        (["--table", "nothing"], "there is no example nothing"),
        (["--parquet", "nowhere.parquet", "--table", "t"], "nowhere.parquet"),
    ],
)
def test_options_that_cannot_be_followed_are_said_in_one_line(
    options: list[str], reported: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """No stack of frames for a wrong word on the command line."""
    with pytest.raises(SystemExit) as ended:
        load_module.main(options)
    assert 1 == ended.value.code
    (line,) = capsys.readouterr().err.splitlines()
    assert reported in line


def test_a_table_that_does_not_become_whole_is_reset(
    pinot_cluster: PinotCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pinot takes the order to load a table's segments again, and all rows are there afterwards."""
    parquet = write(tmp_path / "reset.parquet", "SELECT format('m{}', i) AS member_id FROM range(6) AS t(i)")
    resets: list[int] = []
    really_whole, really_post = load_module._Pinot.is_whole, httpx.Client.post

    def not_at_first(pinot: Any, table: str, segments: int, rows: int) -> bool:
        # A server that is just about to load the segments may refuse.
        return 200 in resets and really_whole(pinot, table, segments, rows)

    def noting_resets(http: httpx.Client, url: str, **options: Any) -> httpx.Response:
        answer = really_post(http, url, **options)
        if url.endswith("/reset"):
            resets.append(answer.status_code)
        return answer

    monkeypatch.setattr(load_module._Pinot, "is_whole", not_at_first)
    monkeypatch.setattr(httpx.Client, "post", noting_resets)
    monkeypatch.setattr(load_module, "_RESET_SECONDS", 0.0)
    put(pinot_cluster, parquet, "afresh")
    assert 200 in resets
    sql = {"sql": "SELECT COUNT(DISTINCT member_id) FROM afresh"}
    url = f"{pinot_cluster.broker_url}/query/sql"
    # This table was whole already, so it may seem so once more before the servers have obeyed the order. Meanwhile an
    # answer may have no table.
    wait_until(lambda: HTTP.post(url, json=sql).json().get("resultTable", {}).get("rows") == [[6]])


def test_a_pinot_that_does_not_come_is_named() -> None:
    """After the time that was allowed, the error says what the caller waits for."""
    with pytest.raises(LoadError, match=r"waited 0\.5 seconds in vain for servers at http://127\.0\.0\.1:1 "):
        wait_for_pinot("http://127.0.0.1:1", "http://127.0.0.1:1", 0.5)
