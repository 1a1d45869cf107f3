"""What the servers of Pinot have loaded.

After a segment is replaced, servers go on serving the old one until the new one is loaded: some tenths of a second, or
minutes where it is large or has indexes to build. The controller tells of the new checksum from the first moment, and
where both have as many rows nothing in an answer tells them apart. So the servers are asked themselves: each by its own
admin port, or all of them through the controller, which merges replicas and leaves out servers that fail.
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
"""How long a server takes to load a segment, at most, where nobody says otherwise."""

LONGEST_SETTLE_SECONDS = 86_400.0
LARGEST_PORT = 65_535

SERVER_SECONDS = 5.0
"""How long one server may take to tell its checksums, which it holds in memory."""

STILL_LOADING = "the servers of Pinot are still loading a new version of the table; ask again later"
IN_ERROR = "a server of Pinot could not load a segment of the table; ask the operator"
CANNOT_ASK = "Pinot's controller cannot ask every server what it has loaded; ask again later, or configure server_admin"
UNTOLD = (
    "Pinot's controller has not told yet what every server has loaded of a new version of the table; "
    "ask again later, or configure server_admin"
)
NO_ANSWER = (
    "a server of Pinot does not tell what it has loaded of a new version of the table; ask again later"
)

_ONLINE, _ERROR = "ONLINE", "ERROR"
# Old servers put it before their host.
_OLD_PREFIX = "Server_"


@dataclass(frozen=True)
class LoadOptions:
    """How it is told that a new version is loaded; `PinotEngine` says what each option means."""

    server_admin: bool = False
    server_admin_port: int | None = None
    settle_seconds: float = DEFAULT_SETTLE_SECONDS

    def __post_init__(self) -> None:
        """Check the options; raises ValueError that names one."""
        if not 0 <= self.settle_seconds <= LONGEST_SETTLE_SECONDS:
            raise ValueError(f"settle_seconds: expected 0 to {LONGEST_SETTLE_SECONDS:g} seconds")
        if self.server_admin_port is None:
            return
        if not self.server_admin:
            raise ValueError("server_admin_port: expected only beside server_admin")
        if not 1 <= self.server_admin_port <= LARGEST_PORT:
            raise ValueError(f"server_admin_port: expected 1 to {LARGEST_PORT}")


class Evidence(Enum):
    """What is known about a version of a table."""

    EVERY_REPLICA = "every replica that may answer has every segment of it"
    SOME_REPLICAS = "every segment of it is loaded, perhaps not on every replica"
    NONE = "a segment of it is not loaded, or nobody knows"


@dataclass(frozen=True)
class Finding:
    """What is known, and if that is not enough, what to tell about it; `servers` are named to the operator alone.

    `online` is beside `SOME_REPLICAS` alone: the servers that could answer for each segment when it was found. One that
    joins them later may hold anything.
    """

    evidence: Evidence
    problem: str = ""
    servers: tuple[str, ...] = ()
    online: Mapping[str, frozenset[str]] = field(default_factory=dict)


WHOLE = Finding(Evidence.EVERY_REPLICA)


class LoadedSegments(Protocol):
    """Tells what is loaded of the version that the controller lists."""

    def look(self, table: str, state: TableState) -> Finding:
        """Ask what is loaded now.

        Raises:
            EngineUnavailable: the controller cannot be reached, or took too long.
            EngineRefused: somebody does not accept our credentials, or does not say where a server is.
        """
        ...


@dataclass(frozen=True)
class Replicas:
    """On which servers each segment should be, and on which it is online, so that brokers ask them for it."""

    ideal: Mapping[str, Mapping[str, str]]
    external: Mapping[str, Mapping[str, str]]

    @classmethod
    def read(cls, ideal: Any, external: Any) -> Replicas:
        """Read the controller's answers about the offline part."""
        return cls(ideal.get("OFFLINE") or {}, external.get("OFFLINE") or {})

    def online(self, segment: str) -> frozenset[str]:
        """Return the servers that may answer for a segment."""
        return _in_state(self.external.get(segment, {}), _ONLINE)

    def online_for(self, segments: Iterable[str]) -> Mapping[str, frozenset[str]]:
        """Return the servers that may answer for each of these segments."""
        return {segment: self.online(segment) for segment in segments}

    def meant(self, segment: str) -> frozenset[str]:
        """Return the servers that should have a segment."""
        return _in_state(self.ideal.get(segment, {}), _ONLINE)

    def is_in_error(self, segments: Iterable[str]) -> bool:
        """Tell whether a server failed to load one of these segments."""
        return any(_ERROR in self.external.get(segment, {}).values() for segment in segments)

    def are_single(self, segments: Iterable[str]) -> bool:
        """Tell whether each segment is meant to be on one server and is on that one alone.

        Then whatever the controller tells of it comes from the only server that can answer for it.
        """
        return all(
            len(self.ideal.get(segment, {})) == 1 and self.online(segment) == self.meant(segment)
            for segment in segments
        )

    def are_all_online(self, segments: Iterable[str]) -> bool:
        """Tell whether each segment is online on every server that should have it."""
        return all(self.meant(segment) <= self.online(segment) for segment in segments)


def have_joined(before: Mapping[str, frozenset[str]], now: Mapping[str, frozenset[str]]) -> bool:
    """Tell whether a server may answer for a segment now that could not before."""
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
    """Asks the controller, which asks the servers. Of several replicas it tells one, and nobody knows which.

    Pinot 1.5 tells the segments of a single server each time, whichever answered last. So what is told of one version
    is added up: a segment that was loaded once stays so while the controller lists the same.
    """

    def __init__(self, http: ControllerHttp, threads: Executor) -> None:
        self._http = http
        self._threads = threads
        self._told: dict[str, _Told] = {}

    def look(self, table: str, state: TableState) -> Finding:
        """Ask what is loaded now; see `LoadedSegments`."""
        ideal, external = self._threads.map(self._http.get, _paths_of_replicas(table))
        replicas = Replicas.read(_usable(ideal), _usable(external))
        told = self._told.get(table)
        if told is None or told.state.segments != state.segments:
            # Of a version before, nothing holds any more.
            told = self._told[table] = _Told(state)
        tells_more = True
        while tells_more:
            reply = self._http.get(f"/segments/{path_of_offline_part(table)}/metadata?type=OFFLINE")
            if not reply.is_success:
                # Before 1.5 a server that fails is left out, later the whole answer fails.
                return Finding(Evidence.NONE, CANNOT_ASK)
            tells_more = told.add(reply.json()) and bool(told.unknown)
        offline = {name for name in state.segments if not replicas.online(name)}
        missing = state.segments.keys() - told.loaded
        if missing - told.unknown or offline:
            return _not_loaded(replicas, {*missing, *offline})
        if missing:
            return Finding(Evidence.NONE, UNTOLD)
        return WHOLE if replicas.are_single(state.segments) else _on_some(replicas, state)


class _Told:
    """What the controller has told of one version so far.

    Whichever look was the last to tell of a segment is right; looks at one table come one after the other.
    """

    def __init__(self, state: TableState) -> None:
        self.state = state
        self.loaded: set[str] = set()
        self.unknown = set(state.segments)

    def add(self, told: Any) -> bool:
        """Add what one answer tells, and return whether it tells of a segment that none told of before."""
        before = len(self.unknown)
        for name, segment in told.items():
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

    def look(self, table: str, state: TableState) -> Finding:
        """Ask what is loaded now; see `LoadedSegments`."""
        ideal, external = self._threads.map(self._http.get, _paths_of_replicas(table))
        replicas = Replicas.read(_usable(ideal), _usable(external))
        offline = [name for name in state.segments if not replicas.online(name)]
        if offline:
            return _not_loaded(replicas, offline)
        servers = sorted(frozenset().union(*(replicas.online(name) for name in state.segments)))
        told = dict(zip(servers, self._threads.map(self._asked(table), servers), strict=True))
        silent = tuple(server for server in servers if told[server] is None)
        if silent:
            return Finding(Evidence.NONE, NO_ANSWER, silent)
        missing = [
            name
            for name, crc in state.checksums.items()
            if any((told[server] or {}).get(name) != crc for server in replicas.online(name))
        ]
        if missing:
            return _not_loaded(replicas, missing)
        return WHOLE if replicas.are_all_online(state.segments) else _on_some(replicas, state)

    def _asked(self, table: str) -> Callable[[str], Mapping[str, str] | None]:
        path = f"/tables/{path_of_offline_part(table)}/segments/crc"

        def checksums(server: str) -> Mapping[str, str] | None:
            address = self._address(server)
            try:
                reply = self._http.get_elsewhere(address, path, "a server of Pinot", SERVER_SECONDS)
            except EngineUnavailable:
                return None
            if reply.status == HTTPStatus.NOT_FOUND:
                # It has nothing of this table yet.
                return {}
            return {name: str(crc) for name, crc in reply.json().items()} if reply.is_success else None

        return checksums

    def _address(self, server: str) -> SplitResult:
        instance = _usable(self._http.get(f"/instances/{path_of(server)}"))
        host = str(instance["hostName"]).removeprefix(_OLD_PREFIX)
        port = self._port or int(instance.get("adminPort") or 0)
        if port <= 0:
            raise EngineRefused(
                "a server of Pinot does not tell its admin port, so server_admin needs server_admin_port"
            )
        return urlsplit(f"{self._http.scheme}://{f'[{host}]' if ':' in host else host}:{port}")


def _usable(reply: Reply) -> Any:
    if not reply.is_success:
        raise EngineUnavailable(UNUSABLE)
    return reply.json()
