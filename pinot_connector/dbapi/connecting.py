"""Opens connections to a gateway."""

from __future__ import annotations

from collections.abc import Sequence

from pinot_connector.dbapi.connection import Connection
from pinot_connector.dbapi.errors import InterfaceError, dbapi_error
from pinot_connector.dbapi.urls import parsed_url
from pinot_connector.endpoints import Credentials, Endpoint
from pinot_connector.sync_client import GatewayClient


def connect(
    url: str, *, credentials: Credentials | None = None, account: str | Sequence[str] | None = None
) -> Connection:
    """Opens a connection to a gateway. It sends nothing yet.

    Args:
        url: the gateway, and how to ask it; see `parsed_url`.
        credentials: instead of the files that the URL names. An object, so that it comes from a program and never from
            a configuration that somebody typed.
        account: instead of the account that the URL names: the caller's own, or one below it where the gateway's rules
            allow that.

    Raises:
        InterfaceError: the URL is not a gateway's, or the credentials are something else.
        ProgrammingError: the account is no text, or a file of the credentials cannot be used.
    """
    said = parsed_url(url)
    if not isinstance(credentials, Credentials | None):
        raise InterfaceError("credentials: expected pinot_connector.Credentials")
    with dbapi_error():
        client = GatewayClient(
            Endpoint(said.address, credentials or said.credentials),
            account=said.account if account is None else account,
        )
    return Connection(client, intervals=said.intervals, max_cost=said.max_cost)
