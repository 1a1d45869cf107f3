"""A terminal of one width and a cache apart from the user's, for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.budget_process import Service, service
from tests.support.rings import needs


@pytest.fixture(autouse=True)
def _terminal_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print as wide as possible: pytest-xdist gives its workers a narrow terminal."""
    monkeypatch.setenv("COLUMNS", "100")


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
