"""A home ledger in this process: the real ledger engine over dictionaries, and the service that lends from it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from google.protobuf.message import Message
from gris_api.budget.v1 import admin_pb2, regions_pb2
from gris_api.budget.v1 import budget_pb2 as pb
from gris_api.common.v1 import cost_pb2

from budget_service.configuration.budget_file import Configuration
from budget_service.ledger.account_statement import AccountStatement
from budget_service.ledger.act import Act
from budget_service.ledger.limits import AppliedLimits, StoredLimits
from budget_service.ledger.outcomes import Answer
from budget_service.ledger.state import JournalEntry
from budget_service.ledger.values import Account, LevelLimit
from budget_service.ledger.windows import SECOND
from budget_service.server.admin_service import BudgetAdminService
from budget_service.server.ledger import Ledger
from budget_service.server.lending_service import RegionService
from budget_service.server.limit_cache import LimitCache
from budget_service.server.request_runner import RequestRunner
from budget_service.server.service import BudgetService
from budget_service.server.settings import LiveSettings, Settings
from budget_service.stores.interface import uncounted
from budget_service.stores.ledger_engine import LedgerEngine
from budget_service.stores.sqlite.store import SqliteStore
from budget_service.tuning import DEFAULTS
from tests.campaigns.regions.world import called
from tests.support.budget_samples import UNIT
from tests.unit.budget_service.memory_transactions import MemoryTransactions

NOON = 1_790_000_000 * SECOND
INSTANCE = "1" * 32
PATH = ("acme", "ann")
ANN = pb.Account(path=PATH)
CONFIGURATION = Configuration.model_validate(
    {
        "leases": {"share_percent": 20, "seconds": 60},
        "accounts": [
            {"path": ["acme"], "limit": {"information": 10_000, "calls": 1000}, "window": "never"},
            {"path": list(PATH), "limit": {"information": 1000, "calls": 100}, "window": "never"},
            {"path": ["acme", "anna"], "limit": {"information": 1000, "calls": 100}, "window": "never"},
            {"path": ["acme", "daily"], "limit": {"information": 1000, "calls": 100}, "window": "day"},
            {"path": ["other", "bob"], "limit": {"information": 1000, "calls": 100}, "window": "never"},
        ],
    }
)


def cost(information: int, calls: int = 1) -> cost_pb2.Cost:
    """Return a cost in the currency of all tests here."""
    return cost_pb2.Cost(information=information, calls=calls, unit_id=UNIT)


class MemoryLedger:
    """A store whose clock is moved by hand."""

    def __init__(self, disk: MemoryTransactions | None = None) -> None:
        self.now = NOON
        self.disk = MemoryTransactions(lambda: self.now) if disk is None else disk
        self._engine = LedgerEngine(self.disk, by_root=False, most=16, committed=uncounted)

    def forget(self) -> None:
        """Remove the answers that are kept no longer, as every store does."""
        kept = {key: each for key, each in self.disk.outcomes.items() if self.now < each.keep_until}
        self.disk.outcomes.clear()
        self.disk.outcomes |= kept

    async def apply(self, request: Act, limits: AppliedLimits) -> Answer:
        """See `Store`."""
        return await self._engine.apply(request, limits)

    async def read(self, account: Account, levels: tuple[LevelLimit, ...]) -> AccountStatement:
        """See `Store`."""
        return await self._engine.read(account, levels)

    async def balances(self, root: str, _after: str, _most: int) -> Any:
        """No more than the reservations of a root; see `Store`."""
        held = tuple(each for each in self.disk.reservations.values() if each.account.root == root)
        return SimpleNamespace(reservations=held)

    async def limits(self, _account: Account) -> StoredLimits:
        """No limit is stored."""
        return StoredLimits()

    async def latest(self, _root: str, before: str, most: int) -> list[tuple[str, JournalEntry]]:
        """See `Store`."""
        numbered = [(str(number), each) for number, each in enumerate(self.disk.journal, 1)]
        return numbered[: int(before) - 1 if before else None][::-1][:most]

    async def journal(self, root: str, after: str, _until: str, most: int) -> list[tuple[str, JournalEntry]]:
        """See `Store`."""
        numbered = [(str(number), each) for number, each in enumerate(self.disk.journal, 1)]
        return [each for each in numbered[int(after or 0) :] if each[1].account.root == root][:most]


class Home:
    """The services of a home ledger: in memory, or in a file if there is a path."""

    def __init__(
        self,
        path: Path | None = None,
        regions_of: Callable[[Any], frozenset[str] | None] = lambda _: None,
        configuration: Configuration = CONFIGURATION,
    ) -> None:
        self.ledger = MemoryLedger()
        store: Any = self.ledger if path is None else SqliteStore.open(path, lambda: self.ledger.now)
        self.store = store
        settings = LiveSettings(Settings(configuration))
        self.limits = LimitCache(store, settings)
        service = BudgetService(store, settings, RequestRunner(None, DEFAULTS), DEFAULTS, self.limits)
        self.lending = RegionService(
            self.limits,
            settings,
            RequestRunner(None, DEFAULTS),
            regions_of=regions_of,
            elapsed=lambda: self.ledger.now / SECOND,
        )
        self._services = (
            self.lending,
            service,
            BudgetAdminService(
                Ledger(store),
                settings,
                RequestRunner(None, DEFAULTS),
                RequestRunner(None, DEFAULTS),
                actor_of=lambda _: "ops",
                backups=None,
                tuning=DEFAULTS,
            ),
        )

    async def call(self, method: str, request: Message) -> Any:
        """Call a method; its errors are HomeStatusError."""
        service = next(each for each in self._services if hasattr(each, method))
        return await asyncio.wait_for(called(service, method, request), 20)

    async def borrow(
        self, lease_id: str, wanted: int = 1, region: str = "eu", last: str = "", unit_id: str = UNIT
    ) -> Any:
        """Borrow a share of the account's budget."""
        request = regions_pb2.BorrowBudgetRequest(
            account=ANN,
            region=region,
            instance=INSTANCE,
            lease_id=lease_id,
            wanted=cost_pb2.Cost(information=wanted, calls=1, unit_id=unit_id),
            last_lease_id=last,
        )
        return await self.call("BorrowBudget", request)

    async def report(self, lease_id: str, charge: cost_pb2.Cost, number: int = 1, region: str = "eu") -> Any:
        """Report one charge."""
        request = regions_pb2.ReportChargesRequest(region=region, instance=INSTANCE)
        request.charges.add(
            account=ANN,
            lease_id=lease_id,
            number=number,
            cost=charge,
            release_id=f"r-{lease_id[:4]}-{number}",
            query_id=f"q-{lease_id[:4]}-{number}",
        )
        answer = await self.call("ReportCharges", request)
        return answer.charges[0]

    async def give_back(
        self,
        lease_id: str,
        reported: int = 0,
        region: str = "eu",
        *,
        was_granted: bool = False,
        charged: cost_pb2.Cost | None = None,
    ) -> Any:
        """Give back what is left of a lease."""
        request = regions_pb2.ReturnBudgetRequest(
            account=ANN,
            region=region,
            instance=INSTANCE,
            lease_id=lease_id,
            reported=reported,
            was_granted=was_granted,
            charged=charged,
        )
        return await self.call("ReturnBudget", request)

    async def refund(self, release_id: str) -> int:
        """Refund a release; return the units."""
        request = admin_pb2.RefundChargeRequest(
            account=ANN, release_id=release_id, reason="wrong", request_id=f"refund-{release_id}"
        )
        return int((await self.call("RefundCharge", request)).refunded.information)

    async def counted(self, path: tuple[str, ...] = PATH) -> tuple[int, int]:
        """Return what is spent of an account's budget, and what is held."""
        request = pb.GetBudgetRequest(account=pb.Account(path=path))
        level = (await self.call("GetBudget", request)).levels[-1]
        return level.spent.information, level.reserved.information
