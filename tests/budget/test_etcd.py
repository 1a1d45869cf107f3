"""What only the etcd store does: members that die, are paused or stale, large changes, a bounded database, clocks."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from aetcd.rpc import rpc_pb2, rpc_pb2_grpc

from budget_service.ledger.limits import NO_LIMITS, AppliedLimits
from budget_service.ledger.outcomes import Answer, Charged, LimitsSet
from budget_service.ledger.requests import Charge, MoveAccount, SetLimits
from budget_service.ledger.values import Account, Cost
from budget_service.ledger.windows import SECOND
from budget_service.server.audit import Verification, verify
from budget_service.server.checkpoints import archive, make_checkpoint
from budget_service.stores.etcd import pending
from budget_service.stores.etcd.address import parse_address
from budget_service.stores.etcd.clocks import Bounds, Sample, Verdict, bounds_of, judge
from budget_service.stores.etcd.layout import Layout
from budget_service.stores.etcd.members import Members, range_of
from budget_service.stores.etcd.purge import COMPACT_SECONDS, Purge
from budget_service.stores.etcd.store import EtcdStore
from budget_service.stores.etcd.transaction import EtcdTransaction
from budget_service.stores.interface import (
    OutcomeUnknownError,
    StoreError,
    StoreUnavailableError,
    StoreUnusableError,
    system_clock,
)
from budget_service.tuning import Tuning
from tests.budget.conftest import UNHURRIED, closing
from tests.support.budget_samples import Asked, SteppedClock, charge, levels, limit, reserve
from tests.support.etcd_cluster import EtcdCluster, etcd_cluster
from tests.support.pki import Authority
from tests.support.proxy import Proxy
from tests.support.rings import needs

ACCOUNT = Account(("only-etcd", "ann"))
ON = levels(ACCOUNT, own=limit(10**6, 10**6))
SHORT = Tuning(etcd_answer_seconds=0.5)
UNREADABLE = [
    "etcd://",
    "etcd://host",
    "etcd://host:2379/a/b",
    "etcd://host:99999",
    "etcd://user@host:2379",
    "etcd://a:1,a:1",
    "etcd://user:pass/word@host:2379",
    "etcd://host:2379?unknown=1",
    "etcd://host:2379?ca=/ca.pem",
    "etcds://host:2379?cert=/c.pem",
    "etcd://host:2379?max_clock_skew=0",
    "etcd://host:2379?max_clock_skew=soon",
]


@pytest.fixture(scope="module")
@needs("etcd")
def own_etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdCluster]:
    """Run a cluster whose members are killed and paused; all run again after each test."""
    with etcd_cluster(tmp_path_factory.mktemp("etcd")) as cluster:
        yield cluster


@asynccontextmanager
async def opened(address: str, tuning: Tuning = UNHURRIED) -> AsyncIterator[EtcdStore]:
    """Open a ledger on the time of this machine."""
    async with closing(store := await EtcdStore.open(address, tuning=tuning)):
        yield store


async def insisted(ask: Callable[[], Awaitable[object]]) -> None:
    """Try again until the store does it."""
    async with asyncio.timeout(60):
        while True:
            try:
                await ask()
                return
            except StoreError:
                await asyncio.sleep(0.05)


async def becomes(question: Callable[[], Awaitable[bool]]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(30):
        while not await question():  # noqa: ASYNC110 - another process cannot set an event
            await asyncio.sleep(0.1)


async def spent(store: EtcdStore) -> Cost:
    """Return what the account has spent, from any member that answers."""
    found: list[Cost] = []

    async def ask() -> None:
        found.append((await store.read(ACCOUNT, ON)).levels[-1].spent)

    await insisted(ask)
    return found[0]


@pytest.mark.parametrize("address", UNREADABLE)
def test_an_address_that_cannot_be_read_is_refused_without_showing_it(address: str) -> None:
    """Its password may be in what was taken for a host."""
    with pytest.raises(StoreUnusableError) as refused:
        parse_address(address)
    assert "pass" not in str(refused.value).replace("PASSWORD", "").replace("password", "")


async def test_members_killed_and_paused_under_charges_lose_none_that_was_acknowledged(
    own_etcd: EtcdCluster,
) -> None:
    """Each is made once, whichever member is gone, and what was answered before is known."""
    asked = [charge(f"c{index}", Cost(1, 1), account=ACCOUNT, on=ON) for index in range(600)]
    first: dict[str, Answer] = {}
    marks = [asyncio.Event() for _ in range(6)]
    async with opened(own_etcd.new_ledger(), SHORT) as store:

        async def charged(request: Asked[Charge]) -> None:
            first[request.request.request_id] = await store.apply(*request)

        async def caller(start: int) -> None:
            for request in asked[start::8]:
                await insisted(partial(charged, request))
                if len(first) % 90 == 0 and len(first) // 90 <= len(marks):
                    marks[len(first) // 90 - 1].set()

        async def detector() -> None:
            while True:
                await asyncio.gather(store.ping(), return_exceptions=True)
                await asyncio.sleep(0.05)

        pinging = asyncio.create_task(detector())
        callers = [asyncio.create_task(caller(start)) for start in range(8)]
        for number, member in enumerate(own_etcd.members):
            await marks[number].wait()
            member.kill()
            await marks[number + 3].wait() if number == 2 else await asyncio.sleep(0.5)
            await asyncio.to_thread(own_etcd.start)
            with member.frozen():
                await asyncio.sleep(1)
        await asyncio.gather(*callers)
        pinging.cancel()
        assert Cost(len(asked), len(asked)) == await spent(store)
        for request in asked[::20]:
            answered = first[request.request.request_id]
            assert await store.apply(*request) == Answer(answered.outcome, replayed=True)
        found = Verification()
        await verify(store, ACCOUNT.root, found)
        assert (len(asked), []) == (found.entries, found.differences)


async def test_a_stale_member_tells_nothing(own_etcd: EtcdCluster) -> None:
    """It has missed a charge and is alone: who reaches only that one gets no answer, rather than an old one."""
    address = own_etcd.new_ledger()
    stale, *others = own_etcd.members
    # The prefix of the ledger, at this member alone.
    alone = f"etcd://{stale.endpoint}/{address.rpartition('/')[2]}"
    try:
        async with opened(address) as store, opened(alone, SHORT) as lonely:
            await store.apply(*charge("a", account=ACCOUNT, on=ON))
            assert Cost(4, 1) == await spent(lonely)
            with stale.frozen():
                await insisted(lambda: store.apply(*charge("b", account=ACCOUNT, on=ON)))
                for each in others:
                    each.stop()
            for asked in (lonely.read(ACCOUNT, ON), lonely.ping(), lonely.check()):
                with pytest.raises(StoreUnavailableError):
                    await asked
            for each in others:
                each.go_on()
            assert Cost(8, 2) == await spent(lonely)
    finally:
        for each in others:
            each.go_on()


async def test_services_that_charge_one_account_at_once_spend_each_unit_once(
    shared_etcd: EtcdCluster, clock: SteppedClock
) -> None:
    """Three services want twice what is left: as many charges are made as fit, and all are in the journal."""
    address, on = shared_etcd.new_ledger(), levels(ACCOUNT, own=limit(30, 30))
    async with AsyncExitStack() as stack:
        stores = [
            await stack.enter_async_context(
                closing(await EtcdStore.open(address, clock=clock, tuning=UNHURRIED))
            )
            for _ in range(3)
        ]

        async def insist(number: int) -> Answer:
            answers: list[Answer] = []

            async def ask() -> None:
                asked = charge(f"c{number}", Cost(1, 1), account=ACCOUNT, on=on)
                answers.append(await stores[number % 3].apply(*asked))

            await insisted(ask)
            return answers[0]

        answers = await asyncio.gather(*(insist(number) for number in range(60)))
        assert sum(isinstance(each.outcome, Charged) for each in answers) == 30
        assert len(await stores[0].journal(ACCOUNT.root, "", "", 100)) == 30
        assert Cost(30, 30) == (await stores[1].read(ACCOUNT, on)).levels[-1].spent


async def test_an_answer_that_is_lost_leaves_the_outcome_unknown_and_a_repeat_settles_it(
    own_etcd: EtcdCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The charge arrived although its answer did not: repeated with the same id, it is made once."""
    async with Proxy(own_etcd.members[0].endpoint).listening() as line:
        prefix = own_etcd.new_ledger().rpartition("/")[2]
        async with opened(f"etcd://{line.address}/{prefix}", SHORT) as store:
            await store.apply(*charge("a", account=ACCOUNT, on=ON))
            asked = charge("b", account=ACCOUNT, on=ON)
            commit = EtcdTransaction.commit

            async def unanswered(begun: EtcdTransaction, *arguments: Any) -> bool:
                # What is loaded has arrived, and what is written is answered to nobody.
                async with line.swallowing():
                    return await commit(begun, *arguments)

            with monkeypatch.context() as patched:
                patched.setattr(EtcdTransaction, "commit", unanswered)
                with pytest.raises(OutcomeUnknownError):
                    await store.apply(*asked)
            found: list[Answer] = []

            async def again() -> None:
                found.append(await store.apply(*asked))

            await insisted(again)
            assert (True, Charged) == (found[0].replayed, type(found[0].outcome))
            assert Cost(8, 2) == await spent(store)


async def test_a_change_larger_than_a_transaction_is_made_whole(
    shared_etcd: EtcdCluster, clock: SteppedClock
) -> None:
    """A thousand limits at once, and an account with years of days and many reservations that gets another name."""
    address = shared_etcd.new_ledger()
    target = Account((ACCOUNT.root, "zoe"))
    async with closing(await EtcdStore.open(address, clock=clock, tuning=UNHURRIED)) as store:
        changes = tuple((Account((ACCOUNT.root, f"a{index}")), limit(index, 1)) for index in range(1000))
        answer = await store.apply(
            SetLimits(account=ACCOUNT.level(1), request_id="l", changes=changes), NO_LIMITS
        )
        assert isinstance(answer.outcome, LimitsSet)
        assert dict(changes) == (await store.all_limits(ACCOUNT.root)).limits
        version = (await store.limits(ACCOUNT)).version
        by = AppliedLimits(ON, version)
        for day in range(40):
            await store.apply(*charge(f"c{day}", Cost(1, 1), account=ACCOUNT, on=ON).by(by))
            clock.step(days=1)
        held = [reserve(f"r{index}", Cost(1, 1), account=ACCOUNT, on=ON).by(by) for index in range(70)]
        await asyncio.gather(*(store.apply(*each) for each in held))
        move = MoveAccount(account=ACCOUNT, target=target, request_id="m", reason="renamed")
        moved = await store.apply(move, AppliedLimits(version=version))
        assert isinstance(moved.outcome, LimitsSet)
        assert await store.query_id_of(target, "hold-r69") is not None
        page = await store.balances(ACCOUNT.root, "", 1000)
        assert [40] == [len(days) for level, days in page.past.items() if level == target]
        assert {target} == {each.account for each in page.reservations}
        found = Verification()
        await verify(store, ACCOUNT.root, found)
        assert found.differences == []


async def test_a_large_change_that_was_only_written_down_is_carried_out_by_whoever_comes_next(
    shared_etcd: EtcdCluster, clock: SteppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service that decided it died at once; until it is done another one reads nothing of the root."""
    address = shared_etcd.new_ledger()
    changes = tuple((Account((ACCOUNT.root, f"a{index}")), limit(index, 1)) for index in range(300))

    async def dies(_: object) -> None:
        raise StoreUnavailableError("killed")

    async with closing(await EtcdStore.open(address, clock=clock, tuning=UNHURRIED)) as store:
        with monkeypatch.context() as patched:
            patched.setattr("budget_service.stores.etcd.transaction.carry_out", dies)
            request = SetLimits(account=ACCOUNT.level(1), request_id="l", changes=changes)
            first = await store.apply(request, NO_LIMITS)
            patched.setattr(pending, "carry_out", dies)
            with pytest.raises(StoreUnavailableError):
                await store.all_limits(ACCOUNT.root)
    async with closing(await EtcdStore.open(address, clock=clock, tuning=UNHURRIED)) as store:
        assert Answer(first.outcome, replayed=True) == await store.apply(request, NO_LIMITS)
        assert dict(changes) == (await store.all_limits(ACCOUNT.root)).limits
        assert 1 == len(await store.journal(ACCOUNT.root, "", "", 1)) <= len(changes)


@pytest.mark.usefixtures("starts_etcd")
async def test_a_database_that_is_full_refuses_and_says_so_until_there_is_room(tmp_path: Path) -> None:
    """Nothing is charged meanwhile, journals can be archived, and the way out that the message says works."""
    with etcd_cluster(tmp_path, "--quota-backend-bytes", str(2 * 2**20)) as cluster:
        async with opened(cluster.new_ledger()) as store:
            await store.apply(*charge("a", account=ACCOUNT, on=ON))
            await make_checkpoint(store, ACCOUNT.root)
            async with grpc.aio.insecure_channel(cluster.members[0].endpoint) as channel:
                kv = rpc_pb2_grpc.KVStub(channel)
                with pytest.raises(grpc.aio.AioRpcError, match="space exceeded"):
                    await _fill(kv)
                with pytest.raises(StoreUnavailableError, match="NOSPACE"):
                    await store.apply(*charge("b", account=ACCOUNT, on=ON))
                with pytest.raises(StoreUnavailableError, match="NOSPACE"):
                    await store.check()
                assert Cost(4, 1) == await spent(store)
                assert await archive(store, ACCOUNT.root, tmp_path) is not None
                assert await store.journal(ACCOUNT.root, "", "", 10) == []
                await kv.DeleteRange(rpc_pb2.DeleteRangeRequest(key=b"fill"))
                revision = (await kv.Range(rpc_pb2.RangeRequest(key=b"fill"))).header.revision
                await kv.Compact(rpc_pb2.CompactionRequest(revision=revision, physical=True))
            for member in cluster.members:
                async with grpc.aio.insecure_channel(member.endpoint) as channel:
                    maintenance = rpc_pb2_grpc.MaintenanceStub(channel)
                    await maintenance.Defragment(rpc_pb2.DefragmentRequest())
                    raised = (await maintenance.Alarm(rpc_pb2.AlarmRequest())).alarms
                    for each in raised:
                        await maintenance.Alarm(
                            rpc_pb2.AlarmRequest(
                                action=rpc_pb2.AlarmRequest.DEACTIVATE,
                                memberID=each.memberID,
                                alarm=each.alarm,
                            )
                        )
            await insisted(store.check)
            assert isinstance((await store.apply(*charge("b", account=ACCOUNT, on=ON))).outcome, Charged)


async def _fill(kv: Any) -> None:
    for _ in range(400):
        await kv.Put(rpc_pb2.PutRequest(key=b"fill", value=bytes(2**15)))


@pytest.mark.usefixtures("starts_etcd")
async def test_a_cluster_with_tls_and_authentication_serves_whoever_may(tmp_path: Path) -> None:
    """Certificates both ways and a password; a wrong one, none, and members that restart and forget tokens."""
    authority = Authority.new(tmp_path)
    certificate, key = authority.server()
    context = ssl.create_default_context(cafile=str(authority.ca_file))
    context.load_cert_chain(certificate, key)
    words = (
        "--cert-file",
        certificate,
        "--key-file",
        key,
        "--client-cert-auth",
        "--trusted-ca-file",
        authority.ca_file,
    )
    query = f"?ca={authority.ca_file}&cert={certificate}&key={key}"
    folder = tmp_path / "members"
    folder.mkdir()
    with etcd_cluster(folder, *map(str, words), context=context, query=query) as cluster:
        administrator = grpc.ssl_channel_credentials(
            authority.ca_file.read_bytes(), key.read_bytes(), certificate.read_bytes()
        )
        await asyncio.to_thread(_enable_authentication, cluster, administrator)
        with_password = cluster.address.replace("etcds://", "etcds://ledger:se%23cret@")
        async with opened(with_password) as store:
            await store.apply(*charge("a", account=ACCOUNT, on=ON))
            # Tokens are kept in the members' memory.
            cluster.kill_all()
            await asyncio.to_thread(cluster.start)
            await insisted(store.check)
            await insisted(lambda: store.apply(*charge("b", account=ACCOUNT, on=ON)))
            assert Cost(8, 2) == await spent(store)
        own = authority.client(file="ledger")
        by_name = f"?ca={authority.ca_file}&cert={own.certificate_file}&key={own.key_file}"
        async with opened(cluster.address.replace(query, by_name)) as store:
            assert Cost(8, 2) == await spent(store)
        members = Members(parse_address(with_password), UNHURRIED)
        # The history of the whole database, which this user may forget although it may not read all of it.
        found = await members.read([range_of(b"gris/ledger")])
        await members.compact(found.revision)
        await members.close()
        with pytest.raises(StoreUnusableError, match="does not accept the user and password"):
            await EtcdStore.open(with_password.replace("se%23cret", "other"))
        with pytest.raises(StoreUnavailableError, match="refused"):
            await EtcdStore.open(cluster.address, tuning=SHORT)
        with pytest.raises(StoreUnavailableError):
            await EtcdStore.open(with_password.replace("etcds", "etcd").partition("?")[0], tuning=SHORT)


def _enable_authentication(cluster: EtcdCluster, credentials: grpc.ChannelCredentials) -> None:
    with grpc.secure_channel(cluster.members[0].endpoint, credentials) as channel:
        auth = rpc_pb2_grpc.AuthStub(channel)
        for user, password, role in (("root", "root", "root"), ("ledger", "se#cret", "ledger")):
            auth.UserAdd(rpc_pb2.AuthUserAddRequest(name=user, password=password))
            auth.RoleAdd(rpc_pb2.AuthRoleAddRequest(name=role))
            auth.UserGrantRole(rpc_pb2.AuthUserGrantRoleRequest(user=user, role=role))
        permission = {"permType": 2, "key": b"gris/", "range_end": b"gris0"}
        auth.RoleGrantPermission(rpc_pb2.AuthRoleGrantPermissionRequest(name="ledger", perm=permission))
        auth.AuthEnable(rpc_pb2.AuthEnableRequest())


async def test_a_clock_that_differs_from_the_members_is_refused(shared_etcd: EtcdCluster) -> None:
    """By three seconds at the start, and where it is set while the service runs."""
    address, ahead = shared_etcd.new_ledger(), [3 * SECOND]
    with pytest.raises(StoreUnusableError, match="clock of this machine differs"):
        await EtcdStore.open(address, clock=lambda: system_clock() + ahead[0], compares_clock=True)
    ahead[0] = 0
    opening = EtcdStore.open(
        address, clock=lambda: system_clock() + ahead[0], compares_clock=True, tuning=UNHURRIED
    )
    async with closing(store := await opening):
        await store.apply(*charge("a", account=ACCOUNT, on=ON))
        await store.check()
        ahead[0] = -3600 * SECOND
        with pytest.raises(StoreUnavailableError, match="clock"):
            await store.apply(*charge("b", account=ACCOUNT, on=ON))
        await becomes(partial(_is_unusable, store))
        ahead[0] = 0
        await insisted(lambda: store.apply(*charge("b", account=ACCOUNT, on=ON)))


async def _is_unusable(store: EtcdStore) -> bool:
    try:
        await store.check()
    except StoreError as error:
        return isinstance(error, StoreUnusableError)
    return False


def test_answers_at_several_moments_of_a_second_tell_a_clock_exactly() -> None:
    """A member 1.3 seconds ahead, asked at each tenth of a second: known to a tenth, and refused by then."""
    ahead = 13 * SECOND // 10
    asked = [100 * SECOND + index * SECOND // 10 for index in range(10)]
    samples = [Sample(sent, sent + 1000, (sent + ahead) // SECOND) for sent in asked]
    bounds = bounds_of(samples)
    assert bounds is not None
    assert ahead - SECOND // 10 <= bounds.low <= ahead <= bounds.high <= ahead + SECOND // 10
    assert not bounds.are_within(SECOND)
    # One of them alone does not tell.
    assert bounds_of(samples[-1:]) != bounds
    # The member's clock was set: what contradicts the newest answer is forgotten.
    late = Sample(200 * SECOND, 200 * SECOND + 1000, 200)
    assert bounds_of([*samples, late]) == bounds_of([late])


@pytest.mark.parametrize(
    ("kinds", "verdict"),
    [
        ("nnn", Verdict.AGREES),
        ("nnf", Verdict.AGREES),
        ("nn?", Verdict.AGREES),
        ("nff", Verdict.DIFFERS),
        ("?ff", Verdict.DIFFERS),
        ("nf?", Verdict.NOT_KNOWN),
        ("n??", Verdict.NOT_KNOWN),
        ("nf", Verdict.NOT_KNOWN),
        ("n", Verdict.AGREES),
    ],
)
def test_the_majority_of_members_decides_whether_a_clock_is_right(kinds: str, verdict: Verdict) -> None:
    """Near, far, or not known; who does not know serves nobody."""
    bounds = {"n": Bounds(-SECOND, SECOND), "f": Bounds(2 * SECOND, 3 * SECOND), "?": None}
    assert verdict is judge([bounds[each] for each in kinds], SECOND)


async def test_what_is_out_of_date_is_purged_and_history_is_compacted(
    shared_etcd: EtcdCluster, clock: SteppedClock
) -> None:
    """Refusals are forgotten after an hour: their keys go, and a revision that is old enough can be read no more."""
    address = shared_etcd.new_ledger()
    async with closing(await EtcdStore.open(address, clock=clock, tuning=UNHURRIED)) as store:
        on = levels(ACCOUNT, own=limit(0, 0))
        for index in range(30):
            await store.apply(*charge(f"refused {index}", account=ACCOUNT, on=on))
        clock.step(seconds=2 * 3600)
        for index in range(60):
            await store.apply(*charge(f"later {index}", account=ACCOUNT, on=on))
        async with grpc.aio.insecure_channel(shared_etcd.members[0].endpoint) as channel:
            kv = rpc_pb2_grpc.KVStub(channel)
            prefix = f"{address.rpartition('/')[2]}/of/{ACCOUNT.root}/outcome/".encode()
            asked = rpc_pb2.RangeRequest(key=prefix, range_end=prefix[:-1] + b"0", count_only=True)

            async def is_purged() -> bool:
                return bool((await kv.Range(asked)).count <= 60)

            await becomes(is_purged)
            old = (await kv.Range(asked)).header.revision
            await store.apply(*charge("more", account=ACCOUNT, on=on))
            # The store does the same once a minute.
            members = Members(parse_address(address), UNHURRIED)
            purge = Purge(members, Layout(parse_address(address).prefix), 0)
            for now in (COMPACT_SECONDS, 2 * COMPACT_SECONDS):
                await purge.go_on(now)
            await members.close()
            with pytest.raises(grpc.aio.AioRpcError, match="compacted"):
                await kv.Range(rpc_pb2.RangeRequest(key=prefix, revision=old - 1))
