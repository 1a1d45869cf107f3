"""`gris shell`."""

from __future__ import annotations

from gris_cli.flag_groups import with_flags
from gris_cli.flags import ConnectionFlags


@with_flags
def shell(connection: ConnectionFlags, as_json: bool) -> None:
    """Ask questions in SQL at a prompt, which shows the price of each before it is asked. "help" says what else.

    With --json prompts and prices are on standard error. If the input is no terminal, every line is asked as it comes.
    """
    from gris_cli.clients import connected
    from gris_cli.shell_session import ShellSession

    with connected(connection) as client:
        ShellSession(client, as_json=as_json).run()
