"""The line to PostgreSQL is cut at every step: each call has an answer soon, and what it says is true."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from budget_service.ledger.values import Account, Cost
from budget_service.stores.interface import OutcomeUnknownError, Store, StoreUnavailableError
from budget_service.stores.postgres.store import PostgresStore
from budget_service.tuning import Tuning
from tests.support.budget_samples import charge, levels, limit, reserve
from tests.support.ledger_stores import closing
from tests.support.postgres_server import PostgresServer
from tests.support.proxy import Proxy

ACCOUNTS = [Account((f"root-{index}", "ann")) for index in range(2)]
ON = {account: levels(account, own=limit(10**6, 10**6)) for account in ACCOUNTS}
# Three for each: one is sent, and the others wait for their turn.
ASKING = 3 * ACCOUNTS
# Every packet where the charges are sent; the last is beyond all of the connections that are opened, proved and used.
STEPS = (*range(0, 24, 2), *range(24, 46), 66)
# Packets of a start on a ledger that is there, but for those between: where it looks for its tables, psycopg takes ten
# seconds to give up. The last is beyond them.
STEPS_OF_A_START = (*range(0, 8, 2), *range(22, 34, 2), 66)
SHORT_SECONDS = 0.2
SHORT_TIMEOUTS = Tuning(postgres_answer_seconds=SHORT_SECONDS)
SHORT_START = Tuning(postgres_answer_seconds=SHORT_SECONDS, installation_seconds=SHORT_SECONDS)

# Says to libpq that there is no TLS; libpq goes on to its next step.
NO_TLS = b"N"
SPEAKS_AFTER_SECONDS = 0.1
HELD_UP_FROM_SECONDS = 0.05
HELD_UP_SECONDS = 0.3
# psycopg itself would wait for more than two minutes.
ANSWERED_SECONDS = 20


@contextmanager
def half_a_greeting() -> Iterator[str]:
    """Listen as a server that says one thing, and then nothing any more; gives HOST:PORT."""
    over = threading.Event()

    def serve(listener: socket.socket) -> None:
        line, _ = listener.accept()
        with line:
            line.recv(100)
            time.sleep(SPEAKS_AFTER_SECONDS)
            line.sendall(NO_TLS)
            over.wait(60)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve, args=(listener,))
        server.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            server.join()


async def test_a_connection_is_given_up_even_if_a_packet_comes_together_with_the_end_of_its_time() -> None:
    """The loop is held up over both, so that it hears of them in one turn; a cancellation was lost there."""
    with half_a_greeting() as address:
        asyncio.get_running_loop().call_later(HELD_UP_FROM_SECONDS, time.sleep, HELD_UP_SECONDS)
        async with asyncio.timeout(ANSWERED_SECONDS):
            with pytest.raises(StoreUnavailableError, match="does not answer"):
                await PostgresStore.open(f"postgresql://gris@{address}/gris?gssencmode=disable")


@dataclass
class Tally:
    """Charges one call of an account at a time, and counts how it ends."""

    store: Store
    acknowledged: int = 0
    unknown: int = 0
    refused: int = 0

    async def charge(self, account: Account, request_id: str) -> None:
        """Make a charge; no answer within the time of this test is a failure."""
        try:
            async with asyncio.timeout(ANSWERED_SECONDS):
                await self.store.apply(*charge(request_id, Cost(1, 1), account=account, on=ON[account]))
            self.acknowledged += 1
        except OutcomeUnknownError:
            self.unknown += 1
        except StoreUnavailableError:
            self.refused += 1

    async def spent(self) -> int:
        """Return how many calls all accounts have spent."""
        found = [await self.store.read(account, ON[account]) for account in ACCOUNTS]
        return sum(each.levels[-1].spent.calls for each in found)


async def test_a_network_that_falls_silent_at_any_step_leaves_no_call_without_an_answer(
    own_postgres: PostgresServer,
) -> None:
    """While connections are opened, proved or used: acknowledged <= spent <= acknowledged + unknown."""
    parts = urlsplit(own_postgres.address)
    async with Proxy(f"{parts.hostname}:{parts.port}").listening() as line:
        address = f"postgresql://gris@{line.address}/postgres?connect_timeout={SHORT_SECONDS}"
        async with closing(await PostgresStore.open(own_postgres.address, tuning=SHORT_TIMEOUTS)) as direct:
            tally = Tally(direct)
            for packets in STEPS:
                async with closing(await opened(address)) as tally.store, line.silent_after(packets):
                    charges = [tally.charge(each, f"{packets}-{n}") for n, each in enumerate(ASKING)]
                    checks = asyncio.gather(tally.store.check(), tally.store.ping(), return_exceptions=True)
                    async with asyncio.timeout(ANSWERED_SECONDS):
                        await asyncio.gather(*charges, checks)
                tally.store = direct
                assert tally.acknowledged <= await tally.spent() <= tally.acknowledged + tally.unknown
    assert min(tally.acknowledged, tally.unknown, tally.refused) > 0


async def test_a_start_over_which_the_network_falls_silent_may_be_tried_again(
    own_postgres: PostgresServer,
) -> None:
    """At each of these steps: a service ends at any other error, and its supervisor has to start it anew."""
    opened_after: list[int] = []
    parts = urlsplit(own_postgres.address)
    async with Proxy(f"{parts.hostname}:{parts.port}").listening() as line:
        address = f"postgresql://gris@{line.address}/postgres?connect_timeout={SHORT_SECONDS}"
        await (await opened(address)).close()
        for packets in STEPS_OF_A_START:
            async with line.silent_after(packets):
                with suppress(StoreUnavailableError):
                    await (await PostgresStore.open(address, tuning=SHORT_START)).close()
                    opened_after.append(packets)
    assert opened_after == [STEPS_OF_A_START[-1]], "no step of a start was met"


async def test_who_waits_behind_a_charge_without_an_answer_is_told_with_it(
    own_postgres: PostgresServer,
) -> None:
    """They were not sent, and need not find out by connections of their own, which would take too long here.

    Of the first one only the lock was asked for, so that it has changed nothing either.
    """
    address = own_postgres.address.replace("connect_timeout=10", "connect_timeout=60")
    async with closing(await PostgresStore.open(address, tuning=SHORT_TIMEOUTS)) as store:
        tally = Tally(store)
        await tally.charge(ACCOUNTS[0], "before")
        with own_postgres.frozen():
            first = asyncio.create_task(tally.charge(ACCOUNTS[0], "first"))
            await asyncio.sleep(0)
            behind = [asyncio.create_task(tally.charge(ACCOUNTS[0], f"behind-{n}")) for n in range(3)]
            await asyncio.sleep(0)
            await first
            await asyncio.gather(*behind)
        assert (tally.acknowledged, tally.unknown, tally.refused) == (1, 0, 4)


async def test_a_change_takes_two_round_trips_and_a_reading_one(own_postgres: PostgresServer) -> None:
    """Each is one packet of the service, however many requests share it and whatever they are about."""
    parts = urlsplit(own_postgres.address)
    async with Proxy(f"{parts.hostname}:{parts.port}").listening() as line:
        address = own_postgres.address.replace(f"127.0.0.1:{own_postgres.port}", line.address)
        async with closing(await PostgresStore.open(address)) as store:
            account, on = ACCOUNTS[0], ON[ACCOUNTS[0]]

            async def ask(name: str) -> None:
                held = [reserve(f"{name} {n}", Cost(1, 1), account=account, on=on) for n in range(5)]
                await asyncio.gather(*(store.apply(*each) for each in held))
                settled = [
                    charge(
                        f"{name} c{n}",
                        Cost(1, 1),
                        account=account,
                        on=on,
                        settles=f"{name} {n}",
                        release_id=name,
                    )
                    for n in range(5)
                ]
                await asyncio.gather(*(store.apply(*each) for each in settled))

            # The first ones make the root and prepare the statements.
            await ask("first")
            before = line.packets_forth
            await ask("second")
            assert line.packets_forth == before + 4
            await store.read(account, on)
            assert line.packets_forth == before + 5


async def opened(address: str) -> PostgresStore:
    """Open a store as soon as the server takes that little time for it."""
    async with asyncio.timeout(ANSWERED_SECONDS):
        while True:
            with suppress(StoreUnavailableError):
                return await PostgresStore.open(address, tuning=SHORT_TIMEOUTS)
