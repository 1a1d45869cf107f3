"""A gateway with a release store: what outlives it, what its history shows, and what it measures."""

from __future__ import annotations

import sqlite3
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from gris_api.app.v1 import app_pb2

from gris_gateway.configuration import GatewayConfiguration
from gris_gateway.history import History, Keeping
from gris_gateway.hosting import Gateway
from gris_gateway.kept_history import KeptHistory, move_history
from gris_serving.documents import read_document
from gris_serving.reloading_files import SecurityError
from pinot_connector import AsyncGatewayClient
from pinot_connector.endpoints import Credentials, Endpoint
from pinot_connector.questions import structured_question
from pinot_connector.release_store import MemoryReleaseStore
from tests.gateway.conftest import GatewayWorld, write_configuration
from tests.support.pki import Authority, Issuer
from tests.support.postgres_server import PostgresServer
from tests.support.processes import process
from tests.support.release_stores import key_file, new_database, receipt
from tests.support.world import COFACTS, World, write_growing, write_small

QUESTION = structured_question("growing", "element", k=None)
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
    assert {paid.release_id} == {each.result.release_id for each in listed}
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


async def test_an_old_history_is_moved_once(tmp_path: Path) -> None:
    """Its results are listed as they were, and the file, which anyone with the disk could read, is gone."""
    file, store = tmp_path / "history.sqlite", MemoryReleaseStore()
    old = History(str(file), Keeping(35, 100, 16), lambda: 10**15)
    pasts = []
    for k in (1, 2, 3):
        past = receipt(request_id=f"id-{k}", k=k).shown
        past.released_at.GetCurrentTime()
        pasts.append(past)
        await old.add(ANA, past)
    await old.close()
    for _ in range(2):
        await move_history(file, store)
        history = KeptHistory(store)
        page = await history.page(ANA, 100, None)
        assert tuple(reversed(pasts)) == page.releases
        assert pasts[1] == await history.find(ANA, "id-2")
    assert [] == list_of(tmp_path)


def list_of(folder: Path) -> list[Path]:
    """Return what is in a folder."""
    return list(folder.iterdir())


async def test_a_move_that_was_interrupted_lists_nothing_twice(tmp_path: Path) -> None:
    """The file was read into the store, and not removed."""
    file, store = tmp_path / "history.sqlite", MemoryReleaseStore()
    old = History(str(file), Keeping(35, 100, 16), lambda: 10**15)
    past = app_pb2.PastRelease()
    past.CopyFrom(receipt(k=2).shown)
    past.released_at.GetCurrentTime()
    await old.add(ANA, past)
    await old.close()
    with closing(sqlite3.connect(file)) as copied, closing(sqlite3.connect(tmp_path / "copy")) as copy:
        copied.backup(copy)
    await move_history(file, store)
    await move_history(tmp_path / "copy", store)
    assert (past,) == (await KeptHistory(store).page(ANA, 100, None)).releases


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
