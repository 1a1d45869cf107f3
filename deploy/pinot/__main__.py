"""Starts and stops a real Apache Pinot on this machine.

python -m deploy.pinot start --servers 2
python -m deploy.pinot status
python -m deploy.pinot stop
"""

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from deploy.pinot.cluster import DEFAULT_DIRECTORY, DEFAULT_VERSION, ClusterError, PinotCluster, Ports


def _start(chosen: argparse.Namespace) -> PinotCluster:
    signal.signal(signal.SIGTERM, _exit_on_signal)
    ports = Ports.fixed(chosen.servers, controller=chosen.controller_port, broker=chosen.broker_port)
    cluster = PinotCluster(directory=chosen.directory, ports=ports, version=chosen.version, jars=chosen.jars)
    cluster.start()
    print(f"Pinot {chosen.version}: controller {cluster.controller_url}, broker {cluster.broker_url}")
    return cluster


def _run(chosen: argparse.Namespace) -> None:
    """Keep a cluster up until a signal asks it to stop or a role ends by itself: a container's main process."""
    cluster = _start(chosen)
    try:
        while all(cluster.status().values()):
            time.sleep(1)
        raise ClusterError(f"a role has ended: {cluster.status()}")
    finally:
        cluster.stop()


def _print_status(chosen: argparse.Namespace) -> None:
    for name, runs in PinotCluster.started_in(chosen.directory).status().items():
        print(f"{name:12} {'running' if runs else 'ended'}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="A real Apache Pinot on this machine.")
    parser.add_argument(
        "command", choices=("start", "run", "status", "stop"), help="`run` stays in the foreground"
    )
    parser.add_argument("--servers", type=int, default=2, help="how many servers share the data (default: 2)")
    parser.add_argument("--directory", type=Path, default=DEFAULT_DIRECTORY, help="data, logs and state")
    parser.add_argument("--controller-port", type=int, default=9000)
    parser.add_argument("--broker-port", type=int, default=8099)
    parser.add_argument("--version", default=DEFAULT_VERSION, help="the release to fetch from Maven Central")
    parser.add_argument("--jars", type=Path, help="a folder that holds the jars already")
    return parser


def _exit_on_signal(number: int, frame: object) -> NoReturn:
    """Turn a request to end into an exception, so that what was started is stopped on the way out."""
    sys.exit(128 + number)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    chosen = _parser().parse_args(arguments)
    try:
        match chosen.command:
            case "start":
                _start(chosen)
            case "run":
                _run(chosen)
            case "status":
                _print_status(chosen)
            case _:
                PinotCluster.started_in(chosen.directory).stop()
    except ClusterError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("interrupted; what was started has been stopped")


if __name__ == "__main__":
    main()
