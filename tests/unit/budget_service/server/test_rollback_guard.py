"""A Redis or PostgreSQL whose data was put back: noticed by the mark beside the service, and confirmed."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.budget.v1 import budget_pb2 as pb

from budget_service.configuration.budget_file import Configuration
from budget_service.ledger.acts.set_limits import SetLimits
from budget_service.ledger.limits import NO_LIMITS, AppliedLimits
from budget_service.ledger.outcomes import Charged, Exhausted
from budget_service.ledger.values import NOTHING, Cost
from budget_service.server.audit import Verification, verify
from budget_service.server.failure_detector import FailureDetector
from budget_service.server.hosting import serving
from budget_service.server.ledger import Ledger
from budget_service.server.settings import LiveSettings, Settings
from budget_service.stores import rollback_guard
from budget_service.stores.interface import StoreUnavailableError, StoreUnusableError
from budget_service.stores.opening import confirm_restored, open_store, renew_mark
from budget_service.stores.postgres.store import PostgresStore
from budget_service.stores.redis.store import RedisStore
from budget_service.stores.rollback_guard import Position, fresh_path, load_position, write_whole
from tests.support.budget_client import account, charging, connected, cost, failure
from tests.support.budget_samples import ANALYST, COLLEAGUE, COMPANY, charge, levels, limit
from tests.support.ledger_stores import until_checked
from tests.support.log_events import logged_events
from tests.support.postgres_server import PostgresServer, postgres_server
from tests.support.redis_server import RedisServer, redis_server
from tests.support.rings import needs

CONFIGURATION = Configuration.model_validate(
    {
        "accounts": [
            {"path": ["acme"], "limit": {"information": 10_000, "calls": 5000}},
            {"path": ["acme", "*"], "limit": {"information": 10, "calls": 5}},
            {"path": ["named"], "limit": {"information": 7, "calls": 2}},
        ],
    }
)


@dataclass
class Remote:
    """A real server whose data can be put back, and where the mark of the service is."""

    server: RedisServer | PostgresServer
    data: Path
    mark: Path

    @property
    def address(self) -> str:
        """The address of the store."""
        return self.server.address

    def copied(self) -> Path:
        """Stop the server, copy its data, and start it again."""
        return self._stopped(lambda: _copy(self.data, self.data.with_name("backup")))

    def put_back(self, backup: Path) -> None:
        """Stop the server, put a copy in the place of its data, and start it again."""

        def put() -> Path:
            shutil.rmtree(self.data)
            return _copy(backup, self.data)

        self._stopped(put)

    def _stopped(self, work: Callable[[], Path]) -> Path:
        self.server.kill()
        done = work()
        self.server.start()
        return done


def _copy(source: Path, target: Path) -> Path:
    # Owners and rights too: PostgreSQL insists on them.
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)
    return target


@pytest.fixture(params=["redis", "postgres"])
@needs("redis", "postgres")
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Remote]:
    """Run each store by itself."""
    if request.param == "redis":
        folder = tmp_path / "redis"
        folder.mkdir()
        with redis_server(folder) as redis:
            yield Remote(redis, folder, tmp_path / "mark")
    else:
        with postgres_server() as postgres:
            yield Remote(postgres, postgres.folder, tmp_path / "mark")


@asynccontextmanager
async def opened(remote: Remote, mark: Path | None = None) -> AsyncIterator[RedisStore | PostgresStore]:
    """Open the store with its mark."""
    store = await open_store(remote.address, allow_volatile=False, mark=mark or remote.mark)
    assert isinstance(store, RedisStore | PostgresStore)
    try:
        yield store
    finally:
        await store.close()


async def test_data_that_was_put_back_is_refused_until_it_is_confirmed(remote: Remote) -> None:
    """All that was left counts as spent, on levels that are known or written out; the journal says so."""
    async with opened(remote) as store:
        await store.apply(*charge("a", Cost(3, 1)))
        await store.check()
    with pytest.raises(StoreUnusableError, match=r"not behind its mark.*--spend-every-budget"):
        await confirm_restored(
            remote.address, CONFIGURATION.limit_of, [ANALYST], mark=remote.mark, actor="ops"
        )
    backup = await asyncio.to_thread(remote.copied)
    async with opened(remote) as store:
        await store.apply(*charge("lost", Cost(6, 1)))
        await store.check()
    await asyncio.to_thread(remote.put_back, backup)
    for _ in range(2):
        with pytest.raises(StoreUnusableError, match=r"behind its mark.*--confirm-restored"):
            async with opened(remote):
                pass
    named = CONFIGURATION.named_levels()
    with pytest.raises(StoreUnusableError, match="--mark"):
        await confirm_restored(remote.address, CONFIGURATION.limit_of, named, actor="ops")
    assert (
        await confirm_restored(remote.address, CONFIGURATION.limit_of, named, mark=remote.mark, actor="ops")
        == 3
    )
    async with opened(remote) as store:
        (status,) = (await store.read(ANALYST, levels())).levels
        assert (status.spent, status.remaining) == (Cost(10, 5), NOTHING)
        version = (await store.limits(ANALYST)).version
        again = charge("again", Cost(1, 0)).by(AppliedLimits(levels(), version))
        assert isinstance((await store.apply(*again)).outcome, Exhausted)
        await store.check()
        found = Verification()
        for root in await store.roots():
            await verify(store, root, found)
        assert found.differences == []


async def test_data_that_is_put_back_under_a_running_service_is_noticed(remote: Remote) -> None:
    """Nothing is served, also by another service with a mark of its own, until it is confirmed; then both go on."""
    other_mark = remote.mark.with_name("other")
    async with opened(remote) as store:
        await store.apply(*charge("a", Cost(3, 1)))
        await store.check()
        backup = await asyncio.to_thread(remote.copied)
        await until_checked(store)
        shutil.copyfile(remote.mark, other_mark)
        async with opened(remote, other_mark) as other:
            await other.apply(*charge("lost", Cost(6, 1)))
            await other.check()
            await store.check()
            await asyncio.to_thread(remote.put_back, backup)
            detector = FailureDetector(store)
            checking = asyncio.create_task(detector.keep_checking())
            with pytest.raises(StoreUnavailableError, match="set back"):
                await until_refused(detector)
            for each in (store, other):
                with pytest.raises(StoreUnusableError, match="set back"):
                    await until_checked(each)
            await confirm_restored(remote.address, CONFIGURATION.limit_of, [], mark=remote.mark, actor="ops")
            for each in (store, other):
                await until_checked(each)
            checking.cancel()
            await asyncio.gather(checking, return_exceptions=True)


async def test_limits_that_were_set_and_lost_are_forgotten_by_a_service_that_goes_on(remote: Remote) -> None:
    """The ledger that was put back has no other limits of their version, though nobody noticed that it was put back."""
    lost, kept = ((ANALYST, limit(information, 50)) for information in (100, 5))
    settings = LiveSettings(Settings(CONFIGURATION))
    async with opened(remote) as store, serving(Ledger(store), settings, "127.0.0.1:0") as address:
        await store.apply(*charge("a", Cost(3, 1)))
        await until_checked(store)
        backup = await asyncio.to_thread(remote.copied)
        await until_checked(store)
        at_backup = marked(remote.mark)
        version = (
            await store.apply(
                SetLimits(actor="ops", account=COMPANY, request_id="s", changes=(lost,)), NO_LIMITS
            )
        ).outcome
        async with connected(address) as stub:
            await until_answered(lambda: stub.UpdateBudget(charging(cost(20, 1))))
            await until_marked_beyond(remote.mark, at_backup)
            await asyncio.to_thread(remote.put_back, backup)
            with pytest.raises(StoreUnusableError, match="set back"):
                await until_checked(store)
            theirs = pb.GetBudgetRequest(account=account(COLLEAGUE.path))
            await until_unavailable(lambda: stub.GetBudget(theirs))
            await confirm_restored(remote.address, CONFIGURATION.limit_of, [], mark=remote.mark, actor="ops")
            asked = SetLimits(actor="ops", account=COMPANY, request_id="t", changes=(kept,))
            assert version != (await store.apply(asked, NO_LIMITS)).outcome
            refused = await failure(until_answered(lambda: stub.UpdateBudget(charging(cost(20, 1)))))
            assert refused.code is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_service_without_a_mark_may_not_join_a_ledger_that_has_one(remote: Remote) -> None:
    """It could not tell a backup; with an old copy of the other's mark it can, and with that of another ledger not."""
    async with opened(remote) as store:
        await store.apply(*charge("a", Cost(3, 1)))
        await store.check()
    fresh = remote.mark.with_name("fresh")
    with pytest.raises(StoreUnusableError, match="no mark"):
        async with opened(remote, fresh):
            pass
    shutil.copyfile(remote.mark, fresh)
    async with opened(remote) as store:
        await store.apply(*charge("later", Cost(1, 1)))
        await store.check()
    async with opened(remote, fresh) as store:
        assert isinstance((await store.apply(*charge("b", Cost(1, 1)))).outcome, Charged)
    fresh.write_text('{"ledger_id": "another", "count": 0}')
    with pytest.raises(StoreUnusableError, match="of another ledger"):
        async with opened(remote, fresh):
            pass
    fresh.write_text("{")
    with pytest.raises(StoreUnusableError, match="cannot be read"):
        async with opened(remote, fresh):
            pass


async def test_services_that_share_a_mark_start_a_new_ledger_at_the_same_moment(
    remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second looked for the mark before the first wrote it, and for the count afterwards."""
    first = AsyncExitStack()
    read, begun = load_position, threading.Event()

    def reading(path: Path) -> Position | None:
        found = read(path)
        if not begun.is_set():
            begun.set()
            asyncio.run_coroutine_threadsafe(first.enter_async_context(opened(remote)), loop).result(60)
        return found

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(rollback_guard, "load_position", reading)
    async with first, opened(remote) as second:
        assert isinstance((await second.apply(*charge("a", Cost(3, 1)))).outcome, Charged)


async def test_a_mark_that_cannot_be_written_is_refused_at_the_start_and_costs_nothing(
    remote: Remote,
) -> None:
    """A folder with a typing error: it says so, and the right folder is taken afterwards as if nothing had been."""
    wrong = remote.mark.parent / "no-such-folder" / "mark"
    for _ in range(2):
        with pytest.raises(StoreUnusableError, match=r"no-such-folder/mark cannot be written: No such file"):
            async with opened(remote, wrong):
                pass
    async with opened(remote) as store:
        assert isinstance((await store.apply(*charge("a", Cost(3, 1)))).outcome, Charged)


async def test_nothing_is_charged_while_the_mark_cannot_be_written(
    remote: Remote, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New calls are refused, the log says why once, and they are taken again when it can be written."""
    async with opened(remote) as store:
        await store.apply(*charge("a", Cost(3, 1)))
        fresh_path(remote.mark).mkdir()
        checks, check = asyncio.Queue[None](), store.check

        async def counted() -> None:
            try:
                await check()
            finally:
                checks.put_nowait(None)

        monkeypatch.setattr(store, "check", counted)
        detector = FailureDetector(store)
        checking = asyncio.create_task(detector.keep_checking())
        with pytest.raises(StoreUnavailableError, match="cannot be written"):
            await until_refused(detector)
        assert not detector.is_serving
        while not checks.empty():
            checks.get_nowait()
        # One check may have begun before the call: the second from now finds the fault again.
        for _ in range(2):
            async with asyncio.timeout(20):
                await checks.get()
        failed = [fields for event, fields in logged_events(caplog) if event == "store.check_failed"]
        assert len(failed) == 1
        assert f"{remote.mark} cannot be written: Is a directory" in failed[0]["problem"]
        fresh_path(remote.mark).rmdir()
        async with asyncio.timeout(20):
            while not detector.is_serving:
                detector.changed.clear()
                await detector.changed.wait()
        await detector.admit()
        checking.cancel()
        await asyncio.gather(checking, return_exceptions=True)


async def test_a_mark_that_is_removed_while_it_is_used_is_written_again(remote: Remote) -> None:
    """Though nothing was charged: the next start would refuse the ledger."""
    async with opened(remote) as store:
        await store.check()
        remote.mark.unlink()
        await store.check()
        assert remote.mark.exists()


async def test_a_lost_mark_is_renewed_where_the_last_service_left_the_ledger(
    remote: Remote, caplog: pytest.LogCaptureFixture
) -> None:
    """Its position comes from the log: no budget is spent, and no other position is taken."""
    caplog.set_level("INFO")
    async with opened(remote) as store:
        await store.apply(*charge("a", Cost(3, 1)))
        await store.check()
    left = positions(caplog)[-1]
    remote.mark.unlink()
    with pytest.raises(StoreUnusableError, match="--renew-mark"):
        async with opened(remote):
            pass
    others = [Position(left.ledger_id, left.count + each) for each in (-1, 1)]
    for stated in (*others, Position("another", left.count)):
        with pytest.raises(StoreUnusableError, match="does not stand at that position"):
            await renew_mark(remote.address, stated, allow_volatile=False, mark=remote.mark)
    await renew_mark(remote.address, left, allow_volatile=False, mark=remote.mark)
    with pytest.raises(StoreUnusableError, match="is a high-water mark already"):
        await renew_mark(remote.address, left, allow_volatile=False, mark=remote.mark)
    async with opened(remote) as store:
        (status,) = (await store.read(ANALYST, levels())).levels
        assert status.spent == Cost(3, 1)


async def test_a_ledger_that_was_put_back_is_not_renewed(
    remote: Remote, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither with the last position in the log, nor though the service died before it could log one."""
    caplog.set_level("INFO")
    async with opened(remote) as store:
        await store.apply(*charge("a", Cost(3, 1)))
        await store.check()
    backup = await asyncio.to_thread(remote.copied)
    async with asyncio.timeout(20), opened(remote) as store:
        begun = positions(caplog)[-1]
        await store.apply(*charge("lost", Cost(6, 1)))
        await until_checked(store)
    ended = positions(caplog)[-1]
    assert begun.count < ended.count
    await asyncio.to_thread(remote.put_back, backup)
    remote.mark.unlink()
    for stated in (begun, ended):
        with pytest.raises(StoreUnusableError, match="does not stand at that position"):
            await renew_mark(remote.address, stated, allow_volatile=False, mark=remote.mark)
    assert not remote.mark.exists()


def positions(caplog: pytest.LogCaptureFixture) -> list[Position]:
    """Return where the log says that the ledger stood."""
    events = logged_events(caplog)
    return [
        Position(fields["ledger"], fields["count"])
        for event, fields in events
        if event == "rollback_guard.position"
    ]


async def test_a_mark_that_cannot_be_written_is_noticed_and_an_idle_ledger_is_not_counted_on(
    remote: Remote,
) -> None:
    """The count moves only after something was charged."""
    async with opened(remote) as store:
        await store.apply(*charge("a", Cost(3, 1), on=levels(own=limit(10, 5))))
        await store.check()
        before = remote.mark.read_text()
        await store.check()
        assert remote.mark.read_text() == before
        await store.apply(*charge("b", Cost(3, 1)))
        fresh_path(remote.mark).mkdir()
        with pytest.raises(StoreUnusableError, match="cannot be written"):
            await store.check()
        fresh_path(remote.mark).rmdir()
        await store.check()
        assert remote.mark.read_text() != before


WRITER = """
import sys
from pathlib import Path
from budget_service.stores.rollback_guard import write_whole
for _ in range(300):
    write_whole(Path(sys.argv[1]), sys.argv[2])
"""


@pytest.mark.usefixtures("starts_processes")
def test_workers_who_share_a_mark_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Each replaces it as a whole: nobody fails, and every reader finds what one of them wrote."""
    mark, texts = tmp_path / "mark", ["a" * 50, "b" * 50]
    write_whole(mark, texts[0])
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(mark), text]) for text in texts]
    while any(writer.poll() is None for writer in writers):
        assert mark.read_text() in texts
    assert [0, 0] == [writer.returncode for writer in writers]


def marked(mark: Path) -> int:
    """Return the count of a high-water mark."""
    position = load_position(mark)
    assert position is not None
    return position.count


async def until_marked_beyond(mark: Path, count: int) -> None:
    """Wait until the service has counted on: it checks its store by itself, and a second check may end before its."""
    async with asyncio.timeout(20):
        while marked(mark) <= count:  # noqa: ASYNC110 - files have no events
            await asyncio.sleep(0.05)


async def until_answered(call: Callable[[], Awaitable[Any]]) -> Any:
    """Call until the service is available."""
    async with asyncio.timeout(20):
        while True:
            try:
                return await call()
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
                await asyncio.sleep(0.05)


async def until_unavailable(call: Callable[[], Awaitable[Any]]) -> None:
    """Call until the service refuses."""
    async with asyncio.timeout(20):
        while True:
            try:
                await call()
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNAVAILABLE:
                    return
                raise
            await asyncio.sleep(0.05)


async def until_refused(detector: FailureDetector) -> None:
    """Wait until a new call would be refused."""
    async with asyncio.timeout(20):
        while True:
            await detector.admit()
            await asyncio.sleep(0.05)


def test_replicas_in_containers_do_not_write_each_others_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them have process id 1, and one volume for the mark."""
    monkeypatch.setattr("os.getpid", lambda: 1)
    paths = set()
    for name in ("budget-service-a", "budget-service-b"):
        monkeypatch.setattr("socket.gethostname", lambda name=name: name)
        paths.add(fresh_path(tmp_path / "ledger.mark"))
    assert len(paths) == 2
