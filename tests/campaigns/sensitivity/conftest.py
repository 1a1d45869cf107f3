"""A database for campaigns that sum."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from .sums import Asked


@pytest.fixture(scope="module")
def asked_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    """Give a database with the small table."""
    with duckdb.connect() as found:
        yield Asked(found, tmp_path_factory.mktemp("sums") / "t.parquet")
