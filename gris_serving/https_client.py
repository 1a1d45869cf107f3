"""Fetches small documents by HTTPS from addresses that a configuration pins.

An answer is bounded in size, and in the time that it takes from the TLS handshake to its last byte, however slowly its
bytes come. Redirects are not followed, and no proxy is used: what answers is the host that the configuration names.
Plain HTTP is for this machine alone.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from gris_serving.reloading_files import SecurityError
from gris_serving.tls import is_loopback

REDIRECTS = range(300, 400)
AGAIN_SECONDS = 0.1
_JSON = {"Accept": "application/json"}


@dataclass(frozen=True)
class FetchLimits:
    """How long an answer may take, and its size. Each address that a host's name stands for may take as long again."""

    seconds: float = 10.0
    most_bytes: int = 256 * 1024


class FetchError(Exception):
    """A document could not be had; the message is one word for the kind of failure, for logs."""


def checked_url(url: str) -> str:
    """Return an address that documents may be fetched from.

    Raises:
        ValueError: It is none.
    """
    problem = "expected https://HOST/PATH (http:// only on this machine), without user name and fragment"
    try:
        split = urlsplit(url)
        is_safe = split.scheme == "https" or (split.scheme == "http" and is_loopback(f"[{split.hostname}]:0"))
        is_bare = split.username is None and "#" not in url and split.port != 0
    except ValueError:
        raise ValueError(problem) from None
    if not (
        is_safe and is_bare and split.hostname and url.isascii() and url.isprintable() and " " not in url
    ):
        raise ValueError(problem)
    return url


def trust(ca_file: str | None) -> ssl.SSLContext:
    """Return what servers are verified with: the authorities in a PEM file, or else those of the system.

    Raises:
        SecurityError: The file cannot be used.
    """
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError):
        raise SecurityError(f"{ca_file}: expected PEM certificates") from None


def fetch(url: str, context: ssl.SSLContext, limits: FetchLimits) -> bytes:
    """Return what is at an address that `checked_url` accepts.

    Raises:
        FetchError: `unreachable`, `tls`, `timeout`, `redirect`, `status` (no 200) or `too_large`.
    """
    ends = time.monotonic() + limits.seconds
    try:
        content = _fetched(urlsplit(url), context, limits)
    except (OSError, ValueError, http.client.HTTPException) as error:
        if isinstance(error, TimeoutError) or time.monotonic() >= ends:
            raise FetchError("timeout") from None
        raise FetchError("tls" if isinstance(error, ssl.SSLError) else "unreachable") from None
    # What was hung up on may look as if it had ended.
    if time.monotonic() >= ends:
        raise FetchError("timeout")
    return content


def _fetched(url: SplitResult, context: ssl.SSLContext, limits: FetchLimits) -> bytes:
    with closing(_connection(url, context)) as connection:
        # Where an answer has no length, `connection` lets go of it before the answer is read.
        connected = connection.sock = _connected(connection, url.scheme, context, limits.seconds)
        with _hung_up_after(limits.seconds, connected):
            if isinstance(connected, ssl.SSLSocket):
                connected.do_handshake()
            target = (url.path or "/") + (f"?{url.query}" if url.query else "")
            connection.request("GET", target, headers=_JSON)
            response = connection.getresponse()
            if response.status != http.client.OK:
                raise FetchError("redirect" if response.status in REDIRECTS else "status")
            content = response.read(limits.most_bytes + 1)
            if len(content) > limits.most_bytes:
                raise FetchError("too_large")
            if response.length:
                # It ended before its end.
                raise ConnectionError
            return content


def _connection(url: SplitResult, context: ssl.SSLContext) -> http.client.HTTPConnection:
    host = url.hostname or ""
    if url.scheme == "https":
        return http.client.HTTPSConnection(host, url.port, context=context)
    return http.client.HTTPConnection(host, url.port)


def _connected(
    connection: http.client.HTTPConnection, scheme: str, context: ssl.SSLContext, seconds: float
) -> socket.socket:
    """Return a socket whose TLS handshake is still to come, so that the time of that is limited as a whole, too."""
    plain = socket.create_connection((connection.host, connection.port), timeout=seconds)
    if scheme == "http":
        return plain
    return context.wrap_socket(plain, server_hostname=connection.host, do_handshake_on_connect=False)


@contextmanager
def _hung_up_after(seconds: float, connection: socket.socket) -> Iterator[None]:
    """End a connection that is still in use after so many seconds: a limit for each read would allow endless drips."""
    ended = threading.Event()

    def hang_up() -> None:
        is_over = ended.wait(seconds)
        while not is_over:
            _hang_up(connection)
            is_over = ended.wait(AGAIN_SECONDS)

    threading.Thread(target=hang_up, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):
        # The method of TLS would take from the thread that is reading what it reads with.
        socket.socket.shutdown(connection, socket.SHUT_RDWR)
