"""Each RPC over a real server: what it answers and how it refuses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from google.protobuf.timestamp_pb2 import Timestamp
from gris_api.budget.v1 import budget_pb2 as pb

from budget_service.configuration.budget_file import AccountEntry
from budget_service.ledger.values import MAX_AMOUNT
from budget_service.server.hosting import ListenError, serving
from budget_service.server.ledger import Ledger
from tests.support.budget_client import (
    PATH,
    account,
    cancelling,
    charging,
    cost,
    failure,
    reserving,
)
from tests.support.budget_samples import OTHER_UNIT, UNREADABLE_STATEMENTS, SteppedClock
from tests.support.log_events import everything_logged, logged_events
from tests.support.some import some
from tests.unit.budget_service.memory_store import MemoryStore
from tests.unit.budget_service.served import CONFIGURATION, SETTINGS, Stub, served


@pytest_asyncio.fixture
async def stub(tmp_path: Path, clock: SteppedClock) -> AsyncIterator[Stub]:
    """Serve a ledger in SQLite on a clock that stands still."""
    async with served(tmp_path, clock) as stub:
        yield stub


@pytest.mark.parametrize("hidden", ["\ufe0f", "\u3164"])
async def test_a_name_that_looks_like_another_makes_no_account(stub: Stub, hidden: str) -> None:
    """The refusal names the segment, for whatever is asked about the account."""
    await stub.UpdateBudget(charging())
    path = ("acme", f"ann{hidden}")
    for call in (
        stub.ReserveBudget(reserving(cost(1, 1), path=path)),
        stub.UpdateBudget(charging(cost(1, 1), path=path)),
        stub.GetBudget(pb.GetBudgetRequest(account=account(path))),
    ):
        error = await failure(call)
        assert (error.code, error.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ("account.path[1]",))


async def test_a_question_is_reserved_settled_and_seen(stub: Stub, clock: SteppedClock) -> None:
    """The answers carry what is held, what is charged and what is left at each level."""
    held = await stub.ReserveBudget(reserving(cost(8, 2), ttl_seconds=90))
    assert cost(8, 2) == held.held
    assert Timestamp(seconds=clock.now // 10**6 + 90) == held.expires_at
    # The ledger has no currency before the first charge.
    before = await stub.GetBudget(pb.GetBudgetRequest(account=account()))
    assert cost(2, 3, unit_id="") == before.levels[1].remaining
    charged = await stub.UpdateBudget(charging(cost(3, 1), reservation_id=held.reservation_id))
    company, analyst = charged.levels
    assert (list(company.path), list(analyst.path)) == (["acme"], ["acme", "ann"])
    assert (cost(15, 9), cost(3, 1), cost(12, 8)) == (company.limit, company.spent, company.remaining)
    assert (pb.MODE_ENFORCE, cost(0, 0), cost(7, 4)) == (analyst.mode, analyst.reserved, analyst.remaining)
    assert analyst.window_start.ToJsonString() == "2026-10-01T00:00:00Z"
    assert analyst.window_end.ToJsonString() == "2026-11-01T00:00:00Z"
    assert not company.HasField("window_end")
    assert list(charged.levels) == list((await stub.GetBudget(pb.GetBudgetRequest(account=account()))).levels)


async def test_a_reservation_lasts_60_seconds_if_nothing_is_said(stub: Stub, clock: SteppedClock) -> None:
    """The default is the spec's."""
    held = await stub.ReserveBudget(reserving())
    assert clock.now // 10**6 + 60 == held.expires_at.seconds


async def test_a_check_says_what_is_missing_and_changes_nothing(stub: Stub) -> None:
    """ "No" is an answer."""
    yes = await stub.CheckBudget(pb.CheckBudgetRequest(account=account(), cost=cost(10, 5)))
    assert (yes.allowed, len(yes.shortfalls)) == (True, 0)
    no = await stub.CheckBudget(pb.CheckBudgetRequest(account=account(), cost=cost(16, 5)))
    assert not no.allowed
    assert [(list(each.path), each.unit, each.requested, each.remaining) for each in no.shortfalls] == [
        (["acme"], "information", 16, 15),
        (["acme", "ann"], "information", 16, 10),
    ]
    assert [each.HasField("refreshes_at") for each in no.shortfalls] == [False, True]


async def test_a_released_reservation_is_free_again(stub: Stub) -> None:
    """And can be cancelled once only."""
    held = await stub.ReserveBudget(reserving(cost(8, 2)))
    assert cost(8, 2) == (await stub.ReleaseReservation(cancelling(held.reservation_id))).returned
    error = await failure(stub.ReleaseReservation(cancelling(held.reservation_id)))
    assert (error.code, error.info.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "RESERVATION_OVER")
    assert error.info.domain == "gris.budget"


async def test_every_change_can_be_repeated(stub: Stub) -> None:
    """The repeat is the first answer, marked."""
    reserve = reserving(request_id="r")
    held = await stub.ReserveBudget(reserve)
    charge = charging(cost(3, 1), request_id="c", reservation_id=held.reservation_id)
    charged = await stub.UpdateBudget(charge)
    other = await stub.ReserveBudget(reserving(query_id="other"))
    give_back = cancelling(other.reservation_id, request_id="g")
    returned = await stub.ReleaseReservation(give_back)
    again: tuple[Any, ...] = (
        await stub.ReserveBudget(reserve),
        await stub.UpdateBudget(charge),
        await stub.ReleaseReservation(give_back),
    )
    first_time: tuple[Any, ...] = (held, charged, returned)
    for first, second in zip(first_time, again, strict=True):
        assert (first.replayed, second.replayed) == (False, True)
        second.replayed = False
        assert first == second


async def test_a_release_is_charged_once(stub: Stub) -> None:
    """Its second charge costs nothing, and its question is free."""
    await stub.UpdateBudget(charging(cost(10, 5), release_id="rel", query_id="q"))
    again = await stub.UpdateBudget(charging(cost(10, 5), release_id="rel"))
    assert (cost(0, 0), True) == (again.charged, again.already_paid)
    held = await stub.ReserveBudget(reserving(cost(10, 5), query_id="q"))
    assert (cost(0, 0), True) == (held.held, held.already_paid)


async def test_an_exhausted_budget_is_told_in_full(stub: Stub) -> None:
    """Level, unit, amounts and refresh time; no retry within the hour, for there is none."""
    error = await failure(stub.UpdateBudget(charging(cost(11, 6))))
    assert (error.code, error.info.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "BUDGET_EXHAUSTED")
    reported = {
        "level": "acme/ann",
        "unit": "information",
        "requested": "11",
        "remaining": "10",
        "refreshes_at": "2026-11-01T00:00:00Z",
    }
    assert reported == dict(error.info.metadata)
    assert error.quota is not None
    assert [each.subject for each in error.quota.violations] == ["acme/ann:information", "acme/ann:calls"]
    assert error.retry is None


async def test_a_budget_that_returns_within_the_hour_says_when(stub: Stub, clock: SteppedClock) -> None:
    """Half an hour before the month ends, but not while a level that never returns is short too."""
    clock.step(days=17, seconds=11.5 * 3600)
    soon = await failure(stub.ReserveBudget(reserving(cost(11, 1))))
    assert soon.retry is not None
    assert soon.retry.retry_delay.seconds == 1800
    never = await failure(stub.ReserveBudget(reserving(cost(16, 1))))
    assert never.retry is None
    assert "refreshes_at" not in never.info.metadata


async def test_a_lapsed_reservation_cannot_be_settled(stub: Stub, clock: SteppedClock) -> None:
    """Nothing is charged; the client reserves anew, in full."""
    held = await stub.ReserveBudget(reserving(cost(10, 5), ttl_seconds=1))
    clock.step(seconds=1)
    error = await failure(stub.UpdateBudget(charging(reservation_id=held.reservation_id)))
    assert (error.code, error.info.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "RESERVATION_OVER")
    assert cost(10, 5) == (await stub.ReserveBudget(reserving(cost(10, 5)))).held


async def test_settling_more_than_reserved_names_the_cost(stub: Stub) -> None:
    """INVALID_ARGUMENT, and nothing is charged."""
    held = await stub.ReserveBudget(reserving(cost(4, 1)))
    error = await failure(stub.UpdateBudget(charging(cost(5, 1), reservation_id=held.reservation_id)))
    assert (error.code, error.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ("cost",))
    assert error.info.reason == "COST_ABOVE_RESERVATION"


async def test_another_content_under_the_same_id_names_the_id(stub: Stub) -> None:
    """INVALID_ARGUMENT, whatever kind of request it is."""
    await stub.UpdateBudget(charging(request_id="id"))
    for call in (
        stub.UpdateBudget(charging(cost(5, 1), request_id="id")),
        stub.ReserveBudget(reserving(request_id="id")),
        stub.ReleaseReservation(cancelling("x", request_id="id")),
    ):
        error = await failure(call)
        assert (error.code, error.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ("request_id",))
        assert error.info.reason == "REQUEST_ID_REUSED"


async def test_another_currency_is_refused(stub: Stub) -> None:
    """By every RPC that carries a cost."""
    await stub.UpdateBudget(charging())
    foreign = cost(1, 1, OTHER_UNIT)
    for call in (
        stub.UpdateBudget(charging(foreign)),
        stub.ReserveBudget(reserving(foreign)),
        stub.CheckBudget(pb.CheckBudgetRequest(account=account(), cost=foreign)),
    ):
        error = await failure(call)
        assert (error.code, error.info.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "UNIT_MISMATCH")


async def test_another_release_of_a_paid_question_raises_an_alarm(
    stub: Stub, caplog: pytest.LogCaptureFixture
) -> None:
    """The message is neutral; the log names neither account nor cost nor ids."""
    await stub.UpdateBudget(charging(release_id="rel", query_id="secret-question"))
    held = await stub.ReserveBudget(reserving(query_id="secret-question"))
    with caplog.at_level(logging.INFO):
        settle = charging(reservation_id=held.reservation_id, release_id="intruder")
        error = await failure(stub.UpdateBudget(settle))
    assert (error.code, error.info.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "RELEASE_MISMATCH")
    assert error.message == "the release cannot be charged"
    assert ("release.mismatched", {}) in logged_events(caplog)
    assert not any(
        word in everything_logged(caplog) for word in ("acme", "secret", "intruder", held.reservation_id)
    )


async def test_a_tracking_account_is_never_exhausted_but_cannot_overflow(stub: Stub) -> None:
    """64 bits are the end even there."""
    watched = ("watched",)
    await stub.UpdateBudget(charging(cost(MAX_AMOUNT, 7), watched))
    asked = pb.CheckBudgetRequest(account=account(watched), cost=cost(1, 0))
    for call in (stub.UpdateBudget(charging(cost(1, 0), watched)), stub.CheckBudget(asked)):
        error = await failure(call)
        assert (error.code, error.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ("cost",))
        assert error.info.reason == "SUM_OVERFLOW"
    state = await stub.GetBudget(pb.GetBudgetRequest(account=account(watched)))
    assert (state.levels[0].mode, state.levels[0].remaining.calls) == (pb.MODE_TRACK, 0)


async def test_an_unknown_account_is_not_found_by_any_rpc(stub: Stub) -> None:
    """And nothing is made of it."""
    nobody = ("nobody", "x")
    for call in (
        stub.CheckBudget(pb.CheckBudgetRequest(account=account(nobody), cost=cost())),
        stub.ReserveBudget(reserving(path=nobody)),
        stub.UpdateBudget(charging(path=nobody)),
        stub.ReleaseReservation(cancelling("x", nobody)),
        stub.GetBudget(pb.GetBudgetRequest(account=account(nobody))),
    ):
        error = await failure(call)
        assert (error.code, error.info.reason) == (grpc.StatusCode.NOT_FOUND, "ACCOUNT_UNKNOWN")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("message", "field"),
    [
        (reserving(path=()), "account.path"),
        (reserving(path=("a", "b", "c", "d", "e")), "account.path"),
        (reserving(path=("acme", "")), "account.path[1]"),
        (reserving(path=("acme", "e\u0301")), "account.path[1]"),
        (reserving(path=("acme", "a/b")), "account.path[1]"),
        (reserving(path=("acme", "*")), "account.path[1]"),
        (charging(path=("*", "ann")), "account.path[0]"),
        (cancelling("x", path=("acme", "*")), "account.path[1]"),
        (pb.GetBudgetRequest(account=account(("acme", "*"))), "account.path[1]"),
        (pb.CheckBudgetRequest(account=account(("acme", "*")), cost=cost()), "account.path[1]"),
        (reserving(path=("acme", "a\n")), "account.path[1]"),
        (reserving(path=("acme", "x" * 129)), "account.path[1]"),
        (reserving(cost(-1, 0)), "max_cost.information"),
        (reserving(cost(0, -(2**63))), "max_cost.calls"),
        (reserving(cost(unit_id="")), "max_cost.unit_id"),
        (reserving(cost(unit_id="F" * 32)), "max_cost.unit_id"),
        (reserving(cost(unit_id="0" * 33)), "max_cost.unit_id"),
        (reserving(query_id=""), "query_id"),
        (reserving(query_id="q" * 129), "query_id"),
        (reserving(request_id=""), "request_id"),
        (reserving(request_id="r" * 129), "request_id"),
        (reserving(ttl_seconds=0.999), "ttl"),
        (reserving(ttl_seconds=600.001), "ttl"),
        (reserving(ttl_seconds=-5), "ttl"),
        (charging(path=()), "account.path"),
        *((charging(policy_statement=each), "policy_statement") for each in UNREADABLE_STATEMENTS),
        (charging(cost(0, -1)), "cost.calls"),
        (charging(cost(unit_id="g" * 32)), "cost.unit_id"),
        (charging(request_id=""), "request_id"),
        (charging(request_id="r" * 129), "request_id"),
        (charging(reservation_id="r" * 129), "reservation_id"),
        (charging(release_id="r" * 129), "release_id"),
        (charging(query_id="q" * 129), "query_id"),
        (charging(charge_ticket=bytes(1025)), "charge_ticket"),
        (cancelling(""), "reservation_id"),
        (cancelling("x", request_id=""), "request_id"),
        (cancelling("x", path=("",)), "account.path[0]"),
        (pb.ReserveBudgetRequest(account=account(), query_id="q", request_id="r"), "max_cost.unit_id"),
        (pb.GetBudgetRequest(), "account.path"),
        (pb.GetBudgetRequest(account=account(), blocks=["germany"]), "blocks[0]"),
        (pb.CheckBudgetRequest(account=account(), cost=cost(-1)), "cost.information"),
    ],
)
async def test_a_malformed_request_names_its_field(stub: Stub, message: object, field: str) -> None:
    """INVALID_ARGUMENT with the field as the proto spells it."""
    calls: dict[type[Any], Callable[[Any], Awaitable[Any]]] = {
        pb.ReserveBudgetRequest: stub.ReserveBudget,
        pb.UpdateBudgetRequest: stub.UpdateBudget,
        pb.ReleaseReservationRequest: stub.ReleaseReservation,
        pb.GetBudgetRequest: stub.GetBudget,
        pb.CheckBudgetRequest: stub.CheckBudget,
    }
    error = await failure(calls[type(message)](message))
    assert (grpc.StatusCode.INVALID_ARGUMENT, (field,)) == (error.code, error.fields)
    assert error.info.reason == "INVALID_FIELD"


@pytest.mark.parametrize("ttl_seconds", [1, 600])
async def test_the_bounds_of_a_time_to_live_are_allowed(stub: Stub, ttl_seconds: int) -> None:
    """One second and ten minutes."""
    assert (await stub.ReserveBudget(reserving(ttl_seconds=ttl_seconds))).reservation_id


async def test_ids_of_128_characters_are_allowed(stub: Stub) -> None:
    """Characters, not bytes."""
    id_ = "\u00e9" * 128
    held = await stub.ReserveBudget(reserving(query_id=id_, request_id=id_))
    charge = charging(reservation_id=held.reservation_id, release_id=id_, query_id=id_)
    assert not (await stub.UpdateBudget(charge)).already_paid


async def test_of_many_clients_who_want_the_last_unit_one_wins(stub: Stub) -> None:
    """Thirty calls at once on one account; the error of the others says that it is exhausted."""
    await stub.UpdateBudget(charging(cost(9, 1)))
    calls = [stub.UpdateBudget(charging(cost(1, 0))) for _ in range(30)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    refused = [each for each in results if isinstance(each, grpc.aio.AioRpcError)]
    assert len(refused) == 29
    assert {grpc.StatusCode.RESOURCE_EXHAUSTED} == {each.code() for each in refused}


@pytest.mark.slow
async def test_thousands_of_calls_at_once_are_all_answered(stub: Stub) -> None:
    """gRPC itself would cancel some of them without a reason."""
    asked = [charging(cost(0, 0), path=("acme", str(index % 50))) for index in range(4000)]
    answers = await asyncio.gather(*(stub.UpdateBudget(message) for message in asked))
    assert all(answer.charged == cost(0, 0) for answer in some(answers))


async def test_a_taken_port_is_refused(clock: SteppedClock) -> None:
    """Two services never share one."""
    store = MemoryStore(clock)
    async with serving(Ledger(store), SETTINGS, "127.0.0.1:0") as address:
        with pytest.raises(ListenError, match=address):
            async with serving(Ledger(store), SETTINGS, address):
                pass


def test_the_configuration_of_these_tests_has_the_account_they_use() -> None:
    """A guard against a typing error that would let every refusal pass."""
    entry = AccountEntry.model_validate({"path": ["acme", "*"], "limit": {"information": 10, "calls": 5}})
    assert entry == CONFIGURATION.accounts[1]
    assert len(PATH) == 2
