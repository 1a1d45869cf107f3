"""The options in front of every command: how connections to the services are protected."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gris_cli.flag_groups import flag, with_flags

if TYPE_CHECKING:
    from pinot_connector.endpoints import Address, Credentials


@dataclass(frozen=True)
class ConnectionOptions:
    """The authority to trust and the credentials to send; without any of them connections are in plain text."""

    tls: bool = flag(False, "Use TLS; the next four imply it.", envvar="GRIS_TLS")
    ca_file: Path | None = flag(None, "Authority to trust.", envvar="GRIS_CA_FILE", metavar="PEM")
    certificate_file: Path | None = flag(None, "Certificate.", envvar="GRIS_CERTIFICATE_FILE", metavar="PEM")
    key_file: Path | None = flag(None, "Its key.", envvar="GRIS_KEY_FILE", metavar="PEM")
    token_file: Path | None = flag(None, "Holds the token.", envvar="GRIS_TOKEN_FILE", metavar="FILE")


_PLAIN = ConnectionOptions()
# Where each service of this command was looked for, and what sets that: for the message if it does not answer. A dict
# that is changed in place, because coroutines have a copy of the context.
_addresses: ContextVar[dict[str, tuple[str, str]] | None] = ContextVar("addresses", default=None)
_account: ContextVar[str] = ContextVar("account", default="")
_flags: ContextVar[ConnectionOptions] = ContextVar("line_flags", default=_PLAIN)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gris {metadata.version('gris-dp')}")
        raise typer.Exit


@with_flags
def read_connection_options(
    options: ConnectionOptions,
    version: bool = flag(False, "Print the version and exit.", is_eager=True, callback=_print_version),
) -> None:
    """Keep the options for the command that follows."""
    del version
    _addresses.set({})
    _account.set("")
    _flags.set(options)


def protected_address(address: str, service: str, setting: str) -> Address:
    """Return an address with the credentials of the options.

    Args:
        address: The address.
        service: The service that is expected there, as errors call it.
        setting: The option and the environment variable that the address comes from.
    """
    if address.startswith(("http://", "https://")):
        raise typer.BadParameter(f"{setting} expects HOST:PORT, without http://, got {address}")
    remember_address(service, address, setting)
    from pinot_connector.endpoints import Endpoint, require_target
    from pinot_connector.errors import InvalidQuestion

    try:
        require_target(address)
    except InvalidQuestion as error:
        raise typer.BadParameter(f"{setting}: {error.problem}") from None
    return address if _flags.get() == _PLAIN else Endpoint(address, credentials())


def remember_address(service: str, address: str, setting: str) -> None:
    """Keep where a service is expected."""
    known = _addresses.get()
    if known is not None:
        known[service] = (address, setting)


def remember_account(account: str) -> None:
    """Keep which account was named; empty: none was."""
    _account.set(account)


def named_account() -> str:
    """Return the account that was named by a flag or the environment; empty if none was."""
    return _account.get()


def setting_of(service: str) -> str:
    """Return what sets where a service was expected, and what else was expected there; empty: nothing set it."""
    known = _addresses.get() or {}
    if service not in known:
        return ""
    address, setting = known[service]
    others = [name for name, (other, _) in known.items() if name != service and other == address]
    same = "".join(f", which is also where {name} is expected" for name in others)
    return f"{same}; {setting} says where it is"


def credentials() -> Credentials:
    """Return the credentials of the options."""
    from pinot_connector.endpoints import Credentials

    flags = _flags.get()
    return Credentials(flags.ca_file, flags.certificate_file, flags.key_file, flags.token_file)
