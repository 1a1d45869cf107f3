"""Runs both services as processes on this machine, for programs that have nothing but Python installed."""

from __future__ import annotations

import atexit
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from pinot_connector import local_services, proxies
from pinot_connector.child_processes import Announced, ChildProcess, end_all
from pinot_connector.release_store import ReleaseStore
from pinot_connector.release_store.default_store import ReleaseFile, Services, close_store, register_store
from pinot_connector.rpc_errors import Service

KEY_FILE = "noise.key"
LEDGER_FILE = "ledger.sqlite"
RELEASES_FILE = "releases.sqlite"
RELEASES_KEY_FILE = "releases.key"


@dataclass(frozen=True)
class Ports:
    """The ports of this machine to listen on; 0 takes a free one.

    `admin` None: the administrator's service of budget_service is not started.
    """

    dp: int = 0
    budget: int = 0
    admin: int | None = None


ANY_PORTS = Ports()


class EmbeddedServices:
    """Runs dp_service and budget_service on this machine while the block runs.

    The directory keeps what must outlive the services: the noise key (created if there is none), the ledger, their
    logs, and the release store with its key. With the same directory the same questions get the same answers and paid
    ones stay paid. Every client of these services in this process uses that store unless it is given another one.

    Args:
        policy: dp_service's policy file.
        budget_config: budget_service's configuration file.
        directory: where key, ledger and logs are kept; created, with a `.gitignore`, if it does not exist.
        ports: where the services listen; by default on free ports, without the administrator's service.

    Raises:
        ServiceUnavailable: on entering, if a service does not start; with the last line of its log.
        ServiceMisconfigured: it does not, because of a file or a port that it was started with.
    """

    def __init__(
        self,
        *,
        policy: Path | str,
        budget_config: Path | str,
        directory: Path | str,
        ports: Ports = ANY_PORTS,
    ) -> None:
        self._policy = Path(policy)
        self._budget_config = Path(budget_config)
        self._directory = Path(directory)
        self._ports = ports
        self._processes: list[ChildProcess] = []
        self._services: Services | None = None
        self._started_by = 0
        self.dp_address = ""
        self.budget_address = ""
        self.admin_address = ""

    def __enter__(self) -> EmbeddedServices:
        # Nobody else has any business with keys and ledger.
        if not self._directory.exists():
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            ignored_by_git(self._directory)
        key = noise_key(self._directory)
        self._started_by = os.getpid()
        # Services that are stopped now are not in the way of the next program; otherwise they end a moment later.
        atexit.register(self._stop_at_exit)
        try:
            policy = ("--policy", str(self._policy), "--key-file", str(key))
            dp = self._start(Service.DP, *policy, *_listen(self._ports.dp))
            store = f"sqlite:{self._directory / LEDGER_FILE}"
            ledger = ("--config", str(self._budget_config), "--store", store)
            budget = self._start(Service.BUDGET, *ledger, *_listen(self._ports.budget), *self._admin())
            # Both start at the same time; only then is either waited for.
            self.dp_address = str(dp.wait_until_ready(_serving)["address"])
            announced = budget.wait_until_ready(_serving)
            self.budget_address = str(announced["address"])
            self.admin_address = str(announced.get("admin_address", ""))
            self._services = self.dp_address, self.budget_address
            register_store(self._services, self._releases)
            local_services.remember(self.budget_address)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def releases_file(self) -> Path:
        """Where clients of these services keep releases: an absolute path. Its key is beside it, `releases.key`."""
        return (self._directory / RELEASES_FILE).absolute()

    def ensure_running(self) -> None:
        """Checks that both services are running.

        Raises:
            ServiceUnavailable: one of them ended; with the last line of its log.
        """
        for process in self._processes:
            process.require_running()

    def stop(self) -> None:
        """Stops both services: with SIGTERM, and after five seconds with SIGKILL.

        They also end with this process, in whatever way it ends.
        """
        atexit.unregister(self._stop_at_exit)
        end_all(self._processes)
        local_services.forget(self.budget_address)
        if self._services is not None:
            close_store(self._services)
            self._services = None

    def _stop_at_exit(self) -> None:
        # A fork runs this as well, and the services are not its own.
        if os.getpid() == self._started_by:
            self.stop()

    def _releases(self) -> ReleaseStore:
        key = secret_key(self._directory / RELEASES_KEY_FILE)
        return ReleaseFile(self._directory / RELEASES_FILE, key).opened()

    def _admin(self) -> tuple[str, ...]:
        return () if self._ports.admin is None else _listen(self._ports.admin, "--admin-listen")

    def _start(self, service: Service, *arguments: str) -> ChildProcess:
        process = ChildProcess.start(service, (service, *arguments), self._directory)
        self._processes.append(process)
        return process


def _listen(port: int, option: str = "--listen") -> tuple[str, str]:
    return option, f"127.0.0.1:{port}"


def ignored_by_git(directory: Path) -> None:
    """Has Git leave out a directory that was just made: what is in it must not be shared."""
    (directory / ".gitignore").write_text("*\n", encoding="ascii")


def noise_key(directory: Path) -> Path:
    """Returns the path of the directory's noise key, and creates one of 32 random bytes if there is none."""
    return secret_key(directory / KEY_FILE)


def secret_key(path: Path) -> Path:
    """Returns the path of a key, and writes one of 32 random bytes if there is none: in hexadecimal, with mode 0600.

    Raises:
        OSError: it cannot be written.
    """
    try:
        # No other user may ever be able to read it, not even between its creation and a change of its mode.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path
    with os.fdopen(descriptor, "w") as stream:
        stream.write(secrets.token_hex(32))
    return path


def _serving(announced: Announced) -> bool:
    address = str(announced["address"])
    with grpc.insecure_channel(address, proxies.channel_options(address)) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        try:
            response = stub.Check(health_pb2.HealthCheckRequest(), timeout=1)
        except grpc.RpcError:
            return False
    return bool(response.status == health_pb2.HealthCheckResponse.SERVING)
