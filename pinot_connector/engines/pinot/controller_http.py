"""HTTP to Pinot's controller, over connections that are kept.

httpcore is what httpx is built on. Without httpx a request, of which each question makes one, costs half the CPU.
"""

from __future__ import annotations

import json
import ssl
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import SplitResult

import httpcore

from pinot_connector.errors import EngineRefused, EngineUnavailable

CONNECT_SECONDS = 5.0
_IDLE_SECONDS = 5.0
_MOST_CONNECTIONS = 100
_MOST_IDLE_CONNECTIONS = 32
_DEFAULT_PORTS = {"http": 80, "https": 443}
_NOT_ADMITTED = frozenset((HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN))


@dataclass(frozen=True)
class Reply:
    """An answer of Pinot; the body may hold true counts, or a query in an error text, and is never shown."""

    status: int
    body: bytes = field(repr=False)

    @property
    def is_success(self) -> bool:
        """Whether the status is one of success."""
        return HTTPStatus.OK <= self.status < HTTPStatus.MULTIPLE_CHOICES

    def json(self) -> Any:
        """Return what the body says; raises ValueError if it is not JSON."""
        try:
            return json.loads(self.body)
        except RecursionError:
            raise ValueError from None


class ControllerHttp:
    """Reads from the controller at one URL. Thread-safe; connects to nothing before it is used."""

    def __init__(
        self,
        url: SplitResult,
        *,
        authorization: str | None,
        tls: ssl.SSLContext | None,
        timeout_seconds: float,
    ) -> None:
        self._address = url.scheme, url.hostname or "", url.port or _DEFAULT_PORTS[url.scheme]
        self._path = url.path.rstrip("/")
        # Without user and password; an IPv6 address keeps its brackets.
        self._headers = {"Host": url.netloc.rpartition("@")[2], "Accept": "application/json"}
        if authorization is not None:
            self._headers["Authorization"] = authorization
        waits = {"read": timeout_seconds, "write": timeout_seconds, "pool": timeout_seconds}
        self._timeouts = {"timeout": waits | {"connect": min(CONNECT_SECONDS, timeout_seconds)}}
        if tls is None and url.scheme == "https":
            tls = ssl.create_default_context()
        self._pool = httpcore.ConnectionPool(
            ssl_context=tls,
            max_connections=_MOST_CONNECTIONS,
            max_keepalive_connections=_MOST_IDLE_CONNECTIONS,
            keepalive_expiry=_IDLE_SECONDS,
        )

    def close(self) -> None:
        """Give back the connections. Closing twice is allowed."""
        self._pool.close()

    def get(self, path: str) -> Reply:
        """Return the answer to a GET of a path, which begins with a slash and is quoted.

        Its status may be any but those of callers who are not admitted.

        Raises:
            EngineUnavailable: nobody answers, or not in time.
            EngineRefused: our credentials are not accepted.
        """
        problem = "cannot be reached"
        try:
            response = self._pool.request(
                "GET", self._url(path), headers=[*self._headers.items()], extensions=self._timeouts
            )
        except httpcore.TimeoutException:
            problem = "did not answer in time"
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError, ValueError):
            pass
        else:
            if response.status in _NOT_ADMITTED:
                raise EngineRefused("Pinot's controller does not accept our credentials")
            return Reply(response.status, response.content)
        # Raised here and not where it was caught: the foreign errors hold the request.
        raise EngineUnavailable(f"Pinot's controller {problem}")

    def _url(self, path: str) -> httpcore.URL:
        scheme, host, port = self._address
        return httpcore.URL(scheme=scheme, host=host, port=port, target=self._path + path)
