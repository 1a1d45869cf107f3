"""The price of a publication in the ledger, before anything of it can be seen."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from pathlib import Path

from gris_api.common.v1 import cost_pb2
from gris_api.dp.v1 import dp_pb2

from dp_service.mechanisms.parameters import Cost as TicketCost
from dp_service.releases.ticket import charge_ticket
from dp_service.server.key_file import read_key_file
from gris_cli.data.errors import InputError
from gris_serving.key_files import KeyFileError
from pinot_connector.budget_service_client import BudgetServiceClient
from pinot_connector.budgets import Charge, Cost
from pinot_connector.channels import Timeouts
from pinot_connector.errors import OutcomeUnknown
from pinot_connector.reservations import Reservation
from pinot_connector.views import message_of

ATTEMPTS = 5
# Nobody waits for a publication as an analyst waits for an answer, and its work would be lost.
RETRY_TIMEOUT = Timeouts(budget_attempt=10.0, budget=60.0, budget_silence=5.0)
ID_BYTES = 32


@dataclass(frozen=True)
class LedgerAccount:
    """Where a price is recorded: a ledger's address, an account of its own, and what proves the price to the ledger.

    `key_file` is dp_service's key file, for ledgers that demand a charge ticket; None: they do not.
    """

    address: str
    path: tuple[str, ...]
    key_file: Path | None


def record(account: LedgerAccount | None, price: Cost) -> None:
    """Charge a price to an account, if there is one.

    Where the outcome is unknown it is charged again under the same release, which counts once.

    Raises:
        BudgetExhausted: It does not fit into the account's budget.
        BudgetHeld: Questions that run held the budget of a level above for a minute.
        OutcomeUnknown: No answer came; the price may have been recorded.
        GrisError: The ledger is not available, or refuses.
        InputError: The key file cannot be used.
    """
    if account is not None:
        asyncio.run(_recorded(account, _bill(account, price)))


def _bill(account: LedgerAccount, price: Cost) -> dp_pb2.Bill:
    """Return what the ledger records: random names, because they must not depend on data, and the price."""
    release_id, query_id = secrets.token_hex(ID_BYTES), secrets.token_hex(ID_BYTES)
    return dp_pb2.Bill(
        release_id=release_id,
        query_id=query_id,
        cost=message_of(cost_pb2.Cost, price),
        charge_ticket=_ticket(account.key_file, release_id, query_id, price),
    )


def _ticket(key_file: Path | None, release_id: str, query_id: str, price: Cost) -> bytes:
    if key_file is None:
        return b""
    try:
        key = read_key_file(key_file)
    except (KeyFileError, OSError) as error:
        raise InputError(str(error), "key_file") from None
    cost = TicketCost(price.information, price.calls)
    return charge_ticket(key, release_id=release_id, query_id=query_id, cost=cost, unit_id=price.unit_id)


async def _recorded(account: LedgerAccount, bill: dp_pb2.Bill) -> Charge:
    calls = BudgetServiceClient(account.address, account.path, RETRY_TIMEOUT)
    try:
        for _ in range(ATTEMPTS - 1):
            try:
                return await _charged(calls, bill)
            except OutcomeUnknown:
                continue
        return await _charged(calls, bill)
    finally:
        await calls.close()


async def _charged(calls: BudgetServiceClient, bill: dp_pb2.Bill) -> Charge:
    asked = dp_pb2.TranslateQueryResponse(worst_case_cost=bill.cost, query_id=bill.query_id)
    deadline = asyncio.get_running_loop().time() + RETRY_TIMEOUT.budget_held
    async with Reservation(calls, asked, deadline) as reservation:
        return await reservation.charge(bill)
