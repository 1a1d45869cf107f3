"""Requests for other limits: kept, bounded, decided by others than who asked, and each approval sets one limit once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import admin_pb2_grpc, budget_pb2, budget_pb2_grpc
from msgspec import structs

from budget_service.configuration.budget_file import Configuration
from budget_service.ledger.account_states import AccountState, LimitRequest, parse_state, state_text
from budget_service.ledger.limit_requests import MOST_OF_ACCOUNT, MOST_OF_ASKER, WAITING
from budget_service.ledger.limits import NO_LIMITS, AppliedLimits, TemporaryLimit
from budget_service.ledger.outcomes import LimitsSet, Reason, Refused
from budget_service.ledger.requests import ApproveLimit, RefuseLimit, RequestLimit, SetLimits
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import Account, Limit
from budget_service.ledger.windows import DAY
from budget_service.server import limit_requests as serving_requests
from budget_service.server.actors import MOST_CHARACTERS, escaped
from budget_service.server.failure_detector import FailureDetector
from budget_service.server.hosting import METHODS, administering, new_server, serving
from budget_service.server.service import MAX_RESPONSE_BYTES
from budget_service.server.settings import LiveSettings, Settings
from budget_service.stores.interface import Store
from budget_service.stores.named_store import NamedStore
from budget_service.tuning import DEFAULTS, Tuning
from gris_cli.budget.ledger import requests_of
from gris_serving.instrumentation import NOTHING
from gris_serving.security import Security, SecurityOptions
from pinot_connector import Credentials, Endpoint
from pinot_connector.channels import open_channel
from tests.budget.account_changes import assert_sound, close, move
from tests.budget.memory_store import MemoryStore
from tests.budget.served import SETTINGS
from tests.support.budget_client import connected, failure
from tests.support.budget_samples import ANALYST, COLLEAGUE, COMPANY, SteppedClock, limit
from tests.support.pki import ISSUER, Authority, Issuer, email, uri

BEFORE, WANTED = limit(10, 5), limit(40, 5)
NOT_YET = LimitsSet(0)


def asked(
    id_: str = "ask", actor: str = "sub:ann", account: Account = ANALYST, **fields: Any
) -> RequestLimit:
    """Return a request for more."""
    given: dict[str, Any] = {"before": BEFORE, "wanted": WANTED, "stated": ("40", "5", ""), "reason": "audit"}
    given["asking"] = account
    return RequestLimit(account=account, request_id=id_, actor=actor, **(given | fields))


def approval(of: RequestLimit, actor: str = "sub:ops", id_: str = "", **fields: Any) -> ApproveLimit:
    """Return an approval of a request."""
    given: dict[str, Any] = {"stored": None, "present": BEFORE, "of_two": False}
    request_id = id_ or f"approve by {actor}"
    return ApproveLimit(account=of.account, request_id=request_id, actor=actor, id=of.id, **(given | fields))


def refusing(of: RequestLimit, id_: str = "refuse") -> RefuseLimit:
    """Return the refusal of a request."""
    return RefuseLimit(account=of.account, request_id=id_, actor="sub:ops", id=of.id, reason="no")


async def applied(store: Store, request: Any) -> object:
    """Return what becomes of a request."""
    return (await store.apply(request, NO_LIMITS)).outcome


async def waiting(store: Store, account: Account = ANALYST) -> list[str]:
    """Return who asks for an account."""
    state = (await store.all_limits(account.root)).states.get(account, AccountState())
    return [each.asked_by for each in state.requests]


async def limits_of(store: Store) -> dict[Account, Limit]:
    """Return the stored limits."""
    return dict((await store.all_limits(COMPANY.root)).limits)


async def journal(store: Store) -> list[Any]:
    """Return the entries of the journal."""
    return [entry for _, entry in await store.journal(COMPANY.root, "", "", 100)]


async def test_a_request_changes_no_limit_and_its_approval_does_once(any_store: Store) -> None:
    """What is set is what was asked for; the journal says who asked, who approved and why."""
    request = asked()
    assert NOT_YET == await applied(any_store, request)
    assert ({}, ["sub:ann"]) == (await limits_of(any_store), await waiting(any_store))
    assert ANALYST in (await any_store.limits(ANALYST)).states
    answers = [await any_store.apply(approval(request), NO_LIMITS) for _ in range(2)]
    assert [False, True] == [each.replayed for each in answers]
    assert answers[0].outcome == answers[1].outcome
    assert ({ANALYST: WANTED}, []) == (await limits_of(any_store), await waiting(any_store))
    again = approval(request, id_="again", stored=WANTED, present=WANTED)
    assert Refused(Reason.NO_SUCH_REQUEST) == await applied(any_store, again)
    entries = await journal(any_store)
    assert [EntryKind.REQUEST, EntryKind.LIMIT] == [each.kind for each in entries]
    assert ["sub:ann", "sub:ops"] == [each.actor for each in entries]
    assert f"audit (asked for by sub:ann, request {request.id})" == entries[1].reason
    # Anybody may write such a reason.
    assert [request.id, request.id] == [each.query_id for each in entries]
    await assert_sound(any_store)


def test_no_request_has_the_name_of_another() -> None:
    """An administrator approves by it what was read. It does not tell of whom: a root has a request id once."""
    others = [asked(stated=("400", "5", "")), asked(reason="another"), asked("again")]
    assert 4 == len({each.id for each in (asked(), *others)})
    assert 32 == len(asked().id)
    assert asked().id == asked(actor="sub:bob").id == asked(account=COLLEAGUE).id


async def test_who_asks_does_not_approve_under_any_name(any_store: Store) -> None:
    """Neither alone nor as one of two, also if only one of several names is the same."""
    request = asked(actor="dns:app sub:ann")
    await applied(any_store, request)
    for number, (actor, of_two) in enumerate(
        [("sub:ann", False), ("sub:ann uri:x", True), ("dns:app", False)]
    ):
        refused = await applied(any_store, approval(request, actor, str(number), of_two=of_two))
        assert Refused(Reason.OTHER_PERSON_NEEDED) == refused
    assert ({}, 1) == (await limits_of(any_store), len(await waiting(any_store)))


async def test_where_nobody_is_known_one_may_approve_and_two_are_never_there(any_store: Store) -> None:
    """Nobody can tell whether two calls are of two persons."""
    request = asked(actor="unauthenticated")
    await applied(any_store, request)
    first = approval(request, "unauthenticated", "first", of_two=True)
    assert NOT_YET == await applied(any_store, first)
    second = approval(request, "unauthenticated", "second", of_two=True)
    assert Refused(Reason.OTHER_PERSON_NEEDED) == await applied(any_store, second)
    await applied(any_store, refusing(request))
    other = asked("other", "unauthenticated")
    await applied(any_store, other)
    assert isinstance(await applied(any_store, approval(other, "unauthenticated")), LimitsSet)
    assert {ANALYST: WANTED} == await limits_of(any_store)


async def test_two_persons_are_two(any_store: Store) -> None:
    """The first approval changes nothing, and the same person is not the second."""
    request = asked()
    await applied(any_store, request)
    assert NOT_YET == await applied(any_store, approval(request, "sub:one", of_two=True))
    assert Refused(Reason.OTHER_PERSON_NEEDED) == await applied(
        any_store, approval(request, "sub:one uri:more", of_two=True)
    )
    assert {} == await limits_of(any_store)
    assert isinstance(await applied(any_store, approval(request, "sub:two", of_two=True)), LimitsSet)
    assert {ANALYST: WANTED} == await limits_of(any_store)
    entries = await journal(any_store)
    assert [EntryKind.REQUEST, EntryKind.APPROVE, EntryKind.LIMIT] == [each.kind for each in entries]
    assert "sub:one sub:two" == entries[-1].actor
    await assert_sound(any_store)


async def test_the_second_person_is_not_answered_as_the_first(any_store: Store) -> None:
    """One who uses the request id of the first has not approved, and is answered so; with another one has."""
    request = asked()
    await applied(any_store, request)
    first = approval(request, "sub:one", "same", of_two=True)
    assert NOT_YET == await applied(any_store, first)
    second = approval(request, "sub:two", "same", of_two=True)
    assert Refused(Reason.REQUEST_ID_REUSED) == await applied(any_store, second)
    assert Refused(Reason.REQUEST_ID_REUSED) == await applied(any_store, refusing(request, "same"))
    assert (await any_store.apply(first, NO_LIMITS)).replayed
    assert {} == await limits_of(any_store)
    assert isinstance(await applied(any_store, approval(request, "sub:two", "other", of_two=True)), LimitsSet)
    # The first's answer stays the first's once both have approved.
    assert (await any_store.apply(first, NO_LIMITS)).outcome == NOT_YET
    assert Refused(Reason.REQUEST_ID_REUSED) == await applied(any_store, second)
    await assert_sound(any_store)


async def test_a_limit_that_has_changed_since_is_not_overwritten(any_store: Store) -> None:
    """Whether it was changed before the administrator looked, or after that."""
    request, other = asked(), limit(20, 5)
    await applied(any_store, request)
    change = SetLimits(account=COMPANY, request_id="set", actor="sub:ops", changes=((ANALYST, other),))
    await applied(any_store, change)
    looked_after = approval(request, id_="after", stored=other, present=other)
    looked_before = approval(request, id_="before")
    for each in (looked_after, looked_before):
        assert Refused(Reason.LIMIT_CHANGED) == await applied(any_store, each)
    assert ({ANALYST: other}, ["sub:ann"]) == (await limits_of(any_store), await waiting(any_store))
    assert NOT_YET == await applied(any_store, refusing(request))
    assert [] == await waiting(any_store)


async def test_of_approvals_at_once_one_sets_the_limit(any_store: Store) -> None:
    """The others find no request any more; so does one that is refused at once."""
    request = asked()
    await applied(any_store, request)
    approvals = [approval(request, f"sub:{number}") for number in range(6)]
    outcomes = await asyncio.gather(*(applied(any_store, each) for each in approvals))
    assert 1 == sum(isinstance(each, LimitsSet) for each in outcomes)
    assert 5 == outcomes.count(Refused(Reason.NO_SUCH_REQUEST))
    assert 1 == sum(each.kind is EntryKind.LIMIT for each in await journal(any_store))
    await assert_sound(any_store)


async def test_an_approval_and_a_change_at_once_do_not_both_win_unseen(any_store: Store) -> None:
    """Whichever is first: the approval never overwrites what its administrator did not see."""
    other = limit(20, 5)
    for number in range(8):
        account = Account(("acme", f"racer-{number}"))
        request = asked(f"ask {number}", account=account)
        await applied(any_store, request)
        change = SetLimits(
            account=COMPANY, request_id=f"set {number}", actor="sub:ops", changes=((account, other),)
        )
        order = [approval(request, id_=f"approve {number}"), change]
        outcomes = await asyncio.gather(
            *(applied(any_store, each) for each in order[:: 1 - 2 * (number % 2)])
        )
        approved = outcomes[number % 2]
        assert other == (await limits_of(any_store))[account]
        assert isinstance(approved, LimitsSet) or approved == Refused(Reason.LIMIT_CHANGED)


async def test_requests_are_bounded_and_expire(any_store: Store, clock: SteppedClock) -> None:
    """One of each person and eight of an account; after thirty days there is room again."""
    for number in range(MOST_OF_ACCOUNT):
        assert NOT_YET == await applied(any_store, asked(f"{number}", f"sub:{number}"))
    too_many = Refused(Reason.TOO_MANY_REQUESTS)
    assert too_many == await applied(any_store, asked("mine", "sub:0"))
    assert too_many == await applied(any_store, asked("ninth", "sub:ninth"))
    assert NOT_YET == await applied(any_store, asked("elsewhere", "sub:0", COLLEAGUE))
    clock.now += WAITING
    assert Refused(Reason.NO_SUCH_REQUEST) == await applied(any_store, approval(asked("0", "sub:0")))
    assert NOT_YET == await applied(any_store, asked("later", "sub:later"))
    assert ["sub:later"] == await waiting(any_store)


async def test_requests_that_have_expired_leave_with_one_of_another_account(
    any_store: Store, clock: SteppedClock
) -> None:
    """They count no more, of an account that has asked again since what waits stays, and a closed one stays closed."""
    others = tuple(Account(("acme", f"other-{number}")) for number in range(4))
    for each in others:
        await applied(any_store, asked(actor="sub:eve", account=each, id_=each.text))
    clock.now += WAITING
    await applied(any_store, asked("again", "sub:eve", others[0]))
    await close(any_store, others[1])
    full = AppliedLimits(most_stored=2 * len(others))
    late = asked("late", "sub:ann")
    assert Refused(Reason.TOO_MANY_REQUESTS) == (await any_store.apply(late, full)).outcome
    assert NOT_YET == (await any_store.apply(asked(expired=(*others, ANALYST)), full)).outcome
    states = (await any_store.all_limits(COMPANY.root)).states
    assert {ANALYST, *others[:2]} == {*states}
    assert (1, 1) == (len(states[ANALYST].requests), len(states[others[0]].requests))
    assert states[others[1]].is_closed
    await assert_sound(any_store)


async def test_a_request_may_have_an_end(any_store: Store, clock: SteppedClock) -> None:
    """An end that is over is refused when it is asked for, and when it is approved."""
    until = clock.now + DAY
    wanted = TemporaryLimit(WANTED.maximum, WANTED.mode, WANTED.window, until=until)
    request = asked(wanted=wanted, stated=("40", "5", str(until)))
    await applied(any_store, request)
    clock.now = until
    assert Refused(Reason.LIMIT_ENDED) == await applied(any_store, approval(request))
    assert Refused(Reason.LIMIT_ENDED) == await applied(any_store, asked("late", "sub:eve", wanted=wanted))
    assert ["sub:ann"] == await waiting(any_store)


async def test_who_asks_for_no_more_is_refused(any_store: Store) -> None:
    """Unless what is there ends; one that was granted gives its first answer again."""
    soon = TemporaryLimit(BEFORE.maximum, BEFORE.mode, BEFORE.window, until=2**60)
    for number, wanted in enumerate((BEFORE, limit(9, 5), limit(10, 4), soon)):
        less = asked(f"less {number}", wanted=wanted)
        assert Refused(Reason.NOT_MORE) == await applied(any_store, less)
    request = asked("calls", wanted=limit(1, 6))
    first = await applied(any_store, request)
    assert isinstance(await applied(any_store, approval(request)), LimitsSet)
    assert first == await applied(any_store, structs.replace(request, before=limit(1, 6)))
    ends = TemporaryLimit(WANTED.maximum, WANTED.mode, WANTED.window, until=2**60)
    assert NOT_YET == await applied(any_store, asked("after", before=ends, wanted=limit(20, 5)))


@pytest.mark.parametrize("changed", [close, move])
async def test_what_becomes_of_an_account_ends_its_requests(any_store: Store, changed: Any) -> None:
    """A closed or moved account asks for nothing, and gets nothing."""
    request = asked()
    await applied(
        any_store, SetLimits(account=COMPANY, request_id="s", actor="o", changes=((ANALYST, BEFORE),))
    )
    await applied(any_store, request)
    await changed(any_store, ANALYST)
    late = approval(request, stored=BEFORE)
    assert Refused(Reason.NO_SUCH_REQUEST) == await applied(any_store, late)
    assert Refused(Reason.ACCOUNT_CLOSED) == await applied(any_store, asked("again", "sub:eve"))
    await assert_sound(any_store)


def test_a_state_with_requests_is_read_as_it_was_written() -> None:
    """Whatever the reason holds; what is no request is damage."""
    hostile = LimitRequest("id", "sub:a", "b", "w", 'a/b\n"]\\', 7, "sub:c")
    for state in (
        AccountState(requests=(hostile, hostile)),
        AccountState(is_closed=True, former_names=("x",)),
    ):
        assert state == parse_state(state_text(state))
    for text in ("open\n", "open\n[]", "open\n{}", "open\n[1"):
        with pytest.raises((ValueError, TypeError)):
            parse_state(text)


@dataclass(frozen=True)
class Servers:
    """The service for callers, and the administrator's."""

    budget: Any
    admin: Any
    admin_address: str


@pytest_asyncio.fixture
async def servers(any_store: Store, tuning: Tuning) -> AsyncIterator[Servers]:
    """Serve both on each store."""
    detector = FailureDetector(any_store)
    async with (
        serving(any_store, SETTINGS, "127.0.0.1:0") as address,
        administering(any_store, SETTINGS, "127.0.0.1:0", detector=detector, tuning=tuning) as admin_address,
        connected(address) as budget,
        grpc.aio.insecure_channel(admin_address) as channel,
    ):
        yield Servers(budget, admin_pb2_grpc.BudgetAdminServiceStub(channel), admin_address)


def sent(**fields: Any) -> budget_pb2.RequestLimitRequest:
    """Return a request of Ann's."""
    given: dict[str, Any] = {
        "account": budget_pb2.Account(path=ANALYST.path),
        "information": 40,
        "calls": 5,
        "reason": "audit",
        "asked_by": ["sub:ann"],
        "request_id": "ask",
    }
    return budget_pb2.RequestLimitRequest(**(given | fields))


async def test_administrators_see_what_is_asked_and_decide(servers: Servers) -> None:
    """With the limit then, which keeps its mode and windows; a level above may be asked about too."""
    first = await servers.budget.RequestLimit(sent())
    above = await servers.budget.RequestLimit(sent(path=COMPANY.path, information=10**7, request_id="above"))
    again = await servers.budget.RequestLimit(sent())
    assert (first.id, True) == (again.id, again.replayed)
    listed = (await servers.admin.ListLimitRequests(pb.ListLimitRequestsRequest())).requests
    assert [above.id, first.id] == [each.id for each in listed]
    asked_for = listed[1]
    assert ("sub:ann", "audit", 40) == (
        asked_for.asked_by,
        asked_for.reason,
        asked_for.limit_after.information,
    )
    assert asked_for.limit_before.period == asked_for.limit_after.period
    approved = await servers.admin.ApproveLimit(
        pb.ApproveLimitRequest(account=asked_for.account, id=first.id, request_id="yes")
    )
    assert approved.version > 0
    budget = await servers.budget.GetBudget(budget_pb2.GetBudgetRequest(account=asked_for.account))
    assert 40 == budget.levels[-1].limit.information
    refusal = pb.RefuseLimitRequest(account=listed[0].account, id=above.id, reason="no", request_id="no")
    await servers.admin.RefuseLimit(refusal)
    root = budget_pb2.Account(path=COMPANY.path)
    assert [] == list(
        (await servers.admin.ListLimitRequests(pb.ListLimitRequestsRequest(account=root))).requests
    )
    entries = (await servers.admin.ListCharges(pb.ListChargesRequest(account=root))).charges
    kinds = [pb.CHARGE_KIND_REQUEST, pb.CHARGE_KIND_REQUEST, pb.CHARGE_KIND_LIMIT, pb.CHARGE_KIND_REFUSE]
    assert kinds == [each.kind for each in entries]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"path": ["acme", "bob"]}, "path"),
        ({"path": ["acme", "ann", "x"]}, "path"),
        ({"information": -1}, "information"),
        ({"reason": ""}, "reason"),
        ({"reason": "a\u202eb"}, "reason"),
        ({"asked_by": ["ann"]}, "asked_by[0]"),
        ({"asked_by": [f"sub:{number}" for number in range(9)]}, "asked_by"),
        ({"request_id": ""}, "request_id"),
        ({"account": budget_pb2.Account(path=[])}, "account.path"),
    ],
)
async def test_a_malformed_request_names_the_field(
    servers: Servers, fields: dict[str, Any], field: str
) -> None:
    """Nothing is kept of it."""
    error = await failure(servers.budget.RequestLimit(sent(**fields)))
    assert grpc.StatusCode.INVALID_ARGUMENT is error.code
    assert field in error.message
    assert [] == list((await servers.admin.ListLimitRequests(pb.ListLimitRequestsRequest())).requests)


async def test_a_root_account_has_so_many_requests(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """By anybody."""
    monkeypatch.setattr(serving_requests, "MOST_OF_ROOT", 1)
    await servers.budget.RequestLimit(sent())
    other = sent(account=budget_pb2.Account(path=COLLEAGUE.path), asked_by=["sub:bob"], request_id="bob")
    assert "TOO_MANY_REQUESTS" == (await failure(servers.budget.RequestLimit(other))).info.reason


async def test_one_caller_does_not_have_all_requests_of_a_root_account(
    servers: Servers, by_names: Store, monkeypatch: pytest.MonkeyPatch, clock: SteppedClock
) -> None:
    """The refusal says how many one may have; another may ask. What has expired is kept no more when the same asks."""
    monkeypatch.setattr(serving_requests, "MOST_OF_ASKER", 2)
    named = [
        sent(account=budget_pb2.Account(path=["acme", name]), asked_by=["sub:eve"], request_id=name)
        for name in ("a", "b", "c")
    ]
    for each in named[:2]:
        await servers.budget.RequestLimit(each)
    refused = await failure(servers.budget.RequestLimit(named[2]))
    assert "TOO_MANY_REQUESTS" == refused.info.reason
    assert f"of one caller 1 at a level and {MOST_OF_ASKER} in a root account" in refused.message
    assert (await servers.budget.RequestLimit(named[1])).replayed
    await servers.budget.RequestLimit(sent())
    clock.now += WAITING
    await servers.budget.RequestLimit(named[2])
    (left,) = (await servers.admin.ListLimitRequests(pb.ListLimitRequestsRequest())).requests
    assert ["acme", "c"] == list(left.account.path)
    assert [("acme", "c")] == [each.path for each in (await by_names.all_limits("acme")).states]


async def test_requests_are_listed_in_pages(servers: Servers) -> None:
    """Each once, by account and from the oldest, of one root account or all; a token leads behind one decided since."""
    for number, path in enumerate([("acme", "b"), ("watched",), ("acme", "a"), ("acme", "a"), ("acme",)]):
        asked_for = sent(
            account=budget_pb2.Account(path=path), asked_by=[f"sub:{number}"], request_id=f"{number}"
        )
        await servers.budget.RequestLimit(asked_for)

    async def page(token: str = "", size: int = 2, **given: Any) -> pb.ListLimitRequestsResponse:
        request = pb.ListLimitRequestsRequest(page_size=size, page_token=token, **given)
        listed: pb.ListLimitRequestsResponse = await servers.admin.ListLimitRequests(request)
        return listed

    found: list[str] = []
    token, pages = "", 0
    while token or not pages:
        listed = await page(token)
        found += [each.asked_by for each in listed.requests]
        token, pages = listed.next_page_token, pages + 1
    assert (3, ["sub:4", "sub:3", "sub:2", "sub:0", "sub:1"]) == (pages, found)
    watched = budget_pb2.Account(path=["watched"])
    assert ["sub:1"] == [each.asked_by for each in (await page(account=watched)).requests]
    first = await page()
    decided = first.requests[-1]
    await servers.admin.RefuseLimit(
        pb.RefuseLimitRequest(account=decided.account, id=decided.id, reason="no", request_id="no")
    )
    assert ["sub:2", "sub:0"] == [each.asked_by for each in (await page(first.next_page_token)).requests]
    for wrong in ("?", "e30=", "W1tdLCAwXQ==", "W1siYSJdLCAieCIsICJ5Il0="):
        error = await failure(page(wrong))
        assert (grpc.StatusCode.INVALID_ARGUMENT, True) == (error.code, "page_token" in error.message)
    for size in (-1, 101):
        assert "page_size" in (await failure(page(size=size))).message


async def test_the_command_line_follows_all_pages(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many requests, of a page that is just full, and of none."""
    monkeypatch.setattr(serving_requests, "MOST_OF_PAGE", 2)
    for number in range(6):
        by_command = await asyncio.to_thread(requests_of, servers.admin_address)
        assert [f"sub:{each}" for each in range(number)] == sorted(each.asked_by for each in by_command)
        await servers.budget.RequestLimit(sent(asked_by=[f"sub:{number}"], request_id=f"{number}"))


def test_a_page_of_requests_with_the_longest_texts_is_a_message() -> None:
    """Of names that are all escaped, with names of the caller's own certificate and of who has approved beside them."""
    names = " ".join(
        [escaped("sub:" + "\U000e0000" * (MOST_CHARACTERS - 4))] * (serving_requests.MOST_NAMES + 2)
    )
    path = ["\U00010000" * 32] * 4
    request = pb.LimitRequest(
        account=budget_pb2.Account(path=path),
        id="i" * 32,
        asked_by=names,
        approved_by=names,
        reason="\U00010000" * 256,
    )
    of_page = pb.ListLimitRequestsResponse(requests=[request] * serving_requests.MOST_OF_PAGE)
    assert of_page.ByteSize() < MAX_RESPONSE_BYTES


async def _last(store: Store) -> Any:
    """Return the newest entry, by names."""
    ((_, entry),) = await NamedStore(store).latest("acme", "", 1)
    return entry


async def test_persons_are_those_that_were_authenticated(tmp_path: Path, clock: SteppedClock) -> None:
    """By the token's subject at a gateway and here, and by all names of a certificate, whatever roles they have."""
    authority, issuer = Authority.new(tmp_path), Issuer(tmp_path)
    certificate, key = authority.server()
    access = tmp_path / "access.yaml"
    access.write_text(f"""
certificates:
  "uri:spiffe://example.org/app": [spend, read]
  "uri:spiffe://example.org/laptop": [spend, read]
  "email:eve@example.org": [admin]
jwt: {{key_file: {issuer.key_file}, algorithms: [ES256], issuer: {ISSUER}, audience: gris-budget}}
""")
    security = Security(SecurityOptions(certificate, key, authority.ca_file, access), METHODS)
    content = {"accounts": [{"path": ["acme", "ann"], "limit": {"information": 10, "calls": 5}}]}
    settings = LiveSettings(
        Settings(Configuration.model_validate({**content, "administration": {"two_persons": True}}))
    )
    store, detector = (made := MemoryStore(clock)), FailureDetector(made)
    app = authority.client(uri("spiffe://example.org/app"))
    laptop = authority.client(uri("spiffe://example.org/laptop"), email("eve@example.org"), file="laptop")

    def server() -> grpc.aio.Server:
        return new_server(interceptors=security.interceptors(NOTHING, reads_first=True))

    def channel_of(address: str, shown: Credentials = app, **claims: Any) -> grpc.aio.Channel:
        token = issuer.token_file("gris-budget", **claims) if claims else None
        credentials = Credentials(shown.ca_file, shown.certificate_file, shown.key_file, token)
        return open_channel(Endpoint(address, credentials))

    async def approved(address: str, subject: str, request_id: str) -> int | str:
        request = pb.ApproveLimitRequest(account=sent().account, id=asked_id, request_id=request_id)
        async with channel_of(address, sub=subject, gris_roles=["admin"]) as channel:
            stub: Any = admin_pb2_grpc.BudgetAdminServiceStub(channel)
            try:
                return int((await stub.ApproveLimit(request)).version)
            except grpc.aio.AioRpcError as error:
                return error.details() or ""

    async with (
        serving(store, settings, "127.0.0.1:0", server=server(), security=security) as address,
        administering(
            store,
            settings,
            "127.0.0.1:0",
            server=server(),
            security=security,
            detector=detector,
            tuning=DEFAULTS,
        ) as admin,
    ):
        async with channel_of(address) as channel:
            budget: Any = budget_pb2_grpc.BudgetServiceStub(channel)
            asked_id = (await budget.RequestLimit(sent())).id
        assert "sub:ann uri:spiffe://example.org/app" == (await _last(store)).actor
        async with channel_of(address, laptop) as channel:
            budget = budget_pb2_grpc.BudgetServiceStub(channel)
            await budget.RequestLimit(sent(asked_by=[], request_id="as laptop"))
        assert "email:eve@example.org uri:spiffe://example.org/laptop" == (await _last(store)).actor
        answers = [
            await approved(admin, subject, f"{number}")
            for number, subject in enumerate(["ann", "one", "one", "ann", "two"])
        ]
    refused = "another person has to approve this: not who asked, nor who has approved it already"
    assert [refused, 0, refused, refused] == answers[:4]
    assert isinstance(answers[4], int)
    assert answers[4] > 0
    assert "sub:one sub:two" == (await _last(store)).actor
