"""A terminal of one width and a cache apart from the user's, for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


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


@pytest.fixture
def no_tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have a cache in which nobody has kept a table of the adaptive bound."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
