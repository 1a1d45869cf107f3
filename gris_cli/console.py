"""`gris console`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.flags import GatewayFlag, JsonFlag

if TYPE_CHECKING:
    from gris_console.process import Announce, HostedConsole, LocalConsole
    from gris_console.services import OwnerAddresses

LISTEN = "127.0.0.1:50056"


def console(
    *,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The configuration of a console for several people (console.yaml). Without it the console is yours "
            "alone: it presents your certificate or token to --gateway.",
        ),
    ] = None,
    validate: Annotated[
        bool, typer.Option("--validate", help="With --config: only check it, and every file that it names.")
    ] = False,
    gateway: GatewayFlag = "",
    dp: Annotated[str, typer.Option(metavar="ADDRESS", help="dp_service, for the owner's pages.")] = "",
    budget: Annotated[
        str, typer.Option(metavar="ADDRESS", help="budget_service, for the owner's pages.")
    ] = "",
    admin: Annotated[
        str, typer.Option(metavar="ADDRESS", help="The administrator's address, for the owner's pages.")
    ] = "",
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65535, help="Without --config: the port of this machine; 0 takes a free one."
        ),
    ] = int(LISTEN.rpartition(":")[2]),
    as_json: JsonFlag = False,
) -> None:
    """Serve web pages for analysts and owners until Ctrl-C: questions with their price, answers, history, budgets."""
    from gris_console.process import run  # noqa: PLC0415 - an extra
    from gris_serving import logs  # noqa: PLC0415 - `gris --help` should be quick
    from gris_serving.listening import ListeningError  # noqa: PLC0415
    from gris_serving.options import LogFormat, LogLevel  # noqa: PLC0415
    from gris_serving.reloading_files import SecurityError  # noqa: PLC0415

    logs.configure(LogFormat.JSON if as_json else LogFormat.TEXT, LogLevel.INFO)
    owner = (dp, budget, admin)
    try:
        if config is not None:
            if gateway or any(owner):
                raise typer.BadParameter("--config says where everything is: give it alone")
            hosted = _hosted(config)
            if validate:
                return
            run(hosted, _announce(as_json, ""))
        else:
            if not gateway or validate:
                raise typer.BadParameter(
                    "--gateway or GRIS_GATEWAY says whom to ask; --config serves several people"
                )
            local = _local(gateway, owner, port)
            run(local, _announce(as_json, local.authenticator.code))
    except (SecurityError, ListeningError) as error:
        raise typer.BadParameter(str(error)) from None


def _hosted(config: Path) -> HostedConsole:
    from gris_console.process import HostedConsole, read_configuration  # noqa: PLC0415 - an extra

    return HostedConsole(read_configuration(config))


def _local(gateway: str, owner: tuple[str, str, str], port: int) -> LocalConsole:
    from gris_cli.connection_options import credentials, remember_address  # noqa: PLC0415 - loads gRPC
    from gris_console.process import LocalConsole  # noqa: PLC0415 - an extra
    from pinot_connector.gateway_client import gateway_address  # noqa: PLC0415

    remember_address("gateway", gateway, "--gateway or GRIS_GATEWAY")
    return LocalConsole(f"127.0.0.1:{port}", gateway_address(gateway, credentials()), _owner(*owner))


def _owner(dp: str, budget: str, admin: str) -> OwnerAddresses | None:
    from gris_cli.connection_options import protected_address  # noqa: PLC0415 - loads gRPC
    from gris_console.services import OwnerAddresses  # noqa: PLC0415

    if not any((dp, budget, admin)):
        return None
    if not all((dp, budget, admin)):
        raise typer.BadParameter("the owner's pages need --dp, --budget and --admin together")
    return OwnerAddresses(
        protected_address(dp, "dp_service", "--dp"),
        protected_address(budget, "budget_service", "--budget"),
        protected_address(admin, "budget_service", "--admin"),
    )


def _announce(as_json: bool, code: str) -> Announce:
    from gris_console.process import announce_as_json  # noqa: PLC0415 - an extra

    def announced(address: str, url: str) -> None:
        if as_json:
            announce_as_json(address, url, code)
            return
        typer.echo(f"The console is at {url}")
        if code:
            typer.echo(f"Its code is {code}")
        typer.echo("Ctrl-C stops it.")
        sys.stdout.flush()

    return announced
