"""One Apache Pinot with two servers for all tests here, with real data and with a nasty table; and fake Pinots."""

import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from deploy.pinot.cluster import PinotCluster, Ports
from examples.load import TABLES, load
from pinot_connector.engines.pinot import PinotEngine, PinotTimings
from tests.pinot.facts import Facts, facts_of, version_of
from tests.pinot.nasty import NastyTable, create_nasty_table
from tests.support.fake_pinot import FakePinot
from tests.support.rings import needs


@pytest.fixture(scope="session")
@needs("pinot")
def pinot_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PinotCluster]:
    """A running Apache Pinot with two servers, on ports that nothing else uses."""
    if shutil.which("java") is None or shutil.which("mvn") is None:
        pytest.skip("a real Pinot needs Java 17 and Maven (Debian: openjdk-17-jre-headless and maven)")
    # A test run that is told to end by a time limit stops the cluster as one that is interrupted does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with PinotCluster(directory=tmp_path_factory.mktemp("pinot"), ports=Ports.free(servers=2)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def facts(pinot_cluster: PinotCluster) -> Facts:
    """What Pinot of this version does by itself."""
    return facts_of(version_of(httpx.get(f"{pinot_cluster.controller_url}/version", timeout=30).json()))


@pytest.fixture(scope="session")
def loaded_pinot(pinot_cluster: PinotCluster) -> PinotCluster:
    """The cluster, with the table `cofacts_feedback` in four segments on two servers."""
    load(
        TABLES["cofacts_feedback"],
        "cofacts_feedback",
        controller=pinot_cluster.controller_url,
        broker=pinot_cluster.broker_url,
    )
    return pinot_cluster


@pytest.fixture(scope="session")
def nasty_table(pinot_cluster: PinotCluster, tmp_path_factory: pytest.TempPathFactory) -> NastyTable:
    """A table on which each server, left to itself, trims away the true leaders."""
    return create_nasty_table(pinot_cluster, tmp_path_factory.mktemp("nasty"))


@pytest.fixture
def engine(pinot_cluster: PinotCluster) -> Iterator[PinotEngine]:
    """An engine that has seen nothing of the cluster yet."""
    engine = PinotEngine(controller=pinot_cluster.controller_url, broker=pinot_cluster.broker_url)
    yield engine
    engine.close()


@pytest.fixture
def pinot() -> Iterator[FakePinot]:
    """A fake Pinot whose table `t` has one segment, with seven rows, on one server."""
    with FakePinot().serving() as fake:
        yield fake


@pytest.fixture
def opened(pinot: FakePinot) -> Iterator[Callable[..., PinotEngine]]:
    """Opens engines for the fake Pinot, which wait for half a second instead of five unless a test says otherwise."""
    quick = PinotTimings(settling_timeout_seconds=0.5, broker_delay_seconds=0.3)
    with ExitStack() as engines:

        def opened(**options: Any) -> PinotEngine:
            engine = PinotEngine(
                controller=pinot.url,
                broker=pinot.url,
                authorization="Bearer token",
                timeout_seconds=2,
                **({"timings": quick} | options),
            )
            engines.callback(engine.close)
            return engine

        yield opened


@pytest.fixture
def servers(pinot: FakePinot) -> Iterator[dict[str, FakePinot]]:
    """The admin ports of two servers, `server` and `other`, both of which have the segment; each may be another."""
    with ExitStack() as serving:
        found = {name: serving.enter_context(FakePinot().serving()) for name in ("server", "other")}
        for name, server in found.items():
            host, port = server.url.removeprefix("http://").split(":")
            pinot.replies[f"/instances/{name}"] = {"hostName": f"Server_{host}", "adminPort": int(port)}
            server.replies = {"/tables/t_OFFLINE/segments/crc": {"s": "1"}}
        yield found
