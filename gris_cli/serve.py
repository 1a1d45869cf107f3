"""`gris serve`."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gris_cli.currencies import require_currency
from gris_cli.examples import ServiceFiles, find_examples, locations_of, require_tables, service_files
from gris_cli.first_question import first_question
from gris_cli.flag_groups import flag, with_flags
from gris_cli.flags import DEFAULT_DIRECTORY
from gris_cli.local_services import (
    ADMIN_PORT,
    BUDGET_PORT,
    DP_PORT,
    FACE_PORTS,
    GATEWAY_PORT,
    embedded,
    require_free,
    require_kept,
    stop_event,
    until_stopped,
)

if TYPE_CHECKING:
    from pinot_connector.embedded import EmbeddedServices

LARGEST_PORT = 65535
_SERVICE_PORTS = ("dp_port", "budget_port", "admin_port")
_SHARED_PORTS = ("gateway_port", *(f"{name}_port" for name in FACE_PORTS))


def _port(default: int, what: str) -> int:
    return flag(default, f"The port of {what}; 0 takes a free one.", min=0, max=LARGEST_PORT, metavar="PORT")


@dataclass(frozen=True)
class ServeFlags:
    """What is served, and where."""

    policy: Path | None = flag(None, "The policy of dp_service; by default that of the examples.")
    data: list[str] = flag(
        [],
        "A table's file, Parquet or DuckDB, to compare with the policy before the services start. Without --gateway "
        "anyone who asks names it again: the services see no data. Repeatable.",
        metavar="TABLE=PATH",
    )
    budget_config: Path | None = flag(
        None, "The configuration of budget_service; by default that of the examples."
    )
    directory: Path = flag(DEFAULT_DIRECTORY, "Where keys, ledger and logs are kept.")
    dp_port: int = _port(DP_PORT, "dp_service")
    budget_port: int = _port(BUDGET_PORT, "budget_service")
    admin_port: int = _port(ADMIN_PORT, "budget_service's administration")
    examples: Path | None = flag(None, "The directory of the examples.")
    gateway: bool = flag(
        False,
        "Serve --data, or the examples, to SQLAlchemy, browsers and agents of this machine too, by a certificate and "
        "a token that are made in --directory.",
    )
    gateway_port: int = _port(GATEWAY_PORT, "the gateway")
    mcp_port: int = _port(FACE_PORTS["mcp"], "the gateway for agents")
    page_port: int = _port(FACE_PORTS["page"], "the page")
    broker_port: int = _port(FACE_PORTS["broker"], "the gateway for clients of Pinot")
    postgres_port: int = _port(FACE_PORTS["postgres"], "the gateway for clients of PostgreSQL")

    def require_used(self, context: typer.Context, names: Collection[str]) -> None:
        """Refuse flags that others leave without a meaning."""
        for name in () if self.gateway else _SHARED_PORTS:
            source = context.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                raise typer.BadParameter(f"--{name.replace('_', '-')} has no meaning without --gateway")

    @property
    def ports(self) -> dict[str, int]:
        """The ports to listen on, by the flags that set them."""
        return {
            f"--{name.replace('_', '-')}": getattr(self, name)
            for name in _SERVICE_PORTS + (_SHARED_PORTS if self.gateway else ())
        }

    def tables(self, files: ServiceFiles) -> dict[str, Path]:
        """Return the files of the tables that are named; with --gateway, else of those of the examples.

        Raises:
            typer.BadParameter: A file or its table does not fit, or the gateway would have no data.
        """
        from gris_cli.clients import data_files

        locations = locations_of(self.data)
        if self.gateway and not locations:
            if self.policy is not None:
                raise typer.BadParameter("--gateway: --data TABLE=PATH says where the data are")
            locations = {name: str(path) for name, path in find_examples(self.examples).tables.items()}
        require_tables(files.policy, locations)
        return data_files(locations)


@with_flags
def serve(*, flags: ServeFlags, as_json: bool) -> None:
    """Run both services on this machine until Ctrl-C, and with --gateway everything that a shared answer needs."""
    files = service_files(flags.policy, flags.budget_config, flags.examples)
    tables = flags.tables(files)
    require_free(flags.ports)
    require_currency(files.policy, flags.directory)
    require_kept(files.policy, tables)
    _serve_tables(flags, files, tables, as_json=as_json)


def _serve_tables(flags: ServeFlags, files: ServiceFiles, tables: dict[str, Path], *, as_json: bool) -> None:
    """Serve tables until Ctrl-C."""
    from pinot_connector.embedded import Ports

    services = embedded(files, flags.directory, Ports(flags.dp_port, flags.budget_port, flags.admin_port))
    if flags.gateway:
        _serve_shared(flags, services, files, tables, as_json=as_json)
        return
    with services:
        stopped = stop_event()
        _announce(services, files, tables, as_json=as_json)
        until_stopped(stopped, services.ensure_running)


def _serve_shared(
    flags: ServeFlags,
    services: EmbeddedServices,
    files: ServiceFiles,
    tables: dict[str, Path],
    *,
    as_json: bool,
) -> None:
    from gris_cli.shared.documents import Ports
    from gris_cli.shared.serving import ServedTables, serve_shared

    served = ServedTables(files, tables, some_account(files.budget))
    faces = {name: getattr(flags, f"{name}_port") for name in FACE_PORTS}
    others = Ports(flags.gateway_port, faces)
    serve_shared(services, served, flags.directory, others, as_json=as_json)


@dataclass(frozen=True)
class _Commands:
    """What somebody types next: the environment of the other terminal, and a first question of each table of data."""

    environment: dict[str, str]
    questions: list[str]


def _announce(
    services: EmbeddedServices, files: ServiceFiles, tables: dict[str, Path], *, as_json: bool
) -> None:
    from gris_cli.terminal import print_json, say

    addresses = {
        "dp": services.dp_address,
        "budget": services.budget_address,
        "admin": services.admin_address,
    }
    if as_json:
        print_json(addresses)
        return
    say("dp_service", f"{services.dp_address}, policy {files.policy}")
    say("budget", f"{services.budget_address}, budgets {files.budget}")
    say("admin", f"{services.admin_address}, for gris budget")
    commands = _commands(services, files, tables)
    typer.echo("\nIn another terminal:")
    for name, value in commands.environment.items():
        # Not by the console, which would break a line that is to be copied.
        typer.echo(f"  export {name}={shlex.quote(value)}")
    for question in commands.questions:
        typer.echo(f"  {question}")
    typer.echo("  gris budget verify\n\nCtrl-C stops them.")


def _commands(services: EmbeddedServices, files: ServiceFiles, tables: dict[str, Path]) -> _Commands:
    from gris_cli.data.policies import policy_of

    environment = {
        "GRIS_DP": services.dp_address,
        "GRIS_BUDGET": services.budget_address,
        "GRIS_BUDGET_ADMIN": services.admin_address,
        "GRIS_ACCOUNT": some_account(files.budget),
        # From any directory, what was paid for is given again.
        "GRIS_RELEASES": str(services.releases_file),
    }
    policy = policy_of(files.policy)
    questions = [first_question(table, tables) for table in policy.tables if table.name in tables]
    return _Commands(
        {name: value for name, value in environment.items() if value}, questions or ["gris catalog"]
    )


def some_account(path: Path) -> str:
    """Return an account that the budgets allow: of those with the longest path, rather one that a wildcard makes."""
    from budget_service.configuration.budget_file import ConfigurationError, load_configuration

    try:
        entries = load_configuration(path).accounts
    except ConfigurationError:
        # The service has read the file; if it was changed since, somebody knows what it says.
        return ""
    deepest = max(len(entry.path) for entry in entries)
    found = max((each for each in entries if len(each.path) == deepest), key=lambda each: each.has_wildcard)
    return "/".join("ana" if segment == "*" else segment for segment in found.path)
