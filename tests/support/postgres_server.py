"""A private PostgreSQL for tests, on a free port, as a user that is not root."""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any, LiteralString

import psutil
import psycopg
import pytest
from psycopg import sql

from tests.support.ports import free_port
from tests.support.programs import is_hidden

START_SECONDS = 120
# What its processes share goes with its folder; in /dev/shm, a megabyte would stay of each that is killed.
_SHARED_IN_ITS_FOLDER = ("dynamic_shared_memory_type=mmap",)


@dataclass
class PostgresServer:
    """A process that can be killed, frozen and started again on its files; `options` are settings NAME=VALUE."""

    folder: Path
    port: int
    options: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def address(self) -> str:
        """The address of its store; a busy machine may take longer to connect than a service would wait."""
        return f"postgresql://gris@127.0.0.1:{self.port}/postgres?connect_timeout=10"

    def execute(self, query: LiteralString | sql.Composed, *parameters: object) -> list[Any]:
        """Run one statement as an administrator and return its rows."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            cursor = connection.execute(query, parameters or None)
            return cursor.fetchall() if cursor.description else []

    def hang_up(self) -> None:
        """End every connection."""
        self.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )

    def forget(self) -> None:
        """Drop every ledger that earlier tests have left."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            names = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname ~ '^gris'").fetchall()
            for (name,) in names:
                connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))

    def start(self) -> None:
        """Start it and wait until it answers."""
        settings = (
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            *_SHARED_IN_ITS_FOLDER,
            *self.options,
        )
        flags = [part for setting in settings for part in ("-c", setting)]
        end = time.monotonic() + START_SECONDS
        with (self.folder.parent / "log").open("ab") as log:
            command = [str(_program("postgres")), "-D", str(self.folder), "-p", str(self.port), *flags]
            self.process = _run_as_user(command, log)
        while not self._takes_connections():
            assert time.monotonic() < end, "postgres did not start"
            assert self.process.poll() is None, (self.folder.parent / "log").read_text()
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill it as a crash would, with every process that serves a connection."""
        if self.process is not None:
            family = self._family()
            self._signal(signal.SIGKILL, family)
            self.process.wait()
            self.process = None
            while any(_is_alive(pid) for pid in family):
                time.sleep(0.01)

    def stop(self) -> None:
        """End it in order, if it runs."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait()
            self.process = None

    def restart(self, *options: str) -> None:
        """Start it anew with other settings."""
        self.stop()
        self.options = options
        self.start()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let it accept bytes and answer nothing."""
        family = self._family()
        self._signal(signal.SIGSTOP, family)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT, family)

    def _family(self) -> list[int]:
        """Return all processes of the server, the first of which is stopped, so that it starts no others meanwhile."""
        assert self.process is not None
        parent = self.process.pid
        self._signal(signal.SIGSTOP, [parent])
        return [parent, *(child.pid for child in psutil.Process(parent).children())]

    def _signal(self, number: signal.Signals, family: list[int]) -> None:
        for pid in family:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _takes_connections(self) -> bool:
        # Not by a program of its own: asked again and again, it costs as much as the server that is waited for.
        try:
            psycopg.connect(self.address).close()
        except psycopg.OperationalError:
            return False
        return True


def _is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@contextmanager
def postgres_server(*options: str) -> Iterator[PostgresServer]:
    """Run a private server, or skip the test where there is none to run."""
    # Not pytest's own folder: only its owner may enter that one.
    with tempfile.TemporaryDirectory(prefix="gris-postgres-") as parent:
        Path(parent).chmod(0o755)
        server = PostgresServer(_new_database(Path(parent)), free_port(), options)
        server.start()
        try:
            yield server
        finally:
            server.kill()


@contextmanager
def standby_of(primary: PostgresServer) -> Iterator[PostgresServer]:
    """Run a server that follows another one until it is promoted."""
    with tempfile.TemporaryDirectory(prefix="gris-postgres-") as parent:
        Path(parent).chmod(0o755)
        server = PostgresServer(copied(primary, Path(parent)), free_port())
        server.start()
        try:
            yield server
        finally:
            server.kill()


def copied(primary: PostgresServer, parent: Path) -> Path:
    """Copy the files of a server that runs, so that a server on the copy follows it; return their folder."""
    folder = _owned_folder(parent)
    source = ["-h", "127.0.0.1", "-p", str(primary.port), "-U", "gris", "-R", "--checkpoint=fast"]
    _make(folder, "pg_basebackup", *source, "--no-sync")
    return folder


def _new_database(parent: Path) -> Path:
    # With its owner and rights, on which PostgreSQL insists.
    subprocess.run(["cp", "-a", str(_unused_database()), str(parent)], check=True)
    return parent / "data"


@cache
def _unused_database() -> Path:
    """Return the files of a server that has never run; making them takes most of what a start costs."""
    parent = Path(tempfile.mkdtemp(prefix="gris-postgres-"))
    atexit.register(shutil.rmtree, parent, ignore_errors=True)
    parent.chmod(0o755)
    folder = _owned_folder(parent)
    _make(folder, "initdb", "-U", "gris", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
    return folder


def _owned_folder(parent: Path) -> Path:
    folder = parent / "data"
    folder.mkdir(mode=0o700)
    if (user := _user()) is not None:
        shutil.chown(folder, user)
    return folder


def _make(folder: Path, program: str, *words: str) -> None:
    log_path = folder.parent / f"{program}.log"
    with log_path.open("wb") as log:
        made = _run_as_user([str(_program(program)), "-D", str(folder), *words], log).wait()
    assert made == 0, log_path.read_text()


def _run_as_user(command: list[str], log: IO[bytes]) -> subprocess.Popen[bytes]:
    # Not Popen's own `user`: it has to fork for that, and gRPC's threads do not survive a fork in every case.
    user = _user()
    become = (
        [] if user is None else ["setpriv", f"--reuid={user}", f"--regid={_group(user)}", "--clear-groups"]
    )
    return subprocess.Popen([*become, *command], stdout=log, stderr=log, cwd="/")


def _group(user: str) -> int:
    return pwd.getpwnam(user).pw_gid


def _user() -> str | None:
    """Return whom to run the server as: PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    return "postgres" if any(each.pw_name == "postgres" for each in pwd.getpwall()) else "nobody"


def _program(name: str) -> Path:
    """Return a program of PostgreSQL, which Debian keeps out of PATH."""
    found = [] if is_hidden("postgres") else _programs(name)
    if not found:
        pytest.skip("PostgreSQL is missing: deploy/test-servers")
    return found[-1]


def _programs(name: str) -> list[Path]:
    found = [Path(each) for each in [shutil.which(name)] if each]
    return found + sorted(
        Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda each: int(each.parts[4])
    )
