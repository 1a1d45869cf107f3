"""The service as a process: its command line, its health, its end, and what a crash leaves."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc
from gris_api.budget.v1 import budget_pb2 as pb
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from budget_service.server.process import main
from tests.support.budget_client import PATH, account, charging, connected, cost, failure
from tests.support.budget_process import (
    CONFIGURATION,
    NOT_SERVING,
    SERVING,
    health,
    health_becomes,
    refused,
    service,
)
from tests.support.budget_samples import UNIT
from tests.support.redis_server import redis_server
from tests.unit.budget_service.crashes import require_acknowledged_charges, require_service_outlives


def refused_file(folder: Path, content: str | None) -> tuple[int, str]:
    """Run a service that must not start on the address that a file holds."""
    file = folder / "address"
    file.unlink(missing_ok=True)
    if content is not None:
        file.write_text(content, encoding="utf-8", errors="surrogateescape")
    return refused(folder, None, "--store-file", str(file))


LOWERED = admin_pb2.Limit(information=2, calls=2, mode=pb.MODE_ENFORCE, period=admin_pb2.PERIOD_NEVER)


def administering(channel: Any) -> Any:
    """Return a stub of the administrator's service."""
    return admin_pb2_grpc.BudgetAdminServiceStub(channel)


def reflecting(channel: Any) -> Any:
    """Return a stub of the reflection service, which has no types for asyncio."""
    return reflection_pb2_grpc.ServerReflectionStub(channel)


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_a_service_serves_says_so_and_ends_when_told(tmp_path: Path, how: signal.Signals) -> None:
    """Health is SERVING for the whole and for the service; the exit code is 0."""
    with service(tmp_path, f"sqlite:{tmp_path}/ledger.db") as running:
        await health_becomes(running.address, SERVING)
        assert await health(running.address, "gris.budget.v1.BudgetService") == SERVING
        async with connected(running.address) as stub:
            assert (await stub.UpdateBudget(charging())).charged == cost()
        assert running.end(how) == 0


@pytest.mark.usefixtures("starts_redis")
def test_a_service_that_has_just_begun_ends_when_told(tmp_path: Path) -> None:
    """Its first look at Redis is interrupted, at another moment each time."""
    with redis_server(tmp_path) as redis:
        for _ in range(3):
            with service(tmp_path, redis.address) as running:
                assert running.end(signal.SIGTERM) == 0


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize("wanted", [True, False])
async def test_reflection_is_there_only_if_wanted(tmp_path: Path, wanted: bool) -> None:
    """Tools may ask for the interface where the operator allows it."""
    flags = ["--reflection"] if wanted else []
    with service(tmp_path, f"sqlite:{tmp_path}/ledger.db", *flags) as running:
        async with grpc.aio.insecure_channel(running.address) as channel:
            stub = reflecting(channel)
            if wanted:
                asked = iter([reflection_pb2.ServerReflectionRequest(list_services="")])
                call = stub.ServerReflectionInfo(asked)
                names = [each.name async for answer in call for each in answer.list_services_response.service]
                assert "gris.budget.v1.BudgetService" in names
            else:
                # Nothing is sent: a message that the refusal overtakes has a status of its own.
                assert await stub.ServerReflectionInfo(timeout=30).code() == grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.usefixtures("starts_processes")
async def test_the_administrator_is_served_on_an_address_of_its_own_if_wanted(tmp_path: Path) -> None:
    """What it sets holds at the other address, where it is not served."""
    with service(tmp_path, f"sqlite:{tmp_path}/ledger.db") as running:
        assert running.admin_address is None
    with service(tmp_path, f"sqlite:{tmp_path}/ledger.db", "--admin-listen", "127.0.0.1:0") as running:
        assert running.admin_address is not None
        change = admin_pb2.LimitChange(path=PATH, limit=LOWERED)
        request = admin_pb2.SetLimitsRequest(changes=[change], request_id="s")
        async with grpc.aio.insecure_channel(running.admin_address) as channel:
            await administering(channel).SetLimits(request)
        async with connected(running.address) as stub:
            assert (await failure(stub.UpdateBudget(charging(cost(3, 1))))).info.reason == "BUDGET_EXHAUSTED"
        async with grpc.aio.insecure_channel(running.address) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await administering(channel).SetLimits(request)
        assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.usefixtures("starts_processes")
async def test_a_killed_service_has_every_charge_that_it_acknowledged(tmp_path: Path) -> None:
    """Killed under load: acknowledged <= spent <= acknowledged + unknown, and every repeat is the first answer."""
    unknown = await require_acknowledged_charges(f"sqlite:{tmp_path}/ledger.db", tmp_path, tmp_path)
    assert unknown == 16


@pytest.mark.usefixtures("starts_redis")
async def test_a_service_outlives_its_redis(tmp_path: Path) -> None:
    """UNAVAILABLE and NOT_SERVING while Redis is down, both quickly; then it goes on by itself."""
    with redis_server(tmp_path) as redis:
        reason = await require_service_outlives(redis, tmp_path)
        assert reason in {"STORE_UNAVAILABLE", "OUTCOME_UNKNOWN"}


@pytest.mark.usefixtures("starts_redis")
async def test_a_store_that_dies_while_a_service_drains_is_noticed(tmp_path: Path) -> None:
    """The service goes on for its clients, knows its store's health, and never again says that it serves."""
    name = "gris.budget.v1.BudgetService"
    draining = ("--drain-seconds", "30")
    with redis_server(tmp_path) as redis, service(tmp_path, redis.address, *draining) as running:
        await health_becomes(running.address, SERVING)
        async with connected(running.address) as stub:
            await stub.UpdateBudget(charging(request_id="before"))
            running.process.terminate()
            await health_becomes(running.address, NOT_SERVING)
            assert await health(running.address, f"{name}/store") == SERVING
            assert (await stub.UpdateBudget(charging(request_id="before"))).replayed
            redis.kill()
            await health_becomes(running.address, NOT_SERVING, f"{name}/store")
            error = await failure(stub.UpdateBudget(charging()))
            assert (error.code, error.info.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
            redis.start()
            await health_becomes(running.address, SERVING, f"{name}/store")
            assert (await stub.UpdateBudget(charging(request_id="before"))).replayed
        assert [await health(running.address, each) for each in ("", name)] == [NOT_SERVING, NOT_SERVING]


WRONG_STARTS = (
    ("sqlite:x", (), "accounts: 7", "accounts"),
    ("sqlite:x", (), CONFIGURATION + "charge_tickets: {key_file: FOLDER/key}\n", "32 bytes"),
    ("mysql://x", (), CONFIGURATION, "sqlite:PATH"),
    ("redis://h:99999/0", ("--validate",), CONFIGURATION, "the address of Redis cannot be read"),
    ("postgresql://h:99999/d", ("--validate",), CONFIGURATION, "the address of PostgreSQL cannot be read"),
    ("postgresql://h:bad/d", ("--validate",), CONFIGURATION, "the address of PostgreSQL cannot be read"),
    ("sqlite:x", ("--admin-listen", "0.0.0.0:1", "--validate"), CONFIGURATION, "others can reach"),
    ("sqlite:FOLDER/no/ledger.db", (), CONFIGURATION, "no/ledger.db"),
    ("sqlite:FOLDER/l.db", ("--spend-every-budget",), CONFIGURATION, "give both"),
    (None, ("--store-file", "FOLDER/none", "--validate"), CONFIGURATION, "No such file"),
    ("sqlite:x", ("--backups", "FOLDER/none", "--validate"), CONFIGURATION, "not a folder"),
)


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize(("store", "more", "configuration", "word"), WRONG_STARTS)
def test_a_wrong_start_is_refused_in_one_line(
    tmp_path: Path, store: str | None, more: Sequence[str], configuration: str, word: str
) -> None:
    """The exit code is 2."""
    (tmp_path / "key").write_bytes(b"short")
    (tmp_path / "key").chmod(0o440)
    folder = str(tmp_path)
    code, said = refused(
        tmp_path,
        store and store.replace("FOLDER", folder),
        *[each.replace("FOLDER", folder) for each in more],
        configuration=configuration.replace("FOLDER", folder),
    )
    assert (code, word in said, said.count("\n")) == (2, True, 1)


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize(
    ("content", "word"),
    [("", "one line"), ("sqlite:a\nsqlite:b", "one line"), ("\udcff", "not UTF-8"), (None, "No such file")],
)
def test_a_wrong_file_of_an_address_is_refused_in_one_line(
    tmp_path: Path, content: str | None, word: str
) -> None:
    """The exit code is 2."""
    code, said = refused_file(tmp_path, content)
    assert (code, word in said, said.count("\n")) == (2, True, 1)


@pytest.mark.usefixtures("starts_processes")
async def test_a_restored_ledger_is_served_after_its_confirmation(tmp_path: Path) -> None:
    """Exit code 2 before it, and no budget is left of the month after it."""
    store = f"sqlite:{tmp_path}/ledger.db"
    with service(tmp_path, store) as running:
        async with connected(running.address) as stub:
            await stub.UpdateBudget(charging(cost(1, 1)))
        assert running.end(signal.SIGTERM) == 0
    code, said = refused(tmp_path, store, "--confirm-restored")
    assert (code, "--spend-every-budget" in said) == (2, True)
    with service(tmp_path, store) as running:
        async with connected(running.address) as stub:
            await stub.UpdateBudget(charging(cost(1, 1)))
        assert running.end(signal.SIGTERM) == 0
    (tmp_path / "ledger.db.mark").unlink()
    code, said = refused(tmp_path, store)
    assert (code, "--confirm-restored" in said) == (2, True)
    code, said = refused(tmp_path, store, "--confirm-restored")
    assert (code, said) == (0, "budget_service: what was left of 2 budgets counts as spent\n")
    with service(tmp_path, store) as running:
        async with connected(running.address) as stub:
            assert (await failure(stub.UpdateBudget(charging(cost(1, 1))))).info.reason == "BUDGET_EXHAUSTED"


@pytest.mark.usefixtures("starts_processes")
def test_a_configuration_can_be_checked_alone(tmp_path: Path) -> None:
    """No store is touched."""
    assert refused(tmp_path, f"sqlite:{tmp_path}/ledger.db", "--validate") == (0, "")
    assert not (tmp_path / "ledger.db").exists()


@pytest.mark.parametrize("option", ["--listen", "--admin-listen", "--metrics-listen"])
@pytest.mark.parametrize(
    "address", ["127.0.0.1:70000", "127.0.0.1:-1", ":5", "localhost", "127.0.0.1:\u0665"]
)
def test_a_wrong_address_is_named_by_its_option(
    option: str, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what was expected, also where only the configuration is checked; the exit code is 2."""
    with pytest.raises(SystemExit) as end:
        main(["--config", "budget.yaml", f"{option}={address}", "--validate"])
    assert end.value.code == 2
    assert f"{option}: expected HOST:PORT with a port from 0 to 65535" in capsys.readouterr().err


@pytest.mark.usefixtures("starts_processes")
async def test_a_changed_configuration_comes_into_force_and_a_broken_one_does_not(tmp_path: Path) -> None:
    """The limit is lowered while the service runs; then the file is broken; then it is raised."""
    config = tmp_path / "budget.yaml"
    with service(tmp_path, f"sqlite:{tmp_path}/ledger.db") as running:
        async with connected(running.address) as stub:
            await stub.UpdateBudget(charging(cost(5, 1)))
            replace_file(config, CONFIGURATION.replace("information: 1000000", "information: 5"))
            await limit_becomes(stub, 5)
            assert (await failure(stub.UpdateBudget(charging(cost(1, 1))))).info.reason == "BUDGET_EXHAUSTED"
            replace_file(config, "accounts: 7")
            await log_becomes(tmp_path, "event=settings.refused")
            await limit_becomes(stub, 5)
            replace_file(config, CONFIGURATION.replace("information: 1000000", "information: 6"))
            await limit_becomes(stub, 6)
            await stub.UpdateBudget(charging(cost(1, 1)))
        assert running.end(signal.SIGTERM) == 0
    assert "accounts" in (tmp_path / "log").read_text()


def replace_file(path: Path, text: str) -> None:
    """Put a new file in the place of another, as a whole."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


async def limit_becomes(stub: Any, information: int) -> None:
    """Wait until the account has this limit."""
    async with asyncio.timeout(20):
        while True:
            state = await stub.GetBudget(pb.GetBudgetRequest(account=account()))
            if state.levels[-1].limit.information == information:
                return
            await asyncio.sleep(0.1)


async def log_becomes(folder: Path, words: str) -> None:
    """Wait until the log says so."""
    async with asyncio.timeout(20):
        while words not in (folder / "log").read_text():  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(0.1)


@pytest.mark.usefixtures("starts_processes")
async def test_the_log_names_no_account(tmp_path: Path) -> None:
    """Not for an answer, not for a refusal, not at start and end."""
    with service(tmp_path, f"sqlite:{tmp_path}/ledger.db") as running:
        async with connected(running.address) as stub:
            await stub.UpdateBudget(charging(cost(7, 7), path=("acme", "hidden-name")))
            await failure(stub.UpdateBudget(charging(cost(2_000_000, 7), path=("acme", "hidden-name"))))
        running.end(signal.SIGTERM)
    log = (tmp_path / "log").read_text()
    assert log
    assert not any(word in log for word in ("hidden-name", UNIT, "2000000"))
