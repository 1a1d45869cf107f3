"""The administrator's gRPC service: translates messages, calls the store, reads the ledger page by page."""
# ruff: noqa: N802 - the names of the RPCs are the proto's

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from google.protobuf.message import Message
from gris_api.budget.v1 import admin_pb2 as pb
from gris_api.budget.v1 import admin_pb2_grpc

from budget_service.ledger.acts.close import CloseAccount
from budget_service.ledger.acts.reopen import ReopenAccount
from budget_service.ledger.acts.set_limits import SetLimits as ChangedLimits
from budget_service.ledger.ignorable import PROBLEM, first_ignorable
from budget_service.ledger.limits import NO_LIMITS
from budget_service.ledger.outcomes import Cancelled, ClockResumed, CurrencyChanged, LimitsSet
from budget_service.ledger.values import InvalidFieldError
from budget_service.server import admin_messages as messages
from budget_service.server import audit, rpc_errors
from budget_service.server.account_changes import require_known
from budget_service.server.ledger import Ledger
from budget_service.server.limit_cache import LimitCache
from budget_service.server.refunds import with_charge
from budget_service.server.request_runner import Context, RequestRunner
from budget_service.server.responses import cost_message, duration, timestamp
from budget_service.server.service import success
from budget_service.server.settings import LiveSettings
from budget_service.server.trimming import note_backup, trimmed
from budget_service.stores.interface import BackupFailedError
from budget_service.tuning import Tuning

SERVICE_NAME = pb.DESCRIPTOR.services_by_name["BudgetAdminService"].full_name
MAX_REQUEST_BYTES = 1024 * 1024
"""The largest request: as many limits as may be set at once, with the longest names, take two thirds of it."""

ActorOf: TypeAlias = Callable[[Context], str]
"""Says who sends a call, never empty; raises RefusalError if that is not known and has to be."""


_Request = TypeVar("_Request", bound=Message)
_Response = TypeVar("_Response")
_Rpc: TypeAlias = Callable[["BudgetAdminService", _Request, Context], Coroutine[Any, Any, _Response]]


def _changing(rpc: _Rpc[_Request, _Response]) -> _Rpc[_Request, _Response]:
    """Make an RPC that may change the ledger. If the caller leaves, an operation that has begun is finished."""

    @wraps(rpc)
    async def run(service: BudgetAdminService, message: _Request, context: Context) -> _Response:
        return await service._changes.answer(rpc(service, message, context), context)

    return run


def _reading(rpc: _Rpc[_Request, _Response]) -> _Rpc[_Request, _Response]:
    """Make an RPC that reads the ledger, which may take long. It does not delay changes, and ends with its caller."""

    @wraps(rpc)
    async def run(service: BudgetAdminService, message: _Request, context: Context) -> _Response:
        return await service._readings.answer(rpc(service, message, context), context)

    return run


class BudgetAdminService(admin_pb2_grpc.BudgetAdminServiceServicer):
    """The RPCs of `gris.budget.v1.BudgetAdminService`; what they promise is written in the proto."""

    def __init__(
        self,
        ledger: Ledger,
        settings: LiveSettings,
        changes: RequestRunner,
        readings: RequestRunner,
        *,
        actor_of: ActorOf,
        backups: Path | None,
        tuning: Tuning,
    ) -> None:
        self._store = ledger
        self._settings = settings
        self._limits = LimitCache(self._store, settings)
        self._changes = changes
        self._readings = readings
        self._actor_of = actor_of
        self._backups = backups
        self._tuning = tuning

    def _sender(self, context: Context) -> messages.Administrator:
        """Return who sends a call. Raises RefusalError."""
        needs_reason = self._settings.current.configuration.administration.requires_reason
        return messages.Administrator(self._actor_of(context), needs_reason)

    @_changing
    async def SetLimits(self, message: pb.SetLimitsRequest, context: Context) -> pb.SetLimitsResponse:
        """Set or remove limits."""
        request = messages.parse_set_limits(message, self._sender(context))
        await self._require_sound(request)
        answer = await self._store.apply(request, NO_LIMITS)
        outcome = success(answer, LimitsSet, request)
        return pb.SetLimitsResponse(version=outcome.version, replayed=answer.replayed)

    async def _require_sound(self, request: ChangedLimits) -> None:
        """Refuse changes that make accounts with names which look like others, or accounts without a shared bound."""
        configuration, changes = self._settings.current.configuration, dict(request.changes)
        unseen = {
            number: index
            for number, (level, limit) in enumerate(request.changes)
            if limit is not None
            and (index := first_ignorable(level.path)) is not None
            and not configuration.is_written_out(level)
        }
        # A root may have very many stored limits.
        if not unseen and not configuration.may_open(changes):
            return
        stored = (await self._store.all_limits(request.account.root)).limits
        for number, index in unseen.items():
            if request.changes[number][0] not in stored:
                raise InvalidFieldError(f"changes[{number}].path[{index}]", PROBLEM)
        # Patterns that are unbounded already must not block other changes.
        if (opened := configuration.pattern_opened_by(changes, stored)) is not None:
            raise rpc_errors.RefusalError(rpc_errors.accounts_without_end(opened))

    async def BackUpLedger(
        self, request: pb.BackUpLedgerRequest, context: Context
    ) -> pb.BackUpLedgerResponse:
        """Copy the ledger while it is used."""
        return await self._readings.answer(self._back_up(request, context), context)

    @_changing
    async def BeginCurrency(
        self, message: pb.BeginCurrencyRequest, context: Context
    ) -> pb.BeginCurrencyResponse:
        """Plan another currency, or withdraw the plan."""
        request = messages.parse_begin_currency(message, self._sender(context))
        answer = await self._limits.change_currency(request)
        outcome = success(answer, CurrencyChanged, request)
        begins_at = timestamp(outcome.begins_at) if request.unit_id else None
        return pb.BeginCurrencyResponse(begins_at=begins_at, replayed=answer.replayed)

    @_changing
    async def ResumeClock(self, message: pb.ResumeClockRequest, context: Context) -> pb.ResumeClockResponse:
        """Let the clock of a root continue after the store's clock was wrong."""
        request = messages.parse_resume_clock(message, self._sender(context))
        answer = await self._store.apply(request, NO_LIMITS)
        outcome = success(answer, ClockResumed, request)
        return pb.ResumeClockResponse(ahead=duration(outcome.ahead), replayed=answer.replayed)

    @_changing
    async def RefundCharge(
        self, message: pb.RefundChargeRequest, context: Context
    ) -> pb.RefundChargeResponse:
        """Refund the charge of a release."""
        request = messages.parse_refund(message, self._sender(context))
        answer = await self._limits.earlier_answer(request)
        if answer is None:
            request = await with_charge(self._store, request, self._tuning)
            answer = await self._limits.apply(request)
        outcome = success(answer, Cancelled, request)
        refunded = cost_message(outcome.returned, outcome.unit_id)
        return pb.RefundChargeResponse(refunded=refunded, replayed=answer.replayed)

    @_changing
    async def CloseAccount(
        self, message: pb.CloseAccountRequest, context: Context
    ) -> pb.CloseAccountResponse:
        """Close an account."""
        request = messages.parse_account_change(CloseAccount, message, self._sender(context))
        await require_known(request.account, self._settings.current.configuration, self._store)
        answer = await self._store.apply(request, NO_LIMITS)
        success(answer, LimitsSet, request)
        return pb.CloseAccountResponse(replayed=answer.replayed)

    @_changing
    async def ReopenAccount(
        self, message: pb.ReopenAccountRequest, context: Context
    ) -> pb.ReopenAccountResponse:
        """Open a closed account again."""
        request = messages.parse_account_change(ReopenAccount, message, self._sender(context))
        # Where nothing was ever closed, nothing was closed of this account either: most likely its name is misspelt.
        if not (await self._store.limits(request.account)).version:
            await require_known(request.account, self._settings.current.configuration, self._store)
        answer = await self._store.apply(request, NO_LIMITS)
        success(answer, LimitsSet, request)
        return pb.ReopenAccountResponse(replayed=answer.replayed)

    @_reading
    async def ReadJournal(self, message: pb.ReadJournalRequest, context: Context) -> pb.ReadJournalResponse:
        """Read the journal."""
        asked = messages.parse_reading(message)
        response = pb.ReadJournalResponse(last=asked.after)
        left = asked.at_most
        while left and not response.is_end:
            most = min(left, self._tuning.journal_page)
            page = await self._store.journal(asked.under.root, response.last, "", most)
            for position, entry in page:
                response.last = position
                if entry.account.level(asked.under.depth) == asked.under:
                    response.entries.append(messages.entry_message(entry, position))
            left -= most
            response.is_end = len(page) < most
        await self._leave_out_trimmed(asked.under.root, asked.after, response)
        return response

    async def _leave_out_trimmed(self, root: str, after: str, response: pb.ReadJournalResponse) -> None:
        """Leave out entries that the base stands for, and say that there are some after this position.

        The base is read last: what was dropped before it was read is among them.
        """
        base = await self._store.base(root)
        end = int(base.position or "0")
        if int(after or "0") >= end:
            return
        response.trimmed = base.entries
        response.last = max(response.last or "0", base.position, key=int)
        is_covered = [int(each.position) <= end for each in response.entries]
        del response.entries[: sum(is_covered)]

    async def _roots_of(self, message: pb.VerifyLedgerRequest) -> list[str]:
        """Return the root account of a message, or all; raise InvalidFieldError."""
        if message.HasField("account"):
            return [messages.parse_root(message.account).root]
        return await self._store.roots()

    @_reading
    async def VerifyLedger(
        self, message: pb.VerifyLedgerRequest, context: Context
    ) -> pb.VerifyLedgerResponse:
        """Compare balances with the journal."""
        found, roots = audit.Verification(), await self._roots_of(message)
        if unknown := {*roots} - {*await self._store.roots()}:
            raise rpc_errors.RefusalError(rpc_errors.root_unknown(unknown.pop()))
        for root in roots:
            # Sums that no ledger can have are a fault of the journal.
            with self._store.reading("journal", root):
                await audit.verify(self._store, root, found, self._tuning)
        return pb.VerifyLedgerResponse(
            entries=found.entries,
            balances=found.balances,
            different=found.different,
            differences=[messages.difference_message(each) for each in found.differences],
        )

    @_changing
    async def TrimJournal(self, message: pb.TrimJournalRequest, context: Context) -> pb.TrimJournalResponse:
        """Drop the oldest entries of a journal."""
        sender = self._sender(context)
        root, reason = messages.parse_root(message.account).root, sender.reason(message.reason)
        exported = messages.parse_position(message.exported, "exported")
        by = (sender.actor, reason)
        return await trimmed(self._store, root, exported, self._settings, by=by, tuning=self._tuning)

    async def _back_up(self, message: pb.BackUpLedgerRequest, context: Context) -> pb.BackUpLedgerResponse:
        sender = self._sender(context)
        reason = sender.reason(message.reason)
        if self._backups is None:
            raise rpc_errors.RefusalError(rpc_errors.no_backups())
        try:
            path = await self._store.back_up(self._backups)
        except BackupFailedError as error:
            raise rpc_errors.RefusalError(rpc_errors.backup_unwritable(str(error))) from None
        made = pb.BackUpLedgerResponse(file=path.name, bytes=path.stat().st_size)
        note_backup(made, actor=sender.actor, reason=reason)
        return made
