"""`gris mcp`."""

from __future__ import annotations

import asyncio

import typer

from gris_cli.flag_groups import flag, with_flags


@with_flags
def mcp(
    *,
    gateway: str = flag("", "The gateway, gris://HOST:PORT.", envvar="GRIS_GATEWAY", metavar="URL"),
    as_json: bool,
) -> None:
    """Serve one agent over standard input and output, by the Model Context Protocol; a gateway answers it.

    The agent's account is that of its token or certificate, which stand before the command.
    """
    from gris_cli.connection_options import credentials
    from pinot_connector.gateway_client import gateway_address

    del as_json
    shown = credentials()
    if not gateway:
        raise typer.BadParameter("--gateway or GRIS_GATEWAY names the gateway: gris://HOST:PORT")
    if not shown.token_file and not shown.certificate_file:
        raise typer.BadParameter("--token-file or --certificate-file says whose budget pays: the agent's own")
    address = gateway_address(gateway, shown)
    try:
        from gris_gateway.faces.mcp.stdio import serve
    except ModuleNotFoundError as error:
        raise typer.BadParameter(f"this needs the package {error.name}: pip install 'gris-dp[mcp]'") from None
    asyncio.run(serve(address))
