"""Bugs that are put in on purpose: the simulation has to find each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from budget_service.ledger.act import Act
from budget_service.ledger.acts.charge import Charge
from budget_service.ledger.acts.report import ReportCharge
from budget_service.ledger.acts.reserve import Reserve
from budget_service.ledger.limits import AppliedLimits
from budget_service.ledger.windows import DAY, SECOND
from budget_service.regions.lease_maintenance import LeaseMaintenance
from budget_service.regions.messages import Granted, HomeUnavailableError
from budget_service.server.lending_service import RegionService


def reclaims_too_early(part: Any) -> None:
    """The home forgets a lease 30 seconds before the end that it has named to the region."""
    if not isinstance(part, RegionService):
        return
    lending: Any = part._lending
    lend = lending.lend

    async def promised_too_late(*arguments: Any, **named: Any) -> Any:
        found = await lend(*arguments, **named)
        return replace(found, ends_at=found.ends_at + 30 * SECOND) if isinstance(found, Granted) else found

    lending.lend = promised_too_late


def reports_twice(part: Any) -> None:
    """A region takes a batch without an answer for one that did not arrive, and sends it under new numbers."""
    if not isinstance(part, LeaseMaintenance):
        return
    home: Any = part.region.home
    records = part.region.records
    report = home.report

    async def renumbered(charges: Sequence[ReportCharge]) -> Any:
        try:
            return await report(charges)
        except HomeUnavailableError:
            for each in charges:
                lease = records.leases[each.lease_id]
                records.leases[each.lease_id] = replace(lease, reported=max(lease.reported, each.number))
            raise

    home.report = renumbered


def trusts_every_clock(part: Any) -> None:
    """A region does not compare its clock with the home's."""
    if isinstance(part, LeaseMaintenance):
        borrowing: Any = part.region._borrowing
        borrowing._terms = replace(part.region.terms, skew=10**6 * SECOND)


def _decides(part: Any, changed: Callable[[Act, AppliedLimits], tuple[Act, AppliedLimits]]) -> None:
    """Have a region's ledger decide something else than it is asked."""
    if not isinstance(part, LeaseMaintenance):
        return
    ledger: Any = part.region.store
    apply = ledger.apply

    async def decided(request: Act, limits: AppliedLimits) -> Any:
        return await apply(*changed(request, limits))

    ledger.apply = decided


def reserves_too_late(part: Any) -> None:
    """A region's ledger reserves from a lease however long it is over, if the process was held up before."""

    def without_end(request: Act, limits: AppliedLimits) -> tuple[Act, AppliedLimits]:
        if isinstance(request, Reserve) and limits.lease is not None and limits.lease.ends_at:
            limits = replace(limits, lease=replace(limits.lease, ends_at=limits.lease.ends_at + DAY))
        return request, limits

    _decides(part, without_end)


def forgets_what_is_lost(part: Any) -> None:
    """What a region has not reported when its lease ends returns to the budget."""
    if not isinstance(part, RegionService):
        return
    ledger: Any = part._lending._ledger
    apply = ledger.apply

    async def returning(request: Any) -> Any:
        return await apply(replace(request, forfeits=False) if hasattr(request, "forfeits") else request)

    ledger.apply = returning


def returns_what_another_process_borrowed(part: Any) -> None:
    """A region that has started again trusts its files, and gives back what lapsed."""
    if isinstance(part, LeaseMaintenance):
        region: Any = part.region
        region.certainly_charged = lambda _, spent: spent


def returns_what_is_in_use(part: Any) -> None:
    """A region closes a lease while reservations of it are open, and charges from it are being decided."""
    if not isinstance(part, LeaseMaintenance):
        return
    maintenance: Any = part
    region = part.region

    async def charged_so_far(lease: Any) -> Any:
        found = await region.store.read(lease.local, lease.applied(region.terms).levels)
        return found.levels[0].spent

    maintenance._all_charged = charged_so_far


def lends_to_each_block(part: Any) -> None:
    """A region charges a share to blocks, each as much as the share has."""

    def of_a_block(request: Act, limits: AppliedLimits) -> tuple[Act, AppliedLimits]:
        if isinstance(request, Reserve | Charge):
            request = replace(request, blocks=(f"{len(request.query_id) % 2:016x}",))
        return request, limits

    _decides(part, of_a_block)


# By name: the bug, and by how many margins clocks differ with it.
BUGS: dict[str, tuple[Callable[[Any], None], float]] = {
    "reclaimed-too-early": (reclaims_too_early, 0.5),
    "reported-twice": (reports_twice, 0.5),
    "skew-beyond-margin": (trusts_every_clock, 6.0),
    "reserved-too-late": (reserves_too_late, 0.5),
    "loss-is-free": (forgets_what_is_lost, 0.5),
    "returned-by-another-process": (returns_what_another_process_borrowed, 0.5),
    "returned-while-in-use": (returns_what_is_in_use, 0.5),
    "lent-to-each-block": (lends_to_each_block, 0.5),
}
