"""When tests run and for how long, their directory, and the one world of all tests."""

from __future__ import annotations

import faulthandler
import logging
import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.release_store import default_store
from tests.support import rings
from tests.support.examples import MORE, examples
from tests.support.paths import EXAMPLES
from tests.support.postgres_server import PostgresServer, postgres_server
from tests.support.rings import needs
from tests.support.world import World, running_world

# What tests of several folders share.
pytest_plugins = ("tests.support.gateways", "tests.support.ledger_stores")

# How long what a test leaves behind may take to end.
END_SECONDS = 60


def pytest_configure() -> None:
    """Let properties try the same examples in every run, except where a campaign asks for more of them."""
    settings.register_profile(
        "gris",
        max_examples=examples(100),
        derandomize=MORE not in os.environ,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("gris")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import nothing of what `make test` leaves to `make test-all`."""
    return True if config.option.markexpr == "not all" and rings.is_left_to_all(collection_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test, and leave out those of the night unless they are asked for."""
    for item in items:
        rings.mark(item)
    if "nightly" not in config.option.markexpr:
        left = [item for item in items if item.get_closest_marker("nightly")]
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=left)
    # They take the longest.
    items.sort(key=lambda item: not item.nodeid.startswith(rings.ONE_WORKER))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let one worker run all tests of an engine: each worker would start its own."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # noqa: PLC0415 - tests can be run without xdist

    scheduler = LoadFileScheduling(config, log)
    scheduler._split_scope = rings.worker_scope
    return scheduler


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None]:
    """End this process where a test has left something behind that does not end; xdist starts another."""
    faulthandler.dump_traceback_later(END_SECONDS, exit=True, file=2)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_unconfigure() -> None:
    """Let no thread of a test keep the run from ending."""
    faulthandler.dump_traceback_later(END_SECONDS, exit=True, file=2)


# For a whole session, so that what fixtures start for many tests does not run in the checkout either.
@pytest.fixture(autouse=True, scope="session")
def outside_of_the_checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Run no test in the directory, and with no variable, in which somebody works with Gris."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [each for each in os.environ if each.startswith("GRIS_")]:
            if not name.startswith("GRIS_TEST_"):
                patch.delenv(name)
        patch.chdir(tmp_path_factory.mktemp("cwd"))
        yield


@pytest.fixture(autouse=True)
def directory_of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every test in an empty directory of its own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def examples_at_hand(directory_of_this_test: None) -> None:
    """Lay a copy of the examples into the test's directory, as in a checkout."""
    shutil.copytree(EXAMPLES, "examples", ignore=shutil.ignore_patterns("__pycache__"))


@pytest.fixture(autouse=True)
def stores_of_this_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test be given what another one had kept: all clients of a process share a store by default."""
    monkeypatch.setattr(default_store, "_stores", {})
    monkeypatch.setattr(default_store, "_openers", {})


@pytest.fixture(autouse=True)
def root_log_of_this_test() -> Iterator[None]:
    """Give the root logger back as it was: what a test played as a service would log to a stream that is closed."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
@needs("process")
def starts_processes() -> None:
    """Let a test start processes in its body."""


@pytest.fixture
@needs("redis")
def starts_redis() -> None:
    """Let a test start a Redis in its body."""


@pytest.fixture
@needs("postgres")
def starts_postgres() -> None:
    """Let a test start a PostgreSQL in its body."""


@pytest.fixture
@needs("pinot")
def starts_pinot() -> None:
    """Let a test start an Apache Pinot, or what takes as much, in its body."""


@pytest.fixture
@needs("containers")
def starts_containers() -> None:
    """Let a test build images and start containers in its body."""


@pytest.fixture(scope="session")
@needs("process")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Both services as processes, once for all tests of this worker."""
    with running_world(tmp_path_factory.mktemp("world")) as world:
        yield world


@pytest.fixture(scope="session")
def engine(world: World) -> Iterator[DuckDBEngine]:
    """DuckDB over the world's files."""
    engine = DuckDBEngine(world.tables)
    yield engine
    engine.close()


@pytest.fixture(scope="session")
@needs("postgres")
def release_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL in which tests of release stores make databases of their own."""
    with postgres_server() as server:
        yield server
