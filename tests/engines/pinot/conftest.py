"""One Apache Pinot with two servers for all tests here, with real data and with one whose groups servers trim."""

import signal
from collections.abc import Iterator, Mapping, Sequence

import pytest

from deploy.pinot.cluster import PinotCluster, Ports
from examples.load import TABLES, load
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.engines.pinot.configuration import OLDEST_MULTISTAGE_VERSION
from tests.engines.pinot.facts import Facts, facts_of, version_of, wanted_version
from tests.engines.pinot.plain_http import HTTP
from tests.engines.pinot.planner import Ask, Planned, Planner, Table, on_cluster, running_planner
from tests.engines.pinot.trimmed_table import TrimmedTable, create_trimmed_table
from tests.support.java_options import UNVERIFIED_BYTECODE
from tests.support.programs import found
from tests.support.rings import needs


@pytest.fixture(scope="package")
@needs("pinot")
def pinot_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PinotCluster]:
    """A running Apache Pinot with two servers, on ports that nothing else uses."""
    if found("java") is None or found("mvn") is None:
        pytest.skip("a real Pinot needs Java 17 and Maven: deploy/test-servers")
    # A test run that a time limit ends stops the cluster as one that is interrupted does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    version = wanted_version()
    folder, ports = tmp_path_factory.mktemp("pinot"), Ports.free(servers=2)
    with PinotCluster(
        directory=folder, ports=ports, version=version, java_options=UNVERIFIED_BYTECODE
    ) as cluster:
        yield cluster


@pytest.fixture(scope="package")
@needs("pinot")
def planner() -> Iterator[Planner]:
    """Pinot's own parser, and the Calcite that its planner is made of."""
    with running_planner() as running:
        yield running


@pytest.fixture(scope="package")
def planned(planner: Planner, request: pytest.FixtureRequest) -> Ask:
    """What becomes of queries on tables; GRIS_TEST_PINOT_VERSION from 1.0 on answers in place of Calcite."""

    def ask(tables: Mapping[str, Table], queries: Sequence[str]) -> list[Planned]:
        plans = planner.planned(tables, queries)
        if version_of({"pinot-controller": wanted_version()}) < OLDEST_MULTISTAGE_VERSION:
            return plans
        return on_cluster.answered(request.getfixturevalue("pinot_cluster"), tables, queries, plans)

    return ask


@pytest.fixture(scope="package")
def facts(pinot_cluster: PinotCluster) -> Facts:
    """What Pinot of this version does by itself."""
    return facts_of(version_of(HTTP.get(f"{pinot_cluster.controller_url}/version", timeout=30).json()))


@pytest.fixture(scope="package")
def loaded_pinot(pinot_cluster: PinotCluster) -> PinotCluster:
    """The cluster, with the table `cofacts_feedback` in four segments on two servers."""
    load(
        TABLES["cofacts_feedback"],
        "cofacts_feedback",
        controller=pinot_cluster.controller_url,
        broker=pinot_cluster.broker_url,
    )
    return pinot_cluster


@pytest.fixture(scope="package")
def trimmed_table(pinot_cluster: PinotCluster, tmp_path_factory: pytest.TempPathFactory) -> TrimmedTable:
    """A table on which each server, left to itself, trims away the true leaders."""
    return create_trimmed_table(pinot_cluster, tmp_path_factory.mktemp("trimmed"))


@pytest.fixture
def engine(pinot_cluster: PinotCluster) -> Iterator[PinotEngine]:
    """An engine that has seen nothing of the cluster yet."""
    engine = PinotEngine(controller=pinot_cluster.controller_url, broker=pinot_cluster.broker_url)
    yield engine
    engine.close()
