"""What an application sends to a region on purpose: it spends no more than the region holds, and frees nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import ErrorInfo
from gris_api.budget.v1 import budget_pb2 as pb
from gris_api.common.v1 import cost_pb2
from msgspec.structs import replace

from budget_service.ledger.acts.report import ReportCharge
from budget_service.ledger.draft import Draft
from budget_service.ledger.state import Snapshot
from budget_service.ledger.values import NOTHING, Account, Cost, LevelLimit, Limit, Mode
from budget_service.regions.lease import NEVER, Lease, RegionTotal
from budget_service.regions.messages import Granted, Reported
from budget_service.server.home_client import HomeStatusError
from budget_service.server.settings import Settings
from budget_service.server.tickets import Release, TicketVerifier
from tests.campaigns.regions.loop import run
from tests.campaigns.regions.machines import BEGINNING
from tests.campaigns.regions.world import UNIT, World, called

OTHER_UNIT = "f" * 32
EU = Account(("acme", "eu"))
TICKETS = TicketVerifier(bytes(32))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def played(attack: Callable[[World], Awaitable[None]], tickets: TicketVerifier | None = None) -> None:
    """Play an attack in a world where nothing else goes wrong."""

    async def history() -> None:
        world = World(1)
        world.settings.current = Settings(world.settings.current.configuration, tickets)
        for network in world.networks.values():
            network.loss = network.repeats = 0.0
        world.start_home()
        await world.start_region("eu")
        await attack(world)
        world.require_kept()

    run(history())


async def asked(world: World, method: str, request: Message) -> Any:
    """Ask the region; the reason if it refuses."""
    try:
        return await called(world.services["eu"], method, request)
    except HomeStatusError as error:
        info = ErrorInfo()
        return info.reason if any(each.Unpack(info) for each in error.status.details) else ""


def reserve(name: str, information: int, query_id: str = "q") -> pb.ReserveBudgetRequest:
    """Return a request for a reservation."""
    cost = cost_pb2.Cost(information=information, unit_id=UNIT)
    asked = pb.ReserveBudgetRequest(
        account=pb.Account(path=EU.path), max_cost=cost, request_id=name, query_id=query_id
    )
    # What may last longer than a lease is reserved at the home.
    asked.ttl.seconds = 20
    return asked


def charge(name: str, information: int, **ids: Any) -> pb.UpdateBudgetRequest:
    """Return a charge."""
    cost = cost_pb2.Cost(information=information, unit_id=UNIT)
    return pb.UpdateBudgetRequest(account=pb.Account(path=EU.path), cost=cost, request_id=name, **ids)


def cancel(name: str, reservation_id: str, path: tuple[str, ...] = EU.path) -> pb.ReleaseReservationRequest:
    """Return a cancellation."""
    return pb.ReleaseReservationRequest(
        account=pb.Account(path=path), reservation_id=reservation_id, request_id=name
    )


def test_the_id_of_a_lease_under_another_currency_makes_no_share_new() -> None:
    """The whole share is charged, and nothing more after a cancellation that names it under another root."""

    async def attack(world: World) -> None:
        held = await asked(world, "ReserveBudget", reserve("first", 1))
        world.networks["eu"].is_cut = True
        (lease,) = world.regions["eu"].records.leases.values()
        rest = lease.share.information - 1
        assert (await asked(world, "UpdateBudget", charge("all", rest))).charged.information == rest
        part = held.reservation_id.split("~")[2]
        forged = cancel("forged", f"eu~{OTHER_UNIT}~{part}~z")
        assert await asked(world, "ReleaseReservation", forged) == "RESERVATION_OVER"
        assert await asked(world, "UpdateBudget", charge("more", rest)) == "OUTCOME_UNKNOWN"

    played(attack)


def test_ids_that_no_region_gave_write_nothing() -> None:
    """Whatever lease, currency and root they name."""

    async def attack(world: World) -> None:
        await asked(world, "ReserveBudget", reserve("first", 1))
        disk = world.machines["eu"].disk
        before = set(disk.roots), set(disk.outcomes)
        for number, part in enumerate(("0" * 32, "replays", world.regions["eu"].draw())):
            forged = cancel(f"n{number}", f"eu~{OTHER_UNIT}~{part}~z", ("nobody", "here"))
            assert await asked(world, "ReleaseReservation", forged) == "RESERVATION_OVER"
        assert (set(disk.roots), set(disk.outcomes)) == before

    played(attack)


def test_what_was_paid_for_is_settled_after_its_lease_is_gone() -> None:
    """A reservation of such a question holds nothing, and so keeps no lease; a repeat finds its answer."""

    async def history(world: World) -> None:
        ids = {"query_id": "q", "release_id": "r"}
        assert (await asked(world, "UpdateBudget", charge("paid", 5, **ids))).charged.information == 5
        under_lease = await asked(world, "ReserveBudget", reserve("again", 5))
        await world.services["eu"]._maintenance.give_back_all()
        assert not world.regions["eu"].records.leases
        without = await asked(world, "ReserveBudget", reserve("later", 5))
        for number, held in enumerate((under_lease, without)):
            assert held.reservation_id.startswith("eu~")
            settle = charge(f"s{number}", 5, reservation_id=held.reservation_id, release_id="r")
            assert (await asked(world, "UpdateBudget", settle)).already_paid
            assert (await asked(world, "UpdateBudget", settle)).replayed

    played(history)


def test_a_decision_over_levels_that_it_does_not_load_is_an_error() -> None:
    """Their balances would be taken for empty, and written."""
    levels = (LevelLimit(Account(("other", "x")), Limit(NOTHING, Mode.ENFORCE, NEVER)),)
    with pytest.raises(ValueError, match="level"):
        Draft(Snapshot(), levels, BEGINNING, EU.levels)


def test_no_client_learns_or_names_a_lease() -> None:
    """The id of a reservation does not have the lease's, and ids of its form are refused, by a region and its home."""

    async def attack(world: World) -> None:
        held = await asked(world, "ReserveBudget", reserve("first", 1))
        (lease,) = world.regions["eu"].records.leases.values()
        assert lease.lease_id not in held.reservation_id
        name = f"lease:{lease.lease_id}.0"
        assert world.servicers is not None
        for servicer in (world.services["eu"], world.servicers[1]):
            for method, request in (
                ("ReleaseReservation", cancel("c", name)),
                ("ReleaseReservation", cancel(name, held.reservation_id)),
                ("UpdateBudget", charge("c", 1, reservation_id=name)),
                ("UpdateBudget", charge(name, 1)),
                ("ReserveBudget", reserve(name, 1)),
            ):
                with pytest.raises(HomeStatusError) as refused:
                    await called(servicer, method, request)
                assert "must not begin with 'lease:'" in refused.value.status.message
        assert ("acme", name) in world.machines["home"].disk.reservations

    played(attack)


def test_what_is_charged_after_a_lease_was_given_back_counts() -> None:
    """Nothing was forfeited for it, so that it is not free when the lease would have ended, nor hours after."""

    async def attack(world: World) -> None:
        home = world.regions["eu"].home
        lease = Lease(lease_id="a" * 32, account=EU, unit_id=UNIT)
        granted = await home.borrow(lease, NOTHING, RegionTotal())
        assert isinstance(granted, Granted)
        lease = replace(lease, granted_at=granted.granted_at)
        assert await home.give_back(lease, None) is not None
        await asyncio.sleep(2 * 3600)
        for number in (1, 2, 3):
            late = ReportCharge(
                account=EU,
                lease_id=lease.lease_id,
                number=number,
                cost=Cost(5, 0),
                unit_id=UNIT,
                release_id="",
                query_id="",
            )
            assert list(await home.report([late])) == [Reported(Cost(5, 0), False)]
        assert world.machines["home"].disk.balances[EU].spent == Cost(15, 0)

    played(attack)


def test_a_reservation_of_a_region_is_not_settled_without_its_ticket() -> None:
    """At no other cost, and for no other question, than it was signed for; a repeat finds its answer."""

    async def attack(world: World) -> None:
        held = await asked(world, "ReserveBudget", reserve("first", 9))
        own = {"reservation_id": held.reservation_id, "release_id": "r"}
        for information, signed in ((0, b""), (0, _ticket("other", 0)), (4, _ticket("q", 9))):
            cheap = charge("cheap", information, **own, charge_ticket=signed)
            assert await asked(world, "UpdateBudget", cheap) == "TICKET_NOT_AUTHENTIC"
        settle = charge("settle", 9, **own, charge_ticket=_ticket("q", 9))
        assert (await asked(world, "UpdateBudget", settle)).charged.information == 9
        await world.services["eu"]._maintenance.give_back_all()
        assert (await asked(world, "UpdateBudget", settle)).replayed

    played(attack, TICKETS)


def _ticket(query_id: str, information: int) -> bytes:
    return TICKETS.ticket(Release("r", query_id, Cost(information, 0), UNIT))
