"""Questions that were not answered: each has an id, under which its caller may ask why for as long as results are kept.

What is kept is what the caller was answered, so it holds nothing of members. It is in the history, under a name that no
account has: as many as of results, and for as long, and none of them takes the place of a result. A refusal may name
what is offered (`did you mean`), so it is given only while the policy is served under which it was made.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import uuid
from contextlib import suppress
from typing import Protocol

import grpc
from gris_api.app.v1 import app_pb2

from gris_gateway import rpc_errors
from gris_gateway.accounts import AccountError, OutOfReachError
from gris_gateway.callers import current_caller
from gris_gateway.history import History
from gris_gateway.policy_names import PolicyNames
from gris_serving import logs
from pinot_connector.budget_service_client import path_kept_as

# A longer question is not kept, only why it was refused.
MAX_QUESTION_BYTES = 2**14
MAX_MESSAGE = 4096
# So long a refusal waits until it is kept, and so many are written at a time, whatever becomes of the others.
KEEPING_SECONDS = 1.0
MAX_WRITING = 100


class _KeptAs(Protocol):
    async def __call__(self, account: tuple[str, ...], *, or_last: bool) -> tuple[str, ...] | None: ...


log = logging.getLogger(__name__)


class RefusedQuestions:
    """The refused questions of all accounts, in the history.

    Args:
        history: Where they are kept.
        policies: Says which policy is served.
        kept_as: Returns what names an account where something is kept for it, as `BudgetServiceClient.kept_as`.
    """

    def __init__(self, history: History, policies: PolicyNames, kept_as: _KeptAs) -> None:
        self._history = history
        self._policies = policies
        self._kept_as = kept_as
        self._writing: set[asyncio.Task[None]] = set()

    async def policy(self) -> str | None:
        """Return the policy that a question is going to be asked under, for `noted`; None: it is not known."""
        return await self._policies.before()

    async def noted(
        self, request: app_pb2.AskRequest, policy: str | None, error: Exception, status: grpc.Status
    ) -> grpc.Status:
        """Return the status of a question that is not answered with its id, and keep it.

        Args:
            request: The question.
            policy: What `policy` returned before it was asked: if another one is served now, nothing is kept.
            error: Why it is not answered.
            status: How its caller is answered.
        """
        is_unusable = isinstance(error, rpc_errors.RequestError) and error.field == "request_id"
        own = "" if is_unusable else request.request_id
        request_id = own or logs.request_id() or uuid.uuid4().hex
        status, refusal = rpc_errors.named(error, status, request_id)
        refusal.message = refusal.message[:MAX_MESSAGE]
        past = app_pb2.PastRelease(request_id=request_id, refusal=refusal)
        past.released_at.GetCurrentTime()
        if request.question.ByteSize() <= MAX_QUESTION_BYTES:
            past.question.CopyFrom(request.question)
        if isinstance(error, rpc_errors.RequestError):
            # It took no turn, so nothing bounds how many there are.
            return status
        # An account that cannot be has no history.
        with suppress(AccountError, OutOfReachError):
            account = current_caller.get().account(request.account.path)
            past.request_id = request_id
            if len(self._writing) < MAX_WRITING:
                writing = asyncio.create_task(self._keep(account, past, policy))
                self._writing.add(writing)
                writing.add_done_callback(self._writing.discard)
                await asyncio.wait((writing,), timeout=KEEPING_SECONDS)
        return status

    async def find(self, account: tuple[str, ...], request_id: str) -> app_pb2.GetRefusalResponse | None:
        """Return the refused question of an account with this id; None: none of this audience and policy is kept.

        Raises:
            GrisError: As `PolicyNames.present`.
        """
        policy = await self._policies.present()
        if policy is None or not request_id:
            return None
        past = None
        # What was refused before the ledger named the account is kept under its path alone.
        for kept_as in (await self._kept_as(account, or_last=False), path_kept_as(account)):
            if past is None and kept_as is not None:
                past = await self._history.find(_name(), _key(kept_as, request_id, policy))
        if past is None:
            return None
        question = past.question if past.HasField("question") else None
        return app_pb2.GetRefusalResponse(
            refused_at=past.released_at, question=question, refusal=past.refusal
        )

    async def finish(self) -> None:
        """Wait until all are kept; call it before the release store is closed."""
        await asyncio.gather(*self._writing)

    async def _keep(self, account: tuple[str, ...], past: app_pb2.PastRelease, policy: str | None) -> None:
        # Of a question during which the policy was replaced, nobody can say under which one it was refused.
        if not await self._policies.is_served(policy):
            return
        try:
            # It is kept while the ledger is silent too: under the last id, which is nobody else's.
            kept_as = await self._kept_as(account, or_last=True) or path_kept_as(account)
            past.request_id = _key(kept_as, past.request_id, policy)
            await self._history.add(_name(), past)
        except Exception as error:
            # The caller is answered all the same.
            fields = {"error": type(error).__name__}
            log.error(
                "A refused question could not be kept in the history.",
                extra={"event": "history.not_written", "fields": fields},
            )


def _name() -> tuple[str, ...]:
    """Return the name under which the caller's refusals are kept: that of no account, as no segment of one is empty.

    A refusal may name what another audience is not offered, so each has its own. All accounts that a caller may name
    have one bound together: it could make up as many as it likes.
    """
    caller = current_caller.get()
    if caller.audience is None:
        return (*caller.own, "")
    values = (part for value in sorted(caller.audience.values.items()) for part in value)
    return (*caller.own, "", caller.audience.name, *values)


def _key(kept_as: tuple[str, ...], request_id: str, policy: str | None) -> str:
    """Return what names a refusal among those of a caller: the account that it named, the id, and the policy."""
    return hashlib.sha256(json.dumps([*kept_as, request_id, policy]).encode()).hexdigest()
