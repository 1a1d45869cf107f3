"""The client for whoever is not trusted with counts: it asks a gateway, which asks everybody else.

    gris://gateway.example.org:8443

It has the questions and results of `AsyncPrivateClient`, and needs neither an engine nor the services.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import TracebackType
from typing import TypeVar
from urllib.parse import urlsplit

import grpc
from google.protobuf.message import Message
from gris_api.app.v1 import app_pb2, app_pb2_grpc
from gris_api.budget.v1 import budget_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2

from pinot_connector import telemetry
from pinot_connector.budgets import Level, cost_of, level_of, questions_left, share_of
from pinot_connector.catalog import Catalog
from pinot_connector.catalog_pages import whole_catalog
from pinot_connector.channels import open_channel
from pinot_connector.client_base import ClientBase
from pinot_connector.endpoints import Address, Credentials, Endpoint
from pinot_connector.engines.base import ExpectedColumn
from pinot_connector.errors import IntegrityError, InvalidQuestion, OutcomeUnknown, ServiceUnavailable
from pinot_connector.guarantees import AccountGuarantee, PublishedDomain, account_guarantee_of
from pinot_connector.questions import checked_text, checked_texts, sql_question
from pinot_connector.releases import Noisy, merged
from pinot_connector.results import (
    COLUMN_TYPES,
    INTERVAL_KINDS,
    Explanation,
    PrivateResult,
    known,
    parameters_of,
    rows_of,
)
from pinot_connector.rpc_errors import Service, error_of_rpc

SCHEME = "gris"
ASK_SECONDS = 120.0
CALL_SECONDS = 30.0
SYSTEM_TRUST = Credentials()

_SERVICE = app_pb2.DESCRIPTOR.services_by_name["PrivateQueryService"].full_name
# These change nothing. A question is sent once: whoever wants to repeat it gives it a request id.
_REPEATED_BY_GRPC = [
    f"{_SERVICE}/{method}"
    for method in ("Explain", "GetRemaining", "GetGuarantee", "GetCatalog", "ListReleases")
]

_Response = TypeVar("_Response")


class AsyncGatewayClient(ClientBase[Awaitable[PrivateResult]]):
    """Asks private questions by a gateway, for the account that the gateway knows the caller by.

    Use it in one event loop, with any number of questions at a time.

    Args:
        gateway: the gateway's address, see `gateway_address`.
        account: whose budget pays: the caller's own account, or one below it where the gateway's rules allow that;
            None: the caller's own.

    Raises:
        InvalidQuestion: the account is no text, or a file of the credentials cannot be used.
    """

    def __init__(self, gateway: Address, *, account: str | Sequence[str] | None = None) -> None:
        path = account.split("/") if isinstance(account, str) else account
        self._account = None if path is None else budget_pb2.Account(path=checked_texts("account", path))
        self._channel = open_channel(gateway, _REPEATED_BY_GRPC)
        self._stub: app_pb2_grpc.PrivateQueryServiceAsyncStub = app_pb2_grpc.PrivateQueryServiceStub(
            self._channel
        )  # type: ignore[assignment]

    async def ask(self, question: question_pb2.Question, *, request_id: str = "") -> PrivateResult:
        """Answers a question, once it is paid for; see `Asking.ask`.

        With a `request_id` (at most 128 printable ASCII characters) it may be asked again if the answer was lost: the
        gateway then returns the result that was paid for.
        """
        request = app_pb2.AskRequest(
            question=question, account=self._account, request_id=checked_text("request_id", request_id)
        )
        parts: list[dp_pb2.ReleasedElements] = []
        end: app_pb2.Result | None = None
        try:
            with telemetry.remote_call(request) as metadata:
                async for response in self._stub.Ask(request, timeout=ASK_SECONDS, metadata=metadata):
                    if response.HasField("end"):
                        end = response.end
                    else:
                        parts.append(response.chunk)
        except grpc.RpcError as error:
            raise error_of_rpc(Service.GATEWAY, error) from None
        if end is None:
            raise IntegrityError("the gateway stopped before the end of a result")
        return result_of(parts, end)

    async def explain(self, question: question_pb2.Question | str) -> Explanation:
        """Tells what a question (or SQL) would cost at most, and of the budget, without asking or paying.

        It names no engine's query.
        """
        asked = sql_question(question) if isinstance(question, str) else question
        request = app_pb2.ExplainRequest(question=asked, account=self._account)
        message = await self._call(self._stub.Explain, request)
        return Explanation(
            worst_case_cost=cost_of(message.worst_case_cost),
            parameters=parameters_of(message.parameters),
            sentences=tuple(message.explanation),
            queries=(),
            shares=tuple(map(share_of, message.shares)),
        )

    async def remaining(self) -> tuple[Level, ...]:
        """Tells the budget: every level that has a limit, from the widest to the account itself."""
        request = app_pb2.GetRemainingRequest(account=self._account)
        return tuple(map(level_of, (await self._call(self._stub.GetRemaining, request)).levels))

    async def guarantee(self, *, domains: Sequence[PublishedDomain] = ()) -> AccountGuarantee:
        """Tells how private all is that the account is shown; `domains` are as for `AsyncPrivateClient.guarantee`."""
        request = app_pb2.GetGuaranteeRequest(
            account=self._account, domains=[each.message() for each in domains]
        )
        return account_guarantee_of(await self._call(self._stub.GetGuarantee, request))

    async def questions_left(self, question: question_pb2.Question | str) -> int | None:
        """Tells how many more questions like this one can be asked for certain; None if no limit is enforced."""
        explanation = await self.explain(question)
        return questions_left(await self.remaining(), explanation.worst_case_cost)

    async def catalog(self, table: str = "") -> Catalog:
        """Tells what may be asked, of one table or (empty) of all."""
        return await whole_catalog(self._catalog_page, table)

    async def releases(self, *, page_size: int = 0) -> AsyncIterator[app_pb2.PastRelease]:
        """Yields the results that the account has paid for, newest first, as the gateway keeps them."""
        request = app_pb2.ListReleasesRequest(account=self._account, page_size=page_size)
        while True:
            page = await self._call(self._stub.ListReleases, request)
            for release in page.releases:
                yield release
            request.page_token = page.next_page_token
            if not request.page_token:
                return

    async def close(self) -> None:
        """Closes the connection. Closing twice is allowed."""
        await self._channel.close()

    async def __aenter__(self) -> AsyncGatewayClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _catalog_page(self, request: dp_pb2.GetCatalogRequest) -> dp_pb2.GetCatalogResponse:
        asked = app_pb2.GetCatalogRequest(
            table=request.table, page_size=request.page_size, page_token=request.page_token
        )
        return (await self._call(self._stub.GetCatalog, asked)).page

    async def _call(self, call: Callable[..., Awaitable[_Response]], request: Message) -> _Response:
        try:
            with telemetry.remote_call(request) as metadata:
                return await call(request, timeout=CALL_SECONDS, metadata=metadata)
        except grpc.RpcError as error:
            meant = error_of_rpc(Service.GATEWAY, error)
            # Only a question changes anything, so of the other calls a lost answer leaves nothing unknown.
            lost = isinstance(meant, OutcomeUnknown)
            raise (ServiceUnavailable(Service.GATEWAY, "no answer") if lost else meant) from None


def gateway_address(url: str, credentials: Credentials = SYSTEM_TRUST) -> Address:
    """Returns the address that a URL, gris://HOST:PORT, names; it is always reached by TLS.

    Raises:
        InvalidQuestion: it is another kind of URL.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    beside = (parts.path.strip("/"), parts.query, parts.fragment, parts.username, parts.password)
    if parts.scheme != SCHEME or not parts.hostname or port is None or any(beside):
        raise InvalidQuestion("gateway", "expected gris://HOST:PORT")
    return Endpoint(parts.netloc, credentials)


def result_of(parts: Sequence[dp_pb2.ReleasedElements], end: app_pb2.Result) -> PrivateResult:
    """Puts the messages of a result together.

    Raises:
        IntegrityError: they do not belong together, or say something that this version does not know.
    """
    columns = tuple(ExpectedColumn(column.name, known(COLUMN_TYPES, column.type)) for column in end.columns)
    noisy: Noisy = merged(columns, parts, dp_pb2.Release(element_count=end.element_count))
    return PrivateResult(
        columns=columns,
        count_alias=end.count_alias or None,
        rows=rows_of(columns, noisy),
        ended_in_bottom=end.ended_in_bottom,
        bottom=end.bottom if end.HasField("bottom") else None,
        parameters=parameters_of(end.parameters),
        interval_kind=known(INTERVAL_KINDS, end.interval_kind),
        confidence=end.confidence,
        cost=cost_of(end.cost),
        charged=cost_of(end.charged),
        remaining=tuple(map(level_of, end.remaining)),
        data_version=end.data_version,
        release_id=end.release_id,
        query_id=end.query_id,
        key_id=end.key_id,
    )
