"""A service that charges only what dp_service has signed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest_asyncio
from gris_api.budget.v1 import budget_pb2 as pb

from budget_service.ledger.values import Account, Cost
from budget_service.server.hosting import serving
from budget_service.server.ledger import Ledger
from budget_service.server.settings import LiveSettings, Settings
from budget_service.server.tickets import Release, TicketVerifier
from budget_service.stores.interface import Store
from tests.support.budget_client import (
    account,
    charging,
    connected,
    cost,
    failure,
    reserving,
)
from tests.support.budget_samples import UNIT, SteppedClock, statement
from tests.unit.budget_service.memory_store import MemoryStore
from tests.unit.budget_service.served import CONFIGURATION, Stub

TICKETS = TicketVerifier(bytes(32))
PUBLISHED = statement(1)
STRICT = LiveSettings(Settings(CONFIGURATION, TICKETS))


@pytest_asyncio.fixture
async def strict_stub(clock: SteppedClock) -> AsyncIterator[Stub]:
    """Serve a ledger that demands tickets."""
    store = MemoryStore(clock)
    async with serving(Ledger(store), STRICT, "127.0.0.1:0") as address, connected(address) as stub:
        yield stub


def ticket(query_id: str, information: int, calls: int, release_id: str = "rel") -> bytes:
    """Return dp_service's ticket for a release."""
    return TICKETS.ticket(Release(release_id, query_id, Cost(information, calls), UNIT))


async def test_a_ticket_is_checked_against_the_reservations_question(strict_stub: Stub) -> None:
    """Whether or not the client repeats the question; and a repeat of the charge still finds its answer."""
    for query_id in ("", "q"):
        held = await strict_stub.ReserveBudget(reserving(cost(2, 1), query_id="q"))
        asked = charging(
            cost(2, 1),
            reservation_id=held.reservation_id,
            release_id="rel",
            query_id=query_id,
            charge_ticket=ticket("q", 2, 1),
        )
        await strict_stub.UpdateBudget(asked)
        assert (await strict_stub.UpdateBudget(asked)).replayed


async def test_a_repeat_finds_its_answer_though_its_ticket_key_was_dropped(any_store: Store) -> None:
    """With the same ticket and the same content; a new charge, or another one under its id, is denied."""
    settings = LiveSettings(STRICT.current)
    async with serving(Ledger(any_store), settings, "127.0.0.1:0") as address, connected(address) as stub:
        held = await stub.ReserveBudget(reserving(cost(2, 1), query_id="q"))
        settled = charging(
            cost(2, 1),
            reservation_id=held.reservation_id,
            release_id="rel",
            query_id="q",
            charge_ticket=ticket("q", 2, 1),
        )
        direct = charging(cost(2, 1), release_id="r", query_id="d", charge_ticket=ticket("d", 2, 1, "r"))
        answers = [await stub.UpdateBudget(asked) for asked in (settled, direct)]
        settings.current = Settings(CONFIGURATION, TicketVerifier(bytes([1] * 32)))
        for asked, first in zip((settled, direct), answers, strict=True):
            again = await stub.UpdateBudget(asked)
            assert (again.replayed, list(again.levels)) == (True, list(first.levels))
            other = pb.UpdateBudgetRequest()
            other.CopyFrom(asked)
            other.charge_ticket = bytes(40)
            assert (await failure(stub.UpdateBudget(other))).info.reason == "TICKET_NOT_AUTHENTIC"
            other.request_id = "new"
            assert (await failure(stub.UpdateBudget(other))).info.reason == "TICKET_NOT_AUTHENTIC"


async def test_limits_and_how_levels_count_are_of_one_configuration(clock: SteppedClock) -> None:
    """Also of a charge while whose ticket is checked the configuration is reloaded."""
    settings = LiveSettings(STRICT.current)

    class Reloading(MemoryStore):
        async def query_id_of(self, account: Account, reservation_id: str) -> str | None:
            worst = CONFIGURATION.model_copy(update={"shared_levels": "worst_case"})
            settings.current = Settings(worst, TICKETS)
            return await super().query_id_of(account, reservation_id)

    store = Reloading(clock)
    async with serving(Ledger(store), settings, "127.0.0.1:0") as address, connected(address) as stub:
        held = await stub.ReserveBudget(reserving(cost(4, 2), query_id="q"))
        await stub.UpdateBudget(
            charging(
                cost(2, 1),
                reservation_id=held.reservation_id,
                release_id="rel",
                charge_ticket=ticket("q", 2, 1),
            )
        )
        company, own = (await stub.GetBudget(pb.GetBudgetRequest(account=account()))).levels
    assert (cost(4, 2), cost(2, 1)) == (company.spent, own.spent)


async def test_a_charge_without_its_ticket_is_denied_and_costs_nothing(strict_stub: Stub) -> None:
    """A lower cost, another question, another release, no ticket: nothing is charged, the reservation stays."""
    held = await strict_stub.ReserveBudget(reserving(cost(4, 2), query_id="q"))
    id_ = held.reservation_id
    for asked in (
        charging(cost(1, 1), reservation_id=id_, release_id="rel", charge_ticket=ticket("q", 4, 2)),
        charging(cost(4, 2), reservation_id=id_, release_id="rel", charge_ticket=ticket("other", 4, 2)),
        charging(cost(4, 2), reservation_id=id_, release_id="other", charge_ticket=ticket("q", 4, 2)),
        charging(cost(4, 2), reservation_id=id_, release_id="rel"),
        charging(cost(4, 2), release_id="rel", charge_ticket=ticket("q", 4, 2)),
        charging(cost(4, 2)),
    ):
        error = await failure(strict_stub.UpdateBudget(asked))
        assert (error.code, error.info.reason) == (grpc.StatusCode.PERMISSION_DENIED, "TICKET_NOT_AUTHENTIC")
    state = (await strict_stub.GetBudget(pb.GetBudgetRequest(account=account()))).levels[1]
    assert (
        (state.spent.information, state.spent.calls),
        (state.reserved.information, state.reserved.calls),
    ) == ((0, 0), (4, 2))
    direct = charging(cost(4, 2), release_id="rel", query_id="q", charge_ticket=ticket("q", 4, 2))
    assert cost(4, 2) == (await strict_stub.UpdateBudget(direct)).charged


async def test_a_ticket_covers_what_the_policy_had_published(strict_stub: Stub) -> None:
    """An application can neither leave it out, nor add one, nor say another one."""
    stated = TICKETS.ticket(Release("rel", "q", Cost(2, 1), UNIT, PUBLISHED))
    for made, said in ((stated, ""), (stated, statement(2)), (ticket("q", 2, 1), PUBLISHED)):
        asked = charging(
            cost(2, 1), release_id="rel", query_id="q", charge_ticket=made, policy_statement=said
        )
        assert (await failure(strict_stub.UpdateBudget(asked))).info.reason == "TICKET_NOT_AUTHENTIC"
    asked = charging(
        cost(2, 1), release_id="rel", query_id="q", charge_ticket=stated, policy_statement=PUBLISHED
    )
    assert cost(2, 1) == (await strict_stub.UpdateBudget(asked)).charged


async def test_a_ticket_of_one_question_does_not_settle_another(strict_stub: Stub) -> None:
    """Saying the ticket's question beside another question's reservation is refused."""
    held = await strict_stub.ReserveBudget(reserving(cost(4, 2), query_id="q"))
    asked = charging(
        cost(1, 1),
        reservation_id=held.reservation_id,
        release_id="rel",
        query_id="cheap",
        charge_ticket=ticket("cheap", 1, 1),
    )
    error = await failure(strict_stub.UpdateBudget(asked))
    assert (error.code, error.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ("query_id",))


async def test_fewer_blocks_than_the_ticket_has_are_refused(strict_stub: Stub) -> None:
    """An application cannot leave out one that pays, nor have everybody's budget spared."""
    blocks = ("0" * 16, "f" * 16)
    signed = TICKETS.ticket(Release("rel", "q", Cost(2, 1), UNIT, blocks=blocks))
    for named in ((), blocks[:1], blocks[1:], blocks):
        asked = charging(cost(2, 1), release_id="rel", query_id="q", charge_ticket=signed)
        asked.request_id = f"charge-{len(named)}-{named[:1]}"
        asked.cost.blocks.extend(named)
        if named == blocks:
            assert (await strict_stub.UpdateBudget(asked)).charged.information == 2
        else:
            found = await failure(strict_stub.UpdateBudget(asked))
            assert found.code is grpc.StatusCode.PERMISSION_DENIED


async def test_who_pays_is_refused_by_name_if_it_is_not_well_formed(strict_stub: Stub) -> None:
    """In every request that has a cost."""
    bad = cost(2, 1)
    bad.blocks.extend(["0" * 16, "1" * 16, "2" * 16, "x"])
    asked: tuple[tuple[Any, Any, str], ...] = (
        (strict_stub.ReserveBudget, reserving(bad), "max_cost"),
        (strict_stub.UpdateBudget, charging(bad), "cost"),
        (strict_stub.CheckBudget, pb.CheckBudgetRequest(account=account(), cost=bad), "cost"),
    )
    for method, request, field in asked:
        found = await failure(method(request))
        assert found.code is grpc.StatusCode.INVALID_ARGUMENT
        assert f"{field}.blocks[3]" in found.message


def several() -> pb.UpdateBudgetRequest:
    """Return a request for two charges, each with its ticket."""
    asked = charging(cost(2, 1), release_id="a", query_id="q", charge_ticket=ticket("q", 2, 1, "a"))
    further = {"release_id": "b", "query_id": "p", "charge_ticket": ticket("p", 3, 1, "b")}
    asked.further.add(cost=cost(3, 1), **further)
    return asked


async def test_each_of_several_charges_needs_its_ticket(strict_stub: Stub) -> None:
    """Together they are charged, or none is; what the policies had published is kept of each."""
    for at, made in enumerate((several(), several())):
        made.request_id = f"wrong{at}"
        wrong = made.further[0] if at else made
        wrong.cost.calls = 0
        assert (await failure(strict_stub.UpdateBudget(made))).info.reason == "TICKET_NOT_AUTHENTIC"
    answer = await strict_stub.UpdateBudget(several())
    assert [(each.information, each.calls) for each in answer.charged_each] == [(2, 1), (3, 1)]
    assert (answer.charged.information, answer.charged.calls, answer.already_paid) == (5, 2, False)
    again = several()
    again.request_id = "other"
    assert (await strict_stub.UpdateBudget(again)).already_paid


async def test_several_charges_are_refused_by_name_if_they_cannot_be_made_together(strict_stub: Stub) -> None:
    """The error says which field of which charge; nothing is charged."""

    def but(**fields: Any) -> pb.UpdateBudgetRequest:
        asked = several()
        for name, value in fields.items():
            setattr(asked.further[0], name, value)
        return asked

    huge, other_unit, blocks, settling, many = but(), but(), but(), but(), but()
    huge.cost.information = huge.further[0].cost.information = 2**62
    other_unit.further[0].cost.unit_id = "f" * 32
    blocks.further[0].cost.blocks.append("0" * 16)
    settling.reservation_id = "held"
    many.further.extend([many.further[0]] * 255)
    for asked, field in (
        (but(release_id="a"), "further[0].release_id"),
        (but(query_id="q"), "further[0].query_id"),
        (but(release_id=""), "further[0].release_id"),
        (but(charge_ticket=bytes(1025)), "further[0].charge_ticket"),
        (but(policy_statement="x"), "further[0].policy_statement"),
        (huge, "further"),
        (other_unit, "further[0].cost.unit_id"),
        (blocks, "further[0].cost.blocks"),
        (settling, "reservation_id"),
        (many, "further"),
    ):
        found = await failure(strict_stub.UpdateBudget(asked))
        assert (found.code, found.fields) == (grpc.StatusCode.INVALID_ARGUMENT, (field,))
