"""HTTP to Pinot's controller, and to its servers' admin ports, over connections that are kept.

httpcore is what httpx is built on. Without httpx a request, of which each question makes one, costs half the CPU.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import SplitResult

import httpcore

from pinot_connector.endpoints import silent
from pinot_connector.errors import EngineGone, EngineRefused, EngineUnavailable

CONNECT_SECONDS = 5.0

UNUSABLE = "Pinot's controller gave an answer that cannot be used"
"""The message about an answer that is malformed or missing."""

_IDLE_SECONDS = 5.0
_MOST_CONNECTIONS = 100
_MOST_IDLE_CONNECTIONS = 32
_DEFAULT_PORTS = {"http": 80, "https": 443}
_UNAUTHORIZED = frozenset((HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN))


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
        """Returns the content of the body.

        Raises:
            ValueError: it is not JSON.
        """
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

    @property
    def scheme(self) -> str:
        """How the controller is reached: "http" or "https"."""
        return self._address[0]

    def close(self) -> None:
        """Closes the connections. Closing twice is allowed."""
        self._pool.close()

    def get(self, path: str) -> Reply:
        """Returns the controller's answer to a GET of a path, which begins with a slash and is quoted.

        Its status may be any but 401 and 403.

        Raises:
            EngineUnavailable: there is no answer, or not in time.
            EngineRefused: our credentials are not accepted.
        """
        scheme, host, port = self._address
        url = httpcore.URL(scheme=scheme, host=host, port=port, target=self._path + path)
        return self._get(url, self._headers, self._timeouts, "Pinot's controller")

    def read(self, path: str) -> Reply:
        """Returns the controller's answer about a table, if it is one of success.

        Raises:
            EngineUnavailable: as for `get`, or the controller failed.
            EngineRefused: as for `get`, or there is no such table.
        """
        reply = self.get(path)
        if reply.status == HTTPStatus.NOT_FOUND:
            raise EngineRefused("Pinot has no such table")
        if not reply.is_success:
            raise EngineUnavailable(UNUSABLE)
        return reply

    def get_elsewhere(self, location: SplitResult, path: str, name: str, timeout_seconds: float) -> Reply:
        """Returns the answer of another part of the same cluster, which is shown the same credentials.

        Args:
            location: its URL, of the controller's scheme and with a port.
            path: as for `get`.
            name: its name in errors.
            timeout_seconds: how long it may take; never longer than the controller may.

        Raises:
            EngineUnavailable: there is no answer, or not in time.
            EngineRefused: our credentials are not accepted.
        """
        url = httpcore.URL(
            scheme=location.scheme, host=location.hostname or "", port=location.port, target=path
        )
        waits = {name: min(wait, timeout_seconds) for name, wait in self._timeouts["timeout"].items()}
        return self._get(url, self._headers | {"Host": location.netloc}, {"timeout": waits}, name)

    def _get(
        self, url: httpcore.URL, headers: Mapping[str, str], timeouts: Mapping[str, Any], name: str
    ) -> Reply:
        kind, why = EngineUnavailable, ""
        try:
            response = self._pool.request("GET", url, headers=[*headers.items()], extensions={**timeouts})
        except httpcore.TimeoutException:
            why = "not in time"
        except (httpcore.NetworkError, OSError):
            kind = EngineGone
        except (httpcore.ProtocolError, ValueError):
            pass
        else:
            if response.status in _UNAUTHORIZED:
                raise EngineRefused(f"{name} does not accept our credentials")
            return Reply(response.status, response.content)
        # Raised outside of `except`: the other errors hold the request, and would be attached as the context.
        raise kind(f"{name}: {silent(headers['Host'], why)}")
