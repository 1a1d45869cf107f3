"""`gris-mcp`: serves one agent over standard input and output, and asks a gateway with the agent's own token."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping, Sequence

from gris_mcp import version
from pinot_connector.endpoints import Credentials
from pinot_connector.errors import GrisError
from pinot_connector.gateway_client import AsyncGatewayClient, gateway_address

EXIT_MISCONFIGURED = 2
# Each option, what it is for, and the variable that stands for it: those of the command `gris`.
_OPTIONS = (
    ("--gateway", "GRIS_GATEWAY", "gris://HOST:PORT of the gateway"),
    ("--token-file", "GRIS_TOKEN_FILE", "the file with this agent's token; it is read again for every call"),
    ("--ca-file", "GRIS_CA_FILE", "the authority that signs the gateway's certificate (PEM)"),
    ("--certificate-file", "GRIS_CERTIFICATE_FILE", "the certificate of this agent (PEM)"),
    ("--key-file", "GRIS_KEY_FILE", "its private key (PEM)"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until standard input ends, and return the exit code."""
    options = _parser(os.environ).parse_args(arguments)
    if not options.gateway:
        return _misconfigured("--gateway or GRIS_GATEWAY names the gateway: gris://HOST:PORT")
    if not options.token_file and not options.certificate_file:
        return _misconfigured("--token-file or --certificate-file says whose budget pays: the agent's own")
    credentials = Credentials(options.ca_file, options.certificate_file, options.key_file, options.token_file)
    try:
        asyncio.run(_served(options.gateway, credentials))
    except ModuleNotFoundError as error:
        return _misconfigured(f"needs the package {error.name}: pip install 'gris-dp[mcp]'")
    except GrisError as error:
        return _misconfigured(str(error))
    except KeyboardInterrupt:
        return 0
    return 0


async def _served(gateway: str, credentials: Credentials) -> None:
    from mcp.server.stdio import stdio_server  # noqa: PLC0415 - an extra

    from gris_mcp.server import private_server  # noqa: PLC0415
    from gris_mcp.unreadable import answering_unreadable  # noqa: PLC0415

    async with AsyncGatewayClient(gateway_address(gateway, credentials)) as client:
        server = private_server(lambda _: client)
        async with (
            stdio_server() as (incoming, outgoing),
            answering_unreadable(incoming, outgoing) as readable,
        ):
            await server.run(readable, outgoing, server.create_initialization_options())


def _parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "gris-mcp", description="Private questions for one agent, by the Model Context Protocol over stdio."
    )
    for option, variable, meaning in _OPTIONS:
        parser.add_argument(option, default=environment.get(variable), help=f"{meaning} [{variable}]")
    parser.add_argument("--version", action="version", version=f"gris-mcp {version()}")
    return parser


def _misconfigured(problem: str) -> int:
    sys.stderr.write(f"gris-mcp: {problem}\n")
    return EXIT_MISCONFIGURED
