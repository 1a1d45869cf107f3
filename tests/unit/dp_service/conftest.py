"""dp_service over a real gRPC connection, with a clock that tests set."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.dp_questions import POLICY, Clock
from tests.support.dp_server import servicer_of, serving


@pytest.fixture
def clock() -> Clock:
    """Return the service's clock."""
    return Clock()


@pytest.fixture
async def dp(clock: Clock) -> AsyncIterator[Any]:
    """Serve on a free port and return a stub."""
    async with serving(servicer_of(POLICY, clock=clock)) as stub:
        yield stub
