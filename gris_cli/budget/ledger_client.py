"""Calls to budget_service, for its administrators."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
import typer
from google.protobuf import timestamp_pb2
from google.rpc import error_details_pb2
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2, budget_pb2_grpc
from grpc_status import rpc_status

from gris_cli.connection_options import protected_address
from pinot_connector.budgets import Level, level_of
from pinot_connector.channels import open_channel
from pinot_connector.errors import GrisError
from pinot_connector.rpc_errors import Service, error_of_rpc

CALL_SECONDS = 5.0
# The whole journal is read.
READ_SECONDS = 600.0
PAGE = 1000

_Response = TypeVar("_Response")


@dataclass(frozen=True)
class RegionShare:
    """What a region holds of an account's budget."""

    region: str
    information: int
    calls: int
    until: str


@dataclass(frozen=True)
class Budget:
    """What an account has on each level, and what its root counts in; no `next_unit_id`: nothing else is planned.

    `closed` is the path of the widest level that is closed, empty if none is. `held_by` says what regions hold of it,
    and `lost_by` what was spent because they were lost.
    """

    levels: tuple[Level, ...]
    unit_id: str
    next_unit_id: str
    next_unit_begins_at: str
    seconds_ahead: float
    closed: tuple[str, ...] = ()
    held_by: tuple[RegionShare, ...] = ()
    lost_by: tuple[RegionShare, ...] = ()


def _shares(shares: Iterable[budget_pb2.RegionShare]) -> tuple[RegionShare, ...]:
    return tuple(
        RegionShare(each.region, each.held.information, each.held.calls, format_timestamp(each.ends_at))
        for each in shares
    )


class Ledger:
    """A connection to one address of budget_service: the service's own, or the administrator's."""

    def __init__(self, address: str, setting: str) -> None:
        self._channel = open_channel(protected_address(address, "budget_service", setting))
        self._budget: Any = budget_pb2_grpc.BudgetServiceStub(self._channel)
        self._admin: Any = admin_pb2_grpc.BudgetAdminServiceStub(self._channel)

    async def budget(self, account: Sequence[str]) -> Budget:
        """Return every level of an account that has a limit, from the widest, and the currency of its root."""
        request = budget_pb2.GetBudgetRequest(
            account=budget_pb2.Account(path=account), with_region_shares=True
        )
        response = await _called(self._budget.GetBudget, request, CALL_SECONDS)
        return Budget(
            levels=tuple(level_of(level) for level in response.levels),
            unit_id=response.unit_id,
            next_unit_id=response.next_unit_id,
            next_unit_begins_at=format_timestamp(response.next_unit_begins_at)
            if response.next_unit_id
            else "",
            seconds_ahead=response.clock_ahead.ToTimedelta().total_seconds(),
            closed=tuple(response.closed_level),
            held_by=_shares(response.region_shares),
            lost_by=_shares(response.lapsed_shares),
        )

    async def set_limit(self, change: admin_pb2.LimitChange) -> int:
        """Set or remove a limit; return how often the limits of this root account were changed."""
        request = admin_pb2.SetLimitsRequest(changes=[change], request_id=uuid.uuid4().hex)
        response = await _called(self._admin.SetLimits, request, CALL_SECONDS)
        return int(response.version)

    async def change_currency(self, root: str, unit_id: str, request_id: str) -> str:
        """Plan a currency and return when it begins, or withdraw the plan if `unit_id` is empty."""
        account = budget_pb2.Account(path=[root])
        request_id = request_id or uuid.uuid4().hex
        if not unit_id:
            withdrawal = admin_pb2.WithdrawCurrencyRequest(account=account, request_id=request_id)
            await _called(self._admin.WithdrawCurrency, withdrawal, CALL_SECONDS)
            return ""
        request = admin_pb2.BeginCurrencyRequest(account=account, unit_id=unit_id, request_id=request_id)
        response = await _called(self._admin.BeginCurrency, request, CALL_SECONDS)
        return format_timestamp(response.begins_at)

    async def resume_clock(self, root: str, request_id: str) -> float:
        """Let the time of a root go on, by this machine's clock; return how far ahead it is, in seconds."""
        request = admin_pb2.ResumeClockRequest(
            account=budget_pb2.Account(path=[root]), request_id=request_id or uuid.uuid4().hex
        )
        request.true_time.GetCurrentTime()
        response = await _called(self._admin.ResumeClock, request, CALL_SECONDS)
        return float(response.ahead.ToTimedelta().total_seconds())

    async def refund(
        self, account: list[str], release_id: str, reason: str, request_id: str
    ) -> admin_pb2.RefundChargeResponse:
        """Refund what an account was charged for a release."""
        request = admin_pb2.RefundChargeRequest(
            account=budget_pb2.Account(path=account),
            release_id=release_id,
            reason=reason,
            request_id=request_id or uuid.uuid4().hex,
        )
        return await _called(self._admin.RefundCharge, request, CALL_SECONDS)

    async def close_account(self, account: list[str], reason: str, request_id: str) -> None:
        """Close an account."""
        request = admin_pb2.CloseAccountRequest(
            account=budget_pb2.Account(path=account), reason=reason, request_id=request_id or uuid.uuid4().hex
        )
        await _called(self._admin.CloseAccount, request, CALL_SECONDS)

    async def reopen_account(self, account: list[str], reason: str, request_id: str) -> None:
        """Open a closed account again."""
        request = admin_pb2.ReopenAccountRequest(
            account=budget_pb2.Account(path=account), reason=reason, request_id=request_id or uuid.uuid4().hex
        )
        await _called(self._admin.ReopenAccount, request, CALL_SECONDS)

    async def move_account(self, account: list[str], target: list[str], reason: str, request_id: str) -> None:
        """Move an account to another name."""
        request = admin_pb2.MoveAccountRequest(
            account=budget_pb2.Account(path=account),
            target=budget_pb2.Account(path=target),
            reason=reason,
            request_id=request_id or uuid.uuid4().hex,
        )
        await _called(self._admin.MoveAccount, request, CALL_SECONDS)

    async def checkpoint(self, root: str, *, archive: bool) -> admin_pb2.SealJournalResponse:
        """Write a checkpoint of a root account's journal; return how many entries it covers, their digest and file."""
        account = budget_pb2.Account(path=[root])
        request = admin_pb2.SealJournalRequest(account=account, archive=archive)
        return await _called(self._admin.SealJournal, request, READ_SECONDS)

    async def back_up(self) -> admin_pb2.BackUpLedgerResponse:
        """Copy the ledger; return the name of the file in the service's folder, and its size."""
        return await _called(self._admin.BackUpLedger, admin_pb2.BackUpLedgerRequest(), READ_SECONDS)

    async def listed(self, request: admin_pb2.ListChargesRequest, most: int) -> list[admin_pb2.ChargeEntry]:
        """Return charges, oldest first, at most so many."""
        found: list[admin_pb2.ChargeEntry] = []
        while len(found) < most:
            request.page_size = min(most - len(found), PAGE)
            page = await _called(self._admin.ListCharges, request, READ_SECONDS)
            found += page.charges
            request.page_token = page.next_page_token
            if not request.page_token:
                break
        return found

    async def usage(self, request: admin_pb2.GetUsageReportRequest) -> admin_pb2.GetUsageReportResponse:
        """Return how soon limits would have been exhausted."""
        return await _called(self._admin.GetUsageReport, request, READ_SECONDS)

    async def status(self) -> admin_pb2.GetStatusResponse:
        """Return which configuration is in force, and why a newer one is not."""
        return await _called(self._admin.GetStatus, admin_pb2.GetStatusRequest(), CALL_SECONDS)

    async def verification(self, root: str) -> admin_pb2.VerifyLedgerResponse:
        """Return what adding up the journal again found, for one root account or, if empty, for all."""
        account = budget_pb2.Account(path=[root]) if root else None
        request = admin_pb2.VerifyLedgerRequest(account=account)
        return await _called(self._admin.VerifyLedger, request, READ_SECONDS)

    async def close(self) -> None:
        """Close the connection."""
        await self._channel.close()


def format_timestamp(stamp: timestamp_pb2.Timestamp) -> str:
    """Return a timestamp for people, in UTC."""
    return stamp.ToDatetime().isoformat(sep=" ", timespec="seconds")


ADMIN_SETTING = "--admin or GRIS_BUDGET_ADMIN"
BUDGET_SETTING = "--budget or GRIS_BUDGET"


def on_ledger(
    address: str,
    work: Callable[[Ledger], Coroutine[Any, Any, _Response]],
    *,
    setting: str = ADMIN_SETTING,
) -> _Response:
    """Run a function on a connection to `address` and return its result; `setting` is what the address comes from.

    Raises:
        GrisError: The service cannot be reached or refuses, or the ledger is damaged.
        typer.BadParameter: It says which part of the request is wrong.
    """

    async def connected() -> _Response:
        ledger = Ledger(address, setting)
        try:
            return await work(ledger)
        finally:
            await ledger.close()

    return asyncio.run(connected())


async def _called(call: Callable[..., Awaitable[_Response]], request: object, seconds: float) -> _Response:
    try:
        return await call(request, timeout=seconds)
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            raise typer.BadParameter(
                "this address does not serve the administrator: see --admin-listen"
            ) from None
        if error.code() is grpc.StatusCode.FAILED_PRECONDITION:
            # The text of the ledger says what is wrong.
            raise typer.BadParameter(error.details() or "the ledger refuses") from None
        if error.code() is grpc.StatusCode.DATA_LOSS:
            # It names the row that cannot be read.
            raise GrisError(error.details() or "the ledger is damaged") from None
        if problem := _violation(error):
            raise typer.BadParameter(problem) from None
        raise error_of_rpc(Service.BUDGET, error) from None


def _violation(error: grpc.aio.AioRpcError) -> str:
    """Return which field budget_service finds wrong and why, or nothing."""
    status = rpc_status.from_call(error)  # type: ignore[arg-type]  # it needs what both kinds of call have
    for detail in () if status is None else status.details:
        bad = error_details_pb2.BadRequest()
        if detail.Unpack(bad) and bad.field_violations:
            return f"{bad.field_violations[0].field}: {bad.field_violations[0].description}"
    return ""
