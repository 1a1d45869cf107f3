"""What a person who has logged in reaches: the gateway and, for owners, both services. Each call is that person's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from gris_api.budget.v1 import admin_pb2, admin_pb2_grpc, budget_pb2, budget_pb2_grpc
from gris_api.dp.v1 import dp_pb2, dp_pb2_grpc
from grpc_status import rpc_status

from pinot_connector.budget_service_client import BudgetServiceClient, new_request_id
from pinot_connector.budgets import Level, levels_of
from pinot_connector.channels import Timeouts, open_channel
from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.endpoints import Address
from pinot_connector.errors import GrisError, InvalidQuestion
from pinot_connector.guarantees import AccountGuarantee
from pinot_connector.rpc_errors import Service, error_of_rpc
from pinot_connector.shared_budgets import account_guarantee

CALL_SECONDS = 30.0
PAGE = 1000
MOST_CHARGES = 10_000

TokenSource: TypeAlias = Callable[[], str]
_Response = TypeVar("_Response")


@dataclass(frozen=True)
class OwnerAddresses:
    """The addresses of both services, and of the administrator's service, as one person reaches them."""

    dp: Address
    budget: Address
    admin: Address


@dataclass(frozen=True)
class Charges:
    """Charges of an account and of all below it, oldest first; `is_whole` says that there are no more."""

    entries: tuple[admin_pb2.ChargeEntry, ...]
    is_whole: bool


class OwnerClient:
    """Both services, for an owner. The roles of the owner's token decide what is answered."""

    def __init__(self, addresses: OwnerAddresses) -> None:
        self._dp_channel = open_channel(addresses.dp)
        self._budget_channel = open_channel(addresses.budget)
        self._admin_channel = open_channel(addresses.admin)
        self._dp: Any = dp_pb2_grpc.DpServiceStub(self._dp_channel)
        self._budget: Any = budget_pb2_grpc.BudgetServiceStub(self._budget_channel)
        self._admin: Any = admin_pb2_grpc.BudgetAdminServiceStub(self._admin_channel)
        self._addresses = addresses

    async def levels(self, account: Sequence[str]) -> tuple[tuple[Level, ...], tuple[str, ...]]:
        """Return every level of an account that has a limit, and the path of a closed one, empty if none is.

        Raises:
            GrisError: The account has no budget, or the service refuses or does not answer.
        """
        request = budget_pb2.GetBudgetRequest(account=budget_pb2.Account(path=account))
        response = await _called(self._budget.GetBudget, request, Service.BUDGET)
        return levels_of(response), tuple(response.closed_level)

    async def set_limit(self, change: admin_pb2.LimitChange, request_id: str, reason: str) -> bool:
        """Set or remove a limit; return whether an earlier request of this id had done so already.

        Raises:
            GrisError: As for `levels`.
        """
        request = admin_pb2.SetLimitsRequest(changes=[change], request_id=request_id, reason=reason)
        return bool((await _called(self._admin.SetLimits, request, Service.BUDGET)).replayed)

    async def requests(self) -> Sequence[admin_pb2.LimitRequest]:
        """Return the requests for other limits that wait.

        Raises:
            GrisError: As for `levels`.
        """
        request, found = admin_pb2.ListLimitRequestsRequest(), list[admin_pb2.LimitRequest]()
        while True:
            page = await _called(self._admin.ListLimitRequests, request, Service.BUDGET)
            found += page.requests
            request.page_token = page.next_page_token
            if not request.page_token:
                return found

    async def approve(self, account: budget_pb2.Account, id_: str) -> bool:
        """Approve a request; return whether its limit is set, and no second person has to approve it.

        Raises:
            GrisError: As for `levels`.
        """
        request = admin_pb2.ApproveLimitRequest(account=account, id=id_, request_id=new_request_id())
        return bool((await _called(self._admin.ApproveLimit, request, Service.BUDGET)).version)

    async def refuse(self, account: budget_pb2.Account, id_: str, reason: str) -> None:
        """Refuse a request.

        Raises:
            GrisError: As for `levels`.
        """
        request = admin_pb2.RefuseLimitRequest(
            account=account, id=id_, reason=reason, request_id=new_request_id()
        )
        await _called(self._admin.RefuseLimit, request, Service.BUDGET)

    async def charges(self, request: admin_pb2.ListChargesRequest) -> Charges:
        """Return charges, at most ten thousand.

        Raises:
            GrisError: As for `levels`.
        """
        found: list[admin_pb2.ChargeEntry] = []
        request.page_size = PAGE
        while len(found) < MOST_CHARGES:
            page = await _called(self._admin.ListCharges, request, Service.BUDGET)
            found += page.charges
            request.page_token = page.next_page_token
            if not request.page_token:
                break
        return Charges(tuple(found), not request.page_token)

    async def usage(self, request: admin_pb2.GetUsageReportRequest) -> admin_pb2.GetUsageReportResponse:
        """Return how soon limits would have been exhausted.

        Raises:
            GrisError: As for `levels`.
        """
        return await _called(self._admin.GetUsageReport, request, Service.BUDGET)

    async def guarantee(self, account: Sequence[str]) -> AccountGuarantee:
        """Return what the limits of an account promise every member.

        Raises:
            GrisError: As for `levels`.
        """
        noise = DpServiceClient(self._addresses.dp, Timeouts())
        ledger = BudgetServiceClient(self._addresses.budget, account, Timeouts())
        try:
            return await account_guarantee(noise, ledger)
        finally:
            await noise.close()
            await ledger.close()

    async def solve(self, request: dp_pb2.SolveParametersRequest) -> dp_pb2.SolveParametersResponse:
        """Return parameters whose guarantee is within a wanted one.

        Raises:
            GrisError: As for `levels`.
        """
        return await _called(self._dp.SolveParameters, request, Service.DP)

    async def check_policy(self, text: str) -> dp_pb2.CheckPolicyResponse:
        """Return what is wrong with a policy, or what a sound one leaves to know.

        Raises:
            GrisError: As for `levels`.
        """
        return await _called(self._dp.CheckPolicy, dp_pb2.CheckPolicyRequest(text=text), Service.DP)

    async def close(self) -> None:
        """Close the connections."""
        for channel in (self._dp_channel, self._budget_channel, self._admin_channel):
            await channel.close()


async def _called(call: Callable[..., Awaitable[_Response]], request: Message, service: Service) -> _Response:
    try:
        return await call(request, timeout=CALL_SECONDS)
    except grpc.aio.AioRpcError as error:
        # To an owner a service says which part of the request is wrong, and what the ledger does not allow.
        if (violation := _violation(error)) is not None:
            raise InvalidQuestion(*violation) from None
        if service is Service.BUDGET and error.code() is grpc.StatusCode.FAILED_PRECONDITION:
            raise InvalidQuestion("", error.details() or "the ledger refuses this") from None
        raise _translated(service, error) from None


def _translated(service: Service, error: grpc.aio.AioRpcError) -> GrisError:
    return error_of_rpc(service, error)


def _violation(error: grpc.aio.AioRpcError) -> tuple[str, str] | None:
    """Return which field a service finds wrong and why."""
    status = rpc_status.from_call(error)  # type: ignore[arg-type]  # it needs what both kinds of call have
    for detail in () if status is None else status.details:
        bad = error_details_pb2.BadRequest()
        if detail.Unpack(bad) and bad.field_violations:
            return bad.field_violations[0].field, bad.field_violations[0].description
    return None
