"""A whole Pinot in one container, beside the services in theirs: the same answer as DuckDB's."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import HttpWaitStrategy

from deploy.pinot.cluster import DEFAULT_VERSION, collect_jars
from examples.load import TABLES, load
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.pinot import PinotEngine
from tests.containers.conftest import ROOT, Services, build_image
from tests.containers.test_containers import TABLE, client

pytestmark = pytest.mark.containers
CONTROLLER, BROKER = 9000, 8099


@pytest.fixture(scope="module")
def pinot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PinotEngine]:
    """Start Pinot in a container with jars that this machine has, load the real data, and give an engine."""
    if shutil.which("mvn") is None:
        pytest.skip("the image takes jars that Maven collects here (Debian: apt-get install maven)")
    context = tmp_path_factory.mktemp("image")
    shutil.copytree(ROOT / "deploy" / "pinot", context, dirs_exist_ok=True)
    shutil.copytree(collect_jars(DEFAULT_VERSION), context / "lib", copy_function=_link_or_copy)
    image = build_image("gris-pinot:test", context, "--build-arg", "JARS=local", base="GRIS_TEST_JAVA_IMAGE")
    container = DockerContainer(image).with_exposed_ports(CONTROLLER, BROKER)
    container.waiting_for(HttpWaitStrategy(BROKER, "/health").for_status_code(200).with_startup_timeout(180))
    with container:
        controller, broker = (
            f"http://127.0.0.1:{container.get_exposed_port(port)}" for port in (CONTROLLER, BROKER)
        )
        load(TABLES[TABLE], TABLE, controller=controller, broker=broker)
        engine = PinotEngine(controller=controller, broker=broker)
        yield engine
        engine.close()


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)


def test_pinot_in_a_container_gives_duckdbs_release(services: Services, pinot: PinotEngine) -> None:
    """Everything in containers, and still one release for one histogram."""
    duckdb = DuckDBEngine({TABLE: Path(TABLES[TABLE])})
    with client(services, pinot, "cleo") as on_pinot, client(services, duckdb, "dora") as on_duckdb:
        left, right = (each.top_k(TABLE, "article_id", 10) for each in (on_pinot, on_duckdb))
    duckdb.close()
    assert left.release_id == right.release_id
    assert left.rows == right.rows
