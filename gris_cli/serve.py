"""`gris serve`."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
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
    CONSOLE_PORT,
    DP_PORT,
    FACE_PORTS,
    GATEWAY_PORT,
    embedded,
    interrupt,
    on_signals,
    require_free,
    require_kept,
    stop_event,
    until_stopped,
)

if TYPE_CHECKING:
    from pinot_connector.embedded import EmbeddedServices

LARGEST_PORT = 65535
_SERVICE_PORTS = ("dp_port", "budget_port", "admin_port")
_SHARED_PORTS = ("gateway_port", "console_port", *(f"{name}_port" for name in FACE_PORTS))


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
    practice: bool = flag(
        False,
        "As --gateway, but with made-up rows of the policy's shape instead of data, and a budget that is new at each "
        "start; every answer says so.",
    )
    gateway: bool = flag(
        False,
        "Serve --data, or the examples, to SQLAlchemy, browsers and agents of this machine too, by a certificate and "
        "a token that are made in --directory.",
    )
    gateway_port: int = _port(GATEWAY_PORT, "the gateway")
    mcp_port: int = _port(FACE_PORTS["mcp"], "the gateway for agents")
    console_port: int = _port(CONSOLE_PORT, "the console")
    broker_port: int = _port(FACE_PORTS["broker"], "the gateway for clients of Pinot")
    postgres_port: int = _port(FACE_PORTS["postgres"], "the gateway for clients of PostgreSQL")
    written: Path | None = flag(
        None, "Serve what `gris init` has written there instead.", "--from", metavar="DIRECTORY"
    )

    def require_used(self, context: typer.Context, names: Collection[str]) -> None:
        """Refuse flags that others leave without a meaning."""
        unused = []
        if self.written is not None:
            unused, without = [each for each in names if each != "written"], "with --from, whose files say it"
        elif self.practice:
            unused, without = (
                list(_SERVICE_PORTS),
                "with --practice, where the gateway alone calls the services",
            )
        elif not self.gateway:
            unused, without = list(_SHARED_PORTS), "without --gateway"
        for name in unused:
            source = context.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                raise typer.BadParameter(f"--{name.replace('_', '-')} has no meaning {without}")

    @property
    def ports(self) -> dict[str, int]:
        """The ports to listen on, by the flags that set them."""
        return {
            f"--{name.replace('_', '-')}": getattr(self, name)
            for name in (() if self.practice else _SERVICE_PORTS)
            + (_SHARED_PORTS if self.gateway or self.practice else ())
        }

    def tables(self, files: ServiceFiles) -> dict[str, Path]:
        """Return the files of the tables that are named; with --gateway, else of those of the examples.

        Raises:
            typer.BadParameter: A file or its table does not fit, or the gateway would have no data.
        """
        from gris_cli.clients import files_and_copies

        locations = locations_of(self.data)
        if self.practice and locations:
            raise typer.BadParameter("--data has no meaning with --practice, which reads no data")
        if self.gateway and not self.practice and not locations:
            if self.policy is not None:
                raise typer.BadParameter("--gateway: --data TABLE=PATH says where the data are")
            locations = {name: str(path) for name, path in find_examples(self.examples).tables.items()}
        require_tables(files.policy, locations)
        return files_and_copies(files.policy, locations)


@with_flags
def serve(*, flags: ServeFlags, as_json: bool) -> None:
    """Run both services on this machine until Ctrl-C, and with --gateway everything that a shared answer needs."""
    if flags.written is not None:
        from gris_cli.shared.serving import serve_written

        serve_written(flags.written, as_json=as_json)
        return
    files = service_files(flags.policy, flags.budget_config, flags.examples)
    tables = flags.tables(files)
    require_free(flags.ports)
    if not flags.practice:
        require_currency(files.policy, flags.directory)
        require_kept(files.policy, tables)
        _serve_tables(flags, files, tables, as_json=as_json)
        return
    # A noise key, a ledger and releases of their own, which end with it, also by a signal before everything serves:
    # nothing of practice is given for real. What comes while the folder is made waits; a mask would be this thread's
    # alone, and another would end the process.
    stopped = stop_event()
    with TemporaryDirectory(prefix="gris-practice-") as state:
        on_signals(interrupt)
        if stopped.is_set():
            raise KeyboardInterrupt
        _serve_practice(flags, files, Path(state), as_json=as_json)


def _serve_practice(flags: ServeFlags, files: ServiceFiles, state: Path, *, as_json: bool) -> None:
    """Serve made-up rows until Ctrl-C, by services that answer about no others; `state` is where all of it is kept."""
    from gris_data.policies import policy_of
    from gris_lab.practice_rows import practice_tables
    from pinot_connector.embedded import Ports
    from pinot_connector.engines.duckdb import DuckDBEngine

    tables = practice_tables(policy_of(files.policy), state, datetime.datetime.now(datetime.UTC).date())
    engine = DuckDBEngine(tables)
    services = embedded(files, state, Ports(admin=0), practice=[engine.data_version(name) for name in tables])
    _serve_shared(flags, services, files, tables, as_json=as_json)


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

    served = ServedTables(files, tables, some_account(files.budget), is_practice=flags.practice)
    directory = flags.directory / "practice" if flags.practice else flags.directory
    faces = {name: getattr(flags, f"{name}_port") for name in FACE_PORTS}
    others = Ports(flags.gateway_port, flags.console_port, faces)
    serve_shared(services, served, directory, others, as_json=as_json)


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
    from gris_data.policies import policy_of

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
