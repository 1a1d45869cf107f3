"""One set of containers for all tests here: both services, Redis, PostgreSQL and, where a test asks for it, Pinot."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from examples.load import TABLES, load, wait_for_pinot
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.pinot import PinotEngine
from tests.containers.images import build_pinot, build_service, docker_answers, require_image
from tests.containers.stack import IMAGE_USER, PORT, Placed, Services, placed, service
from tests.kubernetes.application import BUDGETS
from tests.support.java_options import QUICK_JAVA
from tests.support.paths import ROOT
from tests.support.rings import needs

TABLE = "cofacts_feedback"
CONTROLLER, BROKER = 9000, 8000
PINOT_SECONDS = 180.0
POSTGRES = {"POSTGRES_USER": "gris", "POSTGRES_PASSWORD": "secret"}
POSTGRES_ADDRESS = "postgresql://gris:secret@postgres:5432/gris"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is here where there is no Docker, and say so."""
    if docker_answers():
        return
    skip = pytest.mark.skip(reason="needs Docker: install it and start its daemon")
    for item in items:
        if "containers" in item.path.parts:
            item.add_marker(skip)


@pytest.fixture(scope="package")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write what is mounted into the containers: policy, budgets, and secrets that the containers' user may read."""
    folder = tmp_path_factory.mktemp("configuration")
    folder.chmod(0o755)
    (folder / "policy.yaml").write_text((ROOT / "examples" / "policy.yaml").read_text())
    (folder / "budget.yaml").write_text((ROOT / "examples" / "budget.yaml").read_text() + BUDGETS)
    for name, content in {"noise.key": os.urandom(32), "store.address": POSTGRES_ADDRESS.encode()}.items():
        secret = folder / name
        secret.write_bytes(content)
        secret.chmod(0o400)
        if os.getuid() == 0:
            os.chown(secret, IMAGE_USER, IMAGE_USER)
    return folder


@pytest.fixture(scope="package")
@needs("process")
def network() -> Iterator[Network]:
    """Make the network that all containers are on."""
    if not testcontainers_config.ryuk_disabled:
        require_image(testcontainers_config.ryuk_image)
    with Network() as made:
        yield made


@pytest.fixture(scope="package")
@needs("containers")
def services(configuration: Path, network: Network) -> Iterator[Services]:
    """Start the stores and the services; stop them in the end."""
    budget_image = build_service("budget-service")
    to_redis = "--config /etc/gris/budget.yaml --store redis://redis:6379/0"
    to_postgres = "--config /etc/gris/budget.yaml --store-file /etc/gris/store.address"
    to_files = "--policy /etc/gris/policy.yaml --key-file /etc/gris/noise.key"
    with ExitStack() as stack:

        def started(container: DockerContainer, name: str, *ports: int, said: str = '"address"') -> Placed:
            container.waiting_for(LogMessageWaitStrategy(said))
            return stack.enter_context(placed(container, network, name, *ports))

        redis = started(_redis(), "redis", said="Ready to accept connections")
        postgres = started(_postgres(), "postgres", said="listening on IPv4")
        dp = started(service(build_service("dp-service"), configuration, to_files), "dp", PORT)
        budget = started(service(budget_image, configuration, to_redis), "budget", PORT)
        other = started(service(budget_image, configuration, to_postgres), "budget-on-postgres", PORT)
        yield Services(dp, budget, other, redis, postgres)


def _redis() -> DockerContainer:
    image = require_image(os.environ.get("GRIS_TEST_REDIS_IMAGE", "redis:7"))
    # As deployments have it: by default Redis answers before it writes, where the disk is busy.
    durable = "--appendonly yes --appendfsync always"
    flags = f"--bind 0.0.0.0 --protected-mode no {durable} --maxmemory-policy noeviction"
    return DockerContainer(image).with_command(f"redis-server {flags}")


def _postgres() -> DockerContainer:
    image = require_image(os.environ.get("GRIS_TEST_POSTGRES_IMAGE", "postgres:16"))
    return DockerContainer(image).with_envs(**POSTGRES)


@pytest.fixture(scope="package")
def duckdb() -> Iterator[DuckDBEngine]:
    """Return an engine over the real data."""
    engine = DuckDBEngine({TABLE: TABLES[TABLE]})
    yield engine
    engine.close()


@pytest.fixture(scope="package")
@needs("containers")
def pinot_container(network: Network, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Placed]:
    """Start a whole Pinot and load the real data."""
    options = " ".join(("-Xms256M", "-Xmx1G", *QUICK_JAVA))
    container = DockerContainer(build_pinot(tmp_path_factory.mktemp("image"))).with_env("JAVA_OPTS", options)
    with placed(container, network, "pinot", CONTROLLER, BROKER) as pinot:
        load_pinot(pinot)
        yield pinot


def load_pinot(pinot: Placed) -> None:
    """Wait until Pinot is there, and have it hold the real data."""
    controller, broker = addresses(pinot)
    wait_for_pinot(controller, broker, PINOT_SECONDS)
    load(TABLES[TABLE], TABLE, controller=controller, broker=broker)


def addresses(pinot: Placed) -> tuple[str, str]:
    """Return where controller and broker are."""
    return f"http://{pinot.address(CONTROLLER)}", f"http://{pinot.address(BROKER)}"


@pytest.fixture(scope="package")
def pinot(pinot_container: Placed) -> Iterator[PinotEngine]:
    """Return an engine on the Pinot in its container."""
    controller, broker = addresses(pinot_container)
    engine = PinotEngine(controller=controller, broker=broker)
    yield engine
    engine.close()
