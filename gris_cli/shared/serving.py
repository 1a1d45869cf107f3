"""Serves everything that a shared answer needs, until Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import typer

from gris_cli.currencies import require_currency
from gris_cli.examples import ServiceFiles
from gris_cli.first_question import options_of_a_question
from gris_cli.local_services import (
    ADMIN_PORT,
    embedded,
    require_free,
    require_kept,
    stop_event,
    until_stopped,
)
from gris_cli.shared.documents import (
    BUDGET,
    CONSOLE,
    GATEWAY,
    LOCALHOST,
    POLICY,
    Ports,
    Shared,
    Upstream,
    console_text,
    gateway_text,
)
from gris_cli.shared.identity import ANALYST, OWNER, Identity, Person, make_identity, remove_ending
from gris_cli.shared.pasting import Face, Pasted
from gris_cli.shared.running import SharedProcesses, has_console, possible_faces, require_gateway
from gris_data import private_files
from pinot_connector.embedded import RELEASES_KEY_FILE, EmbeddedServices, ignored_by_git, secret_key
from pinot_connector.embedded import Ports as ServicePorts

if TYPE_CHECKING:
    from gris_console.configuration import ConsoleConfiguration
    from gris_gateway.configuration import GatewayConfiguration

# On one machine, the one who starts it asks and owns. What programs and agents are given only asks.
_YOU = Person("you", "analyst")
_YOU_AS_OWNER = Person("you", "owner", (ANALYST, OWNER))
_PEOPLE = (_YOU, _YOU_AS_OWNER)
_DAYS = 30
_PRACTICE = "all rows are made up from the policy; budget and answers end with this command"
_HEAD = "# Written anew by each `gris serve --gateway`: what you change here is lost. `gris init` writes one to keep.\n"


@dataclass(frozen=True)
class ServedTables:
    """The files of the services, and those of the tables; whose budget pays, as demo/ana; whether rows are made up."""

    files: ServiceFiles
    tables: dict[str, Path]
    account: str
    is_practice: bool


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
    remove_ending(identity, _PEOPLE)
    make_identity(identity, LOCALHOST, _PEOPLE, _DAYS)
    tables = {name: path.resolve() for name, path in served.tables.items()}
    account = tuple(served.account.split("/"))
    faces = possible_faces()
    shared = Shared(LOCALHOST, tables, account, each=False, faces=faces, keeps=not served.is_practice)
    with services, SharedProcesses(directory) as processes:
        if shared.keeps:
            secret_key(directory / RELEASES_KEY_FILE)
        upstream = Upstream(services.dp_address, services.budget_address, services.admin_address)
        private_files.replace(directory / GATEWAY, gateway_text(_HEAD, shared, upstream, ports))
        announced = processes.start_gateway(GATEWAY)
        gateway = f"gris://{LOCALHOST}:{_port_of(announced['address'])}"
        if console := has_console():
            private_files.replace(directory / CONSOLE, console_text(_HEAD, shared, upstream, ports, gateway))
        pasted = Pasted(
            identity=identity,
            person=_YOU,
            visitor=_YOU_AS_OWNER,
            gateway=gateway,
            faces={name: Face(announced[f"{name}_address"], is_secure=False) for name in faces},
            console=processes.start_console(CONSOLE)["url"] if console else "",
            question=_question(served.files.policy, tables),
        )
        stopped = stop_event()
        _announce(services, pasted, practice=served.is_practice, as_json=as_json)
        until_stopped(stopped, _all_of(services, processes))


def serve_written(directory: Path, *, as_json: bool) -> None:
    """Serve what `gris init` has written in a directory.

    Raises:
        InputError: Something there cannot be used.
        typer.BadParameter: A file is missing or not valid, data break the policy, or an extra is missing.
        GrisError: Something does not start.
    """
    require_gateway()
    private_files.private_directory(directory)
    written = Written.read(directory)
    tables = {name: directory / path for name, path in (written.gateway.engine.duckdb or {}).items()}
    require_kept(written.files.policy, tables)
    require_free(written.ports)
    require_currency(written.files.policy, directory)
    services = embedded(written.files, directory, written.service_ports)
    with services, SharedProcesses(directory) as processes:
        secret_key(directory / RELEASES_KEY_FILE)
        announced = processes.start_gateway(GATEWAY)
        url = processes.start_console(CONSOLE)["url"] if written.console and has_console() else ""
        pasted = written.pasted(written.analyst(), tables, announced, url)
        stopped = stop_event()
        _announce(services, pasted, practice=False, as_json=as_json)
        until_stopped(stopped, _all_of(services, processes))


@dataclass(frozen=True)
class Written:
    """What `gris init` has written, and its owner may have changed since."""

    directory: Path
    gateway: GatewayConfiguration
    console: ConsoleConfiguration | None

    @classmethod
    def read(cls, directory: Path) -> Written:
        """Read a directory.

        Raises:
            typer.BadParameter: A file is missing or not valid.
        """
        from gris_console.configuration import ConsoleConfiguration
        from gris_gateway.configuration import GatewayConfiguration
        from gris_serving.documents import read_document
        from gris_serving.reloading_files import SecurityError

        for name in (POLICY, BUDGET, GATEWAY):
            if not (directory / name).is_file():
                raise typer.BadParameter(
                    f"--from: {directory} has no {name}; gris init {directory} writes it"
                )
        try:
            console = directory / CONSOLE
            return cls(
                directory,
                read_document(directory / GATEWAY, GatewayConfiguration),
                read_document(console, ConsoleConfiguration) if console.is_file() and has_console() else None,
            )
        except SecurityError as error:
            raise typer.BadParameter(str(error)) from None

    @property
    def files(self) -> ServiceFiles:
        """The files of the services."""
        return ServiceFiles(self.directory / POLICY, self.directory / BUDGET)

    @property
    def service_ports(self) -> ServicePorts:
        """Where the gateway and the console look for the services."""
        owner = None if self.console is None else self.console.owner
        admin = ADMIN_PORT if owner is None else _port_of(owner.budget_admin.address)
        return ServicePorts(_port_of(self.gateway.dp.address), _port_of(self.gateway.budget.address), admin)

    @property
    def ports(self) -> dict[str, int]:
        """All ports of this machine, by what sets them."""
        ports = self.service_ports
        found = {
            f"{GATEWAY} dp": ports.dp,
            f"{GATEWAY} budget": ports.budget,
            f"{CONSOLE} budget_admin": ports.admin or 0,
            f"{GATEWAY} listen": _port_of(self.gateway.listen),
        }
        for name, settings in self.gateway.faces.items():
            found[f"{GATEWAY} {name}"] = _port_of(settings.listen)
        if self.console is not None:
            found[f"{CONSOLE} listen"] = _port_of(self.console.listen)
        return found

    @property
    def host(self) -> str:
        """The name under which others reach this machine."""
        if self.gateway.mcp is not None and self.gateway.mcp.hosts:
            return self.gateway.mcp.hosts[0]
        public = None if self.console is None else self.console.public_url
        return (urlsplit(public).hostname if public else None) or LOCALHOST

    def analyst(self) -> str:
        """Return the first of the analysts.

        Raises:
            typer.BadParameter: There is none.
        """
        folder = Identity(self.directory).credentials
        analysts = sorted(path.name.removesuffix(".token") for path in folder.glob("*.token"))
        if not (found := [each for each in analysts if each != OWNER]):
            raise typer.BadParameter(f"--from: {folder} has no token of an analyst; gris init makes one")
        return found[0]

    def pasted(
        self, analyst: str, tables: dict[str, Path], announced: Mapping[str, Any], console: str
    ) -> Pasted:
        """Return what an analyst pastes; `announced` says where the gateway serves over HTTP, if it runs."""
        faces = {}
        for name, settings in self.gateway.faces.items():
            port = _port_of(announced.get(f"{name}_address", settings.listen))
            is_secure = self.gateway.tls_of(settings) is not None
            faces[name] = Face(f"{self.host if is_secure else '127.0.0.1'}:{port}", is_secure)
        return Pasted(
            identity=Identity(self.directory),
            person=Person(analyst, analyst),
            visitor=Person(analyst, analyst),
            gateway=f"gris://{self.host}:{_port_of(self.gateway.listen)}",
            faces=faces,
            console=console,
            question=_question(self.files.policy, tables),
        )


def _require_ours(directory: Path) -> None:
    """Refuse a folder whose configuration was written to be kept."""
    written = directory / GATEWAY
    if written.is_file() and not written.read_bytes().startswith(_HEAD[:40].encode()):
        raise typer.BadParameter(
            f"{written} is there and was not written by this command: gris serve --from {directory} serves it, "
            "--directory names another folder"
        )


def _port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def _question(policy: Path, tables: dict[str, Path]) -> str:
    from gris_data.policies import policy_of

    found = (options_of_a_question(each) for each in policy_of(policy).tables if each.name in tables)
    return next((each for each in found if each), "--sql 'SELECT ..'")


def _all_of(services: EmbeddedServices, processes: SharedProcesses) -> Callable[[], None]:
    def ensure_running() -> None:
        services.ensure_running()
        processes.ensure_running()

    return ensure_running


def _announce(services: EmbeddedServices, pasted: Pasted, *, practice: bool, as_json: bool) -> None:
    from gris_cli.terminal import print_json, say

    addresses = {
        "dp": services.dp_address,
        "budget": services.budget_address,
        "admin": services.admin_address,
    }
    if practice:
        # Nobody has a question for these services but the gateway.
        addresses = {}
    if as_json:
        print_json({**addresses, "practice": practice, **pasted.plain()})
        return
    if practice:
        say("practice", _PRACTICE)
    else:
        say("services", ", ".join(addresses.values()))
    say("gateway", pasted.gateway)
    pasted.print()
    typer.echo("\nCtrl-C stops all of it.")
