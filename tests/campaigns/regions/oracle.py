"""What the simulation knows and no machine does: who was granted what, and what must hold of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TypeAlias

from gris_api.budget.v1 import regions_pb2

from budget_service.ledger.requests import lease_part
from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import Account, Cost, Limit
from budget_service.ledger.windows import Microseconds
from budget_service.server.messages import microseconds

# An account and the start of a window of its own limit.
Budget: TypeAlias = tuple[Account, Microseconds]


class BrokenError(AssertionError):
    """The promise does not hold."""


@dataclass
class GrantedLease:
    """A lease that the home has granted, whether or not its region has heard of it."""

    account: Account
    share: Cost
    window_start: Microseconds
    ends_at: Microseconds
    spent: int = 0
    last_granted: Microseconds = 0


@dataclass
class Oracle:
    """Sees every commit of every machine at once."""

    limits: dict[Account, Limit]
    leases: dict[str, GrantedLease] = field(default_factory=dict)
    reclaimed: dict[str, Microseconds] = field(default_factory=dict)
    acknowledged: dict[tuple[str, str], Cost] = field(default_factory=dict)
    committed: set[str] = field(default_factory=set)
    released: set[tuple[Account, Microseconds, str]] = field(default_factory=set)
    spent: defaultdict[Budget, int] = field(default_factory=lambda: defaultdict(int))
    faults: Counter[str] = field(default_factory=Counter)

    def lent(
        self, request: regions_pb2.BorrowBudgetRequest, answer: regions_pb2.BorrowBudgetResponse
    ) -> None:
        """Note a lease as the home has described it."""
        if answer.not_lent or request.lease_id in self.leases:
            return
        self.leases[request.lease_id] = GrantedLease(
            Account(tuple(request.account.path)),
            Cost(answer.share.information, answer.share.calls),
            microseconds(answer.window_start),
            microseconds(answer.ends_at),
        )

    def region_committed(self, region: str, entry: JournalEntry, at_home: Microseconds) -> None:
        """See a charge in a region's ledger, decided when the home's clock showed that time."""
        lease_id = entry.account.path[1]
        lease = self.leases.get(lease_id)
        if lease is None:
            raise BrokenError(f"{region} has charged from a lease that was never granted")
        self._require_live(region, lease_id, lease, at_home)
        lease.spent += entry.cost.information
        if lease.spent > lease.share.information:
            raise BrokenError(f"{region} has charged {lease.spent} from a share of {lease.share.information}")
        self.committed.add(entry.request_id)
        self._count(lease.account, lease.window_start, entry)

    def region_reserved(self, region: str, lease_id: str, at_home: Microseconds) -> None:
        """See a reservation in a region's ledger."""
        lease = self.leases.get(lease_id)
        if lease is not None:
            self._require_live(region, lease_id, lease, at_home)

    def _require_live(self, region: str, lease_id: str, lease: GrantedLease, at_home: Microseconds) -> None:
        if at_home >= lease.ends_at:
            raise BrokenError(f"{region} has granted from a lease {at_home - lease.ends_at} us after its end")
        lease.last_granted = max(lease.last_granted, at_home)
        self._require_not_reclaimed(lease_id, lease)

    def _require_not_reclaimed(self, lease_id: str, lease: GrantedLease) -> None:
        # Whichever is committed first: it is decided before.
        if lease.last_granted > self.reclaimed.get(lease_id, lease.last_granted):
            raise BrokenError(f"{lease_id} was granted from, and the home had reclaimed it")

    def home_committed(self, entry: JournalEntry, window_start: Microseconds) -> None:
        """See an entry of the home's journal."""
        if entry.kind is EntryKind.FORFEITED and entry.request_id.startswith("lease:"):
            lease_id = entry.request_id.removeprefix("lease:").rpartition(".")[0]
            self.reclaimed.setdefault(lease_id, entry.time)
            if lease_id in self.leases:
                self._require_not_reclaimed(lease_id, self.leases[lease_id])
        if entry.kind in (EntryKind.SETTLED, EntryKind.DIRECT) and not entry.request_id.startswith("lease:"):
            self.committed.add(entry.request_id)
            self._count(entry.account, window_start, entry)

    def _count(self, account: Account, window_start: Microseconds, entry: JournalEntry) -> None:
        """Count a charge once for each release, as every level has it, and compare with the limits."""
        if entry.release_id:
            name = (account, window_start, entry.release_id)
            if name in self.released:
                return
            self.released.add(name)
        for level in account.levels:
            start = window_start if level == account else 0
            self.spent[level, start] += entry.cost.information
            limit = self.limits[level].maximum.information
            if self.spent[level, start] > limit:
                raise BrokenError(f"{level.text} has spent {self.spent[level, start]} of {limit}")

    def require_settled(
        self, home: list[JournalEntry], regions: dict[str, list[JournalEntry]], held: list[str]
    ) -> None:
        """Check the end of a history: everything is reported once, and nothing is held any more."""
        if held:
            raise BrokenError(f"the home still holds {held}")
        recorded: dict[str, dict[str, JournalEntry]] = defaultdict(dict)
        reports = [
            each for each in home if each.request_id.startswith("lease:") and each.kind is EntryKind.SETTLED
        ]
        for each in reports:
            name = each.request_id.removeprefix("lease:").partition(".")[0]
            if each.request_id in recorded[name]:
                raise BrokenError(f"{each.request_id} is in the journal twice")
            recorded[name][each.request_id] = each
        for region, entries in regions.items():
            self._require_reported(region, entries, recorded)
        for request_id in (name for name, _ in self.acknowledged):
            if request_id not in self.committed:
                raise BrokenError(f"{request_id} was acknowledged, and no ledger has it")

    def _require_reported(
        self, region: str, entries: list[JournalEntry], recorded: dict[str, dict[str, JournalEntry]]
    ) -> None:
        numbers: Counter[str] = Counter()
        for entry in entries:
            lease_id = entry.account.path[1]
            numbers[lease_id] += 1
            name = lease_part(lease_id, numbers[lease_id])
            found = recorded[lease_id].get(name)
            if found is None and not self._is_paid_elsewhere(entry):
                raise BrokenError(f"{region} has charged {name}, and the home does not have it")
            if found is not None and (found.release_id, found.cost) not in (
                (entry.release_id, entry.cost),
                (entry.release_id, Cost(0, 0)),
            ):
                raise BrokenError(f"{name} is recorded as another charge")
        for lease_id, count in numbers.items():
            if len(recorded[lease_id]) > count:
                raise BrokenError(f"the home has more charges of {lease_id} than {region}")

    def _is_paid_elsewhere(self, entry: JournalEntry) -> bool:
        lease = self.leases[entry.account.path[1]]
        return (
            bool(entry.release_id) and (lease.account, lease.window_start, entry.release_id) in self.released
        )
