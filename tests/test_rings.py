"""The rings themselves: who needs a process is marked so, and nobody else can start one."""

from __future__ import annotations

import asyncio
import inspect
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pinot_connector import PrivateClient, Timeouts
from tests.support.postgres_server import postgres_server
from tests.support.redis_server import redis_server
from tests.support.rings import mark, needs

FORBIDDEN = pytest.fail.Exception


def _spawn() -> None:
    multiprocessing.get_context("spawn").Process(target=print).start()


@pytest.mark.parametrize(
    "start",
    [
        lambda: subprocess.run([sys.executable, "--version"], check=False),
        lambda: asyncio.run(asyncio.create_subprocess_exec(sys.executable)),
        lambda: asyncio.run(asyncio.create_subprocess_shell("true")),
        lambda: os.system("true"),  # noqa: S605 - it is not run
        lambda: multiprocessing.get_context("fork").Process(target=print).start(),
        _spawn,
    ],
    ids=["subprocess", "asyncio", "shell", "system", "fork", "spawn"],
)
def test_a_test_without_the_mark_starts_no_process(start: Callable[[], Any]) -> None:
    """The failure names the fixture that allows it."""
    with pytest.raises(FORBIDDEN, match="starts_processes"):
        start()


@pytest.mark.usefixtures("starts_processes")
def test_a_server_needs_the_mark_of_its_own(tmp_path: Path) -> None:
    """Redis and PostgreSQL are not any process."""
    with pytest.raises(FORBIDDEN, match="starts_redis"), redis_server(tmp_path):
        pass
    with pytest.raises(FORBIDDEN, match="starts_postgres"), postgres_server():
        pass


@pytest.fixture
@needs("redis")
def needing() -> None:
    """Need something."""


@pytest.fixture
def using(needing: None) -> None:
    """Use a fixture that needs something."""


@pytest.mark.usefixtures("using")
def test_a_test_is_marked_by_all_fixtures_that_it_uses(request: pytest.FixtureRequest) -> None:
    """Whatever needs a server needs a process too."""
    marked = {each.name for each in request.node.iter_markers()}
    assert {"redis", "process"} <= marked
    assert "postgres" not in marked


def test_no_test_is_tried_again(request: pytest.FixtureRequest) -> None:
    """Whether or not a plugin is installed that would do it."""

    def marked() -> None:
        request.node.add_marker("flaky")
        mark([request.node])

    with pytest.raises((AssertionError, FORBIDDEN), match=r"may not be tried again|not found in `markers`"):
        marked()


def test_clients_of_tests_give_a_busy_ledger_time() -> None:
    """What a client takes by default, and what a test makes that names other times."""
    by_default = inspect.signature(PrivateClient).parameters["timeouts"].default
    assert 10.0 == by_default.budget_silence == Timeouts(dp=1).budget_silence
