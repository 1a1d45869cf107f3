"""Opens connections: to Apache Pinot, to the caller's own engine, to embedded services, or to a gateway."""

from __future__ import annotations

import atexit
import base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from pinot_connector.audiences import Audience
from pinot_connector.channels import Timeouts
from pinot_connector.checked_arguments import require_max_cost
from pinot_connector.client import DEFAULT_CONFIDENCE
from pinot_connector.dbapi.connection import Connection
from pinot_connector.dbapi.errors import InterfaceError, dbapi_error
from pinot_connector.endpoints import Address, Credentials
from pinot_connector.engines.base import Engine
from pinot_connector.gateway_client import SYSTEM_TRUST, gateway_address
from pinot_connector.local_services import DEFAULT_TIMEOUTS
from pinot_connector.release_store import ReleaseFile, ReleaseStore
from pinot_connector.sync_client import GatewayClient, PrivateClient

QUERY_PATH = "/query/sql"


class _Loading(TypedDict):
    """The options of `PinotEngine` about new versions of a table."""

    server_admin: bool
    server_admin_port: int | None
    settle_seconds: float


@dataclass(frozen=True)
class _PinotArguments:
    """The arguments of `connect` that are about Pinot."""

    host: str
    port: int
    scheme: str
    path: str
    controller: str | None
    username: str | None
    password: str | None = field(repr=False)
    timeout_seconds: float
    loading: _Loading

    def broker_url(self) -> str:
        """Returns the URL that `PinotEngine` takes: without the path of queries."""
        if self.scheme not in ("http", "https"):
            raise InterfaceError("scheme: expected http or https")
        if not self.path.endswith(QUERY_PATH):
            raise InterfaceError(f"path: expected a path that ends in {QUERY_PATH}")
        needs_brackets = ":" in self.host and not self.host.startswith("[")
        host = f"[{self.host}]" if needs_brackets else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path.removesuffix(QUERY_PATH)}"

    def authorization(self) -> str | None:
        """Returns the header `Authorization`, if there are credentials."""
        if (self.username is None) != (self.password is None):
            raise InterfaceError("username: expected both username and password, or neither")
        if self.username is None:
            return None
        return "Basic " + base64.b64encode(f"{self.username}:{self.password}".encode()).decode()


def connect(
    host: str | None = None,
    port: int = 8099,
    scheme: str = "http",
    path: str = QUERY_PATH,
    *,
    controller: str | None = None,
    username: str | None = None,
    password: str | None = None,
    timeout: float = 30.0,
    server_admin: bool = False,
    server_admin_port: int | None = None,
    settle_seconds: float = 60.0,
    engine: Engine | None = None,
    dp: Address,
    budget: Address,
    account: str | Sequence[str],
    audience: Audience | None = None,
    intervals: bool = True,
    max_cost: int | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
    timeouts: Timeouts = DEFAULT_TIMEOUTS,
    releases: ReleaseStore | ReleaseFile | None = None,
) -> Connection:
    """Opens a connection to the Pinot whose broker is at `host`, or to `engine`. It sends nothing yet.

    Args:
        host: Pinot's broker, as in `pinotdb.connect`, like `port`, `scheme` and `path`.
        port: the broker's port.
        scheme: "http" or "https".
        path: where the broker answers SQL; it ends in `/query/sql`.
        controller: the URL of Pinot's controller, which lists the segments that a whole answer covers.
        username: for HTTP basic authentication at broker and controller, with `password`.
        password: see `username`.
        timeout: how long one request to Pinot may take, in seconds; `timeouts.engine` bounds all of a question's.
        server_admin: whether to ask each of Pinot's servers, by its admin port, what it has loaded of a new version.
        server_admin_port: that port, where Pinot does not report it: for servers that speak only TLS.
        settle_seconds: the longest time that a server of Pinot takes to load a segment.
        engine: an open engine to use instead of Pinot; the caller closes it.
        dp: address of dp_service: "host:port" on a trusted network, or an `Endpoint` behind TLS.
        budget: address of budget_service.
        account: whose budget pays, from the root account to the analyst; "a/b" is ("a", "b").
        audience: as which audience of the policy it asks, where the policy states audiences; None: as none.
        intervals: whether rows include both ends of each count's interval, in two more columns.
        max_cost: the most information units that one question may cost: one whose worst case is more is refused before
            anything is asked. None: whatever the budget holds.
        confidence: of intervals and of the ranks of quantiles, strictly between 0.5 and 1; the statements of a
            result say of what.
        timeouts: how long each part of a question may take.
        releases: where releases are kept, shared by all that should give the same answers: an open store, which the
            connection does not close, or the file of one. None: one store for all connections and clients of the same
            services in this process.

    Raises:
        OperationalError: the file of releases, or its key, cannot be used.
        InterfaceError: host, path, controller or credentials are missing or do not belong together.
        ProgrammingError: the account is no text, or the confidence no number between 0.5 and 1.
    """
    loading = _Loading(
        server_admin=server_admin, server_admin_port=server_admin_port, settle_seconds=settle_seconds
    )
    with _opening() as resources:
        if (engine is None) == (host is None):
            raise InterfaceError("host: expected the host of Pinot's broker, or engine=, and not both")
        if engine is None:
            arguments = _PinotArguments(
                host or "", port, scheme, path, controller, username, password, timeout, loading
            )
            engine = resources.enter_context(closing(_pinot(arguments)))
        client = PrivateClient(
            dp=dp,
            budget=budget,
            account=account,
            engine=engine,
            confidence=confidence,
            timeouts=timeouts,
            releases=_opened(releases, resources),
            audience=audience,
        )
        return _connection(client, resources, intervals=intervals, max_cost=max_cost)


def connect_embedded(
    tables: Mapping[str, Path | str],
    *,
    policy: Path | str,
    budget_config: Path | str,
    directory: Path | str,
    account: str | Sequence[str],
    audience: Audience | None = None,
    intervals: bool = True,
    max_cost: int | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
    releases: ReleaseStore | ReleaseFile | None = None,
) -> Connection:
    """Opens a connection to DuckDB over files, and starts both services as processes on this machine.

    The processes end with the connection, or with the program if it does not close the connection.

    Args:
        tables: the path of each table's file: Parquet, or a DuckDB database.
        policy: dp_service's policy file.
        budget_config: budget_service's configuration file.
        directory: where noise key, ledger, release store and logs are kept from one connection to the next.
        account: see `connect`.
        audience: see `connect`.
        intervals: see `connect`.
        max_cost: see `connect`.
        confidence: see `connect`.
        releases: see `connect`. None: the release store in `directory`.

    Raises:
        OperationalError: a service does not start, or a file cannot be read.
        InterfaceError: an extra is not installed.
        ProgrammingError: as for `connect`.
    """
    with _opening() as resources:
        engine = resources.enter_context(closing(_duckdb(tables)))
        dp, budget = resources.enter_context(_services(policy, budget_config, directory))
        client = PrivateClient(
            dp=dp,
            budget=budget,
            account=account,
            engine=engine,
            confidence=confidence,
            releases=_opened(releases, resources),
            audience=audience,
        )
        return _connection(client, resources, intervals=intervals, max_cost=max_cost)


def connect_gateway(
    url: str,
    *,
    credentials: Credentials = SYSTEM_TRUST,
    account: str | Sequence[str] | None = None,
    intervals: bool = True,
    max_cost: int | None = None,
) -> Connection:
    """Opens a connection to a gateway, for programs that are not trusted with counts. It sends nothing yet.

    Args:
        url: the gateway, gris://HOST:PORT.
        credentials: the authorities to trust, and the certificate or token by which the gateway knows the caller.
        account: whose budget pays: the caller's own account, or one below it where the gateway's rules allow that;
            None: the caller's own.
        intervals: whether rows include both ends of each count's interval, in two more columns.
        max_cost: the most information units that one question may cost: one whose worst case is more is refused before
            anything is asked. None: whatever the budget holds.

    Raises:
        ProgrammingError: the URL is not a gateway's, or a file of the credentials cannot be read.
    """
    with _opening() as resources:
        client = GatewayClient(gateway_address(url, credentials), account=account)
        return _connection(client, resources, intervals=intervals, max_cost=max_cost)


@contextmanager
def _opening() -> Iterator[ExitStack]:
    """Closes what was opened so far if the rest cannot be."""
    with dbapi_error(), ExitStack() as resources:
        yield resources


def _connection(
    client: PrivateClient | GatewayClient, resources: ExitStack, *, intervals: bool, max_cost: int | None
) -> Connection:
    resources.enter_context(client)
    require_max_cost(max_cost)
    return Connection(client, resources.pop_all(), intervals=intervals, max_cost=max_cost)


def _opened(releases: ReleaseStore | ReleaseFile | None, resources: ExitStack) -> ReleaseStore | None:
    """Returns the store to use; one that is opened here is closed with the resources."""
    if not isinstance(releases, ReleaseFile):
        return releases
    store = releases.opened()
    resources.callback(store.close_now)
    return store


def _pinot(arguments: _PinotArguments) -> Engine:
    broker, authorization = arguments.broker_url(), arguments.authorization()
    if arguments.controller is None:
        raise InterfaceError("controller: expected the URL of Pinot's controller")
    with _extra("pinot"):
        from pinot_connector.engines.pinot import LoadOptions, PinotEngine  # noqa: PLC0415 - an extra
    try:
        LoadOptions(**arguments.loading)
    except ValueError as error:
        raise InterfaceError(str(error)) from None
    try:
        return PinotEngine(
            controller=arguments.controller,
            broker=broker,
            authorization=authorization,
            timeout_seconds=arguments.timeout_seconds,
            **arguments.loading,
        )
    except ValueError as error:
        raise InterfaceError(f"scheme, host, controller: {error}") from None


def _duckdb(tables: Mapping[str, Path | str]) -> Engine:
    with _extra("duckdb"):
        from pinot_connector.engines.duckdb import DuckDBEngine  # noqa: PLC0415 - an extra
    return DuckDBEngine(tables)


@contextmanager
def _services(
    policy: Path | str, budget_config: Path | str, directory: Path | str
) -> Iterator[tuple[str, str]]:
    with _extra("dp,budget"):
        from pinot_connector.embedded import EmbeddedServices  # noqa: PLC0415 - needs extras
    services = EmbeddedServices(policy=policy, budget_config=budget_config, directory=directory)
    # Programs often do not close their connection; without this the processes would outlive them.
    atexit.register(services.stop)
    try:
        with services:
            yield services.dp_address, services.budget_address
    finally:
        atexit.unregister(services.stop)


@contextmanager
def _extra(name: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError:
        raise InterfaceError(f"this connection needs pip install 'gris-dp[{name}]'") from None
