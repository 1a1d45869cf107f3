"""What a region does by itself: it reports charges, and gives back leases that are idle or over."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence

from budget_service.internal_errors import log_internal_error
from budget_service.ledger.acts.report import ReportCharge
from budget_service.ledger.state import JournalEntry
from budget_service.ledger.values import NOTHING, Cost
from budget_service.ledger.windows import DAY, SECOND, Microseconds
from budget_service.regions.lease import Lease, LeaseState, RegionTotal
from budget_service.regions.messages import HomeRefusedError, HomeUnavailableError, Reported
from budget_service.regions.region import Region
from budget_service.stores.interface import StoreError

# The most charges of a message, and about how many bytes: a home refuses messages of more than 64 KiB.
BATCH = 200
BATCH_BYTES = 32 * 1024
# What a charge takes beside its texts, with room to spare.
CHARGE_BYTES = 96
# After so many roots without an answer the others are not tried.
MOST_UNANSWERED = 2
# The records forget what was paid for at the home in a window that ended so long ago.
KEPT_AFTER_WINDOW: Microseconds = DAY
TIDIED_EVERY: Microseconds = 600 * SECOND

log = logging.getLogger(__name__)


class LeaseMaintenance:
    """The background work of a region."""

    def __init__(self, region: Region) -> None:
        self.region = region
        # What is reported of a lease, and that it is given back, must not be written by two at a time.
        self._lock = asyncio.Lock()
        # How many charges of a root are sent at once, fewer after each failure, and how often it has failed since.
        self._most: dict[str, int] = {}
        self._failures: Counter[str] = Counter()
        self._tidied: Microseconds = 0

    async def run(self) -> None:
        """Report and give back, again and again, until cancelled."""
        while True:
            await asyncio.sleep(self.region.terms.report / SECOND)
            try:
                await self.once()
            except (HomeUnavailableError, HomeRefusedError, StoreError):
                # What is not reported stays in the region's ledger, and counts at the home as held or forfeited.
                continue
            except Exception as error:
                log_internal_error(error)

    async def once(self) -> None:
        """Report what is new, and give back what is idle or over. Raises HomeUnavailableError and StoreError."""
        async with self._lock:
            await self._once()

    async def _once(self) -> None:
        region, now = self.region, self.region.clock()
        failed = await self._report_each()
        for lease in list(region.records.leases.values()):
            if lease.state is LeaseState.ACTIVE and self._is_done(lease, now):
                region.stop_granting(lease)
        for lease_id in list(region.records.leases):
            # As it is by now: a lease that was asked for may have been granted since the last one was closed.
            found = region.records.leases.get(lease_id)
            if found is not None and found.local.root not in failed and self._is_to_be_closed(found):
                try:
                    await self._close(found)
                except HomeRefusedError as error:
                    # It lapses at its end. What others hold must not wait for it.
                    log.warning(
                        "The home refuses to take a lease back.",
                        extra={"event": "lease.not_taken", "fields": {"reason": str(error)}},
                    )
        if not 0 <= now - self._tidied < TIDIED_EVERY:
            self._tidied = now
            # By this clock alone, one that is set ahead would forget what counts still, and it would be paid for again.
            await region.records.forget(min(now, region.home_time) - KEPT_AFTER_WINDOW)
        _raise_first(failed)

    async def report(self) -> None:
        """Report everything that was charged up to now."""
        async with self._lock:
            _raise_first(await self._report_each())

    async def _report_each(self) -> dict[str, Exception]:
        """Report what is new of each root; return those of which not everything was reported, and why.

        A root whose charges the home refuses, or takes too long for, keeps nothing of the others back: it is asked
        last. Raises HomeUnavailableError if the home seems to be away.
        """
        failed: dict[str, Exception] = {}
        unanswered = 0
        for root in sorted(self.region.unreported, key=lambda root: (self._failures[root], root)):
            try:
                await self._report_root(root)
            except HomeRefusedError as error:
                failed[root] = error
                log.error(
                    "The home refuses what was charged here. It is sent again, in smaller parts.",
                    extra={"event": "lease.report_refused", "fields": {"reason": str(error)}},
                )
            except HomeUnavailableError as error:
                failed[root] = error
                unanswered += 1
                if unanswered == MOST_UNANSWERED:
                    raise
        return failed

    async def _report_root(self, root: str) -> None:
        self.region.unreported.discard(root)
        try:
            while await self._report_batch(root):
                pass
        except BaseException:
            self.region.unreported.add(root)
            raise

    async def give_back_all(self) -> None:
        """Give back every lease that can be, before the service ends."""
        for lease in list(self.region.records.leases.values()):
            if lease.state is LeaseState.ACTIVE:
                self.region.stop_granting(lease)
        await self.once()

    def _is_done(self, lease: Lease, now: int) -> bool:
        used = self.region.last_used.get(lease.lease_id, lease.granted_at)
        return not lease.is_usable(now, self.region.terms) or now - used >= self.region.terms.idle

    def _is_to_be_closed(self, lease: Lease) -> bool:
        if lease.state is LeaseState.ASKED:
            return not self.region.is_borrowing(lease)
        return lease.state is LeaseState.RETIRING

    async def _report_batch(self, root: str) -> bool:
        """Report some charges of a root in the region's ledger; return whether there may be more."""
        region, records = self.region, self.region.records
        most = self._most.get(root, BATCH)
        found = await region.store.journal(root, records.positions.get(root, ""), "", most)
        leases = dict(records.leases)
        page = _fitting(found, leases)
        if not page:
            return False
        numbers = {each.lease_id: each.reported for each in leases.values()}
        charges, touched = [], []
        for _, entry in page:
            lease = leases.get(entry.account.path[1])
            if lease is None or not entry.kind.counts_everywhere:
                continue
            numbers[lease.lease_id] += 1
            charges.append(_charge(lease, entry, numbers[lease.lease_id]))
            touched.append(lease.lease_id)
        region.counters.trips += bool(charges)
        try:
            reported = await region.home.report(charges) if charges else []
        except (HomeUnavailableError, HomeRefusedError):
            # It may be too much for one message, or for the time that the home has for it.
            self._most[root] = max(1, len(page) // 2)
            self._failures[root] += 1
            raise
        self._note_success(root, most)
        await self._note_reported(root, page[-1][0], touched, reported)
        return len(page) < len(found) or len(found) == most

    def _note_success(self, root: str, most: int) -> None:
        self._failures.pop(root, None)
        if most < BATCH:
            self._most[root] = min(BATCH, most + most // 4 + 1)
        else:
            self._most.pop(root, None)

    async def _note_reported(
        self, root: str, position: str, touched: list[str], reported: Sequence[Reported]
    ) -> None:
        records = self.region.records
        changed: dict[str, Lease] = {}
        for lease_id, each in zip(touched, reported, strict=True):
            lease = changed.get(lease_id, records.leases[lease_id])
            changed[lease_id] = lease.after_report(each.charged, is_known=each.is_known)
            self.region.counters.add("charged", each.charged)
            if not each.is_known:
                self.region.counters.unknown += 1
                self._note_unknown(lease)
        if any(each.is_copied for each in reported):
            self.region.note_copied()
        await records.note(*changed.values(), positions={root: position})

    def _note_unknown(self, lease: Lease) -> None:
        self.region.stop_granting(lease)
        log.error(
            "The home does not know a lease that it has granted: its ledger, or this one, was set back.",
            extra={"event": "lease.unknown"},
        )

    async def _close(self, lease: Lease) -> None:
        """Give back what is left of a lease, if nothing can be granted or settled from it any more."""
        region, records, spent = self.region, self.region.records, NOTHING
        if lease.state is LeaseState.RETIRING:
            # The state is on the disk before the home hears of it: after a restart nothing is granted from it either.
            await records.note(lease)
            found = await self._all_charged(lease)
            if found is None:
                return
            spent = found
            # Only if everything was reported is what is left known.
            await self._report_root(lease.local.root)
            lease = records.leases[lease.lease_id]
        region.counters.trips += 1
        returned = await region.home.give_back(lease, region.certainly_charged(lease, spent))
        if returned is None:
            region.counters.lapsed += lease.state is LeaseState.RETIRING
            region.counters.add("lapsed", lease.rest)
        else:
            region.counters.given_back += 1
            region.counters.add("given_back", returned)

        def without_rest(own: RegionTotal) -> RegionTotal:
            is_counted = lease.state is LeaseState.RETIRING and lease.window_start == own.window_start
            return own.minus(returned) if returned is not None and is_counted else own

        await records.note(gone=(lease.lease_id,), own={lease.account: without_rest})
        region.forget(lease)

    async def _all_charged(self, lease: Lease) -> Cost | None:
        """Return what was charged from a lease that is retiring, None while more may be."""
        region = self.region
        if region.using[lease.lease_id]:
            return None
        found = await region.store.read(lease.local, lease.applied(region.terms).levels)
        (level,) = found.levels
        return None if level.reserved != NOTHING or region.using[lease.lease_id] else level.spent


def _raise_first(failed: dict[str, Exception]) -> None:
    for error in failed.values():
        raise error


def _fitting(
    page: Sequence[tuple[str, JournalEntry]], leases: Mapping[str, Lease]
) -> Sequence[tuple[str, JournalEntry]]:
    """Return the first entries, at least one, that fit into one message."""
    total = 0
    for number, (_, entry) in enumerate(page):
        lease = leases.get(entry.account.path[1])
        account = "" if lease is None else lease.account.text
        ids = (entry.request_id, entry.release_id, entry.query_id)
        texts = (account, entry.unit_id, *ids, entry.policy_statement)
        total += CHARGE_BYTES + sum(len(each.encode()) for each in texts)
        if total > BATCH_BYTES and number:
            return page[:number]
    return page


def _charge(lease: Lease, entry: JournalEntry, number: int) -> ReportCharge:
    return ReportCharge(
        account=lease.account,
        lease_id=lease.lease_id,
        number=number,
        cost=entry.cost,
        unit_id=entry.unit_id,
        release_id=entry.release_id,
        query_id=entry.query_id if entry.release_id else "",
        policy_statement=entry.policy_statement,
        made_as=entry.request_id,
    )
