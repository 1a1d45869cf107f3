"""Fixtures of fake Pinots; a conftest imports them."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from pinot_connector.engines.pinot import PinotEngine
from tests.support.fake_pinot import FakePinot


class SkippedTime:
    """Stands for the module `time` where an engine waits: only waiting moves the clock, and it takes no time."""

    def __init__(self) -> None:
        self.passed = 0.0
        self._began = time.time()
        self._due: list[tuple[float, Callable[[], object]]] = []

    def monotonic(self) -> float:
        """Tell the seconds that passed."""
        return self.passed

    def time(self) -> float:
        """Tell the seconds since 1970."""
        return self._began + self.passed

    def sleep(self, seconds: float) -> None:
        """Let time pass, and what is due happen."""
        self.passed += seconds
        for due in [each for each in self._due if each[0] <= self.passed]:
            self._due.remove(due)
            due[1]()

    def after(self, seconds: float, action: Callable[[], object]) -> None:
        """Do something once so many seconds have passed."""
        self._due.append((self.passed + seconds, action))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SkippedTime:
    """The time by which engines of Pinot wait for versions."""
    skipped = SkippedTime()
    for module in ("controller", "real_time", "version_readiness"):
        monkeypatch.setattr(f"pinot_connector.engines.pinot.{module}.time", skipped)
    return skipped


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
