"""`gris-mcp`: serves one agent over standard input and output, and asks a gateway with the agent's own token."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
from collections.abc import Mapping, Sequence

from gris_mcp import version
from pinot_connector.endpoints import Credentials
from pinot_connector.errors import GrisError, InvalidQuestion
from pinot_connector.gateway_client import AsyncGatewayClient, gateway_address
from pinot_connector.spending_guard import SpendingGuard

EXIT_MISCONFIGURED = 2
_UNITS = re.compile(r"[0-9]{1,18}")
# Each option, what it is for, and the variable that stands for it: those of the command `gris`.
_OPTIONS = (
    ("--gateway", "GRIS_GATEWAY", "gris://HOST:PORT of the gateway"),
    ("--token-file", "GRIS_TOKEN_FILE", "the file with this agent's token; it is read again for every call"),
    ("--ca-file", "GRIS_CA_FILE", "the authority that signs the gateway's certificate (PEM)"),
    ("--certificate-file", "GRIS_CERTIFICATE_FILE", "the certificate of this agent (PEM)"),
    ("--key-file", "GRIS_KEY_FILE", "its private key (PEM)"),
    ("--max-per-hour", "GRIS_MAX_PER_HOUR", "the most information units that it may spend within an hour"),
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
        asyncio.run(_served(options.gateway, credentials, _guard(options.max_per_hour)))
    except ModuleNotFoundError as error:
        return _misconfigured(f"needs the package {error.name}: pip install 'gris-dp[mcp]'")
    except GrisError as error:
        return _misconfigured(str(error))
    except KeyboardInterrupt:
        return 0
    return 0


def _guard(max_per_hour: str | None) -> SpendingGuard | None:
    """Return the guard of what the agent spends.

    Raises:
        InvalidQuestion: It is no number of information units.
    """
    if not max_per_hour:
        return None
    if not _UNITS.fullmatch(max_per_hour):
        raise InvalidQuestion("--max-per-hour", "expected a whole number of information units")
    return SpendingGuard(int(max_per_hour))


async def _served(gateway: str, credentials: Credentials, guard: SpendingGuard | None) -> None:
    from mcp.server.stdio import stdio_server  # noqa: PLC0415 - an extra

    from gris_mcp.server import private_server  # noqa: PLC0415
    from gris_mcp.unreadable import answering_unreadable  # noqa: PLC0415

    async with AsyncGatewayClient(gateway_address(gateway, credentials), max_per_hour=guard) as client:
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
