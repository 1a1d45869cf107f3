"""Fixtures of fake Pinots; a conftest imports them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from pinot_connector.engines.pinot import PinotEngine
from tests.support.fake_pinot import FakePinot
from tests.support.skipped_time import SkippedTime, skipped_time


@pytest.fixture
def clock() -> Iterator[SkippedTime]:
    """The time by which engines of Pinot wait."""
    with skipped_time() as skipped:
        yield skipped


@pytest.fixture
def pinot() -> Iterator[FakePinot]:
    """A fake Pinot whose table `t` has one segment, with seven rows, on one server."""
    with FakePinot().serving() as fake:
        yield fake


@pytest.fixture
def opened(pinot: FakePinot, clock: SkippedTime) -> Iterator[Callable[..., PinotEngine]]:
    """Opens engines for the fake Pinot."""
    with ExitStack() as engines:

        def opened(**options: Any) -> PinotEngine:
            engine = PinotEngine(
                controller=pinot.url,
                broker=pinot.url,
                authorization="Bearer token",
                timeout_seconds=2,
                **options,
            )
            engines.callback(engine.close)
            return engine

        yield opened


@pytest.fixture
def servers(pinot: FakePinot) -> Iterator[dict[str, FakePinot]]:
    """The admin ports of two servers, `server` and `other`, both of which have the segment; each may be another."""
    with ExitStack() as serving:
        found = {name: serving.enter_context(FakePinot().serving()) for name in ("server", "other")}
        for name, server in found.items():
            host, port = server.url.removeprefix("http://").split(":")
            pinot.replies[f"/instances/{name}"] = {"hostName": f"Server_{host}", "adminPort": int(port)}
            server.replies = {"/tables/t_OFFLINE/segments/crc": {"s": "1"}}
        yield found
