"""The rings, and the one world of all tests.

Marks every test by what its fixtures need, and keeps tests without processes from starting one.
"""

from __future__ import annotations

import gc
import logging
import os
import shutil
from collections.abc import Generator, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from pinot_connector.channels import Timeouts
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.local_services import DEFAULT_TIMEOUTS
from pinot_connector.release_store import default_store
from tests.support import forked_services, rings
from tests.support.examples import LONG, examples
from tests.support.paths import EXAMPLES
from tests.support.postgres_server import PostgresServer, postgres_server
from tests.support.rings import needs
from tests.support.world import World, running_world

BUSY_SECONDS = {"budget_silence": 10.0, "budget_attempt": 6.0}


def pytest_configure(config: pytest.Config) -> None:
    """Guard every test of this run, and let none fail because the machine is busy."""
    rings.install()
    forked_services.install()
    settings.register_profile(
        "any machine", max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("any machine")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests by their fixtures, and leave out what is left to `make test-long`."""
    rings.mark(items)
    if LONG not in os.environ:
        left = [item for item in items if item.get_closest_marker("long")]
        items[:] = [item for item in items if not item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None]:
    """Spare the garbage collector the modules and tests of a whole session: it would look through them for nothing."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """Let the interpreter clear away everything in the end: what is left behind then is complained of."""
    gc.unfreeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Spread whole files over workers, and whole lanes of what is heavy."""
    if config.getvalue("dist") != "loadfile":
        return None
    from tests.support.scheduling import Lanes  # noqa: PLC0415 - tests can be run without xdist

    return Lanes(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Start more workers than there are processors where tests wait: for a disk or a clock, a Pinot or a container."""
    # Tests without processes wait for nothing, and each worker has to import all of them.
    return (os.cpu_count() or 1) + (3 if config.getvalue("dist") == "loadfile" else 0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Guard the fixtures of a test."""
    with rings.guarded(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Guard a test."""
    with rings.guarded(item):
        return (yield)


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


# For a whole session, so that the clients of fixtures that many tests share have it too.
@pytest.fixture(autouse=True, scope="session")
def unhurried_clients() -> Iterator[None]:
    """Let no client take a ledger for dead that a busy machine keeps from answering, unless a test sets its times."""
    seconds = (BUSY_SECONDS.get(field.name, field.default) for field in fields(Timeouts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Timeouts.__init__, "__defaults__", tuple(seconds))
        # The clients' default is one value, made when their module was imported; it is frozen for everybody else.
        usual = {name: getattr(DEFAULT_TIMEOUTS, name) for name in BUSY_SECONDS}
        for name, number in BUSY_SECONDS.items():
            object.__setattr__(DEFAULT_TIMEOUTS, name, number)
        yield
        for name, number in usual.items():
            object.__setattr__(DEFAULT_TIMEOUTS, name, number)


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
