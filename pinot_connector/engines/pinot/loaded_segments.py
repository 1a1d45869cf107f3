"""Finds out what the servers of Pinot have loaded.

After a segment is replaced, servers go on serving the old one until the new one is loaded: some tenths of a second, or
minutes where it is large or has indexes to build. The controller lists the new checksum at once, and if both have as
many rows, no answer shows which of them it is from. So the servers themselves are asked: each by its own admin port, or
all of them through the controller, which merges replicas and leaves out servers that fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus
from typing import Any, Protocol
from urllib.parse import SplitResult, urlsplit

from pinot_connector.engines.pinot.controller_http import UNUSABLE, ControllerHttp, Reply
from pinot_connector.engines.pinot.table_names import path_of, path_of_offline_part
from pinot_connector.engines.pinot.table_state import TableState
from pinot_connector.errors import EngineRefused, EngineUnavailable

DEFAULT_SETTLE_SECONDS = 60.0
"""The default for the longest time that a server takes to load a segment."""

LONGEST_SETTLE_SECONDS = 86_400.0
LARGEST_PORT = 65_535

SERVER_SECONDS = 5.0
"""How long one server may take to report its checksums, which it holds in memory."""

STILL_LOADING = "the servers of Pinot are still loading a new version of the table; ask again later"
IN_ERROR = "a server of Pinot could not load a segment of the table; ask the operator"
CANNOT_ASK = "Pinot's controller cannot ask every server what it has loaded; ask again later, or configure server_admin"
NOT_REPORTED = (
    "Pinot's controller has not reported yet what every server has loaded of a new version of the table; "
    "ask again later, or configure server_admin"
)
NO_ANSWER = (
    "a server of Pinot does not report what it has loaded of a new version of the table; ask again later"
)

_ONLINE, _ERROR = "ONLINE", "ERROR"
# Old servers put this before their host name.
_OLD_PREFIX = "Server_"


@dataclass(frozen=True)
class LoadOptions:
    """How to find out that a new version is loaded; `PinotEngine` describes each option."""

    server_admin: bool = False
    server_admin_port: int | None = None
    settle_seconds: float = DEFAULT_SETTLE_SECONDS

    def __post_init__(self) -> None:
        """Checks the options.

        Raises:
            ValueError: an option is out of range; the message names it.
        """
        if not 0 <= self.settle_seconds <= LONGEST_SETTLE_SECONDS:
            raise ValueError(f"settle_seconds: expected 0 to {LONGEST_SETTLE_SECONDS:g} seconds")
        if self.server_admin_port is None:
            return
        if not self.server_admin:
            raise ValueError("server_admin_port: expected only with server_admin")
        if not 1 <= self.server_admin_port <= LARGEST_PORT:
            raise ValueError(f"server_admin_port: expected 1 to {LARGEST_PORT}")


class Evidence(Enum):
    """What is known about a version of a table."""

    EVERY_REPLICA = "every replica that may answer has every segment of it"
    SOME_REPLICAS = "every segment of it is loaded, perhaps not on every replica"
    NONE = "a segment of it is not loaded, or that is unknown"


@dataclass(frozen=True)
class Finding:
    """What is known, and, if that is not enough, the problem; only the operator is shown the names of `servers`.

    `online` is set for `SOME_REPLICAS` alone: the servers that could answer for each segment at that time. A server
    that joins them later may hold anything.
    """

    evidence: Evidence
    problem: str = ""
    servers: tuple[str, ...] = ()
    online: Mapping[str, frozenset[str]] = field(default_factory=dict)


WHOLE = Finding(Evidence.EVERY_REPLICA)


class LoadedSegments(Protocol):
    """Finds out what is loaded of the version that the controller lists."""

    def find_loaded(self, table: str, state: TableState) -> Finding:
        """Finds out what is loaded now.

        Raises:
            EngineUnavailable: the controller cannot be reached, or took too long.
            EngineRefused: our credentials are not accepted, or the address of a server is not known.
        """
        ...


@dataclass(frozen=True)
class Replicas:
    """On which servers each segment should be, and on which it is online, so that brokers ask them for it."""

    ideal: Mapping[str, Mapping[str, str]]
    external: Mapping[str, Mapping[str, str]]

    @classmethod
    def read(cls, ideal: Any, external: Any) -> Replicas:
        """Reads the controller's answers about the offline part."""
        return cls(ideal.get("OFFLINE") or {}, external.get("OFFLINE") or {})

    def online(self, segment: str) -> frozenset[str]:
        """Returns the servers that may answer for a segment."""
        return _in_state(self.external.get(segment, {}), _ONLINE)

    def online_for(self, segments: Iterable[str]) -> Mapping[str, frozenset[str]]:
        """Returns the servers that may answer for each of these segments."""
        return {segment: self.online(segment) for segment in segments}

    def meant(self, segment: str) -> frozenset[str]:
        """Returns the servers that should have a segment."""
        return _in_state(self.ideal.get(segment, {}), _ONLINE)

    def is_in_error(self, segments: Iterable[str]) -> bool:
        """Returns whether a server failed to load one of these segments."""
        return any(_ERROR in self.external.get(segment, {}).values() for segment in segments)

    def are_single(self, segments: Iterable[str]) -> bool:
        """Returns whether each segment is meant to be on one server and is on that one alone.

        Then whatever the controller reports about it comes from the only server that can answer for it.
        """
        return all(
            len(self.ideal.get(segment, {})) == 1 and self.online(segment) == self.meant(segment)
            for segment in segments
        )

    def are_all_online(self, segments: Iterable[str]) -> bool:
        """Returns whether each segment is online on every server that should have it."""
        return all(self.meant(segment) <= self.online(segment) for segment in segments)


def have_joined(before: Mapping[str, frozenset[str]], now: Mapping[str, frozenset[str]]) -> bool:
    """Returns whether a server may answer for a segment now that could not before."""
    return any(not now[segment] <= servers for segment, servers in before.items() if segment in now)


def _in_state(replicas: Mapping[str, str], wanted: str) -> frozenset[str]:
    return frozenset(server for server, state in replicas.items() if state == wanted)


def _paths_of_replicas(table: str) -> tuple[str, str]:
    path = path_of(table)
    return f"/tables/{path}/idealstate", f"/tables/{path}/externalview"


def _on_some(replicas: Replicas, state: TableState) -> Finding:
    return Finding(Evidence.SOME_REPLICAS, online=replicas.online_for(state.segments))


def _not_loaded(replicas: Replicas, missing: Iterable[str]) -> Finding:
    return Finding(Evidence.NONE, IN_ERROR if replicas.is_in_error(missing) else STILL_LOADING)


class LoadedByController:
    """Asks the controller, which asks the servers. Of several replicas it reports one, and does not say which.

    Pinot 1.5 reports the segments of a single server each time: that which answered last. So the reports on one version
    are combined: a segment that was loaded once stays loaded while the controller lists the same.
    """

    def __init__(self, http: ControllerHttp, threads: Executor) -> None:
        self._http = http
        self._threads = threads
        self._reports: dict[str, _Reports] = {}

    def find_loaded(self, table: str, state: TableState) -> Finding:
        """Finds out what is loaded now; see `LoadedSegments`."""
        ideal, external = self._threads.map(self._http.get, _paths_of_replicas(table))
        replicas = Replicas.read(_usable(ideal), _usable(external))
        reports = self._reports.get(table)
        if reports is None or reports.state.segments != state.segments:
            # Reports on an earlier version mean nothing for this one.
            reports = self._reports[table] = _Reports(state)
        has_news = True
        while has_news:
            reply = self._http.get(f"/segments/{path_of_offline_part(table)}/metadata?type=OFFLINE")
            if not reply.is_success:
                # Before 1.5 a server that fails is left out, later the whole answer fails.
                return Finding(Evidence.NONE, CANNOT_ASK)
            has_news = reports.add(reply.json()) and bool(reports.unknown)
        offline = {name for name in state.segments if not replicas.online(name)}
        missing = state.segments.keys() - reports.loaded
        if missing - reports.unknown or offline:
            return _not_loaded(replicas, {*missing, *offline})
        if missing:
            return Finding(Evidence.NONE, NOT_REPORTED)
        return WHOLE if replicas.are_single(state.segments) else _on_some(replicas, state)


class _Reports:
    """What the controller has reported about one version so far.

    The last report on a segment holds; searches of one table come one after the other.
    """

    def __init__(self, state: TableState) -> None:
        self.state = state
        self.loaded: set[str] = set()
        self.unknown = set(state.segments)

    def add(self, report: Any) -> bool:
        """Adds one report, and returns whether it has a segment that no earlier one had."""
        before = len(self.unknown)
        for name, segment in report.items():
            if name in self.state.segments:
                self.unknown.discard(name)
                is_loaded = str(segment["crc"]) == self.state.checksums[name]
                (self.loaded.add if is_loaded else self.loaded.discard)(name)
        return len(self.unknown) < before


class LoadedByServers:
    """Asks each server that may answer for a segment, by its admin port."""

    def __init__(self, http: ControllerHttp, threads: Executor, port: int | None = None) -> None:
        self._http = http
        self._threads = threads
        self._port = port

    def find_loaded(self, table: str, state: TableState) -> Finding:
        """Finds out what is loaded now; see `LoadedSegments`."""
        ideal, external = self._threads.map(self._http.get, _paths_of_replicas(table))
        replicas = Replicas.read(_usable(ideal), _usable(external))
        offline = [name for name in state.segments if not replicas.online(name)]
        if offline:
            return _not_loaded(replicas, offline)
        servers = sorted(frozenset().union(*(replicas.online(name) for name in state.segments)))
        checksums = dict(zip(servers, self._threads.map(self._reader(table), servers), strict=True))
        silent = tuple(server for server in servers if checksums[server] is None)
        if silent:
            return Finding(Evidence.NONE, NO_ANSWER, silent)
        missing = [
            name
            for name, crc in state.checksums.items()
            if any((checksums[server] or {}).get(name) != crc for server in replicas.online(name))
        ]
        if missing:
            return _not_loaded(replicas, missing)
        return WHOLE if replicas.are_all_online(state.segments) else _on_some(replicas, state)

    def _reader(self, table: str) -> Callable[[str], Mapping[str, str] | None]:
        path = f"/tables/{path_of_offline_part(table)}/segments/crc"

        def checksums_on(server: str) -> Mapping[str, str] | None:
            address = self._address(server)
            try:
                reply = self._http.get_elsewhere(address, path, "a server of Pinot", SERVER_SECONDS)
            except EngineUnavailable:
                return None
            if reply.status == HTTPStatus.NOT_FOUND:
                # It has nothing of this table yet.
                return {}
            return {name: str(crc) for name, crc in reply.json().items()} if reply.is_success else None

        return checksums_on

    def _address(self, server: str) -> SplitResult:
        instance = _usable(self._http.get(f"/instances/{path_of(server)}"))
        host = str(instance["hostName"]).removeprefix(_OLD_PREFIX)
        port = self._port or int(instance.get("adminPort") or 0)
        if port <= 0:
            raise EngineRefused(
                "a server of Pinot does not report its admin port, so server_admin needs server_admin_port"
            )
        return urlsplit(f"{self._http.scheme}://{f'[{host}]' if ':' in host else host}:{port}")


def _usable(reply: Reply) -> Any:
    if not reply.is_success:
        raise EngineUnavailable(UNUSABLE)
    return reply.json()
