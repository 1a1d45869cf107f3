"""Bounded copies on a real Pinot of any version: their answers are DuckDB's, in one look and in two."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deploy.pinot.cluster import PinotCluster
from examples.load import load
from gris_cli.app import app
from pinot_connector import PrivateResult
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.base import Engine
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.parameters import BoundedBy, NamesLook
from pinot_connector.release_store import MemoryReleaseStore
from tests.support.clients import blocking_client_of
from tests.support.embedded import embedded
from tests.support.some import some
from tests.support.world import COFACTS, copy

UNITS = 20
TABLES = {"prepared": "", "named": ", longest_list: 30"}
HEADER = "epsilon_per: 0.15\ndelta: 1e-10\ncount_noise: gaussian\ntables:\n"
TABLE = """
  {name}:
    member: member_id
    data_version: {version}
    contributions: {{bound: prepared, delta: 4, units: {units}, elements: [article_id], period: all{names}}}
    measures: {{distinct_members: true}}
    columns:
      member_id: {{type: string}}
      article_id: {{type: string, group_by: true}}
      score: {{type: int64, filter: [in]}}
"""


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Give a bounded copy of half a year for each table, made by the command that its owner uses."""
    folder = tmp_path_factory.mktemp("copies")
    copy(f"SELECT * FROM read_parquet('{COFACTS}') WHERE day >= DATE '2018-11-01'", folder / "all.parquet")  # noqa: S608
    made = {name: folder / f"{name}.parquet" for name in TABLES}
    for name, path in made.items():
        columns = ["--member", "member_id", "--elements", "article_id", "--typical", "4"]
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
        TABLE.format(name=name, version=load(path, name, segments=2, **urls), units=UNITS, names=TABLES[name])
        for name, path in copies.items()
    ]
    folder = tmp_path_factory.mktemp("services")
    with embedded(folder, HEADER + "".join(tables)) as running:
        yield running


@pytest.mark.parametrize("table", TABLES)
def test_a_copy_on_pinot_gives_the_release_of_its_file(
    services: EmbeddedServices, engine: PinotEngine, copies: dict[str, Path], table: str
) -> None:
    """Each look has the same histogram on both, and so the same noise; a filter acts after bounding."""

    def ask(engine: Engine) -> list[PrivateResult]:
        with blocking_client_of(services, engine, releases=MemoryReleaseStore()) as client:
            whole = client.top_k(table, "article_id", 10)
            return [whole, client.top_k(table, "article_id", 10, where={"score": 1})]

    on_pinot = ask(engine)
    duck = DuckDBEngine(copies)
    on_duckdb = ask(duck)
    duck.close()
    for left, right in some(zip(on_pinot, on_duckdb, strict=True)):
        assert left.rows
        assert (left.release_id, left.rows) == (right.release_id, right.rows)
        assert (left.charged.information, left.charged.calls) == (UNITS, 1)
        bounded = left.parameters.bounded
        assert bounded is not None
        assert bounded.contributions.bounded_by is BoundedBy.PREPARED
        assert isinstance(bounded.looks, NamesLook) is (table == "named")
