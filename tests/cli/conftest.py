"""The services of the connector's tests, for the command line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

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


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep tables of the adaptive bound apart from the user's, for all tests together."""
    with pytest.MonkeyPatch.context() as patch:
        # Without its list of fonts, matplotlib would start a program to make another.
        kept = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        patch.setenv("MPLCONFIGDIR", str(Path(kept) / "matplotlib"))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
