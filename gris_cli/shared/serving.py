"""Serves everything that a shared answer needs, until Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import typer

from gris_cli.data import private_files
from gris_cli.examples import ServiceFiles
from gris_cli.first_question import options_of_a_question
from gris_cli.local_services import stop_event, until_stopped
from gris_cli.shared.documents import (
    GATEWAY,
    Ports,
    Shared,
    Upstream,
    gateway_text,
)
from gris_cli.shared.identity import Identity, Person, make_identity, remove_ending
from gris_cli.shared.pasting import Pasted
from gris_cli.shared.running import SharedProcesses, possible_faces, require_gateway
from pinot_connector.embedded import RELEASES_KEY_FILE, EmbeddedServices, ignored_by_git, secret_key

_YOU = Person("you", "analyst")
_DAYS = 30
_LOCALHOST = "localhost"
_HEAD = "# Written anew by each `gris serve --gateway`: what you change here is lost.\n"


@dataclass(frozen=True)
class ServedTables:
    """The files of the services, and those of the tables; whose budget pays, as demo/ana."""

    files: ServiceFiles
    tables: dict[str, Path]
    account: str


def serve_shared(
    services: EmbeddedServices, served: ServedTables, directory: Path, ports: Ports, *, as_json: bool
) -> None:
    """Serve tables on this machine, with an identity that is made in the directory unless it is there.

    Raises:
        InputError: Something in the directory cannot be used.
        typer.BadParameter: An extra is missing.
        GrisError: Something does not start.
    """
    require_gateway()
    identity = Identity(directory)
    if private_files.private_directory(directory):
        ignored_by_git(directory)
    _require_ours(directory)
    remove_ending(identity, (_YOU,))
    make_identity(identity, (_YOU,), _DAYS)
    tables = {name: path.resolve() for name, path in served.tables.items()}
    account = tuple(served.account.split("/"))
    faces = possible_faces()
    shared = Shared(tables, account, faces)
    with services, SharedProcesses(directory) as processes:
        secret_key(directory / RELEASES_KEY_FILE)
        upstream = Upstream(services.dp_address, services.budget_address)
        private_files.replace(directory / GATEWAY, gateway_text(_HEAD, shared, upstream, ports))
        announced = processes.start_gateway(GATEWAY)
        gateway = f"gris://{_LOCALHOST}:{_port_of(announced['address'])}"
        pasted = Pasted(
            identity=identity,
            person=_YOU,
            gateway=gateway,
            faces={name: announced[f"{name}_address"] for name in faces},
            page=announced.get("page_link", ""),
            question=_question(served.files.policy, tables),
        )
        stopped = stop_event()
        _announce(services, pasted, as_json=as_json)
        until_stopped(stopped, _all_of(services, processes))


def _require_ours(directory: Path) -> None:
    """Refuse a folder whose configuration was written to be kept."""
    written = directory / GATEWAY
    if written.is_file() and not written.read_bytes().startswith(_HEAD[:40].encode()):
        raise typer.BadParameter(
            f"{written} is there and was not written by this command: python -m gris_gateway --config {written} "
            "serves it, --directory names another folder"
        )


def _port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def _question(policy: Path, tables: dict[str, Path]) -> str:
    from gris_cli.data.policies import policy_of

    found = (options_of_a_question(each) for each in policy_of(policy).tables if each.name in tables)
    return next((each for each in found if each), "--sql 'SELECT ..'")


def _all_of(services: EmbeddedServices, processes: SharedProcesses) -> Callable[[], None]:
    def ensure_running() -> None:
        services.ensure_running()
        processes.ensure_running()

    return ensure_running


def _announce(services: EmbeddedServices, pasted: Pasted, *, as_json: bool) -> None:
    from gris_cli.terminal import print_json, say

    addresses = {
        "dp": services.dp_address,
        "budget": services.budget_address,
        "admin": services.admin_address,
    }
    if as_json:
        print_json({**addresses, **pasted.plain()})
        return
    say("services", ", ".join(addresses.values()))
    say("gateway", pasted.gateway)
    pasted.print()
    typer.echo("\nCtrl-C stops all of it.")
