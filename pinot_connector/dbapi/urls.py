"""What a URL says: the gateway, whose budget pays, whether intervals are shown, and credentials.

People who may write a URL are not trusted with this machine's files: in a BI tool they are all who may add a database.
So files are names below one folder, which only the machine's owner chooses. The same owner can say which gateways there
are: without that, somebody who may name a token can have it sent to a host of theirs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib.parse import parse_qsl

from pinot_connector.dbapi.errors import InterfaceError
from pinot_connector.endpoints import Credentials
from pinot_connector.errors import InvalidQuestion
from pinot_connector.gateway_client import gateway_address

CREDENTIALS_DIR = "GRIS_CREDENTIALS_DIR"
GATEWAYS = "GRIS_GATEWAYS"
FILES = ("ca_file", "certificate_file", "key_file", "token_file")
_OPTIONS = ("account", *FILES, "intervals", "max_cost")
_UNITS = re.compile(r"[0-9]{1,18}")
_SWITCH = {"0": False, "1": True}


@dataclass(frozen=True)
class GatewayUrl:
    """A gateway, HOST:PORT, and how to ask it."""

    address: str
    credentials: Credentials
    account: str | None
    intervals: bool
    max_cost: int | None


def parsed_url(url: str, environment: Mapping[str, str] = os.environ) -> GatewayUrl:
    """Returns what a URL says.

    Args:
        url: gris://HOST:PORT/, with the options `account`, `intervals` (0 or 1), `max_cost`, `ca_file`,
            `certificate_file`, `key_file` and `token_file`.
        environment: holds GRIS_CREDENTIALS_DIR, the folder of the files, and may hold GRIS_GATEWAYS, which gateways
            there are.

    Raises:
        InterfaceError: it says something else, or names a file outside of that folder or another gateway. The message
            repeats no value.
    """
    gateway, _, query = url.partition("?")
    address = _address(gateway)
    if address is None:
        _refuse(
            "gris://HOST:PORT/ with the name or the IP address of a host, without user, password and database: "
            "the gateway knows its callers by certificate_file or token_file"
        )
    _require_listed(address, environment)
    options = _options(query)
    ca, certificate, key, token = (_file(name, options.get(name), environment) for name in FILES)
    intervals = _SWITCH.get(options.get("intervals", "0"))
    if intervals is None:
        _refuse("intervals to be 0 or 1")
    return GatewayUrl(
        address,
        Credentials(ca, certificate, key, token),
        options.get("account") or None,
        intervals,
        _units("max_cost", options),
    )


def _units(name: str, options: Mapping[str, str]) -> int | None:
    if (units := options.get(name)) is None:
        return None
    if not _UNITS.fullmatch(units):
        _refuse(f"{name} to be a number of information units")
    return int(units)


def _require_listed(address: str, environment: Mapping[str, str]) -> None:
    """Refuses gateways that GRIS_GATEWAYS, HOST:PORT separated by commas, does not list where it is set."""
    listed = environment.get(GATEWAYS)
    # Set and empty is a list without gateways, not the lack of a list.
    if listed is None:
        return
    allowed = [_address(f"gris://{each.strip()}") for each in listed.split(",") if each.strip()]
    if None in allowed:
        _refuse(f"{GATEWAYS} to be HOST:PORT, separated by commas")
    if address not in allowed:
        _refuse(f"one of the gateways in {GATEWAYS}")


def _address(url: str) -> str | None:
    """Returns HOST:PORT in the one form in which addresses are compared; None: it is no gateway's."""
    try:
        return gateway_address(url).address
    except InvalidQuestion:
        return None


def _options(query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in _OPTIONS:
            _refuse(f"only the options {', '.join(_OPTIONS)}")
        if name in options:
            _refuse(f"{name} once")
        options[name] = value
    return options


def _file(name: str, value: str | None, environment: Mapping[str, str]) -> Path | None:
    """Returns the path of a file that is below the folder for credentials after all links.

    The links stay in the path: where a secret is replaced, as in Kubernetes, they lead to the new one.
    """
    if value is None:
        return None
    folder = environment.get(CREDENTIALS_DIR)
    if not folder:
        _refuse(f"{CREDENTIALS_DIR} to be set to the folder in which {name} is")
    within = Path(folder).resolve()
    path = Path(folder) / value
    try:
        is_below = within in path.resolve().parents and path.is_file()
    except (OSError, ValueError, RuntimeError):
        is_below = False
    # The same words for a file elsewhere and for none, so that nobody learns which files there are.
    if not is_below:
        _refuse(f"{name} to be the name of a file in the folder {CREDENTIALS_DIR}")
    return path


def _refuse(expected: str) -> NoReturn:
    raise InterfaceError(f"url: expected {expected}") from None
