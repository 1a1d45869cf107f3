"""A real Apache Pinot on this machine: ZooKeeper, a controller, a broker and some servers.

Needs Java 17 and, the first time, Maven, which fetches the jars from Maven Central. Only Python's standard
library is used. For demonstrations and tests: nothing is authenticated. `python -m deploy.pinot` starts and stops one.

In a test:

    with PinotCluster(servers=2, directory=folder, ports=Ports.free(servers=2)) as cluster:
        cluster.kill_server(0)
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType

FOLDER = Path(__file__).resolve().parent
DEFAULT_VERSION = "0.11.0"
# With small data and short lives, full JIT compilation would take most of the time of a start.
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
DEFAULT_DIRECTORY = Path(".gris") / "pinot"

_READY_SECONDS = 180.0
_STOP_SECONDS = 20.0
_OPENED_PACKAGES = (
    "java.nio",
    "sun.nio.ch",
    "java.lang",
    "java.util",
    "java.lang.reflect",
    "jdk.internal.misc",
)


class ClusterError(RuntimeError):
    """The cluster cannot be started or found; the text says what to do about it."""


@dataclass(frozen=True)
class ServerPorts:
    """Where one server listens."""

    query: int
    admin: int
    grpc: int


@dataclass(frozen=True)
class Ports:
    """Where every role listens."""

    zookeeper: int
    controller: int
    broker: int
    servers: tuple[ServerPorts, ...]

    @classmethod
    def fixed(cls, servers: int, *, controller: int = 9000, broker: int = 8099) -> "Ports":
        """Return Pinot's usual ports, with servers a hundred apart."""
        ports = (ServerPorts(8098 + 100 * i, 8097 + 100 * i, 8090 + 100 * i) for i in range(servers))
        return cls(2123, controller, broker, tuple(ports))

    @classmethod
    def free(cls, servers: int) -> "Ports":
        """Return ports that nothing uses at this moment."""
        numbers = iter(_free_ports(3 + 3 * servers))
        ports = (next(numbers), next(numbers), next(numbers))
        return cls(
            *ports, tuple(ServerPorts(next(numbers), next(numbers), next(numbers)) for _ in range(servers))
        )


class PinotCluster:
    """A cluster in one directory; as a context manager it starts on entering and stops on leaving.

    Every role is a Java process of its own on `localhost`. Whatever was started is stopped when starting
    fails or is interrupted.
    """

    def __init__(
        self,
        servers: int = 2,
        *,
        directory: Path = DEFAULT_DIRECTORY,
        ports: Ports | None = None,
        version: str = DEFAULT_VERSION,
        jars: Path | None = None,
        java_options: Sequence[str] = (),
    ) -> None:
        # Pinot's controller fails with a null pointer when its directory is relative.
        self.directory = directory.resolve()
        self.ports = ports or Ports.fixed(servers)
        self.version = version
        self._jars = jars
        self._java_options = java_options
        self._processes: dict[str, _Process] = {}

    @classmethod
    def started_in(cls, directory: Path) -> "PinotCluster":
        """Return the cluster that an earlier run of this program left running in this directory."""
        cluster = cls(0, directory=directory)
        try:
            state = json.loads(cluster._state_file.read_text())
        except FileNotFoundError:
            raise ClusterError(f"no cluster was started in {directory}") from None
        servers = tuple(ServerPorts(**server) for server in state["ports"].pop("servers"))
        cluster.ports = Ports(**state["ports"], servers=servers)
        cluster.version = state["version"]
        cluster._processes = {name: _Process(pid) for name, pid in state["processes"].items()}
        return cluster

    @property
    def controller_url(self) -> str:
        """The controller's address, without a slash at the end."""
        return f"http://localhost:{self.ports.controller}"

    @property
    def broker_url(self) -> str:
        """The broker's address, without a slash at the end."""
        return f"http://localhost:{self.broker_port}"

    @property
    def broker_port(self) -> int:
        """The port that queries are sent to."""
        return self.ports.broker

    def __enter__(self) -> "PinotCluster":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start every role and return when all of them are ready to answer."""
        self._refuse_second_start()
        _require("java", "Java 17 (Debian: openjdk-17-jre-headless, macOS: brew install openjdk@17)")
        self._jars = self._jars or collect_jars(self.version)
        self.directory.mkdir(parents=True, exist_ok=True)
        try:
            self._start_roles()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop every role, ZooKeeper last: a role whose ZooKeeper went first hangs and keeps its port."""
        _stop_together(self._take_away("broker"))
        _stop_together(self._take_away("server-"))
        _stop_together(self._take_away("controller"))
        _stop_together(self._take_away("zookeeper"))
        self._state_file.unlink(missing_ok=True)

    def status(self) -> Mapping[str, bool]:
        """Tell for each role that was started whether its process runs."""
        return {name: process.is_running() for name, process in self._processes.items()}

    def kill_server(self, number: int) -> None:
        """End a server at once, without a word to the others, as a crash does."""
        self._processes[f"server-{number}"].end(signal.SIGKILL)

    def start_server(self, number: int) -> None:
        """Start a server again, with the data it had, and return when it says that it is healthy."""
        self._launch_server(number)
        self._wait_for_server(number)

    def stop_broker(self) -> None:
        """Stop the broker; it takes ten seconds, in which it answers what it was asked before."""
        self._processes["broker"].end(signal.SIGTERM)

    def start_broker(self) -> None:
        """Start the broker again and return when it says that it is healthy."""
        self._launch_broker()
        self._wait_for_broker()

    @property
    def _state_file(self) -> Path:
        return self.directory / "cluster.json"

    def _refuse_second_start(self) -> None:
        if self._state_file.exists() and any(PinotCluster.started_in(self.directory).status().values()):
            raise ClusterError(f"a cluster is running in {self.directory} already; stop it first")

    def _take_away(self, prefix: str) -> list["_Process"]:
        """Forget the roles whose names begin so, and return their processes."""
        names = [name for name in self._processes if name.startswith(prefix)]
        return [self._processes.pop(name) for name in names]

    def _start_roles(self) -> None:
        self._launch(
            "zookeeper", "StartZookeeper", zkPort=self.ports.zookeeper, dataDir=self.directory / "zookeeper"
        )
        self._wait_for("zookeeper", lambda: _listens(self.ports.zookeeper))
        self._launch_controller()
        # Brokers and servers that find no controller give up.
        self._wait_for("controller", lambda: _is_healthy(self.ports.controller))
        numbers = range(len(self.ports.servers))
        self._launch_broker()
        for number in numbers:
            self._launch_server(number)
        self._wait_for_broker()
        for number in numbers:
            self._wait_for_server(number)

    def _launch_controller(self) -> None:
        self._launch(
            "controller",
            "StartController",
            controllerHost="localhost",
            controllerPort=self.ports.controller,
            dataDir=self.directory / "controller",
            **self._membership(),
        )

    def _launch_broker(self) -> None:
        self._launch(
            "broker", "StartBroker", brokerHost="localhost", brokerPort=self.broker_port, **self._membership()
        )

    def _launch_server(self, number: int) -> None:
        ports, place = self.ports.servers[number], self.directory / f"server-{number}"
        self._launch(
            f"server-{number}",
            "StartServer",
            serverHost="localhost",
            serverPort=ports.query,
            serverAdminPort=ports.admin,
            serverGrpcPort=ports.grpc,
            dataDir=place / "data",
            segmentDir=place / "segments",
            **self._membership(),
        )

    def _membership(self) -> dict[str, str]:
        return {"clusterName": "gris", "zkAddress": f"localhost:{self.ports.zookeeper}"}

    def _wait_for_broker(self) -> None:
        self._wait_for("broker", lambda: _is_healthy(self.broker_port))

    def _wait_for_server(self, number: int) -> None:
        self._wait_for(f"server-{number}", lambda: _is_healthy(self.ports.servers[number].admin))

    def _launch(self, name: str, command: str, **options: str | int | Path) -> None:
        """Start one role in its own session: Ctrl-C then reaches only us, who stop the roles in order."""
        arguments = [text for key, value in options.items() for text in (f"-{key}", str(value))]
        with (self.directory / f"{name}.out").open("ab") as output:
            child = subprocess.Popen(
                [*self._java(name), command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                start_new_session=True,
            )
        self._processes[name] = _Process(child.pid, child)
        self._write_state()

    def _java(self, name: str) -> list[str]:
        return [
            *("java", "-Xms256M", "-Xmx1G", *QUICK_START, *self._java_options),
            *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED_PACKAGES),
            "-Dio.netty.tryReflectionSetAccessible=true",
            "-Dpinot.admin.system.exit=true",
            f"-Dlog4j2.configurationFile={FOLDER / 'log4j2.xml'}",
            f"-Dgris.log={self.directory / name}.log",
            *("-cp", f"{self._jars}/*"),
            "org.apache.pinot.tools.admin.PinotAdministrator",
        ]

    def _write_state(self) -> None:
        """Note what runs, so that another run of this program can find and stop it."""
        processes = {name: process.pid for name, process in self._processes.items()}
        state = {"version": self.version, "ports": asdict(self.ports), "processes": processes}
        self._state_file.write_text(json.dumps(state, indent=2))

    def _wait_for(self, name: str, is_ready: Callable[[], bool]) -> None:
        process = self._processes[name]
        _wait_until(lambda: is_ready() or not process.is_running(), _READY_SECONDS)
        if not process.is_running() or not is_ready():
            raise ClusterError(f"{name} did not start; {self.directory / name}.log and .out say why")


@dataclass
class _Process:
    """One role: a child of ours, or a process that an earlier run of this program left behind."""

    pid: int
    child: "subprocess.Popen[bytes] | None" = field(default=None)

    def is_running(self) -> bool:
        if self.child is not None:
            return self.child.poll() is None
        # Process numbers are used again, so what has ours by now is looked at before it is taken for a role.
        shown = subprocess.run(
            ["ps", "-ww", "-o", "command=", "-p", str(self.pid)], capture_output=True, check=False
        )
        return b"PinotAdministrator" in shown.stdout

    def send(self, number: signal.Signals) -> None:
        if self.is_running():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def end(self, number: signal.Signals) -> None:
        """Send the signal and wait until the process is gone."""
        self.send(number)
        _wait_until(lambda: not self.is_running(), _STOP_SECONDS)


def collect_jars(version: str) -> Path:
    """Return the folder with the jars of a Pinot release; Maven fetches them if they are not there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    target = cache / "gris" / "pinot" / version
    if target.is_dir():
        return target
    _require("mvn", "Maven (Debian: apt-get install maven, macOS: brew install maven)")
    target.parent.mkdir(parents=True, exist_ok=True)
    # A folder under its final name is always whole, also when two runs collect at once or one is interrupted.
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        collected = Path(folder) / version
        _copy_dependencies(version, collected)
        with suppress(OSError):
            collected.rename(target)
    return target


def _copy_dependencies(version: str, target: Path) -> None:
    command = ["mvn", "-B", "-q", "-f", str(FOLDER / "pom.xml"), "dependency:copy-dependencies"]
    done = subprocess.run(
        [*command, f"-DoutputDirectory={target}", f"-Dpinot.version={version}"], check=False
    )
    if done.returncode != 0:
        raise ClusterError(f"Maven could not collect the jars of Pinot {version}; its messages are above")


def _require(program: str, what: str) -> None:
    if shutil.which(program) is None:
        raise ClusterError(f"{program} was not found: install {what}")


def _stop_together(processes: Iterable[_Process]) -> None:
    """Ask the processes to end, wait for them, and kill those that do not."""
    kept = list(processes)
    for process in kept:
        process.send(signal.SIGTERM)
    _wait_until(lambda: not any(process.is_running() for process in kept), _STOP_SECONDS)
    for process in kept:
        process.end(signal.SIGKILL)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _is_healthy(port: int) -> bool:
    # A proxy of the environment is not for this machine's own addresses.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://localhost:{port}/health", timeout=2) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def _wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Return as soon as the condition holds, at the latest after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
