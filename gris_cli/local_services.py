"""Services on this machine: what is looked at before they start, and what ends them."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gris_cli.examples import ServiceFiles

if TYPE_CHECKING:
    from pinot_connector.embedded import EmbeddedServices, Ports

POLL_SECONDS = 0.5
# The ports that `gris ask` and `gris budget` expect.
DP_PORT, BUDGET_PORT, ADMIN_PORT = 50051, 50052, 50053
GATEWAY_PORT = 50054
FACE_PORTS = {"mcp": 50055, "page": 50056, "broker": 50057, "postgres": 50058}
"""Those of what a gateway serves beside gRPC, by the keys of its configuration."""


def embedded(files: ServiceFiles, directory: Path, ports: Ports) -> EmbeddedServices:
    """Return services that are not started yet."""
    from pinot_connector.embedded import EmbeddedServices

    return EmbeddedServices(
        policy=files.policy,
        budget_config=files.budget,
        directory=directory,
        ports=ports,
    )


def stop_event() -> threading.Event:
    """Return what Ctrl-C, SIGTERM and the end of the terminal set from here on."""
    stopped, had_terminal = threading.Event(), _has_terminal()

    def hung_up(*_: object) -> None:
        # Sent by anything else, as to have files read again, it does nothing: these are read when they change.
        if had_terminal and not _has_terminal():
            stopped.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    # What `nohup` starts outlives its terminal.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, hung_up)
    return stopped


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def until_stopped(stopped: threading.Event, ensure_running: Callable[[], None]) -> None:
    """Wait until it is set, and have what runs looked after."""
    while not stopped.wait(POLL_SECONDS):
        ensure_running()


def require_kept(policy: Path, tables: dict[str, Path]) -> None:
    """Refuse data that are not as the policy says, or break what it promises of every member."""
    if not tables:
        return
    from gris_cli.data.errors import InputError
    from gris_cli.data.policies import policy_of
    from gris_cli.data.policy.blocks import kept_together
    from gris_cli.data.policy.data import require_kept

    found = policy_of(policy)
    together = kept_together(
        found, {each.name: tables[each.name] for each in found.tables if each.name in tables}
    )
    if together is not None and not together.is_kept:
        raise typer.BadParameter(
            f"--data: some members belong to more blocks, over all tables, than the policy promises; gris check "
            f"{policy} counts them, and docs/blocks.md has the SQL that divides them"
        )
    for table in found.tables:
        if table.name in tables:
            try:
                require_kept(table, tables[table.name], found.currency.blocks)
            except InputError as error:
                raise typer.BadParameter(
                    f"--data {table.name}: {error}; gris check {policy} --data {table.name}="
                    f"{tables[table.name]} shows all of it"
                ) from None


def require_free(ports: dict[str, int]) -> None:
    """Refuse a port that two services were given or another program listens on, by the flag that sets it."""
    for name, port in ports.items():
        alike = [other for other, given in ports.items() if given == port and other != name]
        if port and alike:
            raise typer.BadParameter(
                f"{name} and {alike[0]} are both {port}: each needs a port of its own, or 0 for a free one"
            )
        with socket.socket() as found:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                found.bind(("127.0.0.1", port))
            except OSError as error:
                raise typer.BadParameter(
                    f"{name}: 127.0.0.1:{port}: {(error.strerror or 'cannot be used').lower()}; {name} 0 takes a free "
                    "port"
                ) from None
