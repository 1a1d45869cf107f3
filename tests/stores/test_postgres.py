"""What only the PostgreSQL store meets: crashes, silence, standbys, wrong settings and a clock of its own."""

from __future__ import annotations

import asyncio
import time
from copy import copy
from typing import LiteralString

import msgspec
import psycopg
import pytest
from psycopg import sql

from budget_service.ledger.act import Act
from budget_service.ledger.base import Base
from budget_service.ledger.currency import Currency
from budget_service.ledger.limits import LimitsChangedError
from budget_service.ledger.outcomes import Answer, Charged, Reserved
from budget_service.ledger.state import JournalEntry, RootRecord
from budget_service.ledger.values import MAX_AMOUNT, Account, Cost
from budget_service.ledger.windows import DAY, SECOND, Period, Window
from budget_service.server.audit import Verification, verify
from budget_service.stores.interface import OutcomeUnknownError, Store, StoreUnavailableError
from budget_service.stores.postgres.store import PostgresStore
from budget_service.stores.rows import RootRow, text_of
from budget_service.tuning import Tuning
from tests.support.budget_samples import (
    ANALYST,
    COMPANY,
    UNIT,
    Asked,
    SteppedClock,
    charge,
    levels,
    limit,
    reserve,
)
from tests.support.ledger_stores import UNHURRIED, closing
from tests.support.postgres_server import PostgresServer
from tests.support.some import some
from tests.unit.budget_service.histories import play_all_kinds_of_charges
from tests.unit.budget_service.memory_store import MemoryStore
from tests.unit.budget_service.trims import base_of_all

ACCOUNT = Account(("only-postgres", "ann"))
OWN = levels(ACCOUNT)
SHORT_TIMEOUTS = Tuning(postgres_answer_seconds=0.3)
# Somebody waits to write outcomes.
WRITES = (
    "SELECT count(*) > 0 FROM pg_locks WHERE relation = 'gris.journal'::regclass AND NOT granted "
    "AND mode = 'RowExclusiveLock'"
)


# Somebody waits for the end of another one's transaction.
WAITS = "SELECT count(*) > 0 FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted"


async def spent(store: Store, account: Account = ACCOUNT) -> Cost:
    """Return what an account has spent."""
    return (await store.read(account, levels(account))).levels[-1].spent


def becomes_true(server: PostgresServer, question: LiteralString) -> None:
    """Wait until a server answers yes."""
    end = time.monotonic() + 20
    while server.execute(question) != [(True,)]:
        assert time.monotonic() < end, question
        time.sleep(0.02)


def is_now(window: Window) -> bool:
    """Tell whether a window is open by this machine's clock."""
    assert window.end is not None
    return window.start <= time.time_ns() // 1000 < window.end


async def test_a_killed_postgres_is_noticed_at_once_and_keeps_what_it_acknowledged(
    own_postgres: PostgresServer,
) -> None:
    """Unavailable while it is down; after its restart the charge is there and its repeat is known."""
    async with closing(await PostgresStore.open(own_postgres.address)) as store:
        await store.apply(*charge("c", account=ACCOUNT))
        own_postgres.kill()
        for call in (store.apply(*charge("d", account=ACCOUNT)), store.read(ACCOUNT, OWN), store.check()):
            began = time.monotonic()
            with pytest.raises(StoreUnavailableError):
                await call
            assert time.monotonic() - began < 1
        own_postgres.start()
        assert (await store.apply(*charge("c", account=ACCOUNT))).replayed
        assert not (await store.apply(*charge("d", account=ACCOUNT))).replayed
        assert await spent(store) == Cost(8, 2)


async def test_a_silent_postgres_leaves_the_outcome_unknown_and_a_repeat_settles_it(
    own_postgres: PostgresServer,
) -> None:
    """The charge may have arrived although its answer did not: repeated with the same id, it is made once."""
    address = own_postgres.address.replace("connect_timeout=10", "connect_timeout=0.2")
    async with closing(await PostgresStore.open(own_postgres.address, tuning=SHORT_TIMEOUTS)) as store:
        await store.check()
        with psycopg.connect(own_postgres.address) as other:
            # Under this lock, other transactions can begin and load, but their writes have to wait.
            other.execute("LOCK TABLE gris.journal IN SHARE MODE")
            charging = asyncio.create_task(store.apply(*charge("c", account=ACCOUNT)))
            await asyncio.to_thread(becomes_true, own_postgres, WRITES)
            with own_postgres.frozen():
                with pytest.raises(OutcomeUnknownError):
                    await charging
                with pytest.raises(StoreUnavailableError, match="does not answer"):
                    await PostgresStore.open(address)
        assert isinstance((await store.apply(*charge("c", account=ACCOUNT))).outcome, Charged)
        assert await spent(store) == Cost(4, 1)


async def test_a_postgres_that_is_silent_before_anything_is_written_has_changed_nothing(
    own_postgres: PostgresServer,
) -> None:
    """Only the lock was asked for, and it goes with the connection."""
    async with closing(await PostgresStore.open(own_postgres.address, tuning=SHORT_TIMEOUTS)) as store:
        with own_postgres.frozen(), pytest.raises(StoreUnavailableError):
            await store.apply(*charge("c", account=ACCOUNT))
        assert not (await store.apply(*charge("c", account=ACCOUNT))).replayed
        assert await spent(store) == Cost(4, 1)


async def test_after_one_silence_the_others_are_told_soon(own_postgres: PostgresServer) -> None:
    """No idle connection to a server that fell silent is tried again: a new one must answer within its time-out."""
    address = own_postgres.address.replace("connect_timeout=10", "connect_timeout=0.2")
    async with closing(await PostgresStore.open(address, tuning=SHORT_TIMEOUTS)) as store:
        await asyncio.gather(*(store.read(ACCOUNT, OWN) for _ in range(8)))
        with own_postgres.frozen():
            with pytest.raises(StoreUnavailableError):
                await store.read(ACCOUNT, OWN)
            # On an idle connection the outcome would be unknown.
            with pytest.raises(StoreUnavailableError, match="does not answer"):
                await store.apply(*charge("c", account=ACCOUNT))


async def test_connections_that_the_server_ended_are_replaced_without_an_error(
    own_postgres: PostgresServer,
) -> None:
    """An idle connection whose end was heard is not used to send a charge."""
    async with closing(await PostgresStore.open(own_postgres.address)) as store:
        await asyncio.gather(*(store.read(ACCOUNT, OWN) for _ in range(8)))
        own_postgres.hang_up()
        assert not (await store.apply(*charge("c", account=ACCOUNT))).replayed


async def test_a_postgres_that_is_killed_under_charges_has_each_one_that_it_acknowledged(
    own_postgres: PostgresServer,
) -> None:
    """Acknowledged <= spent <= acknowledged + unknown, and every repeat is known."""
    on = levels(ACCOUNT, own=limit(10**6, 10**6))
    asked = [charge(f"c{index}", Cost(1, 1), account=ACCOUNT, on=on) for index in range(20_000)]
    acknowledged: dict[str, Answer] = {}
    under_load = asyncio.Event()
    async with closing(await PostgresStore.open(own_postgres.address)) as store:

        async def caller(start: int) -> None:
            for request in asked[start::8]:
                acknowledged[request.request.request_id] = await store.apply(*request)
                if len(acknowledged) == 500:
                    under_load.set()

        callers = [asyncio.create_task(caller(start)) for start in range(8)]
        await under_load.wait()
        own_postgres.kill()
        ended = await asyncio.gather(*callers, return_exceptions=True)
        assert all(isinstance(each, OutcomeUnknownError | StoreUnavailableError) for each in some(ended))
        own_postgres.start()
        found = (await store.read(ACCOUNT, on)).levels[-1].spent.calls
        unknown = sum(isinstance(each, OutcomeUnknownError) for each in ended)
        assert len(acknowledged) <= found <= len(acknowledged) + unknown
        for request in asked:
            if first := acknowledged.get(request.request.request_id):
                assert await store.apply(*request) == Answer(first.outcome, replayed=True)


async def test_of_many_at_two_stores_who_want_the_last_unit_exactly_one_wins(
    shared_postgres: PostgresServer, clock: SteppedClock
) -> None:
    """The stores share nothing but the server, as two processes do."""
    shared_postgres.forget()
    stores = [
        await PostgresStore.open(shared_postgres.address, clock=clock, tuning=UNHURRIED) for _ in range(2)
    ]
    on = levels(own=limit(5, 50))
    await stores[0].apply(*charge("before", Cost(4, 1), on=on))
    asked: list[Asked[Act]] = [
        (charge if index % 4 else reserve)(str(index), Cost(1, 1), on=on) for index in range(60)
    ]
    answers = await asyncio.gather(
        *(stores[index % 2].apply(*request) for index, request in enumerate(asked))
    )
    assert sum(isinstance(answer.outcome, Reserved | Charged) for answer in answers) == 1
    assert Cost(0, 48) == (await stores[1].read(ANALYST, on)).levels[0].remaining
    for store in stores:
        await store.close()


async def test_a_root_that_somebody_else_makes_at_the_same_time_stays(
    shared_postgres: PostgresServer, clock: SteppedClock
) -> None:
    """A request without an effect removes the root that it has made for its lock, but no other one."""
    shared_postgres.forget()
    record = RootRecord(Currency(UNIT), last_time=1, limits_version=1)
    kept = ("acme", "roots", text_of(RootRow(record)))
    async with closing(
        await PostgresStore.open(shared_postgres.address, clock=clock, tuning=UNHURRIED)
    ) as store:
        with psycopg.connect(shared_postgres.address) as other:
            other.execute("INSERT INTO gris.rows (root, key, text) VALUES (%s, %s, %s)", kept)
            refused = asyncio.create_task(store.apply(*charge("c")))
            await asyncio.to_thread(becomes_true, shared_postgres, WAITS)
            other.commit()
            with pytest.raises(LimitsChangedError):
                await refused
        assert [kept] == shared_postgres.execute("SELECT root, key, text FROM gris.rows")


async def test_a_request_at_fault_harms_none_of_those_that_went_with_it(
    shared_postgres: PostgresServer, clock: SteppedClock
) -> None:
    """A reservation id that is taken breaks a rule of the tables; the charges beside it are made, and made once."""
    shared_postgres.forget()
    on = levels(own=limit(1000, 1000))
    async with closing(
        await PostgresStore.open(shared_postgres.address, clock=clock, tuning=UNHURRIED)
    ) as store:
        await store.apply(*reserve("r", Cost(1, 1), on=on))
        bad = reserve("s", Cost(1, 1), on=on).but(reservation_id="hold-r")
        good = [charge(str(index), Cost(1, 1), on=on) for index in range(20)]
        asked: list[Asked[Act]] = [*good[:10], bad, *good[10:]]
        answers = await asyncio.gather(*(store.apply(*each) for each in asked), return_exceptions=True)
        assert isinstance(answers.pop(10), psycopg.IntegrityError)
        assert all(isinstance(each, Answer) and not each.replayed for each in answers)
        assert Cost(20, 20) == (await store.read(ANALYST, on)).levels[-1].spent


REFUSE_COMMITS = """
    CREATE SEQUENCE gris.refused;
    CREATE FUNCTION gris.refuse_commit() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF nextval('gris.refused') <= 2 THEN
        RAISE EXCEPTION 'refused' USING ERRCODE = TG_ARGV[0];
      END IF;
      RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER refuse_commit AFTER INSERT OR UPDATE ON gris.rows DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW WHEN (NEW.key LIKE 'outcomes%') EXECUTE FUNCTION gris.refuse_commit({code});
"""


async def test_a_commit_that_is_refused_has_changed_nothing(
    shared_postgres: PostgresServer, clock: SteppedClock
) -> None:
    """That is known, because PostgreSQL says so; a repeat is no replay."""
    shared_postgres.forget()
    async with closing(
        await PostgresStore.open(shared_postgres.address, clock=clock, tuning=UNHURRIED)
    ) as store:
        shared_postgres.execute(sql.SQL(REFUSE_COMMITS).format(code="58030"))
        for _ in range(2):
            with pytest.raises(StoreUnavailableError, match="58030"):
                await store.apply(*charge("c", account=ACCOUNT))
            assert await spent(store) == Cost(0, 0)
        assert not (await store.apply(*charge("c", account=ACCOUNT))).replayed
        assert await spent(store) == Cost(4, 1)


async def test_a_commit_for_which_another_one_was_quicker_is_begun_again(
    shared_postgres: PostgresServer, clock: SteppedClock
) -> None:
    """The caller hears nothing of it; an ordinary PostgreSQL never says so, those that are spread over regions do."""
    shared_postgres.forget()
    async with closing(
        await PostgresStore.open(shared_postgres.address, clock=clock, tuning=UNHURRIED)
    ) as store:
        shared_postgres.execute(sql.SQL(REFUSE_COMMITS).format(code="40001"))
        assert not (await store.apply(*charge("c", account=ACCOUNT))).replayed
        assert await spent(store) == Cost(4, 1)
        assert [(3,)] == shared_postgres.execute("SELECT last_value FROM gris.refused")


MANY_MORE = """
    INSERT INTO gris.rows
    SELECT root, replace(key, 'hold-r', 'hold-' || n), replace(text, 'hold-r', 'hold-' || n), keep_until
    FROM gris.rows, generate_series(1, 30000) AS n
    WHERE key LIKE 'reservations%hold-r' OR key LIKE 'ends%hold-r'
"""


async def test_more_than_one_statement_can_do_is_done_by_several(
    shared_postgres: PostgresServer, clock: SteppedClock
) -> None:
    """Each of many calls finds a thousand reservations that have lapsed and are forfeited; none is turned away."""
    shared_postgres.forget()
    on = levels(own=limit(10**6, 10**6))
    async with closing(
        await PostgresStore.open(shared_postgres.address, clock=clock, tuning=UNHURRIED)
    ) as store:
        await store.apply(*reserve("r", Cost(1, 1), on=on, forfeits=True))
        shared_postgres.execute(MANY_MORE)
        shared_postgres.execute(
            "UPDATE gris.rows SET text = jsonb_set(text::jsonb, '{4}', '[30001,30001]') WHERE key LIKE 'balances%'"
        )
        clock.step(seconds=61)
        asked = [charge(str(index), Cost(1, 1), on=on) for index in range(40)]
        answers = await asyncio.gather(*(store.apply(*each) for each in asked))
        assert all(isinstance(answer.outcome, Charged) for answer in some(answers))
        status = (await store.read(ANALYST, on)).levels[-1]
    assert (Cost(30_041, 30_041), Cost(0, 0)) == (status.spent, status.reserved)


async def test_time_is_that_of_postgres(shared_postgres: PostgresServer) -> None:
    """A window is open now, and a reservation lapses, by PostgreSQL's clock."""
    account = Account(("postgres-time", "ann"))
    daily = levels(account, own=limit(10, 5, period=Period.DAY))
    async with closing(await PostgresStore.open(shared_postgres.address, tuning=UNHURRIED)) as store:
        held = (await store.apply(*reserve("r", account=account, on=daily, ttl_seconds=60))).outcome
        assert isinstance(held, Reserved)
        ((now,),) = shared_postgres.execute("SELECT extract(epoch FROM clock_timestamp()) * 1000000")
        assert now < held.expires_at <= now + 60 * SECOND
        assert is_now((await store.read(account, daily)).levels[-1].window)


async def test_the_time_of_this_machine_is_of_no_account(
    shared_postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With it a month behind, the windows are still those of PostgreSQL."""
    account = Account(("postgres-guess", "ann"))
    now = time.time_ns()
    async with closing(await PostgresStore.open(shared_postgres.address, tuning=UNHURRIED)) as store:
        with monkeypatch.context() as patched:
            patched.setattr(time, "time_ns", lambda: now - 40_000 * DAY)
            for name in ("a", "b"):
                assert isinstance((await store.apply(*charge(name, account=account))).outcome, Charged)
            found = await store.read(account, levels(account))
        assert is_now(found.levels[-1].window)


async def test_what_is_out_of_date_is_forgotten_and_balances_and_journal_are_not(
    shared_postgres: PostgresServer, clock: SteppedClock
) -> None:
    """Outcomes and payments go after the window and 35 days."""
    shared_postgres.forget()
    async with closing(
        await PostgresStore.open(shared_postgres.address, clock=clock, tuning=UNHURRIED)
    ) as store:
        await store.apply(*charge("c", release_id="rel", query_id="q"))
        clock.step(days=17 + 35)
        await store.apply(*charge("d", Cost(0, 1)))
        assert counts(shared_postgres) == (2, 2, 2, 2)
        clock.step(days=1)
        await store.apply(*charge("e", Cost(0, 1)))
        assert counts(shared_postgres) == (2, 0, 2, 3)


def counts(server: PostgresServer) -> tuple[int, ...]:
    """Return how many outcomes, payments, balances and entries of the journal are kept."""
    (found,) = server.execute(
        "SELECT (SELECT count(*) FROM gris.rows WHERE key LIKE 'outcomes%'), "
        "(SELECT count(*) FROM gris.rows WHERE key LIKE 'payments%'), "
        "(SELECT count(*) FROM gris.balances), (SELECT count(*) FROM gris.journal)"
    )
    return tuple(found)


async def test_the_journal_is_that_of_the_rules(shared_postgres: PostgresServer, clock: SteppedClock) -> None:
    """Entry by entry, with the spans each counts in."""
    other = copy(clock)
    rules = MemoryStore(other)
    await play_all_kinds_of_charges(rules, other)
    shared_postgres.forget()
    async with closing(
        await PostgresStore.open(shared_postgres.address, clock=clock, tuning=UNHURRIED)
    ) as store:
        await play_all_kinds_of_charges(store, clock)
    for root in {entry.account.root for entry in rules.entries}:
        query = "SELECT text FROM gris.journal WHERE root = %s ORDER BY number"
        found = [
            msgspec.json.decode(text, type=JournalEntry) for (text,) in shared_postgres.execute(query, root)
        ]
        assert [entry for entry in rules.entries if entry.account.root == root] == found


@pytest.mark.parametrize(
    "statement", ["UPDATE gris.journal SET text = ''", "DELETE FROM gris.journal", "TRUNCATE gris.journal"]
)
async def test_the_journal_cannot_be_changed(
    shared_postgres: PostgresServer, clock: SteppedClock, statement: LiteralString
) -> None:
    """Not even by an administrator who does not mean it."""
    shared_postgres.forget()
    async with closing(
        await PostgresStore.open(shared_postgres.address, clock=clock, tuning=UNHURRIED)
    ) as store:
        await store.apply(*charge("c"))
    with pytest.raises(psycopg.errors.RaiseException, match="of the journal"):
        shared_postgres.execute(statement)


async def test_balances_can_be_read_by_a_view(shared_postgres: PostgresServer, clock: SteppedClock) -> None:
    """Each level with what counts and what is held."""
    shared_postgres.forget()
    async with closing(
        await PostgresStore.open(shared_postgres.address, clock=clock, tuning=UNHURRIED)
    ) as store:
        await store.apply(*charge("c", Cost(3, 1)))
        await store.apply(*reserve("r", Cost(2, 1)))
    query = "SELECT level, spent_information, spent_calls, reserved_information FROM gris.balances"
    assert ("acme/ann", 3, 1, 2) in shared_postgres.execute(query)


TAMPER: LiteralString = "UPDATE gris.rows SET text = jsonb_set(text::jsonb, "


@pytest.mark.parametrize(
    ("tamper", "level"),
    [
        (TAMPER + "'{3,0}', '0') WHERE key = E'balances\\tacme/ann'", ANALYST),
        (TAMPER + "'{4,1}', '7') WHERE key = E'balances\\tacme'", COMPANY),
        ("DELETE FROM gris.rows WHERE key = E'balances\\tacme/ann'", ANALYST),
    ],
)
async def test_a_tampered_balance_is_found(
    shared_postgres: PostgresServer, clock: SteppedClock, tamper: LiteralString, level: Account
) -> None:
    """A sum that was lowered, a hold that was raised, a balance that is gone."""
    shared_postgres.forget()
    async with closing(
        await PostgresStore.open(shared_postgres.address, clock=clock, tuning=UNHURRIED)
    ) as store:
        await play_all_kinds_of_charges(store, clock)
        await verify(store, COMPANY.root, whole := Verification())
        shared_postgres.execute(tamper)
        await verify(store, COMPANY.root, found := Verification())
    assert (0, {level}) == (whole.different, {each.level for each in found.differences})


async def test_only_trimmed_entries_can_be_removed_from_the_journal(
    shared_postgres: PostgresServer, clock: SteppedClock
) -> None:
    """Also by hand; those of another root and later ones stay."""
    shared_postgres.forget()
    async with closing(
        await PostgresStore.open(shared_postgres.address, clock=clock, tuning=UNHURRIED)
    ) as store:
        await store.apply(*charge("trimmed", account=ACCOUNT, on=OWN))
        await store.write_base(ACCOUNT.root, await base_of_all(store, ACCOUNT.root))
        await store.apply(*charge("later", account=ACCOUNT, on=OWN))
        await store.apply(*charge("of another root"))
        for kept in ("later", "of another root"):
            with pytest.raises(psycopg.errors.RaiseException, match="only a trim"):
                shared_postgres.execute(
                    "DELETE FROM gris.journal WHERE text::json ->> 'request_id' = %s", kept
                )
        shared_postgres.execute("DELETE FROM gris.journal WHERE text::json ->> 'request_id' = 'trimmed'")
        await verify(store, ACCOUNT.root, found := Verification())
    assert (2, 0) == (found.entries, found.different)


async def test_the_base_of_a_large_root_is_read_and_written(
    shared_postgres: PostgresServer, clock: SteppedClock
) -> None:
    """Amounts stay exact, and one of fewer entries does not take its place."""
    shared_postgres.forget()
    large = Base(
        position="7", entries=9, spent={f"acme/a{index}": (MAX_AMOUNT, 2) for index in range(50_000)}
    )
    async with closing(
        await PostgresStore.open(shared_postgres.address, clock=clock, tuning=UNHURRIED)
    ) as store:
        await store.write_base("acme", large)
        await store.write_base("acme", Base(position="6", entries=8))
        assert large == await store.base("acme")
        await store.write_base("acme", (newer := Base(position="8", entries=10)))
        assert newer == await store.base("acme")
