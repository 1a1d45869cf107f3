"""Runs rendered SQL on an Apache Pinot and accepts only whole answers."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Mapping
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import httpx
import pinotdb

from pinot_connector.engines.base import EngineAnswer, EngineQuery, Feature
from pinot_connector.engines.pinot.answer import Coverage, judge, require_whole
from pinot_connector.engines.pinot.controller import Controller
from pinot_connector.engines.pinot.controller_http import CONNECT_SECONDS, ControllerHttp
from pinot_connector.engines.pinot.loaded import DEFAULT_SETTLE_SECONDS, LoadOptions
from pinot_connector.engines.pinot.state import TableState
from pinot_connector.errors import DataChanged, EngineRefused, EngineUnavailable, IncompleteAnswer

# At its finest level, pinotdb writes whole answers to the log; they are true counts.
logging.getLogger("pinotdb").setLevel(logging.INFO)


class _Percent:
    """Becomes a percent sign where pinotdb formats a query."""

    def __str__(self) -> str:
        return "%"


class PinotEngine:
    """An Apache Pinot, reached through one broker and one controller of the same cluster.

    An answer is confirmed only if Pinot says nothing against it, if it covers every segment and document that the
    controller lists, and if the controller lists the same data after the query as before. Thread-safe.
    """

    dialect = "pinot"

    def __init__(
        self,
        *,
        controller: str,
        broker: str,
        authorization: str | None = None,
        tls: ssl.SSLContext | None = None,
        timeout_seconds: float = 30.0,
        server_admin: bool = False,
        server_admin_port: int | None = None,
        settle_seconds: float = DEFAULT_SETTLE_SECONDS,
    ) -> None:
        """Connects to nothing yet.

        Args:
            controller: the controller's URL, such as `http://localhost:9000`.
            broker: the broker's URL, such as `http://localhost:8099`.
            authorization: the value of the header `Authorization` for both, if they ask for one.
            tls: whom to trust behind https:// URLs and which certificate to show, as `ssl.create_default_context` makes
                it; None: the authorities that this machine trusts, and no certificate.
            timeout_seconds: how long one request may take.
            server_admin: whether to ask each server by its admin port what it has loaded of a new version; they are
                shown the same credentials, and the scheme is the controller's.
            server_admin_port: that port where the servers do not tell it, as those do that speak TLS alone.
            settle_seconds: the longest time that a server takes to load a segment: how long a new version with replicas
                is waited for where the servers are not asked themselves.

        Raises:
            ValueError: the URLs are not both http:// or both https://, `tls` is given for http:// URLs, or the port or
                the seconds are out of range.
        """
        options = LoadOptions(server_admin, server_admin_port, settle_seconds)
        roles = {"controller": urlsplit(controller), "broker": urlsplit(broker)}
        schemes = {url.scheme for url in roles.values()}
        if tls is not None and schemes != {"https"}:
            raise ValueError("tls is given, so controller and broker must be https:// URLs")
        if schemes not in ({"http"}, {"https"}) or not all(url.hostname for url in roles.values()):
            # One of them in the clear would give away what the other protects, the token first.
            raise ValueError("controller and broker must both be http:// or both be https:// URLs")
        self._controller_http = ControllerHttp(
            roles["controller"],
            authorization=authorization,
            tls=tls,
            timeout_seconds=timeout_seconds,
        )
        self._controller = Controller(self._controller_http, options)
        self._broker = roles["broker"]
        self._broker_http = httpx.Client(
            headers={} if authorization is None else {"Authorization": authorization},
            # pinotdb has no time-out of its own.
            timeout=httpx.Timeout(timeout_seconds, connect=min(CONNECT_SECONDS, timeout_seconds)),
            verify=tls or (ssl.create_default_context() if "https" in schemes else False),
            # True counts go to nobody but the Pinot that was named: no proxy of the environment is used.
            trust_env=False,
        )
        self._lock = Lock()

    def data_version(self, table: str) -> str:
        """Return the version of a table: a hash over the names and checksums of its segments.

        It may be up to a minute old; an answer on any other is not confirmed.

        Raises:
            EngineUnavailable: the controller cannot be reached, or took too long.
            EngineRefused: there is no such table, or its configuration makes counts inexact.
            DataChanged: the table is being loaded, or its servers have not loaded a new version yet.
        """
        self._controller.require_exact_counts(table)
        return self._controller.settled_state(table).data_version

    def check(self, query: EngineQuery) -> None:
        """Refuse a query that needs the multi-stage engine where the cluster is too old to have it.

        Raises:
            EngineRefused: the cluster lacks it.
            EngineUnavailable: the controller cannot be reached, or took too long.
        """
        if Feature.PINOT_MULTISTAGE in query.requires:
            self._controller.require_multistage()

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """Answer a query on the given version, which `data_version` has returned before.

        Raises:
            IncompleteAnswer: Pinot says that the answer is partial, or it has other columns or types, or too many rows.
            EngineUnavailable: Pinot cannot be reached, or took too long.
            EngineRefused: Pinot refused the query, its configuration makes counts inexact, or a column is not what the
                query was written for.
        """
        self._controller.require_exact_answer(query)
        return judge(self._ask(query.sql), query, data_version)

    def confirm(self, query: EngineQuery, answer: EngineAnswer) -> None:
        """Return if the answer covers all that the controller lists now, after the query.

        The version was read before the query was sent, so finding it once more afterwards shows that it was the same
        before and after.

        Raises:
            DataChanged: the data had another version after the query.
            IncompleteAnswer: the answer is partial.
            EngineUnavailable: the controller cannot be reached, or took too long.
        """
        state = self._controller.present_state(query.table)
        _require_version(state, answer)
        if not isinstance(answer.coverage, Coverage):
            raise IncompleteAnswer("Pinot did not say what its answer covers")
        try:
            require_whole(answer.coverage, state)
        except IncompleteAnswer:
            # Another set of segments is another version, which can be asked again.
            _require_version(self._controller.state(query.table), answer)
            raise

    def close(self) -> None:
        """Give back connections and threads."""
        self._controller.close()
        self._controller_http.close()
        self._broker_http.close()

    def _ask(self, sql: str) -> Mapping[str, Any]:
        """Return the broker's response, whatever pinotdb makes of it."""
        cursor = self._cursor()
        problem = ""
        try:
            # pinotdb formats the text: a `%%` in a literal would become `%` and ask something else.
            cursor.execute(sql.replace("%", "%(percent)s"), {"percent": _Percent()})
        except httpx.TimeoutException:
            problem = "did not answer in time"
        except Exception:
            # What pinotdb raises holds the query and the data. The response is judged below, whether it raises or not.
            problem = "cannot be reached"
        received = cursor.raw_query_response
        if received is None:
            raise EngineUnavailable(f"Pinot's broker {problem}")
        return _payload(received["status_code"], received["response"])

    def _cursor(self) -> pinotdb.db.Cursor:
        """Return a new cursor on the shared client.

        Neither it nor its connection is closed: old releases of pinotdb would close the client with them.
        """
        # pinotdb changes the headers of the client, which is not safe in two threads at once.
        with self._lock:
            return pinotdb.connect(
                host=self._host(),
                port=self._broker.port or {"http": 80, "https": 443}[self._broker.scheme],
                scheme=self._broker.scheme,
                path=f"{self._broker.path.rstrip('/')}/query/sql",
                session=self._broker_http,
            ).cursor()

    def _host(self) -> str:
        host = self._broker.hostname or ""
        return f"[{host}]" if ":" in host else host


def _require_version(state: TableState, answer: EngineAnswer) -> None:
    if state.data_version != answer.data_version:
        raise DataChanged("the table changed while the question ran")


def _payload(status: int, content: object) -> Mapping[str, Any]:
    """Return what the broker said, if it said it in its own words."""
    if status in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        raise EngineRefused("Pinot's broker does not accept our credentials")
    if status != httpx.codes.OK:
        raise EngineUnavailable("Pinot's broker gave an answer that cannot be used")
    if not isinstance(content, dict):
        raise IncompleteAnswer("Pinot's answer is malformed")
    return content
