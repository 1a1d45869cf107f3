"""Prepared copies on a real Pinot: their answers are DuckDB's, in one look and in two, of one period and of several."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

from deploy.pinot.cluster import PinotCluster
from examples.load import load
from gris_cli.app import app
from pinot_connector import PrivateClient, PrivateResult
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.engines.pinot.configuration import OLDEST_MULTISTAGE_VERSION
from pinot_connector.errors import EngineRefused
from pinot_connector.parameters import BoundedBy, NamesLook
from pinot_connector.release_store import MemoryReleaseStore
from tests.engines.pinot.facts import version_of
from tests.engines.pinot.plain_http import HTTP
from tests.support.clients import blocking_client_of
from tests.support.embedded import embedded
from tests.support.world import COFACTS, copy

UNITS = 20
TABLES = {
    "prepared": "period: all",
    "named": "period: all, longest_list: 30",
    "monthly": "period: day, periods: month",
}
HEADER = "epsilon_per: 0.15\ndelta: 1e-10\ncount_noise: gaussian\ntables:\n"
TABLE = """
  {name}:
    member: member_id
    data_version: {version}
{time}    contributions: {{bound: prepared, delta: 4, units: {units}, elements: [article_id], {period}}}
    measures: {{distinct_members: true}}
    columns:
      member_id: {{type: string}}
      article_id: {{type: string, group_by: true, filter: [in]}}
"""
TIME = "    time: {column: day, type: date}\n"
NOVEMBER, DECEMBER, FEBRUARY = (
    datetime.date(2018, 11, 1),
    datetime.date(2018, 12, 1),
    datetime.date(2019, 2, 1),
)


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Give a bounded copy of half a year for each table, made by the command that its owner uses."""
    folder = tmp_path_factory.mktemp("copies")
    copy(f"SELECT * FROM read_parquet('{COFACTS}') WHERE day >= DATE '2018-11-01'", folder / "all.parquet")  # noqa: S608
    made = {name: folder / f"{name}.parquet" for name in TABLES}
    for name, path in made.items():
        columns = ["--member", "member_id", "--elements", "article_id", "--typical", "4"]
        columns += ["--period", "day", "--calendar", "month"] if name == "monthly" else []
        options = ["--input", str(folder / "all.parquet"), "--out", str(path), "--table", name]
        outcome = CliRunner().invoke(app, ["bound", *options, *columns])
        assert outcome.exit_code == 0, outcome.output
    return made


@pytest.fixture(scope="module")
def services(
    pinot_cluster: PinotCluster, copies: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedServices]:
    """Both services, about the copies that Pinot was loaded with."""
    urls = {"controller": pinot_cluster.controller_url, "broker": pinot_cluster.broker_url}
    tables = [
        TABLE.format(
            name=name,
            version=load(path, name, segments=2, **urls),
            units=UNITS,
            period=TABLES[name],
            time=TIME * (name == "monthly"),
        )
        for name, path in copies.items()
    ]
    folder = tmp_path_factory.mktemp("services")
    with embedded(folder, HEADER + "".join(tables)) as running:
        yield running


@pytest.mark.parametrize("table", TABLES)
def test_a_copy_on_pinot_gives_the_release_of_its_file(
    services: EmbeddedServices, engine: PinotEngine, copies: dict[str, Path], table: str
) -> None:
    """Each look has the same histogram on both, and so the same noise; of a calendar, one period is asked for."""

    days = (NOVEMBER, DECEMBER) if table == "monthly" else None
    left, right = on_both(
        services, engine, copies, lambda client: client.top_k(table, "article_id", 10, time_range=days)
    )
    assert left.rows
    assert (left.release_id, left.rows) == (right.release_id, right.rows)
    assert (left.charged.information, left.charged.calls) == (UNITS, 1)
    bounded = left.parameters.bounded
    assert bounded is not None
    assert bounded.contributions.bounded_by is BoundedBy.PREPARED
    assert isinstance(bounded.looks, NamesLook) is (table == "named")


def test_a_condition_leaves_weights_as_they_are(
    services: EmbeddedServices, engine: PinotEngine, copies: dict[str, Path]
) -> None:
    """Rows of other elements are left out, and those of the listed ones have the same sums on both."""
    with duckdb.connect() as connection:
        most = connection.execute(
            "SELECT article_id FROM read_parquet(?) GROUP BY 1 ORDER BY sum(weight) DESC, 1 LIMIT 3",
            [str(copies["prepared"])],
        ).fetchall()
    where = {"article_id": [article for (article,) in most]}
    left, right = on_both(
        services, engine, copies, lambda client: client.top_k("prepared", "article_id", 3, where=where)
    )
    assert left.rows
    assert (left.release_id, left.rows) == (right.release_id, right.rows)


def on_both(
    services: EmbeddedServices,
    engine: PinotEngine,
    copies: dict[str, Path],
    ask: Callable[[PrivateClient], PrivateResult],
) -> tuple[PrivateResult, PrivateResult]:
    """Return what Pinot and DuckDB answer, each to a client that knows of no other answer."""
    duck, found = DuckDBEngine(copies), []
    with closing(duck):
        for each in (engine, duck):
            with blocking_client_of(services, each, releases=MemoryReleaseStore()) as client:
                found.append(ask(client))
    return found[0], found[1]


def test_several_periods_need_the_multi_stage_engine(
    services: EmbeddedServices, pinot_cluster: PinotCluster, engine: PinotEngine, copies: dict[str, Path]
) -> None:
    """A member has the largest of its weights, in an inner query; a version without one refuses by name."""

    def ask(client: PrivateClient) -> PrivateResult:
        return client.top_k("monthly", "article_id", 10, time_range=(NOVEMBER, FEBRUARY))

    version = version_of(HTTP.get(f"{pinot_cluster.controller_url}/version", timeout=30).json())
    if version < OLDEST_MULTISTAGE_VERSION:
        with (
            blocking_client_of(services, engine, releases=MemoryReleaseStore()) as client,
            pytest.raises(
                EngineRefused, match="of a prepared copy every version takes questions that see one"
            ),
        ):
            ask(client)
        return
    left, right = on_both(services, engine, copies, ask)
    assert left.rows
    assert (left.release_id, left.rows) == (right.release_id, right.rows)
