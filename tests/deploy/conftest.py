"""Kubernetes' schemas, read once for all tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from kubernetes_validate import utils


@pytest.fixture(autouse=True, scope="session")
def schemas_are_read_once() -> Iterator[None]:
    """Keep what kubernetes_validate reads: a megabyte and a half of definitions for each object and version."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(utils, "schema_contents", cache(utils.schema_contents))
        yield
