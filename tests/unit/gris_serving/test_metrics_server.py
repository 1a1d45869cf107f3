"""The port of the metrics: few connections, each for a short time, and a scrape in spite of all of them."""

from __future__ import annotations

import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest
from prometheus_client import CollectorRegistry, Counter

from gris_serving.metrics import serving_metrics
from gris_serving.metrics_server import MOST_CONNECTIONS, REQUEST_BYTES, MetricsServer


@pytest.fixture
def registry() -> CollectorRegistry:
    """Return a registry with one counter."""
    registry = CollectorRegistry()
    Counter("asked", "Questions.", registry=registry).inc(3)
    return registry


@pytest.fixture
def address(registry: CollectorRegistry) -> Iterator[tuple[str, int]]:
    """Expose it."""
    with serving_metrics(registry, "127.0.0.1:0") as listening:
        host, _, port = listening.rpartition(":")
        yield host, int(port)


def scraped(address: tuple[str, int]) -> str:
    """Return what Prometheus would read."""
    with urllib.request.urlopen(f"http://{address[0]}:{address[1]}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def test_the_counters_are_served(address: tuple[str, int]) -> None:
    """In the text form, again and again."""
    for _ in range(3):
        assert "asked_total 3.0" in scraped(address)


def test_idle_connections_take_few_threads_and_keep_nobody_out(address: tuple[str, int]) -> None:
    """Of a hundred the last few are open; a scrape takes the place of the one that came first."""
    before = threading.active_count()
    with ExitStack() as opened:
        for _ in range(100):
            opened.enter_context(socket.create_connection(address))
        began = time.monotonic()
        assert "asked_total 3.0" in scraped(address)
        assert time.monotonic() - began < 5
        # One that answers and one that counts its time, for each.
        assert threading.active_count() - before <= 2 * MOST_CONNECTIONS


@pytest.mark.parametrize(
    "sent", [b"a: " + b"b" * REQUEST_BYTES + b"\r\n", (b"a: " + b"b" * 1000 + b"\r\n") * 20]
)
def test_a_request_that_is_too_large_is_not_read(address: tuple[str, int], sent: bytes) -> None:
    """One long header, or many: nothing is answered, and the next scrape is."""
    with socket.create_connection(address, timeout=10) as caller:
        answered = b""
        with suppress(ConnectionError):
            caller.sendall(b"GET /metrics HTTP/1.1\r\n" + sent + b"\r\n")
            answered = caller.recv(1)
    assert answered == b""
    assert "asked_total 3.0" in scraped(address)


@pytest.mark.slow
@pytest.mark.parametrize("sent", [b"", b"GET /metrics HTTP/1.1\r\n", b"GET /" + b"x" * 1000])
def test_a_connection_that_never_asks_is_closed(registry: CollectorRegistry, sent: bytes) -> None:
    """Also one that sends a byte now and then, which no time-out of a single read would end."""
    with MetricsServer(registry, "127.0.0.1", 0, connection_seconds=0.5) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with socket.create_connection(("127.0.0.1", server.server_port)) as idle:
            assert 0.3 < seconds_until_closed(idle, sent) < 3
        server.shutdown()
        thread.join()


def seconds_until_closed(idle: socket.socket, sent: bytes) -> float:
    """Send something, then a byte every tenth of a second, until the connection is closed."""
    began = time.monotonic()
    idle.settimeout(0.1)
    with suppress(ConnectionError):
        idle.sendall(sent)
        while time.monotonic() - began < 5:
            try:
                if not idle.recv(1):
                    break
            except TimeoutError:
                idle.sendall(b"x")
    return time.monotonic() - began
