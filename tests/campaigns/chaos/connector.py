"""Callers that pay as `pinot_connector` does, with its own repeats, circuit and reservations.

What they claim is held against the journal like everything else: unless it says that the outcome is unknown, an error
of the connector means that nothing was charged.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from gris_api.dp.v1 import dp_pb2

from pinot_connector import Timeouts
from pinot_connector.budget_service_client import BudgetServiceClient
from pinot_connector.errors import BudgetExhausted, GrisError, OutcomeUnknown
from pinot_connector.reservations import Reservation
from tests.campaigns.chaos.clients import HOLD_SECONDS, Load, cost_message
from tests.campaigns.chaos.history import NOTHING, Amount, Fate, Path, Reported
from tests.campaigns.chaos.journal import CONNECTOR_RELEASE, CONNECTORS

# Shorter than most outages here, so that some outcomes stay unknown.
TIMEOUTS = Timeouts(budget_attempt=1, budget=2, budget_held=2, reservation=HOLD_SECONDS)
PAUSE_SECONDS = 0.2


@dataclass
class ConnectorClient:
    """One application, with one account."""

    load: Load
    account: Path
    calls: BudgetServiceClient

    async def work(self, stop: asyncio.Event) -> None:
        """Pay for one release after another until it is stopped."""
        while not stop.is_set():
            await self._pay(Amount(self.load.rng.randint(1, 9), 1))
            # An open circuit refuses at once.
            await asyncio.sleep(PAUSE_SECONDS * self.load.rng.random())

    async def _pay(self, cost: Amount) -> None:
        id_ = self.load.new_id()
        release_id, message = f"{CONNECTOR_RELEASE}{id_}", cost_message(cost)
        self.load.history.connectors[release_id] = cost
        translation = dp_pb2.TranslateQueryResponse(worst_case_cost=message, query_id=id_)
        bill = dp_pb2.Bill(cost=message, release_id=release_id, query_id=id_)
        fate, spent, charging = Fate.ACKNOWLEDGED, cost, False
        try:
            deadline = asyncio.get_running_loop().time() + TIMEOUTS.budget_held
            async with Reservation(self.calls, translation, deadline) as reservation:
                charging = True
                await reservation.charge(bill)
        except OutcomeUnknown:
            fate, spent = Fate.UNKNOWN, NOTHING
        except BudgetExhausted:
            fate, spent = Fate.REFUSED, NOTHING
        except GrisError:
            fate, spent = Fate.UNTOUCHED, NOTHING
        # Without a reservation there was no charge; a line of the journal would be one that nobody asked for.
        if charging:
            self.load.record(Reported(release_id, self.account, fate, most=cost, spent=spent))


@asynccontextmanager
async def paying(load: Load, number: int) -> AsyncIterator[ConnectorClient]:
    """Give a client of the connector with an account that has room."""
    account = (*CONNECTORS, f"a{number}")
    load.accounts.used.add(account)
    calls = BudgetServiceClient(load.rng.choice(load.addresses), account, TIMEOUTS)
    try:
        yield ConnectorClient(load, account, calls)
    finally:
        await calls.close()
