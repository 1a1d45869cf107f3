"""The HTTP server of the metrics: few connections at a time, each for a short time.

The server of prometheus_client has a thread for each connection, waits for ever for what its caller sends and reads
headers of many megabytes, so anyone who reaches the port could take all memory of the process.
"""

from __future__ import annotations

import io
import socket
import threading
from contextlib import suppress
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app

MOST_CONNECTIONS = 8
SECONDS = 10.0
"""Prometheus itself gives a scrape ten seconds by default."""
REQUEST_BYTES = 16 * 2**10
"""The most that is read of a request; Python's own parser takes a hundred headers of 64 KiB each."""


class _Request(io.RawIOBase):
    """What a caller sends, up to `REQUEST_BYTES`; a caller that sends more gets no answer."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._left = REQUEST_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            raise OSError(f"expected a request of at most {REQUEST_BYTES} bytes")
        read = self._connection.recv_into(memoryview(buffer)[: self._left])
        self._left -= read
        return read


class _Handler(WSGIRequestHandler):
    """Answers one request, and writes no log."""

    def setup(self) -> None:
        """Read from the connection by way of `_Request`."""
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(_Request(self.connection))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        """Do nothing."""


class MetricsServer(WSGIServer):
    """Serves the metrics of a registry.

    Each connection has a thread and a time after which it ends. Beyond `MOST_CONNECTIONS` the one that came first is
    closed, so that connections that only wait keep nobody out.

    Args:
        registry: The metrics.
        host: Where to listen; a name, or an address of IPv4 or IPv6.
        port: The port; 0 takes a free one.
        connection_seconds: How long a connection lives.

    Raises:
        OSError: It cannot listen there.
    """

    # Connections that wait to be taken up; with the five of the base class a flood would delay a scrape by seconds.
    request_queue_size = 128

    def __init__(
        self, registry: CollectorRegistry, host: str, port: int, *, connection_seconds: float = SECONDS
    ) -> None:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        self.address_family = family
        self._connection_seconds = connection_seconds
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._lock = threading.Lock()
        # In the order in which they came, with what ends each of them.
        self._open: dict[socket.socket, threading.Timer] = {}
        super().__init__((str(address[0]), int(address[1])), _Handler)
        self.set_app(make_wsgi_app(registry))

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a connection in a thread of its own, once there is a place for it."""
        if not self._places.acquire(blocking=False):
            self._close_first()
            self._places.acquire()
        ending = threading.Timer(self._connection_seconds, _hang_up, (request,))
        ending.daemon = True
        with self._lock:
            self._open[request] = ending
        ending.start()
        threading.Thread(target=self._answered, args=(request, client_address), daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do nothing: a caller that leaves, or is cut off, is no fault of the process."""

    def _answered(self, request: socket.socket, client_address: Any) -> None:
        try:
            with suppress(Exception):
                self.finish_request(request, client_address)
        finally:
            with self._lock:
                self._open.pop(request).cancel()
            self.shutdown_request(request)
            self._places.release()

    def _close_first(self) -> None:
        with self._lock:
            first = next(iter(self._open), None)
        if first is not None:
            _hang_up(first)


def _hang_up(connection: socket.socket) -> None:
    """End a connection that another thread may be reading from or writing to, which then goes on with an error."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
