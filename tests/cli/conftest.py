"""The services of the connector's tests, for the command line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.rings import needs
from tests.support.world import World, running_world


@pytest.fixture(scope="session")
@needs("process")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Both services as processes, once for all tests."""
    with running_world(tmp_path_factory.mktemp("world")) as world:
        yield world


@pytest.fixture(autouse=True)
def _terminal_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print as wide as possible: pytest-xdist gives its workers a narrow terminal."""
    monkeypatch.setenv("COLUMNS", "100")
