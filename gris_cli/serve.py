"""`gris serve`."""

from __future__ import annotations

import shlex
import signal
import socket
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gris_cli.examples import ServiceFiles, locations_of, require_tables, service_files
from gris_cli.flag_groups import flag, with_flags
from gris_cli.flags import DEFAULT_DIRECTORY

if TYPE_CHECKING:
    from dp_service.queries.tables import Table
    from pinot_connector.embedded import EmbeddedServices

POLL_SECONDS = 0.5
# The ports that `gris ask` and `gris budget` expect.
DP_PORT, BUDGET_PORT, ADMIN_PORT = 50051, 50052, 50053
LARGEST_PORT = 65535
SHOWN = 5


def _port(default: int, what: str) -> int:
    return flag(default, f"The port of {what}; 0 takes a free one.", min=0, max=LARGEST_PORT, metavar="PORT")


@with_flags
def serve(
    *,
    policy: Path | None = flag(None, "The policy of dp_service; by default that of the examples."),
    data: list[str] = flag(
        [],
        "A table's file, Parquet or DuckDB, to compare with the policy before the services start. Anyone who "
        "asks names it again: the services see no data. Repeatable.",
        metavar="TABLE=PATH",
    ),
    budget_config: Path | None = flag(
        None, "The configuration of budget_service; by default that of the examples."
    ),
    directory: Path = flag(DEFAULT_DIRECTORY, "Where noise key, ledger and logs are kept."),
    dp_port: int = _port(DP_PORT, "dp_service"),
    budget_port: int = _port(BUDGET_PORT, "budget_service"),
    admin_port: int = _port(ADMIN_PORT, "budget_service's administration"),
    examples: Path | None = flag(None, "The directory of the examples."),
    as_json: bool,
) -> None:
    """Run both services and the ledger's administration on this machine, until Ctrl-C."""
    from gris_cli.clients import files_and_copies
    from gris_data.caching import cache_directory
    from pinot_connector.embedded import EmbeddedServices, Ports

    files = service_files(policy, budget_config, examples)
    locations = locations_of(data)
    require_tables(files.policy, locations)
    tables = files_and_copies(files.policy, locations)
    _require_kept(files.policy, tables)
    _require_free({"--dp-port": dp_port, "--budget-port": budget_port, "--admin-port": admin_port})
    stopped = threading.Event()
    with EmbeddedServices(
        policy=files.policy,
        budget_config=files.budget,
        directory=directory,
        adaptive_tables=cache_directory(),
        ports=Ports(dp_port, budget_port, admin_port),
    ) as services:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopped.set())
        _announce(services, files, tables, as_json=as_json)
        while not stopped.wait(POLL_SECONDS):
            services.ensure_running()


def _require_kept(policy: Path, tables: dict[str, Path]) -> None:
    """Refuse data that are not as the policy says, or break what it promises of every member."""
    if not tables:
        return
    from gris_data.errors import InputError
    from gris_data.policies import policy_of
    from gris_data.policy.data import require_kept

    for table in policy_of(policy).tables:
        if table.name in tables:
            try:
                require_kept(table, tables[table.name])
            except InputError as error:
                raise typer.BadParameter(
                    f"--data {table.name}: {error}; gris policy check {policy} --data {table.name}="
                    f"{tables[table.name]} shows all of it"
                ) from None


def _require_free(ports: dict[str, int]) -> None:
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
        "GRIS_ACCOUNT": _some_account(files.budget),
        # From any directory, what was paid for is given again.
        "GRIS_RELEASES": str(services.releases_file),
    }
    policy = policy_of(files.policy)
    questions = [first_question(table, tables) for table in policy.tables if table.name in tables]
    return _Commands(
        {name: value for name, value in environment.items() if value}, questions or ["gris catalog"]
    )


def _some_account(path: Path) -> str:
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


def first_question(table: Table, files: dict[str, Path]) -> str:
    """Return the command of a first question: the largest elements of the first column that may be grouped by.

    Args:
        table: The table of the question.
        files: The files of tables and copies.
    """
    column = next((each.name for each in table.usable_columns if each.group_by), None)
    if column is None:
        return "gris catalog"
    # The pairs copy may answer, which only the services know.
    names = [table.name] if table.prepared is None else [table.name, table.prepared.table]
    data = " ".join(f"--data {shlex.quote(f'{name}={files[name].resolve()}')}" for name in names)
    return f"gris ask {data} --table {table.name} --by {column} --k {SHOWN}"
