"""`gris console`."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.flag_groups import flag, with_flags
from gris_cli.flags import ConnectionFlags

if TYPE_CHECKING:
    from gris_console.process import Announce, LocalConsole
    from gris_console.services import OwnerAddresses

PORT = 50056


@dataclass(frozen=True)
class OwnerFlags:
    """The services that the owner's pages ask."""

    dp: str = flag("", "dp_service, for the owner's pages.", metavar="ADDRESS")
    budget: str = flag("", "budget_service, for the owner's pages.", metavar="ADDRESS")
    admin: str = flag("", "The administrator's address, for the owner's pages.", metavar="ADDRESS")

    def given(self) -> list[str]:
        """Return the flags that are given."""
        return [f"--{name}" for name, address in asdict(self).items() if address]

    def addresses(self) -> OwnerAddresses | None:
        """Return the addresses with credentials; None: none was given."""
        from gris_cli.connection_options import protected_address
        from gris_console.services import OwnerAddresses

        if self == OwnerFlags():
            return None
        if not all((self.dp, self.budget, self.admin)):
            raise typer.BadParameter("the owner's pages need --dp, --budget and --admin together")
        return OwnerAddresses(
            protected_address(self.dp, "dp_service", "--dp"),
            protected_address(self.budget, "budget_service", "--budget"),
            protected_address(self.admin, "budget_service", "--admin"),
        )


@with_flags
def console(
    *,
    connection: Annotated[ConnectionFlags, ("gateway",)],
    owner: OwnerFlags,
    config: Path | None = flag(
        None,
        "The configuration of a console for several people (console.yaml). Without it the console is yours "
        "alone: it presents your certificate or token to --gateway.",
        metavar="FILE",
    ),
    validate: bool = flag(False, "With --config: only check it, and every file that it names."),
    stop_with_stdin: bool = flag(False, "End at the end of standard input, too.", hidden=True),
    port: int = flag(
        PORT, "Without --config: the port of this machine; 0 takes a free one.", min=0, max=65535
    ),
    open_it: bool = flag(False, "Open the address in your browser, if there is a screen.", "--open"),
    as_json: bool,
) -> None:
    """Serve web pages for analysts and owners until Ctrl-C: questions with their price, answers, history, budgets."""
    from gris_console.process import HostedConsole, read_configuration, run
    from gris_serving import logs
    from gris_serving.listening import ListeningError
    from gris_serving.options import LogFormat, LogLevel
    from gris_serving.reloading_files import SecurityError

    logs.configure(LogFormat.JSON if as_json else LogFormat.TEXT, LogLevel.INFO)
    try:
        if config is not None:
            if others := [*(["--gateway or GRIS_GATEWAY"] if connection.gateway else []), *owner.given()]:
                raise typer.BadParameter(
                    f"--config says where everything is: give it without {', '.join(others)}"
                )
            hosted = HostedConsole(read_configuration(config))
            if not validate:
                run(hosted, _announce(as_json, "", open_it), stops_with_stdin=stop_with_stdin)
            return
        if not connection.gateway or validate:
            raise typer.BadParameter(
                "--gateway or GRIS_GATEWAY says whom to ask; --config serves several people"
            )
        local = _local(connection, owner, port)
        run(local, _announce(as_json, local.authenticator.code, open_it))
    except (SecurityError, ListeningError) as error:
        raise typer.BadParameter(str(error)) from None


def _local(connection: ConnectionFlags, owner: OwnerFlags, port: int) -> LocalConsole:
    from gris_cli.clients import gateway_of
    from gris_console.process import LocalConsole

    return LocalConsole(f"127.0.0.1:{port}", gateway_of(connection), owner.addresses())


def _announce(as_json: bool, code: str, open_it: bool) -> Announce:
    from gris_console.process import announce_as_json, open_in_browser

    def announced(address: str, url: str) -> None:
        if open_it:
            open_in_browser(url)
        if as_json:
            announce_as_json(address, url, code)
            return
        typer.echo(f"The console is at {url}")
        if code:
            typer.echo(f"Its code is {code}")
        typer.echo("Ctrl-C stops it.")
        sys.stdout.flush()

    return announced
