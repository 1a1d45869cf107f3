"""Requests for other limits: what the service adds to them before the ledger decides, and what it lists."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from itertools import islice, starmap
from operator import itemgetter
from typing import TypeAlias

import msgspec
from gris_api.budget.v1 import admin_pb2, budget_pb2
from msgspec.structs import replace

from budget_service.configuration.budget_file import Configuration
from budget_service.ledger.account_states import UNTOUCHED, LimitRequest
from budget_service.ledger.limit_requests import (
    MOST_OF_ACCOUNT,
    MOST_OF_ASKER,
    MOST_OF_ROOT,
    MOST_SWEPT,
    UNAUTHENTICATED,
    waiting,
)
from budget_service.ledger.limits import TemporaryLimit, in_force, parse_limit
from budget_service.ledger.outcomes import Reason, Refused
from budget_service.ledger.requests import ApproveLimit, RequestLimit, SetLimits
from budget_service.ledger.values import Account, Cost, InvalidFieldError, LevelLimit, Limit
from budget_service.ledger.windows import Microseconds
from budget_service.server import rpc_errors
from budget_service.server.actors import MOST_CHARACTERS, escaped
from budget_service.server.admin_messages import parse_reason
from budget_service.server.limit_cache import PLACEHOLDER_LIMIT
from budget_service.server.limit_messages import limit_message, parse_time
from budget_service.server.messages import parse_account, parse_id
from budget_service.server.responses import timestamp
from budget_service.stores.interface import Store

MOST_NAMES = 8
# With the longest names and reasons a page takes a sixth of the largest message.
MOST_OF_PAGE = 100
_Position: TypeAlias = tuple[tuple[str, ...], int, str]


class Requesting:
    """What a ledger and its configuration say of requests for other limits."""

    def __init__(self, store: Store, configuration: Configuration) -> None:
        self._store = store
        self._configuration = configuration

    async def asked(
        self, message: budget_pb2.RequestLimitRequest, names: Sequence[str], now: Microseconds
    ) -> RequestLimit:
        """Return the request, with the limit that it is to replace.

        Args:
            message: What was sent.
            names: By what names the client that sent it is known.
            now: The ledger's time.

        Raises:
            InvalidFieldError: A field is malformed.
            RefusalError: The root account, or who asks in it, has too many requests.
            StoreError: The store failed.
        """
        if len(message.asked_by) > MOST_NAMES:
            raise InvalidFieldError("asked_by", f"must have at most {MOST_NAMES} names")
        level, asker = (
            _level(message),
            " ".join(sorted({*starmap(_name, enumerate(message.asked_by)), *names})) or UNAUTHENTICATED,
        )
        stored = await self._store.limits(level)
        before = self._present(level, stored.limits.get(level), now)
        if before is None:
            raise InvalidFieldError("path", "must be a level that has a limit")
        until = str(parse_time(message.until, "until")) if message.HasField("until") else ""
        request = RequestLimit(
            account=level,
            request_id=parse_id(message.request_id, "request_id"),
            actor=asker,
            asking=parse_account(message.account),
            reason=parse_reason(message.reason),
            stated=(str(message.information), str(message.calls), until),
            before=before,
            wanted=_wanted(before, Cost(message.information, message.calls), until),
        )
        here = stored.states.get(level, UNTOUCHED)
        of_level = waiting(here, now)
        # Only who may ask here makes the service count.
        if len(of_level) >= MOST_OF_ACCOUNT or any(each.asked_by == asker for each in of_level):
            return request
        states = (await self._store.all_limits(level.root)).states
        askers = [each.asked_by for state in states.values() for each in waiting(state, now)]
        if len(askers) >= MOST_OF_ROOT or askers.count(asker) >= MOST_OF_ASKER:
            raise rpc_errors.RefusalError(rpc_errors.refused(Refused(Reason.TOO_MANY_REQUESTS)))
        expired = (each for each, state in states.items() if state.requests != waiting(state, now))
        return replace(request, expired=tuple(islice(expired, MOST_SWEPT)))

    async def approving(
        self, message: admin_pb2.ApproveLimitRequest, actor: str, now: Microseconds
    ) -> tuple[ApproveLimit, SetLimits | None]:
        """Return the approval, and the change that it makes if it is granted; None: nothing such is asked for."""
        account = parse_account(message.account)
        stored = await self._store.limits(account)
        limit = stored.limits.get(account)
        approval = ApproveLimit(
            account=account,
            request_id=parse_id(message.request_id, "request_id"),
            actor=actor,
            id=parse_id(message.id, "id"),
            stored=limit,
            present=self._present(account, limit, now),
            of_two=self._configuration.administration.two_persons,
        )
        of_account = waiting(stored.states.get(account, UNTOUCHED), now)
        found = next((each for each in of_account if each.id == approval.id), None)
        if found is None:
            return approval, None
        changes = ((account, parse_limit(found.wanted)),)
        act = SetLimits(
            account=account.level(1), request_id=approval.request_id, actor=actor, changes=changes
        )
        return approval, act

    async def page(
        self, message: admin_pb2.ListLimitRequestsRequest, roots: Sequence[str]
    ) -> admin_pb2.ListLimitRequestsResponse:
        """Return a page of the requests of root accounts, by account and from the oldest.

        Raises:
            InvalidFieldError: A field is malformed.
            StoreError: The store failed.
        """
        if not 0 <= message.page_size <= MOST_OF_PAGE:
            raise InvalidFieldError("page_size", f"must be between 0 and {MOST_OF_PAGE}")
        most, after = message.page_size or MOST_OF_PAGE, _position(message.page_token)
        found: list[tuple[_Position, LimitRequest]] = []
        for root in sorted(roots):
            # One more than fit says that there is another page.
            if len(found) <= most and (not after or (root,) >= after[0][:1]):
                found += [each for each in await self._of_root(root) if each[0] > after]
        token = _token(found[most - 1][0]) if len(found) > most else ""
        requests = [_message(Account(path), each) for (path, *_), each in found[:most]]
        return admin_pb2.ListLimitRequestsResponse(requests=requests, next_page_token=token)

    async def _of_root(self, root: str) -> list[tuple[_Position, LimitRequest]]:
        account = Account((root,))
        now = (await self._store.read(account, (LevelLimit(account, PLACEHOLDER_LIMIT),))).time
        states = (await self._store.all_limits(root)).states
        found = ((account.path, each) for account, state in states.items() for each in waiting(state, now))
        return sorted((((path, each.expires_at, each.id), each) for path, each in found), key=itemgetter(0))

    def _present(self, level: Account, stored: Limit | None, now: Microseconds) -> Limit | None:
        return in_force(stored, now) or self._configuration.limit_of(level)


def _level(message: budget_pb2.RequestLimitRequest) -> Account:
    account = parse_account(message.account)
    depth = len(message.path) or account.depth
    if tuple(message.path) not in ((), account.path[:depth]):
        raise InvalidFieldError("path", "must be the account, or a level above it")
    return account.level(depth)


def _position(token: str) -> _Position:
    if not token:
        return (), 0, ""
    try:
        found: _Position = msgspec.json.decode(base64.urlsafe_b64decode(token), type=_Position)
    except (ValueError, msgspec.MsgspecError):
        raise InvalidFieldError("page_token", "must be that of the last page with the same account") from None
    return found


def _token(position: _Position) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode()


def _name(number: int, text: str) -> str:
    if not 1 <= len(text) <= MOST_CHARACTERS or ":" not in text:
        problem = f"must be a name such as sub:NAME of up to {MOST_CHARACTERS} characters"
        raise InvalidFieldError(f"asked_by[{number}]", problem)
    return escaped(text)


def _wanted(before: Limit, maximum: Cost, until: str) -> Limit:
    known = (maximum, before.mode, before.window)
    return TemporaryLimit(*known, until=int(until)) if until else Limit(*known)


def _message(account: Account, request: LimitRequest) -> admin_pb2.LimitRequest:
    return admin_pb2.LimitRequest(
        account=budget_pb2.Account(path=account.path),
        id=request.id,
        asked_by=request.asked_by,
        limit_before=limit_message(parse_limit(request.before)),
        limit_after=limit_message(parse_limit(request.wanted)),
        reason=request.reason,
        expires_at=timestamp(request.expires_at),
        approved_by=request.approved_by,
    )
