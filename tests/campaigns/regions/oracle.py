"""What the simulation knows and no machine does: who was granted what, and what must hold of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from gris_api.budget.v1 import regions_pb2

from budget_service.ledger.leases import lease_of, lease_part
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
    returned: int = 0
    last_granted: Microseconds = 0


@dataclass
class Oracle:
    """Sees every commit of every machine at once.

    What is `copied` can be spent once more: leases of a region that has a twin, or was set back. A home that was set
    back lends again what it had lent.
    """

    limits: dict[Account, Limit]
    copied: set[str] = field(default_factory=set)
    has_twin: bool = False
    is_home_restored: bool = False
    restored: set[str] = field(default_factory=set)
    leases: dict[str, GrantedLease] = field(default_factory=dict)
    reclaimed: dict[str, Microseconds] = field(default_factory=dict)
    acknowledged: dict[tuple[str, str], Cost] = field(default_factory=dict)
    committed: set[str] = field(default_factory=set)
    released: set[tuple[Account, Microseconds, str]] = field(default_factory=set)
    # By request, the blocks of members whose rows the answer has read; none: everybody's.
    touched: dict[str, tuple[str, ...]] = field(default_factory=dict)
    spent: defaultdict[Budget, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
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
        most = lease.share.information * (1 + (lease_id in self.copied))
        if lease.spent > most - lease.returned:
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
        if entry.kind is EntryKind.REFUNDED:
            self._returned(lease_of(entry.request_id), entry.cost.information)
        if entry.kind is EntryKind.FORFEITED and entry.request_id.startswith("lease:"):
            lease_id = entry.request_id.removeprefix("lease:").rpartition(".")[0]
            self.reclaimed.setdefault(lease_id, entry.time)
            if lease_id in self.leases:
                self._require_not_reclaimed(lease_id, self.leases[lease_id])
        if entry.kind in (EntryKind.SETTLED, EntryKind.DIRECT) and not entry.request_id.startswith("lease:"):
            self.committed.add(entry.request_id)
            self.faults["charges of some blocks at the home"] += any(hold.block for hold in entry.holds)
            self._count(entry.account, window_start, entry)

    def _returned(self, lease_id: str, returned: int) -> None:
        """See that the home gives back what lapsed of a lease."""
        lease = self.leases[lease_id]
        self.faults["lapsed shares that returned"] += 1
        lease.returned += returned
        # A twin may have charged as much again.
        is_twins = self.has_twin and lease_id in self.copied
        if lease.spent + lease.returned > lease.share.information * (1 + is_twins):
            charged = f"{lease.spent} of {lease.share.information} was charged"
            raise BrokenError(f"{lease.returned} of {lease_id} has returned, and {charged}")

    def home_restored(self, journal: list[JournalEntry]) -> None:
        """Know what a home has in its journal that was set back."""
        self.is_home_restored = True
        for lease in self.leases.values():
            lease.returned = 0
        for entry in journal:
            if entry.kind is EntryKind.REFUNDED:
                self.leases[lease_of(entry.request_id)].returned += entry.cost.information

    def _lent_again(self, level: Account) -> int:
        """Return what can be spent of a level beyond its limit, because leases are there twice."""
        twice = (self.leases[each] for each in self.copied if each in self.leases)
        return sum(lease.share.information for lease in twice if level in lease.account.levels)

    def _count(self, account: Account, window_start: Microseconds, entry: JournalEntry) -> None:
        """Count a charge once for each release, as every level has it, and compare with the limits."""
        if entry.release_id:
            name = (account, window_start, entry.release_id)
            if name in self.released:
                return
            self.released.add(name)
        for level in account.levels:
            start = window_start if level == account else 0
            spent = self.spent[level, start]
            for block in self.touched.get(entry.request_id) or ("",):
                spent[block] += entry.cost.information
            most = spent[""] + max((number for block, number in spent.items() if block), default=0)
            limit = self.limits[level].maximum.information
            if self.is_home_restored:
                continue
            if most > limit + self._lent_again(level):
                raise BrokenError(f"{level.text} has spent {most} of {limit}, of a member of one block")

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
            if not self.is_home_restored and region not in self.restored:
                self._require_reported(region, entries, recorded)
        if self.has_twin:
            self._require_all_counted(regions, recorded)
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
            if lease_id in self.copied:
                self._require_counted(region, entry, recorded[lease_id].values())
                continue
            if found is None and not self._is_paid_elsewhere(entry):
                raise BrokenError(f"{region} has charged {name}, and the home does not have it")
            if found is not None and (found.release_id, found.cost) not in (
                (entry.release_id, entry.cost),
                (entry.release_id, Cost(0, 0)),
            ):
                raise BrokenError(f"{name} is recorded as another charge")
        for lease_id, count in numbers.items():
            if len(recorded[lease_id]) > count and lease_id not in self.copied:
                raise BrokenError(f"the home has more charges of {lease_id} than {region}")

    def _require_all_counted(
        self, regions: dict[str, list[JournalEntry]], recorded: dict[str, dict[str, JournalEntry]]
    ) -> None:
        """Check that each charge without a release that twins have made of one lease is recorded once."""
        for lease_id in self.copied:
            every = [
                each for entries in regions.values() for each in entries if each.account.path[1] == lease_id
            ]
            made = len({each.request_id for each in every if not each.release_id})
            found = sum(not each.release_id for each in recorded[lease_id].values())
            if made != found:
                raise BrokenError(f"twins have made {made} charges of {lease_id}, and the home has {found}")

    def _require_counted(self, region: str, entry: JournalEntry, recorded: Iterable[JournalEntry]) -> None:
        """Check that the home has a charge of one of two twins, under its number or another name."""
        wanted = [(entry.release_id, cost) for cost in (entry.cost, Cost(0, 0))]
        is_counted = any((each.release_id, each.cost) in wanted for each in recorded)
        if not is_counted and not self._is_paid_elsewhere(entry):
            raise BrokenError(f"{region} has charged {entry.request_id}, and the home does not have it")

    def _is_paid_elsewhere(self, entry: JournalEntry) -> bool:
        lease = self.leases[entry.account.path[1]]
        return (
            bool(entry.release_id) and (lease.account, lease.window_start, entry.release_id) in self.released
        )
