"""A gateway with a release store: what outlives it, what its history shows, and what it measures."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from gris_api.common.v1.cost_pb2 import Cost
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from gris_gateway.configuration import GatewayConfiguration
from gris_gateway.hosting import Gateway
from gris_gateway.limits import GatewayLimits
from gris_gateway.release_stores import release_store_of
from gris_serving.documents import read_document
from gris_serving.reloading_files import SecurityError
from gris_serving.telemetry import Telemetry
from pinot_connector import AsyncGatewayClient, Timeouts
from pinot_connector.budget_service_client import BudgetServiceClient
from pinot_connector.endpoints import Credentials, Endpoint
from pinot_connector.errors import ServiceUnavailable
from pinot_connector.questions import structured_question
from pinot_connector.release_store.interface import DAY
from tests.support.collector import ENDPOINT, collecting
from tests.support.gateways import GatewayWorld, write_configuration
from tests.support.pki import Authority, Issuer
from tests.support.postgres_server import PostgresServer
from tests.support.processes import process
from tests.support.release_stores import key_file, new_database, receipt
from tests.support.some import some
from tests.support.world import COFACTS, World, write_growing, write_small

QUESTION = structured_question("growing", "element", k=None)
OTHER = structured_question("feedback", "article_id", k=10)
ANA = ("app", "acme", "ana")


def configured(folder: Path, world: World, releases: str) -> tuple[Path, GatewayWorld]:
    """Write a configuration with a release store."""
    write_small(folder / "small.parquet", 1000)
    (folder / "wide.parquet").symlink_to(COFACTS)
    authority, issuer = Authority.new(folder), Issuer(folder)
    path = write_configuration(folder, authority, issuer, world.dp, world.budget)
    with path.open("a") as file:
        file.write(f"releases: {releases}\n")
    return path, GatewayWorld("", authority, issuer, folder, world)


@contextmanager
def running(config: Path, known: GatewayWorld, log: str = "gateway.log") -> Iterator[dict[str, str]]:
    """Run a gateway, and give its addresses."""
    words = ["--config", config, "--metrics-listen", "127.0.0.1:0"]
    with process("gris_gateway", words, known.folder / log) as ready:
        yield ready


def client_of(ready: dict[str, str], who: Credentials) -> AsyncGatewayClient:
    """Make a client."""
    return AsyncGatewayClient(Endpoint(ready["address"], who))


@pytest.mark.usefixtures("starts_processes")
async def test_what_was_paid_for_outlives_the_gateway(world: World, tmp_path: Path) -> None:
    """A member's rows are deleted before it starts again: the same release, for nothing, and the history lists it."""
    key_file(tmp_path)
    releases = f"{{file: {tmp_path}/releases.sqlite, key_file: {tmp_path}/releases.key}}"
    config, known = configured(tmp_path, world, releases)
    who = known.analyst()
    with running(config, known) as ready:
        async with client_of(ready, who) as client:
            paid = await client.ask(QUESTION, request_id="mine")
    write_growing(tmp_path / "growing.parquet", members=999)
    with running(config, known) as ready:
        async with client_of(ready, who) as client:
            again = await client.ask(QUESTION)
            replayed = await client.ask(QUESTION, request_id="mine")
            listed = [each async for each in client.releases()]
        with urllib.request.urlopen(f"http://{ready['metrics_address']}/metrics") as answer:  # noqa: ASYNC210
            metrics = answer.read().decode()
    assert paid.rows == again.rows == replayed.rows
    assert {paid.release_id} == {each.result.shown.release_id for each in listed}
    counts = [row.noisy_count for row in paid.rows]
    assert [counts] * len(listed) == [list(each.elements.noisy_counts) for each in listed]
    assert 0 == again.charged.information
    for line in (
        'gris_release_lookups_total{outcome="given"} 1.0',
        'gris_release_store_releases{state="paid"} 1.0',
        'gris_release_store_releases{state="unpaid"} 0.0',
        "gris_release_store_up 1.0",
    ):
        assert line in metrics


@pytest.mark.usefixtures("starts_processes")
async def test_gateways_that_share_a_store_give_one_release(
    world: World, tmp_path: Path, release_postgres: PostgresServer
) -> None:
    """An account pays at one and asks at the other, where a member's rows are gone; the history is there too."""
    key_file(tmp_path)
    (tmp_path / "database").write_text(new_database(release_postgres) + "\n")
    releases = f"{{connection_file: {tmp_path}/database, key_file: {tmp_path}/releases.key}}"
    config, known = configured(tmp_path, world, releases)
    who = known.analyst()
    with running(config, known, "one.log") as one, running(config, known, "other.log") as other:
        async with client_of(one, who) as client:
            paid = await client.ask(QUESTION, request_id="mine")
        write_growing(tmp_path / "growing.parquet", members=999)
        async with client_of(other, who) as client:
            again = await client.ask(QUESTION)
            replayed = await client.ask(QUESTION, request_id="mine")
        async with client_of(other, known.analyst()) as client:
            second = await client.ask(QUESTION)
    assert paid.rows == again.rows == replayed.rows == second.rows
    assert [1, 0, 1] == [each.charged.information for each in (paid, again, second)]


@pytest.mark.usefixtures("starts_processes")
async def test_gateways_that_are_asked_at_the_same_moment_give_one_release(
    world: World, tmp_path: Path, release_postgres: PostgresServer
) -> None:
    """Each reads other rows, and twelve accounts ask at once: all are shown one release, and each has paid once."""
    key_file(tmp_path)
    (tmp_path / "database").write_text(new_database(release_postgres) + "\n")
    releases = f"{{connection_file: {tmp_path}/database, key_file: {tmp_path}/releases.key}}"
    config, known = configured(tmp_path, world, releases)
    write_growing(tmp_path / "fewer.parquet", members=900)
    fewer = tmp_path / "fewer.yaml"
    fewer.write_text(config.read_text().replace("growing.parquet", "fewer.parquet"))
    with running(config, known, "one.log") as one, running(fewer, known, "other.log") as other:
        clients = [client_of(ready, known.analyst()) for ready in (one, other) * 6]
        results = await asyncio.gather(*(client.ask(QUESTION) for client in clients))
        spent = [(await client.remaining())[-1].spent.information for client in clients]
        for client in clients:
            await client.close()
    assert len({(each.release_id, each.rows) for each in results}) == 1
    assert [1] * 12 == spent == [each.charged.information for each in results]


@pytest.mark.usefixtures("starts_processes")
async def test_a_gateway_does_not_start_on_a_store_that_it_cannot_read(world: World, tmp_path: Path) -> None:
    """Exit code 2 and one line; the store is left as it is, and with what it wants the gateway gives what was paid."""
    config, known = configured(tmp_path, world, stored_in(tmp_path))
    file, who = tmp_path / "releases.sqlite", known.analyst()
    with running(config, known) as ready:
        async with client_of(ready, who) as client:
            paid = await client.ask(QUESTION)
    whole = file.read_bytes()
    for fault in ("another key", "another version"):
        spoil(file, fault)
        spoilt = file.read_bytes()
        command = [sys.executable, "-m", "gris_gateway", "--config", str(config)]
        done = await asyncio.to_thread(
            subprocess.run, command, capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, done.stdout) == (2, ""), fault
        assert done.stderr.splitlines()[-1].startswith("gateway: ")
        assert file.read_bytes() == spoilt, fault
        (tmp_path / "releases.key").unlink()
        key_file(tmp_path)
        file.write_bytes(whole)
    write_growing(tmp_path / "growing.parquet", members=999)
    with running(config, known) as ready:
        async with client_of(ready, who) as client:
            again = await client.ask(QUESTION)
    assert (again.rows, again.charged.information) == (paid.rows, 0)


@pytest.mark.usefixtures("starts_processes")
async def test_a_trace_goes_through_store_engine_ledger_and_wait(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is new is looked up, kept, paid for and marked; a repeat runs nothing; who waits for budget shows it."""
    config, known = configured(tmp_path, world, stored_in(tmp_path))
    who = known.analyst()
    with collecting() as collector:
        monkeypatch.setenv(ENDPOINT, collector.address)
        with running(config, known) as ready:
            async with client_of(ready, who) as client:
                await client.ask(QUESTION)
                await client.ask(QUESTION)
                path = (await client.remaining())[-1].path
                async with all_held(
                    world.budget, path, (await client.explain(OTHER)).worst_case_cost.unit_id
                ):
                    waiting = asyncio.ensure_future(client.ask(OTHER))
                    await asyncio.sleep(0.5)
                await waiting
    traces: dict[bytes, list[Span]] = {}
    for span in sorted(collector.spans("gateway"), key=lambda each: each.start_time_unix_nano):
        traces.setdefault(span.trace_id, []).append(span)
    paid, again, waited = (
        {each.name.rpartition("/")[2]: each for each in spans}
        for spans in traces.values()
        if spans[0].name.endswith("/Ask")
    )
    kept = {
        "release store find",
        "release store keep",
        "release store mark paid",
        "release store add receipt",
    }
    asked = {"Ask", "gris question", "TranslateQuery", "ReserveBudget", "engine run", "UpdateBudget"}
    assert kept | asked <= paid.keys() & waited.keys()
    assert {"Ask", "gris question", "TranslateQuery"} <= again.keys()
    assert not {"ReserveBudget", "engine run", "UpdateBudget", "release store keep"} & again.keys()
    assert ("budget wait" in waited, "budget wait" in paid) == (True, False)
    exported = str(collector.received)
    assert not [each for each in (path[-1], "article_id", "growing", "feedback") if each in exported]
    for spans in some(traces.values()):
        known_spans = {each.span_id for each in spans}
        assert all(each.parent_span_id in known_spans for each in spans[1:])


@asynccontextmanager
async def all_held(budget: str, path: Sequence[str], unit_id: str) -> AsyncIterator[None]:
    """Hold all of an account's budget while the block runs."""
    calls = BudgetServiceClient(budget, path, Timeouts())
    left = (await calls.levels())[-1].remaining
    cost = Cost(information=left.information, calls=1, unit_id=unit_id)
    held = (await calls.reserve(cost, "another question")).reservation_id
    yield
    await calls.cancel(held)
    await calls.close()


@pytest.mark.usefixtures("starts_processes")
async def test_a_gateway_that_nobody_asks_removes_what_is_too_old(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its days end while it is idle: the file has no row of it soon after; a store that fails is said in the log."""
    config, _ = configured(tmp_path, world, stored_in(tmp_path))
    configuration = read_document(config, GatewayConfiguration)
    file, day = tmp_path / "releases.sqlite", configuration.history.retention_days * DAY

    def rows() -> int:
        with closing(sqlite3.connect(file)) as db:
            ((found,),) = db.execute("SELECT count(*) FROM gris_release_receipts").fetchall()
        return int(found)

    gateway = Gateway(configuration, replace(GatewayLimits(), receipts_interval_seconds=0.1))
    async with asyncio.timeout(60), gateway.serving(Telemetry()):
        store = release_store_of(configuration)
        await store.add_receipt(ANA, receipt(at=time.time_ns() // 1000 - day + 10**6))
        assert 1 == rows()
        await store.close()
        while rows():  # noqa: ASYNC110 - no message says so
            await asyncio.sleep(0.05)
        assert not caplog.records
        file.rename(tmp_path / "away")
        while not caplog.records:  # noqa: ASYNC110 - no message says so
            await asyncio.sleep(0.05)
        (tmp_path / "away").rename(file)
    gateway.close()
    assert {"history.not_removed"} == {getattr(each, "event", "") for each in caplog.records}


def stored_in(folder: Path) -> str:
    """Return the configuration of a store in a folder, and make its key."""
    key_file(folder)
    return f"{{file: {folder}/releases.sqlite, key_file: {folder}/releases.key}}"


def spoil(file: Path, fault: str) -> None:
    """Do to a store what goes wrong with one."""
    if fault == "another key":
        file.with_name("releases.key").unlink()
        key_file(file.parent, b"o" * 32)
    else:
        with closing(sqlite3.connect(file)) as changed, changed:
            changed.execute("UPDATE gris_release_store_schema SET version = version + 1")


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize("is_there", [True, False])
async def test_a_store_that_is_exchanged_under_a_running_gateway_gives_and_charges_nothing(
    world: World, tmp_path: Path, is_there: bool
) -> None:
    """Neither what was paid for, nor anything new, nor the history; it goes on where it was once it is back."""
    config, known = configured(tmp_path, world, stored_in(tmp_path))
    file, who = tmp_path / "releases.sqlite", known.analyst()
    with running(config, known) as ready:
        async with client_of(ready, who) as client:
            paid, before = await client.ask(QUESTION), await client.remaining()
            file.rename(tmp_path / "away")
            if is_there:
                file.write_bytes((tmp_path / "away").read_bytes())
            for question in (QUESTION, structured_question("feedback", "cohort", k=None)):
                with pytest.raises(ServiceUnavailable):
                    await client.ask(question)
            with pytest.raises(ServiceUnavailable):
                [each async for each in client.releases()]
            assert await client.remaining() == before
            (tmp_path / "away").rename(file)
            again = await client.ask(QUESTION)
            assert (again.rows, again.charged.information) == (paid.rows, 0)
            assert await client.remaining() == before


@pytest.mark.parametrize(
    ("releases", "problem"),
    [
        ("{file: a}", "key_file"),
        ("{key_file: a}", "file or connection_file"),
        ("{file: a, connection_file: b, key_file: c}", "one of file, connection_file"),
        ("{previous_key_files: [a]}", "key_file"),
        ("{file: a, key_file: %/missing}", "releases.key_file: key file"),
        ("{connection_file: %/missing, key_file: %/releases.key}", "releases.connection_file"),
    ],
)
def test_a_store_that_cannot_be_used_is_refused_before_it_is_served(
    world: World, tmp_path: Path, releases: str, problem: str
) -> None:
    """What `--validate` says, and what is wrong."""
    key_file(tmp_path)
    config, _ = configured(tmp_path, world, releases.replace("%", str(tmp_path)))
    with pytest.raises(SecurityError, match=problem):
        Gateway(read_document(config, GatewayConfiguration)).close()
