"""An issuer's own server: it publishes keys and a discovery document by TLS, and does worse where it is asked to."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.pki import Authority, Issuer

KEYS = "/keys"
DISCOVERY = "/.well-known/openid-configuration"

Answer = Callable[[BaseHTTPRequestHandler], None]


class KeyServer(ThreadingHTTPServer):
    """Serves one issuer.

    Args:
        files: Its certificate and its key; None: it speaks plain HTTP.
        port: Where on this machine; 0: anywhere.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, files: tuple[Path, Path] | None, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        scheme = "http" if files is None else "https"
        self.issuer = f"{scheme}://127.0.0.1:{self.server_port}"
        self.keys_url = self.issuer + KEYS
        self.answers: dict[str, Answer] = {DISCOVERY: says(self.discovery()), KEYS: says(jwks())}
        self.asked: list[str] = []
        self.sent: list[tuple[str, str]] = []
        """Forms that it was sent, and how their sender said who it is."""
        if files is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*files)
            # With the handshake in `accept`, one silent client would keep the server from everybody, and from ending.
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def discovery(self, **changed: object) -> bytes:
        """Return its discovery document, with some entries changed."""
        return json.dumps({"issuer": self.issuer, "jwks_uri": self.keys_url, **changed}).encode()

    def publish(self, *issuers: Issuer) -> None:
        """Publish these keys and no others."""
        self.answers[KEYS] = says(jwks(*issuers))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do nothing: callers leave as they like."""


class _Handler(BaseHTTPRequestHandler):
    server: KeyServer

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        with suppress(OSError):
            self.server.answers[self.path](self)

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.sent.append((form, self.headers.get("Authorization", "")))
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        """Do nothing."""


@contextmanager
def serving(files: tuple[Path, Path] | None, port: int = 0) -> Iterator[KeyServer]:
    """Serve while the block runs."""
    with KeyServer(files, port) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def silent_port() -> Iterator[int]:
    """Give a port at which nobody answers, but where `serving` may begin, and nobody else."""
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        yield kept.getsockname()[1]


@contextmanager
def issuing(authority: Authority, *issuers: Issuer) -> Iterator[KeyServer]:
    """Serve these keys by TLS while the block runs."""
    with serving(authority.server()) as server:
        server.publish(*issuers)
        yield server


def jwks(*issuers: Issuer) -> bytes:
    """Return the set of these keys."""
    return json.dumps({"keys": [issuer.jwk() for issuer in issuers]}).encode()


def says(
    body: bytes, status: int = 200, *, location: str | None = None, stated_length: int | None = None
) -> Answer:
    """Return an answer with this content, which may be a redirect, or state another length."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(stated_length or len(body)))
        if location is not None:
            handler.send_header("Location", location)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def drips(part: bytes) -> Answer:
    """Return an answer that never ends, and of which each byte comes in time."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        while True:
            handler.wfile.write(part)
            time.sleep(0.02)

    return answer


def hangs(released: threading.Event) -> Answer:
    """Return an answer that does not begin before it is released, and is none then."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        released.wait(60)

    return answer


def until(holds: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait until something holds."""
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, "it has not come true"
        time.sleep(0.005)
