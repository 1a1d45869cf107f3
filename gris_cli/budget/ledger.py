"""Calls to budget_service, for its administrators, and the values that they are made of."""

from __future__ import annotations

import asyncio
import datetime
import re
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import grpc
import typer
from google.protobuf import timestamp_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2, budget_pb2_grpc
from grpc_status import rpc_status

from gris_cli.connection_options import protected_address
from gris_cli.inputs import shown
from pinot_connector.channels import open_channel
from pinot_connector.errors import GrisError
from pinot_connector.rpc_errors import Service, error_of_rpc

CALL_SECONDS = 5.0
# The whole journal is read.
READ_SECONDS = 600.0
PAGE = 1000

_Response = TypeVar("_Response")


def administered(address: str, method: str, request: Any, *, seconds: float = CALL_SECONDS) -> Any:
    """Return the answer of the administrator's service; a request without an id gets a new one.

    Raises:
        GrisError: The service cannot be reached or refuses, or the ledger is damaged.
        typer.BadParameter: It says which part of the request is wrong.
    """
    if "request_id" in request.DESCRIPTOR.fields_by_name and not request.request_id:
        request.request_id = uuid.uuid4().hex

    return _on_ledger(address, lambda admin: _called(address, getattr(admin, method), request, seconds))


def journal_pages(address: str, under: str, after: str = "") -> Iterator[admin_pb2.ReadJournalResponse]:
    """Yield the journal of an account and all below, oldest entries first; errors are those of `administered`."""
    is_end = False
    while not is_end:
        request = admin_pb2.ReadJournalRequest(under=account_of(under), after=after, at_most=PAGE)
        page = administered(address, "ReadJournal", request, seconds=READ_SECONDS)
        if page.trimmed:
            typer.echo(f"{page.trimmed} older entries were trimmed, and are in exports only", err=True)
        yield page
        after, is_end = page.last, page.is_end


def budget_of(address: str, account: str) -> budget_pb2.GetBudgetResponse:
    """Return what an account has on each level, from the widest; errors are those of `administered`."""
    request = budget_pb2.GetBudgetRequest(account=account_of(account), with_region_shares=True)

    async def asked() -> budget_pb2.GetBudgetResponse:
        async with open_channel(protected_address(address, *BUDGET)) as channel:
            stub: Any = budget_pb2_grpc.BudgetServiceStub(channel)
            found: budget_pb2.GetBudgetResponse = await _called(
                address, stub.GetBudget, request, CALL_SECONDS
            )
            return found

    return asyncio.run(asked())


BUDGET = ("budget_service", "--budget or GRIS_BUDGET")
ADMIN = ("budget_service", "--admin or GRIS_BUDGET_ADMIN")


def _on_ledger(address: str, work: Callable[[Any], Awaitable[_Response]]) -> _Response:
    async def connected() -> _Response:
        async with open_channel(protected_address(address, *ADMIN)) as channel:
            return await work(admin_pb2_grpc.BudgetAdminServiceStub(channel))

    return asyncio.run(connected())


async def _called(address: str, call: Callable[..., Any], request: object, seconds: float) -> Any:
    with translated_errors(request, address):
        return await call(request, timeout=seconds)


@contextmanager
def translated_errors(request: object, address: str) -> Iterator[None]:
    """Raise the errors of `administered` for those of a call with a request to an address."""
    try:
        yield
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            raise typer.BadParameter(
                "this address does not serve the administrator: see --admin-listen"
            ) from None
        if error.code() is grpc.StatusCode.FAILED_PRECONDITION:
            # The text of the ledger says what is wrong, and the request with what.
            raise typer.BadParameter(
                fault_of("path", error.details() or "the ledger refuses", request)
            ) from None
        if error.code() is grpc.StatusCode.DATA_LOSS:
            # It names the row that cannot be read.
            raise GrisError(error.details() or "the ledger is damaged") from None
        if problem := _violation(error, request):
            raise typer.BadParameter(problem) from None
        raise error_of_rpc(Service.BUDGET, error, address) from None


def _violation(error: grpc.aio.AioRpcError, request: Any) -> str:
    """Return which flag's value budget_service finds wrong and why, or nothing."""
    status = rpc_status.from_call(error)  # type: ignore[arg-type]  # it needs what both kinds of call have
    for detail in () if status is None else status.details:
        bad = error_details_pb2.BadRequest()
        if detail.Unpack(bad) and bad.field_violations:
            found = bad.field_violations[0]
            return fault_of(found.field, found.description, request)
    return ""


def fault_of(field: str, problem: str, request: Any) -> str:
    """Return what is wrong with a request by the flag that it was made of, and with what was typed there.

    A service quotes no text of a request, because it may be a name; at the caller's own terminal it may stand.
    """
    flag, typed = _flag_of(field, request), _typed(field, request)
    return f"{flag}: {problem}; got {typed}" if typed else f"{flag}: {problem}"


def _typed(field: str, request: Any) -> str:
    """Return what a field of a request was made of: a text, a path with slashes, a time; empty: nothing to show."""
    value = request
    for name in _steps(field, request):
        if not isinstance(value, Message):
            # Of changes there is one.
            value = next(iter(value), None)
        if name not in getattr(getattr(value, "DESCRIPTOR", None), "fields_by_name", {}):
            return ""
        value = getattr(value, name)
    if isinstance(value, timestamp_pb2.Timestamp):
        return format_timestamp(value)
    if isinstance(value, str):
        return shown(value)
    return shown("/".join(value)) if field.endswith("path") else ""


def _steps(field: str, request: Any) -> list[str]:
    """Return the fields one in another that lead to a field, of which a refusal may give only the last one's name."""
    steps, known = re.sub(r"\[\d+\]", "", field).split("."), request.DESCRIPTOR.fields_by_name
    if steps[0] in known:
        return steps
    if "changes" in known:
        return ["changes", *steps] if steps == ["path"] else ["changes", "limit", *steps]
    return ["account", *steps]


# Fields of requests whose flags have other names.
_FLAGS = {
    "path": "--account",
    "period": "--window",
    "sliding_days": "--window",
    "unit_id": "--unit",
    "release_id": "--release",
    "under": "--account",
}
_OF_ROOTS = (
    admin_pb2.BeginCurrencyRequest,
    admin_pb2.ResumeClockRequest,
    admin_pb2.TrimJournalRequest,
    admin_pb2.VerifyLedgerRequest,
)


def _flag_of(field: str, request: Any) -> str:
    """Return the flag that a field of a request was made of: that of changes[0].limit.zone is --zone."""
    names = re.sub(r"\[\d+\]", "", field).split(".")
    name = names[0] if names[0] in _FLAGS else names[-1]
    if name == "path" and isinstance(request, _OF_ROOTS):
        return "--root"
    return _FLAGS.get(name, f"--{name.replace('_', '-')}")


def account_of(text: str) -> budget_pb2.Account:
    """Return an account that is written with slashes; the service checks its segments."""
    return budget_pb2.Account(path=text.split("/"))


def format_timestamp(stamp: timestamp_pb2.Timestamp) -> str:
    """Return a timestamp for people, in UTC."""
    return stamp.ToDatetime().isoformat(sep=" ", timespec="seconds")


def timestamp_of(flag: str, text: str) -> timestamp_pb2.Timestamp | None:
    """Return the timestamp that a flag names, a day meaning its start in UTC; None where it is empty."""
    if not text:
        return None
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{flag} expects a day such as 2026-01-31, or a time, got {shown(text)}"
        ) from None
    stamp = timestamp_pb2.Timestamp()
    stamp.FromDatetime(found if found.tzinfo else found.replace(tzinfo=datetime.UTC))
    return stamp
