"""Queries Pinot's broker through pinotdb, and returns its whole response, whatever pinotdb makes of it.

No message repeats the response: Pinot's error texts hold SQL and data.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any
from urllib.parse import SplitResult

import httpx
import pinotdb

from pinot_connector.endpoints import silent
from pinot_connector.engines.pinot.answer import lost_a_server
from pinot_connector.engines.pinot.controller_http import CONNECT_SECONDS
from pinot_connector.engines.pinot.table_names import path_of
from pinot_connector.errors import EngineGone, EngineRefused, EngineUnavailable, IncompleteAnswer

# At its finest level, pinotdb writes whole answers to the log; they are true counts.
logging.getLogger("pinotdb").setLevel(logging.INFO)

SECOND_TRY_SECONDS = 0.1
"""How much time must be left for a query to be asked once more."""

_LATE = "not in time"


@dataclass(frozen=True)
class Deadline:
    """When everything that a question asks of the broker must be over, by the clock `time.monotonic`."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Returns the deadline that is so many seconds away."""
        return cls(time.monotonic() + seconds)

    @property
    def seconds_left(self) -> float:
        """How many seconds there are left; not below 0."""
        return max(0.0, self.at - time.monotonic())


class _Percent:
    """Becomes a percent sign where pinotdb formats a query."""

    def __str__(self) -> str:
        return "%"


class Broker:
    """The broker at one URL, or several behind it. Thread-safe; connects to nothing before it is asked."""

    def __init__(self, url: SplitResult, *, authorization: str | None, tls: ssl.SSLContext | None) -> None:
        self._url = url
        self._http = httpx.Client(
            headers={} if authorization is None else {"Authorization": authorization},
            verify=tls or (ssl.create_default_context() if url.scheme == "https" else False),
            # True counts go only to the configured Pinot: no proxy of the environment is used.
            trust_env=False,
        )
        self._lock = Lock()

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def ask(self, sql: str, deadline: Deadline) -> Mapping[str, Any]:
        """Returns the broker's response; if a server was lost, the second one.

        A broker notices only after half a minute that a server is gone. Until then another replica may be asked the
        next time. A query that used up its time is not sent again.

        Raises:
            EngineUnavailable: the broker cannot be reached, fails, or did not answer before the deadline.
            EngineRefused: our credentials are not accepted.
            IncompleteAnswer: the response is malformed.
        """
        response = self._response(sql, deadline)
        if not lost_a_server(response):
            return response
        if deadline.seconds_left < SECOND_TRY_SECONDS:
            raise EngineUnavailable(self._silent(_LATE))
        return self._response(sql, deadline)

    def ask_once(self, sql: str, deadline: Deadline) -> Mapping[str, Any]:
        """Returns the broker's response, also if a server was lost; otherwise as `ask`."""
        return self._response(sql, deadline)

    def time_boundary(self, table: str, deadline: Deadline) -> Any:
        """Returns where the broker divides a table between its two parts; None: it asks the real-time part alone.

        Raises:
            EngineUnavailable: the broker cannot be reached, fails, or did not answer before the deadline.
            EngineRefused: our credentials are not accepted.
        """
        seconds = max(deadline.seconds_left, 0.001)
        url = self._url._replace(
            netloc=self._url.netloc.rpartition("@")[2],
            path=f"{self._url.path.rstrip('/')}/debug/timeBoundary/{path_of(table)}",
        )
        why = ""
        try:
            reply = self._http.get(url.geturl(), timeout=httpx.Timeout(seconds))
        except httpx.TimeoutException:
            why = _LATE
        except httpx.HTTPError:
            pass
        else:
            if reply.status_code == httpx.codes.NOT_FOUND:
                return None
            return _payload(reply.status_code, _json(reply))
        # Raised outside of `except`, so that no error of a library hangs on it.
        raise EngineUnavailable(self._silent(why))

    def _response(self, sql: str, deadline: Deadline) -> Mapping[str, Any]:
        seconds = deadline.seconds_left
        if seconds < 0.001:
            raise EngineUnavailable(self._silent(_LATE))
        cursor = self._cursor()
        why, is_gone = "", False
        try:
            cursor.execute(
                # pinotdb formats the text: a `%%` in a literal would become `%` and ask something else.
                sql.replace("%", "%(percent)s"),
                {"percent": _Percent()},
                # The table's own time-out and the broker's hold only where the request says nothing, and the
                # multi-stage engine never reads the table's.
                f"timeoutMs={int(seconds * 1000)}",
                # pinotdb has no time-out of its own.
                timeout=httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds)),
            )
        except httpx.TimeoutException:
            why = _LATE
        except httpx.TransportError:
            is_gone = True
        except Exception:  # noqa: S110
            # pinotdb's errors hold the query and the data. The response is judged later, with or without an error.
            pass
        received = cursor.raw_query_response
        if received is None:
            raise (EngineGone if is_gone else EngineUnavailable)(self._silent(why))
        return _payload(received["status_code"], received["response"])

    def _silent(self, why: str) -> str:
        return f"Pinot's broker: {silent(self._url.netloc.rpartition('@')[2], why)}"

    def _cursor(self) -> pinotdb.db.Cursor:
        """Returns a new cursor on the shared client.

        Neither it nor its connection is closed: old releases of pinotdb would close the client with them.
        """
        # pinotdb changes the headers of the client, which is not safe in two threads at once.
        with self._lock:
            return pinotdb.connect(
                host=self._host(),
                port=self._url.port or {"http": 80, "https": 443}[self._url.scheme],
                scheme=self._url.scheme,
                path=f"{self._url.path.rstrip('/')}/query/sql",
                session=self._http,
            ).cursor()

    def _host(self) -> str:
        host = self._url.hostname or ""
        return f"[{host}]" if ":" in host else host


def _json(reply: httpx.Response) -> object:
    try:
        return reply.json()
    except ValueError:
        return None


def _payload(status: int, content: object) -> Mapping[str, Any]:
    """Returns the content of a response, if it is one of a broker."""
    if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        raise EngineRefused("Pinot's broker does not accept our credentials")
    if status != httpx.codes.OK:
        raise EngineUnavailable("Pinot's broker gave an answer that cannot be used")
    if not isinstance(content, dict):
        raise IncompleteAnswer("Pinot's answer is malformed")
    return content
