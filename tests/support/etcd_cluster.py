"""A private cluster of etcd for tests: three members on free ports."""

from __future__ import annotations

import http.client
import itertools
import json
import secrets
import signal
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.programs import found
from tests.support.redis_server import free_port
from tests.support.rings import require

MEMBERS = 3
START_SECONDS = 120
# Longer than etcd's own, which a busy machine would exceed again and again; a dead leader is missed for about two
# seconds.
BEATS = ("--heartbeat-interval", "200", "--election-timeout", "2000")
_names = itertools.count()


@dataclass(eq=False)
class EtcdMember:
    """One process, which can be killed, frozen and started again on its files."""

    name: str
    folder: Path
    port: int
    peer_port: int
    # Where the others find it: a proxy, if something is to come between.
    peer_address: str
    scheme: str = "http"
    options: Sequence[str] = ()
    process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def endpoint(self) -> str:
        """Where it takes clients."""
        return f"127.0.0.1:{self.port}"

    def start(self, initial_cluster: str) -> None:
        """Start it, without waiting."""
        peer = f"http://127.0.0.1:{self.peer_port}"
        settings = {
            "--name": self.name,
            "--data-dir": str(self.folder / "data"),
            "--listen-client-urls": f"{self.scheme}://{self.endpoint}",
            "--advertise-client-urls": f"{self.scheme}://{self.endpoint}",
            "--listen-peer-urls": peer,
            "--initial-advertise-peer-urls": f"http://{self.peer_address}",
            "--initial-cluster": initial_cluster,
            "--initial-cluster-token": self.folder.parent.name,
        }
        words = [part for pair in settings.items() for part in pair]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                ["etcd", *words, *BEATS, *self.options], stdout=log, stderr=log, cwd=self.folder
            )

    def kill(self) -> None:
        """Kill it as a crash would."""
        if self.process is not None:
            # One that is stopped too.
            self.process.kill()
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        """Let it answer nothing, and hear nothing of the others."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let it accept bytes and answer nothing."""
        self.stop()
        try:
            yield
        finally:
            self.go_on()


@dataclass(eq=False)
class EtcdCluster:
    """Members that know each other; as a store, what is killed or frozen is each member in turn."""

    members: list[EtcdMember]
    context: ssl.SSLContext | None = None
    query: str = ""
    _next: int = 0
    _killed: list[EtcdMember] = field(default_factory=list)

    @property
    def address(self) -> str:
        """The address of its store."""
        scheme = "etcd" if self.context is None else "etcds"
        return f"{scheme}://{','.join(each.endpoint for each in self.members)}/gris{self.query}"

    def new_ledger(self) -> str:
        """Return the address of a ledger that nobody has used."""
        return self.address.replace("/gris", f"/ledger-{next(_names)}-{secrets.token_hex(4)}")

    def start(self) -> None:
        """Start those that do not run, and wait until all answer for the majority."""
        for each in self.members:
            if each.process is None:
                each.start(self._initial)
        self.wait(self.members)

    def wait(self, members: Sequence[EtcdMember]) -> None:
        """Wait until these answer for the majority."""
        end = time.monotonic() + START_SECONDS
        for each in members:
            while not self._is_healthy(each):
                assert time.monotonic() < end, (
                    f"etcd does not answer: {(each.folder / 'log').read_text()[-2000:]}"
                )
                time.sleep(0.05)

    def kill(self) -> None:
        """Kill the next member as a crash would; with it the leader, every third time."""
        self._turn().kill()

    def kill_all(self) -> None:
        """Kill every member."""
        for each in self.members:
            each.kill()

    def stop_all(self) -> None:
        """Let no member answer or beat; their clocks run on, so that leases age and a leader may be missed."""
        for each in self.members:
            each.stop()

    def go_on_all(self) -> None:
        """Let all members go on, and wait until all answer for the majority: they may have to elect a leader."""
        for each in self.members:
            each.go_on()
        self.wait(self.members)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Freeze the next member."""
        with self._turn().frozen():
            yield

    @property
    def _initial(self) -> str:
        return ",".join(f"{each.name}=http://{each.peer_address}" for each in self.members)

    def _turn(self) -> EtcdMember:
        self._next += 1
        return self.members[self._next % len(self.members)]

    def _is_healthy(self, member: EtcdMember) -> bool:
        with suppress(OSError, ValueError, http.client.HTTPException):
            host, port = "127.0.0.1", member.port
            connection = (
                http.client.HTTPConnection(host, port, timeout=2)
                if self.context is None
                else http.client.HTTPSConnection(host, port, timeout=2, context=self.context)
            )
            try:
                connection.request("GET", "/health")
                answer: Mapping[str, str] = json.loads(connection.getresponse().read())
                return answer["health"] == "true"
            finally:
                connection.close()
        return False


@contextmanager
def etcd_cluster(
    folder: Path,
    *options: str,
    context: ssl.SSLContext | None = None,
    peers: Sequence[str] = (),
    peer_ports: Sequence[int] = (),
    query: str = "",
) -> Iterator[EtcdCluster]:
    """Run a private cluster, or skip the test where there is none to run.

    Args:
        folder: Where the members keep their files.
        options: Further words of each member's command line.
        context: How to reach members that take clients by TLS only.
        peers: Where the members find each other, if something is between them.
        peer_ports: Where they listen for each other, if that is fixed.
        query: The parameters of the store's address, with their question mark.
    """
    require("etcd")
    if found("etcd") is None:
        pytest.skip("etcd is missing: apt-get install etcd-server")
    members = []
    for number in range(MEMBERS):
        home = folder / f"member-{number}"
        home.mkdir()
        peer_port = peer_ports[number] if peer_ports else free_port()
        peer_address = peers[number] if peers else f"127.0.0.1:{peer_port}"
        scheme = "http" if context is None else "https"
        member = EtcdMember(home.name, home, free_port(), peer_port, peer_address, scheme, options)
        members.append(member)
    cluster = EtcdCluster(members, context, query)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.kill_all()
