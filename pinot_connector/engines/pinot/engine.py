"""Runs rendered SQL on an Apache Pinot and accepts only whole answers."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import replace
from urllib.parse import SplitResult, urlsplit

from pinot_connector.engines.base import EngineAnswer, EngineQuery, Feature
from pinot_connector.engines.pinot.answer import (
    Coverage,
    coverage_in,
    coverage_of,
    judge,
    require_all,
    require_whole,
)
from pinot_connector.engines.pinot.broker import Broker, Deadline
from pinot_connector.engines.pinot.controller import Controller
from pinot_connector.engines.pinot.controller_http import ControllerHttp
from pinot_connector.engines.pinot.limit_in_force import MOST_BROKERS, LimitsInForce, explained_query
from pinot_connector.engines.pinot.loaded_segments import DEFAULT_SETTLE_SECONDS, LoadOptions
from pinot_connector.engines.pinot.pruning import may_be_pruned, plain_count
from pinot_connector.engines.pinot.real_time import RealTime
from pinot_connector.engines.pinot.routes import Routes
from pinot_connector.engines.pinot.table_names import names_of, real_time_refused
from pinot_connector.engines.pinot.table_state import TableState
from pinot_connector.errors import DataChanged, EngineUnavailable, IncompleteAnswer

REAL_TIME_VERSION = "pinot:real-time"
"""The version of every table that takes in a stream."""

_TRIES = 3
_CHANGED = "the table changed while the question ran"
_OTHER_BROKERS = "several brokers stand behind Pinot's address, and the one that answered was not met again"


class PinotEngine:
    """An Apache Pinot, reached through one broker and one controller of the same cluster.

    An answer is confirmed only if Pinot reports no problem with it, it covers every segment and document that the
    controller lists, the controller lists the same data after the query as before, its broker had shown before the
    query that it uses the segments of this version, and the broker lowers no LIMIT. If the broker prunes segments by
    what a question filters, the table is counted before and after it, and an answer from no segment is as good as any
    other. Thread-safe.
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
        """Does not connect yet.

        Args:
            controller: the controller's URL, such as `http://localhost:9000`.
            broker: the broker's URL, such as `http://localhost:8099`.
            authorization: the value of the header `Authorization` for both, if they require one.
            tls: the authorities to trust for https:// URLs, and the certificate to present, as an `ssl.SSLContext`;
                None: the authorities that this machine trusts, and no certificate.
            timeout_seconds: how long a query may take, with a second try if a server of Pinot was lost meanwhile; the
                same for a request to the controller. It overrides the time-outs of table and broker.
            server_admin: whether to ask each server by its admin port what it has loaded of a new version; they are
                sent the same credentials, by the controller's scheme.
            server_admin_port: that port, for servers that do not report it because they speak only TLS.
            settle_seconds: the longest time that a server takes to load a segment: how long a new version with replicas
                is waited for where the servers are not asked themselves.

        Raises:
            ValueError: the URLs are not both http:// or both https://, `tls` is given for http:// URLs, or the port or
                the seconds are out of range.
        """
        options = LoadOptions(server_admin, server_admin_port, settle_seconds)
        controller_url, broker_url = urlsplit(controller), urlsplit(broker)
        _require_schemes((controller_url, broker_url), tls)
        self._controller_http = ControllerHttp(
            controller_url,
            authorization=authorization,
            tls=tls,
            timeout_seconds=timeout_seconds,
        )
        self._controller = Controller(self._controller_http, options)
        self._broker = Broker(broker_url, authorization=authorization, tls=tls)
        self._limits = LimitsInForce()
        self._routes = Routes(self._broker.ask)
        self._real_time = RealTime(self._controller, self._controller_http, self._broker)
        self._timeout_seconds = timeout_seconds

    def data_version(self, table: str) -> str:
        """Returns the version of a table: a hash over the names and checksums of its segments.

        It may be up to a minute old; an answer on any other is not confirmed. A table that takes in a stream has none
        of its own, and all have the same: only the end of a closed period tells its data apart.

        Raises:
            EngineUnavailable: the controller cannot be reached, or took too long.
            EngineRefused: there is no such table, or its configuration makes counts inexact.
            DataChanged: the table is being loaded, or its servers have not loaded a new version yet.
        """
        self._controller.require_exact_counts(table)
        if self._controller.parts(table).real_time is not None:
            return REAL_TIME_VERSION
        return self._controller.ready_state(table).data_version

    def tables(self) -> frozenset[str]:
        """Returns the names that a policy may give the cluster's tables.

        Raises:
            EngineUnavailable: the controller cannot be reached, or took too long.
        """
        return frozenset(name for table in self._controller.tables() for name in names_of(table))

    def check(self, query: EngineQuery) -> None:
        """Refuses a query that needs what the cluster is too old to have.

        Raises:
            EngineRefused: the cluster lacks the multi-stage engine.
            EngineUnavailable: Pinot cannot be reached, or took too long.
        """
        if Feature.PINOT_MULTISTAGE in query.requires:
            self._controller.require_multistage()

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """Answers a query on the given version, which `data_version` has returned before.

        Raises:
            DataChanged: the table has another version, or a broker does not know of this one yet.
            IncompleteAnswer: Pinot reports a partial answer, or it has other columns or types, or too many rows.
            EngineUnavailable: Pinot cannot be reached, or took too long.
            EngineRefused: Pinot refused the query, its configuration makes counts inexact, or a column is not what the
                query was written for.
        """
        self._controller.require_exact_answer(query)
        if self._controller.parts(query.table).real_time is not None:
            if query.stream is None:
                raise real_time_refused(query.table)
            deadline = Deadline.after(self._timeout_seconds)
            return self._real_time.answer(query, query.stream, data_version, deadline)
        state = self._controller.ready_state(query.table)
        if state.data_version != data_version:
            raise DataChanged(_CHANGED)
        # Read before the query: an answer that began under another use of the same version is not confirmed.
        use = self._controller.use(query.table)
        answer = self._answer(query, state, Deadline.after(self._timeout_seconds))
        return replace(answer, coverage=replace(coverage_in(answer), use=use))

    def confirm(self, query: EngineQuery, answer: EngineAnswer) -> None:
        """Returns if the answer covers everything that the controller lists now, after the query.

        The version was read before the query was sent, so finding it once more afterwards shows that it was the same
        before and after.

        Raises:
            DataChanged: the data had another version after the query.
            IncompleteAnswer: the answer is partial.
            EngineUnavailable: controller or broker cannot be reached, or took too long.
            EngineRefused: the broker answers with fewer rows than a query asks for.
        """
        coverage, deadline = coverage_in(answer), Deadline.after(self._timeout_seconds)
        if query.stream is not None and coverage.stream is not None:
            self._real_time.confirm(query, query.stream, coverage, deadline)
            self._require_limit(query, coverage, deadline, has_rows=bool(coverage.documents))
            return
        counted_after = None
        if coverage.counted_before is not None:
            counted_after = self._count_after(query.table, coverage.broker, deadline)
        state = self._controller.present_state(query.table, coverage.use)
        _require_version(state, answer)
        if coverage.broker not in self._routes.known(query.table, state):
            # The version went and came back meanwhile.
            raise DataChanged(_CHANGED)
        try:
            require_whole(coverage, state)
            if counted_after is not None:
                require_all(counted_after, state)
        except IncompleteAnswer:
            # Another set of segments is another version, which can be asked again.
            _require_version(self._controller.state(query.table), answer)
            raise
        self._require_limit(query, coverage, deadline, has_rows=any(state.documents))

    def close(self) -> None:
        """Closes connections and ends threads."""
        self._controller.close()
        self._real_time.close()
        self._controller_http.close()
        self._broker.close()

    def _answer(self, query: EngineQuery, state: TableState, deadline: Deadline) -> EngineAnswer:
        """Answers a query on a broker that had shown which segments it asks for, and had counted if that is needed.

        If several brokers are behind one address, another may answer; then it is examined too, and asked again.
        """
        table = query.table
        known = self._limits.brokers()
        wanted = frozenset() if self._routes.known(table, state) else known
        is_counted = may_be_pruned(query, self._controller.pruning_columns(table))
        for _ in range(_TRIES):
            routed = self._routed(table, state, wanted, deadline)
            counted = self._counted(table, known, deadline) if is_counted else {}
            answer = judge(self._broker.ask(query.sql, deadline), query, state.data_version)
            coverage = coverage_in(answer)
            broker = coverage.broker
            if broker in routed and (not is_counted or broker in counted):
                return replace(answer, coverage=replace(coverage, counted_before=counted.get(broker)))
            known |= {broker, *counted}
            wanted = frozenset({broker})
        raise EngineUnavailable(_OTHER_BROKERS)

    def _routed(
        self, table: str, state: TableState, wanted: frozenset[str], deadline: Deadline
    ) -> frozenset[str]:
        """Returns the brokers that have shown that they use the segments of this state."""
        try:
            return self._routes.learned(table, state, wanted, deadline)
        except (DataChanged, IncompleteAnswer):
            # The broker may be ahead of an older reading of the controller; for the next question it is not.
            if self._controller.state(table).data_version != state.data_version:
                raise DataChanged(_CHANGED) from None
            raise

    def _counted(self, table: str, known: frozenset[str], deadline: Deadline) -> Mapping[str, Coverage]:
        """Returns what a count covers on each of the known brokers, or on those that are met before one comes again."""
        counted: dict[str, Coverage] = {}
        for _ in range(MOST_BROKERS):
            count = self._count(table, deadline)
            if count.broker in counted:
                break
            counted[count.broker] = count
            if known <= counted.keys():
                break
        return counted

    def _count(self, table: str, deadline: Deadline) -> Coverage:
        return coverage_of(self._broker.ask(plain_count(table), deadline))

    def _count_after(self, table: str, broker: str, deadline: Deadline) -> Coverage:
        """Returns what a count covers on the broker that answered."""
        for _ in range(MOST_BROKERS):
            count = self._count(table, deadline)
            if count.broker == broker:
                return count
        raise EngineUnavailable(_OTHER_BROKERS)

    def _require_limit(
        self, query: EngineQuery, coverage: Coverage, deadline: Deadline, *, has_rows: bool
    ) -> None:
        """Refuses the answer of a broker that lowers LIMIT; the multi-stage engine lowers none."""
        if Feature.PINOT_MULTISTAGE in query.requires:
            return
        columns = self._controller.columns(query.table)
        self._limits.require(
            coverage.broker,
            query.row_limit,
            lambda limit: self._broker.ask(explained_query(query.table, columns, limit), deadline),
            has_rows=has_rows,
        )


def _require_schemes(urls: Sequence[SplitResult], tls: ssl.SSLContext | None) -> None:
    schemes = {url.scheme for url in urls}
    if tls is not None and schemes != {"https"}:
        raise ValueError("tls is given, so controller and broker must be https:// URLs")
    if schemes not in ({"http"}, {"https"}) or not all(url.hostname for url in urls):
        # One of them in plain text would reveal what the other protects, first of all the token.
        raise ValueError("controller and broker must both be http:// or both be https:// URLs")


def _require_version(state: TableState, answer: EngineAnswer) -> None:
    if state.data_version != answer.data_version:
        raise DataChanged(_CHANGED)
