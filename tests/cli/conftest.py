"""A terminal of one width and a cache apart from the user's, for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.budget_process import Service, service
from tests.support.rings import needs


@pytest.fixture(autouse=True)
def _terminal_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print as wide as possible: pytest-xdist gives its workers a narrow terminal."""
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for all tests here together."""
    return tmp_path_factory.mktemp("cache")


# For each test anew: what other tests of this worker start, such as Go, has the user's cache.
@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, shared_cache: Path) -> None:
    """Keep tables of the adaptive bound apart from the user's."""
    # Without its list of fonts, matplotlib would start a program to make another.
    kept = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    monkeypatch.setenv("MPLCONFIGDIR", str(Path(kept) / "matplotlib"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared_cache))


@pytest.fixture(autouse=True)
def _own_releases(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep what is paid for apart from the user's."""
    monkeypatch.setenv("GRIS_RELEASES", str(tmp_path / "kept-by-ask" / "releases.sqlite"))


@pytest.fixture(scope="module")
@needs("process")
def ledger(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A budget_service with the accounts that the module calls BUDGET."""
    folder = tmp_path_factory.mktemp("ledger")
    with service(folder, f"sqlite:{folder}/ledger.db", configuration=request.module.BUDGET) as running:
        yield running
