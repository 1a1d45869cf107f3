"""Whatever fails between a question's first noise and its charge, for every kind of answer: it is charged in full.

Each function of dp_service and of the connector that runs in that time is made to raise once, by Python's own profiler.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import dp_service
import pinot_connector
from dp_service.noise.stream import KeyedStream
from pinot_connector import AsyncPrivateClient
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import ChargedUnanswered
from pinot_connector.questions import sql_question
from pinot_connector.release_store import MemoryReleaseStore
from pinot_connector.release_store.interface import ReleaseStore
from pinot_connector.reservations import Reservation
from tests.support.clients import client_of
from tests.support.dp_questions import Clock
from tests.support.dp_server import listening, servicer_of
from tests.support.embedded import UNHURRIED, embedded
from tests.support.relay import relayed
from tests.support.rings import needs
from tests.support.two_looks import held_and_spent
from tests.support.world import World
from tests.surfaces.kinds import KINDS, POLICY, TABLES, write_rows

_OURS = tuple(str(Path(package.__path__[0])) for package in (dp_service, pinot_connector))
_FIRST_NOISE = KeyedStream.__init__.__code__
_CHARGE = Reservation.charge.__code__
# Of how many functions one is tried by day.
EVERY = 15


class NoiseDecidedThisError(ArithmeticError):
    """What is raised; no code handles it by its type."""


@dataclass
class Calls:
    """Notes the functions that are called from the first noise to the charge, and makes one of them raise."""

    raising: CodeType | None = None
    seen: dict[CodeType, None] = field(default_factory=dict)
    is_open: bool = False
    has_raised: bool = False

    def noticed(self, frame: FrameType, event: str, _: Any) -> None:
        """Is called at each call of a function."""
        code = frame.f_code
        is_resumed = frame.f_lineno != code.co_firstlineno
        if event != "call" or is_resumed or not code.co_filename.startswith(_OURS):
            return
        if code is _CHARGE:
            self.is_open = False
        if self.is_open:
            self.seen[code] = None
            if code is self.raising:
                self.is_open, self.has_raised = False, True
                raise NoiseDecidedThisError
        if code is _FIRST_NOISE:
            self.is_open = True

    @contextmanager
    def listened(self) -> Iterator[None]:
        """Notices what this thread and the threads of its event loop call while the block runs."""
        with ThreadPoolExecutor(4, initializer=lambda: sys.setprofile(self.noticed)) as threads:
            asyncio.get_running_loop().set_default_executor(threads)
            sys.setprofile(self.noticed)
            try:
                yield
            finally:
                sys.setprofile(None)


@pytest.fixture(scope="module")
@needs("process")
def budget(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a ledger for the policy of all kinds."""
    with embedded(tmp_path_factory.mktemp("ledger"), POLICY) as services:
        yield services.budget_address


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDBEngine]:
    """The tables of all kinds."""
    rows = tmp_path_factory.mktemp("rows") / "rows.parquet"
    write_rows(rows)
    engine = DuckDBEngine(dict.fromkeys(TABLES, rows))
    yield engine
    engine.close()


@asynccontextmanager
async def asking(
    dp: str, budget: str, engine: DuckDBEngine
) -> AsyncIterator[Callable[..., AsyncPrivateClient]]:
    """Give what makes clients with accounts of their own, and stores unless they share one."""
    made: list[AsyncPrivateClient] = []

    def make(store: ReleaseStore | None = None) -> AsyncPrivateClient:
        place = World(dp, budget, Path())
        made.append(client_of(place, engine, timeouts=UNHURRIED, releases=store or MemoryReleaseStore()))
        return made[-1]

    yield make
    for client in made:
        await client.close()


async def _end_of(asking: Awaitable[object]) -> Exception | None:
    try:
        await asking
    except Exception as error:
        return error
    return None


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("every", [EVERY, pytest.param(1, marks=pytest.mark.nightly)])
# A function that was to await another one has failed before.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited", "ignore:Exception ignored in")
async def test_every_function_that_fails_after_the_first_noise_leaves_a_paid_question(
    budget: str, engine: DuckDBEngine, every: int
) -> None:
    """Each function is tried with the first kind of answer that calls it; by day one of several."""
    met: set[CodeType] = set()
    tried = 0
    async with listening(servicer_of(POLICY, clock=Clock())) as dp, asking(dp, budget, engine) as client:
        for name, kind in KINDS.items():
            calls = Calls()
            with calls.listened():
                answer = await client().sql(kind.sql)
            assert calls.seen, name
            # In an order that is the same in every run.
            new = [code for code in calls.seen if code not in met]
            chosen = new[::every]
            met.update(set(new) - set(chosen))
            for code in chosen:
                asked, failing = client(), Calls(raising=code)
                with failing.listened():
                    end = await _end_of(asked.sql(kind.sql))
                if not failing.has_raised:
                    # What it returned before is remembered.
                    continue
                met.add(code)
                tried += 1
                where = f"{name}: {code.co_name} in {code.co_filename}"
                # Callbacks of the event loop end no question.
                is_paid = end is None or isinstance(end, ChargedUnanswered)
                assert is_paid, f"{where}: {end!r}"
                information, _, *held = await held_and_spent(asked)
                assert information >= answer.charged.information > 0 == sum(held), where
    assert tried > 700 / every, tried


@pytest.mark.parametrize("name", KINDS)
async def test_a_dp_service_with_an_internal_error_is_paid_in_full(
    name: str, budget: str, engine: DuckDBEngine
) -> None:
    """It is not gone: it answers. The answer is drawn, or another account has drawn it and it is shown again."""
    sql = KINDS[name].sql
    async with (
        listening(servicer_of(POLICY, clock=Clock())) as dp,
        relayed(World(dp, budget, Path())) as relay,
        asking(relay.address, budget, engine) as client,
    ):
        store = MemoryReleaseStore()
        price = (await client(store).explain(sql_question(sql))).worst_case_cost
        for failing in (("AddNoise", "AddNoiseUnary"), ("ShowRelease",)):
            relay.faults.update(failing)
            asked = client(store)
            with pytest.raises(ChargedUnanswered) as ended:
                await asked.sql(sql)
            assert ended.value.charged == (price.information, price.calls)
            assert await held_and_spent(asked) == (*ended.value.charged, 0, 0)
            relay.faults.clear()
            await client(store).sql(sql)
