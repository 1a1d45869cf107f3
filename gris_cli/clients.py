"""From flags to a client that can ask."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import typer
from gris_api.dp.v1 import question_pb2

from gris_cli.connection_options import credentials, protected_address, remember_account, remember_address
from gris_cli.currencies import require_currency
from gris_cli.data.engines import PinotAccess, PinotLoading, duckdb_engine, pinot_engine, spark_engine
from gris_cli.data.input_files import require_table_file
from gris_cli.examples import find_examples, locations_of, require_tables, service_files
from gris_cli.failures import OWNED_LEDGER
from gris_cli.flags import ConnectionFlags, EngineName
from gris_cli.inputs import named_by, parts_of
from pinot_connector.audiences import Audience, asked_as
from pinot_connector.budget_service_client import BudgetServiceClient
from pinot_connector.budgets import Level
from pinot_connector.catalog import BlocksEntry, Catalog
from pinot_connector.channels import Timeouts
from pinot_connector.checked_arguments import checked_text, checked_texts
from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.embedded import EmbeddedServices, secret_key
from pinot_connector.endpoints import Address
from pinot_connector.engines.base import Engine
from pinot_connector.errors import ServiceUnavailable
from pinot_connector.gateway_client import gateway_address
from pinot_connector.guarantees import AccountGuarantee, PublishedDomain
from pinot_connector.local_services import default_timeouts
from pinot_connector.release_store import ReleaseFile, ReleaseStore
from pinot_connector.results import Explanation, explanation_of
from pinot_connector.shared_budgets import account_guarantee
from pinot_connector.sync_client import GatewayClient, PrivateClient

EMBEDDED_ACCOUNT = "demo/analyst"


@contextmanager
def connected(flags: ConnectionFlags) -> Iterator[PrivateClient | GatewayClient]:
    """Yield a client for the flags; with `--embedded` both services run as long as it is used.

    Raises:
        typer.BadParameter: Flags that do not belong together.
        GrisError: A service or the engine is not available.
    """
    if flags.gateway:
        with _gateway(flags) as client:
            yield client
        return
    account = _account(flags)
    if not account:
        raise typer.BadParameter("--account says whose budget pays")
    with ExitStack() as stack:
        engine = stack.enter_context(closing(engine_of(flags)))
        dp, budget = stack.enter_context(_addresses(flags))
        releases = stack.enter_context(_releases(flags))
        asking = PrivateClient(
            dp=dp,
            budget=budget,
            account=account,
            engine=engine,
            releases=releases,
            audience=audience_of(flags.audience),
        )
        yield stack.enter_context(asking)


def fetch_explanation(flags: ConnectionFlags, question: question_pb2.Question) -> Explanation:
    """Return what a question would cost, and of which budget if there is an account.

    Raises:
        GrisError: The question may not be asked, the account has no budget, or a service is not available.
    """
    if flags.gateway:
        with _gateway(flags) as client:
            return client.explain(question)
    account = _account(flags)
    with _addresses(flags) as (dp, budget):
        asked = asked_as(question, audience_of(flags.audience))
        message = asyncio.run(_called(_noise(dp), lambda noise: noise.estimate(asked)))
        explanation = explanation_of(message.estimate, message.engine_queries)
        return explanation.of_budget(_levels(budget, account) if account else ())


def remaining_budget(flags: ConnectionFlags) -> tuple[tuple[Level, ...], BlocksEntry | None]:
    """Return every level of an account's budget that has a limit, and what blocks are called, if anybody says.

    Raises:
        typer.BadParameter: Nothing says whose budget it is.
        GrisError: The account has no budget, or a service is not available.
    """
    if flags.gateway:
        with _gateway(flags) as client:
            levels = client.remaining()
            return levels, blocks_of(levels, client)
    account = _account(flags)
    if not account:
        raise typer.BadParameter("--account says whose budget it is")
    with _addresses(flags) as (_, budget):
        return _levels(budget, account), None


def blocks_of(levels: Iterable[Level], client: PrivateClient | GatewayClient) -> BlocksEntry | None:
    """Return what blocks are called, where more is left of one; None: no name is needed, or there are none."""
    return client.catalog().blocks if any(each.remaining_of_blocks for each in levels) else None


def remaining_after(remaining: tuple[Level, ...], client: PrivateClient | GatewayClient) -> tuple[Level, ...]:
    """Return what is left after an answer: what came with it, else what the ledger says.

    Empty if the ledger cannot say: a region whose home is away, which answers again what was paid for. The answer is
    there all the same.
    """
    if remaining:
        return remaining
    try:
        return client.remaining()
    except ServiceUnavailable:
        return ()


def fetch_catalog(flags: ConnectionFlags, table: str) -> Catalog:
    """Return what may be asked, of one table or (empty) of all.

    Raises:
        GrisError: The policy lists no such table, or dp_service is not available.
    """
    if flags.gateway:
        with _gateway(flags) as client:
            return client.catalog(table)
    with _addresses(flags) as (dp, _):
        audience = audience_of(flags.audience)
        found: Catalog = asyncio.run(_called(_noise(dp), lambda noise: noise.catalog(table, audience)))
        return found


def fetch_guarantee(flags: ConnectionFlags, domains: Sequence[str]) -> AccountGuarantee:
    """Return the guarantee for what an account is shown; each of `domains`, RHO:DELTA, counts too.

    Raises:
        typer.BadParameter: A domain is malformed, or nothing says whose account it is.
        GrisError: The account has no budget, or a service is not available.
    """
    more = [_domain(text) for text in domains]
    if flags.gateway:
        with _gateway(flags) as client:
            return client.guarantee(domains=more)
    account = _account(flags)
    if not account:
        raise typer.BadParameter("--account says whose guarantee it is")
    with _addresses(flags) as (dp, budget):
        return asyncio.run(guarantee_of(dp, budget, account, more))


def audience_of(text: str) -> Audience | None:
    """Return the audience that a flag names; None: none.

    Raises:
        typer.BadParameter: It is no name, or a value has no key.
    """
    if not text:
        return None
    name, *stated = text.split(",")
    pairs = [each.partition("=") for each in stated]
    if not name or not all(key and sign for key, sign, _ in pairs):
        raise typer.BadParameter(f"--audience: expected NAME, or NAME,KEY=VALUE, got {text}")
    return Audience(name, {key: value for key, _, value in pairs})


def _domain(text: str) -> PublishedDomain:
    rho, delta = parts_of("--domain", "RHO:DELTA, such as 0.1:1e-9", text)
    return PublishedDomain(checked_text("domains", rho), checked_text("domains", delta))


async def guarantee_of(
    dp: Address, budget: Address, account: str, domains: Sequence[PublishedDomain] = ()
) -> AccountGuarantee:
    """Return the guarantee for what an account is shown. Raises GrisError."""
    return await _called(
        _noise(dp),
        lambda noise: _called(
            _ledger(budget, account), lambda ledger: account_guarantee(noise, ledger, domains=domains)
        ),
    )


def _levels(budget: Address, account: str) -> tuple[Level, ...]:
    return asyncio.run(_called(_ledger(budget, account), lambda ledger: ledger.remaining()))


def _noise(dp: Address) -> Callable[[], DpServiceClient]:
    return lambda: DpServiceClient(dp, Timeouts())


def _ledger(budget: Address, account: str) -> Callable[[], BudgetServiceClient]:
    return lambda: BudgetServiceClient(
        budget, checked_texts("account", account.split("/")), default_timeouts(budget)
    )


class _Closable(Protocol):
    async def close(self) -> None: ...


_Client = TypeVar("_Client", bound=_Closable)
_Answer = TypeVar("_Answer")


async def _called(made: Callable[[], _Client], call: Callable[[_Client], Awaitable[_Answer]]) -> _Answer:
    """Make a client where its loop runs, one call by it, and close it."""
    client = made()
    try:
        return await call(client)
    finally:
        await client.close()


def _gateway(flags: ConnectionFlags) -> GatewayClient:
    return GatewayClient(gateway_of(flags), account=flags.account or None)


def _account(flags: ConnectionFlags) -> str:
    remember_account(flags.account)
    # Only the budgets of the examples are known to have this account.
    has_examples = flags.embedded and flags.budget_config is None
    return flags.account or (EMBEDDED_ACCOUNT if has_examples else "")


def gateway_of(flags: ConnectionFlags) -> Address:
    """Return the gateway that the flags name.

    Raises:
        typer.BadParameter: They name the embedded services too.
        InvalidQuestion: It is no gateway's URL, or a file of the credentials cannot be used.
    """
    if flags.embedded:
        raise typer.BadParameter("--gateway and --embedded: one of them says whom to ask")
    remember_address("gateway", flags.gateway, "--gateway or GRIS_GATEWAY")
    remember_account(flags.account)
    return gateway_address(flags.gateway, credentials())


@contextmanager
def _addresses(flags: ConnectionFlags) -> Iterator[tuple[Address, Address]]:
    if not flags.embedded:
        yield (
            protected_address(flags.dp, "dp_service", "--dp or GRIS_DP"),
            protected_address(flags.budget, "budget_service", "--budget or GRIS_BUDGET"),
        )
        return
    files = service_files(flags.policy, flags.budget_config, flags.examples)
    # Before the services start, and for questions that are only priced too: no flag is ignored.
    require_tables(files.policy, locations_of(flags.data))
    require_currency(files.policy, flags.directory)
    services = EmbeddedServices(
        policy=files.policy,
        budget_config=files.budget,
        directory=flags.directory,
    )
    with ExitStack() as stack:
        try:
            stack.enter_context(services)
        except ServiceUnavailable as error:
            raise _naming_the_holder(error, flags.directory) from None
        yield services.dp_address, services.budget_address


def _naming_the_holder(error: ServiceUnavailable, directory: Path) -> ServiceUnavailable:
    """Return the error, or if the ledger has another owner, one that says who that most likely is."""
    if OWNED_LEDGER not in str(error):
        return error
    return ServiceUnavailable(
        error.service,
        f"{directory} is in use, most likely by `gris serve`: leave out --embedded to ask the services that it runs, "
        "with the variables that it printed; or stop it; or --directory names another folder, with a ledger of its own",
    )


@contextmanager
def _releases(flags: ConnectionFlags) -> Iterator[ReleaseStore | None]:
    """Yield the release store of services that run; embedded ones have their own."""
    if flags.embedded:
        yield None
        return
    store = ReleaseFile(flags.releases, _key_of(flags)).opened()
    try:
        yield store
    finally:
        store.close_now()


def _key_of(flags: ConnectionFlags) -> Path:
    """Return the file of the release store's key, which is made with the store unless it is named."""
    file, named = flags.releases, flags.releases_key_file
    if named is not None:
        return named
    beside = file.with_suffix(".key")
    if file.exists():
        return beside
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return secret_key(beside)
    except OSError as error:
        raise typer.BadParameter(f"--releases or GRIS_RELEASES: {error.filename}: {error.strerror}") from None


DATA_SUFFIXES = frozenset({".parquet", ".csv", ".tsv", ".duckdb", ".db"})


def pinot_access(flags: ConnectionFlags) -> PinotAccess:
    """Return the files by which Pinot is asked."""
    return PinotAccess(flags.pinot_authorization_file, flags.pinot_ca_file, flags.pinot_certificate_file)


def engine_of(flags: ConnectionFlags) -> Engine:
    """Return the engine that the flags name, over the tables of `--data` or those of the examples."""
    match flags.engine:
        case EngineName.PINOT:
            loading = PinotLoading(
                flags.pinot_settle_seconds, flags.pinot_server_admin, flags.pinot_server_admin_port
            )
            return pinot_engine(flags.pinot_broker, flags.pinot_controller, loading, pinot_access(flags))
        case EngineName.SPARK:
            return spark_engine(flags.spark, _locations(flags))
        case EngineName.DUCKDB:
            return duckdb_engine(_files(flags))


def _files(flags: ConnectionFlags) -> dict[str, Path]:
    """Return the files of tables."""
    return data_files(_locations(flags))


def data_files(locations: Mapping[str, str]) -> dict[str, Path]:
    """Return the files of tables.

    Raises:
        typer.BadParameter: One is not there, or not of a kind that DuckDB reads.
    """
    from pinot_connector.engines.parquet_files import is_many

    files = {table: Path(location) for table, location in locations.items()}
    for path in files.values():
        with named_by("--data"):
            require_table_file(path)
        if not (is_many(path) or path.suffix in DATA_SUFFIXES):
            raise typer.BadParameter(
                f"--data: {path} must be Parquet (.parquet), CSV (.csv, .tsv) or DuckDB (.duckdb, .db)"
            )
    return files


def _locations(flags: ConnectionFlags) -> dict[str, str]:
    """Return the location of each table, as the engine takes it."""
    if flags.data:
        return locations_of(flags.data)
    if flags.embedded and flags.policy is None:
        return {table: str(path) for table, path in find_examples(flags.examples).tables.items()}
    raise typer.BadParameter("--data TABLE=PATH says where the data are")
