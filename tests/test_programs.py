"""Tests can be run as on a machine without servers, wherever the servers' programs are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.support.postgres_server import postgres_server
from tests.support.programs import HIDE
from tests.support.redis_server import redis_server

pytestmark = pytest.mark.usefixtures("starts_redis", "starts_postgres")


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("redis", redis_server),
        ("postgres", lambda _: postgres_server()),
    ],
)
def test_a_hidden_server_is_missing(
    name: str,
    start: Callable[[Path], AbstractContextManager[object]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PostgreSQL too, which Debian keeps out of PATH."""
    monkeypatch.setenv(HIDE, f"java,{name}")
    with pytest.raises(pytest.skip.Exception, match="is missing"), start(tmp_path):
        pass
