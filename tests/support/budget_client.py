"""A client for tests: messages from few words, and errors taken apart."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, QuotaFailure, RetryInfo
from google.rpc.status_pb2 import Status
from gris_api.budget.v1 import budget_pb2 as pb
from gris_api.budget.v1 import budget_pb2_grpc
from gris_api.common.v1 import cost_pb2

from tests.support.budget_samples import UNIT

PATH = ("acme", "ann")
ids = itertools.count()


@dataclass(frozen=True)
class Failure:
    """An error as a client sees it."""

    code: grpc.StatusCode
    message: str
    info: ErrorInfo
    fields: tuple[str, ...]
    quota: QuotaFailure | None
    retry: RetryInfo | None


@asynccontextmanager
async def connected(address: str) -> AsyncIterator[budget_pb2_grpc.BudgetServiceAsyncStub]:
    """Give a stub on a channel that is closed in the end, and shares nothing: a killed server may have had the port."""
    alone = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(address, options=alone) as channel:
        yield stub_of(channel)


def stub_of(channel: grpc.aio.Channel) -> budget_pb2_grpc.BudgetServiceAsyncStub:
    """Return a stub; the generated types tell the two kinds of channel apart only for the checker."""
    stub: Any = budget_pb2_grpc.BudgetServiceStub(channel)
    return stub  # type: ignore[no-any-return]


async def failure(call: Awaitable[Any]) -> Failure:
    """Return the error that a call ends with."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    metadata = dict(tuple(caught.value.trailing_metadata() or ()))
    packed = metadata.get("grpc-status-details-bin", b"")
    status = Status.FromString(packed if isinstance(packed, bytes) else packed.encode())
    found = {kind: _unpacked(status, kind) for kind in (ErrorInfo, BadRequest, QuotaFailure, RetryInfo)}
    bad = found[BadRequest]
    assert caught.value.code().value[0] == status.code
    return Failure(
        code=caught.value.code(),
        message=status.message,
        info=found[ErrorInfo],
        fields=tuple(each.field for each in bad.field_violations) if bad else (),
        quota=found[QuotaFailure],
        retry=found[RetryInfo],
    )


def _unpacked(status: Status, kind: type[Any]) -> Any:
    for detail in status.details:
        message = kind()
        if detail.Unpack(message):
            return message
    return None


def cost(information: int = 4, calls: int = 1, unit_id: str = UNIT) -> cost_pb2.Cost:
    """Return a cost."""
    return cost_pb2.Cost(information=information, calls=calls, unit_id=unit_id)


def account(path: tuple[str, ...] = PATH) -> pb.Account:
    """Return an account."""
    return pb.Account(path=path)


def new_id() -> str:
    """Return a request id that no other call of the tests has."""
    return f"request-{next(ids)}"


def reserving(
    max_cost: cost_pb2.Cost | None = None,
    path: tuple[str, ...] = PATH,
    *,
    query_id: str = "query",
    request_id: str | None = None,
    ttl_seconds: float | None = None,
) -> pb.ReserveBudgetRequest:
    """Return a request to hold a cost."""
    message = pb.ReserveBudgetRequest(
        account=account(path),
        max_cost=max_cost or cost(),
        query_id=query_id,
        request_id=new_id() if request_id is None else request_id,
    )
    if ttl_seconds is not None:
        nanoseconds = round(ttl_seconds * 10**9)
        message.ttl.CopyFrom(Duration(seconds=nanoseconds // 10**9, nanos=nanoseconds % 10**9))
    return message


def charging(
    what: cost_pb2.Cost | None = None,
    path: tuple[str, ...] = PATH,
    *,
    request_id: str | None = None,
    reservation_id: str = "",
    release_id: str = "",
    query_id: str = "",
    charge_ticket: bytes = b"",
    policy_statement: str = "",
) -> pb.UpdateBudgetRequest:
    """Return a request to charge a cost."""
    return pb.UpdateBudgetRequest(
        account=account(path),
        cost=what or cost(),
        request_id=new_id() if request_id is None else request_id,
        reservation_id=reservation_id,
        release_id=release_id,
        query_id=query_id,
        charge_ticket=charge_ticket,
        policy_statement=policy_statement,
    )


def cancelling(
    reservation_id: str, path: tuple[str, ...] = PATH, request_id: str | None = None
) -> pb.ReleaseReservationRequest:
    """Return a request to cancel a reservation."""
    id_ = new_id() if request_id is None else request_id
    return pb.ReleaseReservationRequest(account=account(path), reservation_id=reservation_id, request_id=id_)
