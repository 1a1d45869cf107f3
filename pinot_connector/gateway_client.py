"""The gateway client: for programs that must not see true counts. It asks a gateway, which asks everything else.

    gris://gateway.example.org:8443

It has the questions and results of `AsyncPrivateClient`, and needs neither an engine nor the services.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import TypeVar
from urllib.parse import urlsplit

import grpc
from google.protobuf.message import Message
from gris_api.app.v1 import app_pb2, app_pb2_grpc
from gris_api.budget.v1 import budget_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2

from pinot_connector import telemetry
from pinot_connector.budgets import Charge, Level, cost_of, level_of, questions_left, share_of
from pinot_connector.catalog import Catalog
from pinot_connector.catalog_pages import whole_catalog
from pinot_connector.channels import open_channel
from pinot_connector.checked_arguments import (
    checked_text,
    checked_texts,
    require_confidence,
    require_max_cost,
)
from pinot_connector.client_base import ClientBase
from pinot_connector.element_messages import merged
from pinot_connector.endpoints import Address, Credentials, Endpoint
from pinot_connector.errors import IntegrityError, InvalidQuestion, OutcomeUnknown, ServiceUnavailable
from pinot_connector.gateway_calls import GatewayCalls
from pinot_connector.guarantees import AccountGuarantee, PublishedDomain, account_guarantee_of
from pinot_connector.questions import sql_question
from pinot_connector.results import Explanation, PrivateResult, explaining, explanation_of, prepared
from pinot_connector.rpc_errors import Service, error_of_rpc, no_answer
from pinot_connector.views import message_of

SCHEME = "gris"
ASK_SECONDS = 120.0
CALL_SECONDS = 30.0
SYSTEM_TRUST = Credentials()
_EXPECTED = "expected gris://HOST:PORT"
_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,252}")
_SCHEMES_OF_GRPC = frozenset(
    (
        "binder",
        "dns",
        "fake",
        "google-c2p",
        "google-c2p-experimental",
        "inproc",
        "ipv4",
        "ipv6",
        "unix",
        "unix-abstract",
        "vsock",
        "xds",
    )
)

_SERVICE = app_pb2.DESCRIPTOR.services_by_name["PrivateQueryService"].full_name
# These change nothing. A question is sent once: callers who want to retry it give it a request id.
_RETRIED_BY_GRPC = [
    f"{_SERVICE}/{method}"
    for method in ("Explain", "GetRemaining", "GetGuarantee", "GetCatalog", "ListReleases")
]

_Response = TypeVar("_Response")


class AsyncGatewayClient(ClientBase[Awaitable[PrivateResult]]):
    """Asks private questions through a gateway, which knows the caller's account by certificate or token.

    Use it in one event loop, with any number of questions at a time.

    Args:
        gateway: the gateway's address; see `gateway_address`. Inside the gateway's own process, its calls.
        account: whose budget pays: the caller's own account, or one below it where the gateway's rules allow that;
            None: the caller's own. The attribute is its path, from the root on, or empty.

    Raises:
        InvalidQuestion: the account is no text, or a file of the credentials cannot be used.
    """

    def __init__(
        self,
        gateway: Address | GatewayCalls,
        *,
        account: str | Sequence[str] | None = None,
    ) -> None:
        path = account.split("/") if isinstance(account, str) else account
        self._account = None if path is None else budget_pb2.Account(path=checked_texts("account", path))
        self.account = tuple(path or ())
        self._channel: grpc.aio.Channel | None = None
        self._address = "this process"
        if isinstance(gateway, str | Endpoint):
            self._address = gateway if isinstance(gateway, str) else f"gris://{gateway.address}"
            self._channel = open_channel(gateway, _RETRIED_BY_GRPC)
            gateway = app_pb2_grpc.PrivateQueryServiceStub(self._channel)
        self._stub: app_pb2_grpc.PrivateQueryServiceAsyncStub = gateway  # type: ignore[assignment]

    async def ask(
        self,
        question: question_pb2.Question,
        *,
        request_id: str = "",
        confidence: float | None = None,
        max_cost: int | None = None,
    ) -> PrivateResult:
        """Answers a question that `structured_question` or `sql_question` built.

        Guarantee: together with everything else that the account's budget pays for in a window, the result is
        (epsilon, delta)-differentially private for every member, with the values that `guarantee` returns.

        Args:
            question: what to ask.
            request_id: at most 128 printable ASCII characters that name this request. A retry with the same name gets
                the result that was paid for, without a second charge; empty: a retry is another request.
            confidence: the probability that an interval covers the number before noise, strictly between 0.5 and 1;
                None: that of the gateway. Of a release that is paid for, any confidence is free.
            max_cost: the most information units that the question may cost: one whose worst case is more is refused
                before anything is asked. What is paid for stays free. None: whatever the budget holds.

        Returns:
            The result, which has been charged; nothing of it is available before.

        Raises:
            InvalidQuestion: the question, the confidence or `max_cost` is malformed, or the question may cost more than
                that; `field` says which.
            RefusedByPolicy: the policy forbids the question.
            BudgetExhausted: the budget does not hold the worst-case cost; `shortfalls` says where.
            AccountUnknown: the account has no budget.
            GrisError: there is no result for another reason; see `errors`.

        Example:
            >>> question = structured_question("feedback", "app", k=None)
            >>> result = await client.ask(question, request_id="monday-1")
            >>> result.parameters.domain_size
            4
        """
        if confidence is not None:
            require_confidence(confidence)
        require_max_cost(max_cost)
        request = app_pb2.AskRequest(
            question=question,
            account=self._account,
            request_id=checked_text("request_id", request_id),
            confidence=confidence,
            max_cost=max_cost,
        )
        chunks: list[dp_pb2.ShownElements] = []
        end: app_pb2.Result | None = None
        try:
            with telemetry.remote_call(request) as metadata:
                async for response in self._stub.Ask(request, timeout=ASK_SECONDS, metadata=metadata):
                    if response.HasField("end"):
                        end = response.end
                    else:
                        chunks.append(response.chunk)
        except grpc.RpcError as error:
            raise error_of_rpc(Service.GATEWAY, error, self._address) from None
        if end is None:
            raise IntegrityError("the gateway stopped before the end of a result")
        return result_of(chunks, end)

    async def explain(self, question: question_pb2.Question | str) -> Explanation:
        """Returns what a question would cost at most, its share of the budget, and what would be done.

        Nothing is charged or reserved.

        Guarantee: explaining reads no data, so it reveals nothing about any member beyond what the balance shows.

        Args:
            question: a question that `structured_question` or `sql_question` built, or a question in SQL.

        Returns:
            The explanation: worst-case cost in information units and calls, its shares of every limit, the mechanism's
            parameters, and sentences for people; a gateway does not show the queries of engines.

        Raises:
            InvalidQuestion: the question is malformed; `field` says where.
            RefusedByPolicy: the policy forbids the question.
            AccountUnknown: the account has no budget.
            ServiceUnavailable: the gateway, or a service behind it, does not answer.

        Example:
            >>> explanation = await client.explain("SELECT app, COUNT(DISTINCT member_id) FROM feedback GROUP BY app")
            >>> explanation.worst_case_cost.information, explanation.worst_case_cost.calls
            (4, 0)
        """
        asked = sql_question(question) if isinstance(question, str) else question
        request = app_pb2.ExplainRequest(question=asked, account=self._account)
        return _explanation_of(await self._call(self._stub.Explain, request))

    async def remaining(self) -> tuple[Level, ...]:
        """Returns the budget; see `AsyncPrivateClient.remaining`."""
        request = app_pb2.GetRemainingRequest(account=self._account)
        return tuple(map(level_of, (await self._call(self._stub.GetRemaining, request)).levels))

    async def guarantee(self, *, domains: Sequence[PublishedDomain] = ()) -> AccountGuarantee:
        """Returns how private everything is that the account is shown in a window.

        It counts the published domains of the served policy and of every policy under which the window was charged.

        Guarantee: whatever questions are asked, everything that the account is shown in a window is together
        (epsilon, delta)-differentially private for every member; both numbers are rounded up.

        Args:
            domains: further published domains that the account saw, such as those of a policy under which it was
                charged nothing.

        Returns:
            The guarantee: `own` for what the account's budget pays for, `shared` if limits above it reveal more.

        Raises:
            InvalidQuestion: a number is out of range.
            AccountUnknown: the account has no budget.
            ServiceRefused: the budget is in another currency than dp_service's policy (`reason` UNIT_MISMATCH), or the
                ledger cannot report what was published under the window's charges (TOO_MANY_STATEMENTS).
            ServiceUnavailable: the gateway, or a service behind it, does not answer.

        Example:
            >>> guarantee = await client.guarantee()
            >>> 0 < guarantee.own.guarantee.epsilon <= guarantee.epsilon
            True
        """
        request = app_pb2.GetGuaranteeRequest(
            account=self._account, domains=[message_of(dp_pb2.PublishedDomain, each) for each in domains]
        )
        return account_guarantee_of(await self._call(self._stub.GetGuarantee, request))

    async def questions_left(self, question: question_pb2.Question | str) -> int | None:
        """Returns how many more such questions can be asked; see `AsyncPrivateClient.questions_left`."""
        explanation = await self.explain(question)
        return questions_left(await self.remaining(), explanation.worst_case_cost)

    async def catalog(self, table: str = "") -> Catalog:
        """Returns what may be asked: tables, columns with their domains, measures, and each column's mechanism.

        Guarantee: the catalogue holds only the policy and published domains, whose price `guarantee` counts; no data
        are read.

        Args:
            table: the name of the only table to describe; empty for all.

        Returns:
            The catalogue, and the currency that costs are in.

        Raises:
            RefusedByPolicy: the policy lists no such table.
            ServiceUnavailable: the gateway, or a service behind it, does not answer.

        Example:
            >>> catalog = await client.catalog("feedback")
            >>> catalog.tables[0].member
            'member_id'
        """
        return await whole_catalog(self._catalog_page, table)

    async def releases(self, *, page_size: int = 0) -> AsyncIterator[app_pb2.PastRelease]:
        """Yields the results that the account has paid for and the gateway keeps, newest first.

        Args:
            page_size: how many results to fetch in one call; 0: the gateway's own number.

        Raises:
            GrisError: the gateway, or a service behind it, does not answer.
        """
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
        if self._channel is not None:
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
            translated = error_of_rpc(Service.GATEWAY, error, self._address)
            # Only a question changes anything: after any other call, a lost answer leaves nothing unknown.
            if isinstance(translated, OutcomeUnknown):
                translated = ServiceUnavailable(Service.GATEWAY, no_answer(error, self._address))
            raise translated from None


def gateway_address(url: str, credentials: Credentials = SYSTEM_TRUST) -> Endpoint:
    """Returns the address of a gateway; it is always reached by TLS.

    Args:
        url: gris://HOST:PORT, with the name or the IP address of one host.
        credentials: the authorities to trust, and the certificate or token by which the gateway knows the caller.

    Raises:
        InvalidQuestion: it is another kind of URL.
    """
    try:
        split = urlsplit(url)
        port = split.port
        host = _host(split.hostname or "")
    except ValueError:
        raise InvalidQuestion("gateway", _EXPECTED) from None
    surplus = (split.path.strip("/"), split.query, split.fragment, split.username, split.password)
    if split.scheme != SCHEME or not port or any(surplus):
        raise InvalidQuestion("gateway", _EXPECTED)
    return Endpoint(f"{host}:{port}", credentials)


def _host(name: str) -> str:
    """Returns a host as gRPC takes it.

    Raises:
        ValueError: it is no name and no IP address, or gRPC would read it as a scheme: "unix:8443" is a local socket.
    """
    if ":" in name:
        return f"[{ipaddress.IPv6Address(name)}]"
    if not _NAME.fullmatch(name) or name in _SCHEMES_OF_GRPC:
        raise ValueError(name)
    return name


def result_of(chunks: Iterable[dp_pb2.ShownElements], end: app_pb2.Result) -> PrivateResult:
    """Assembles a result from its messages.

    Raises:
        IntegrityError: they do not belong together, or say something that this version does not know.
    """
    elements = merged(dp_pb2.ShownElements(), chunks)
    charge = Charge(cost_of(end.charged), tuple(map(level_of, end.remaining)))
    result = prepared(end.shown, elements)(charge)
    return explaining(result, _explanation_of(end.price)) if end.HasField("price") else result


def _explanation_of(message: app_pb2.ExplainResponse) -> Explanation:
    return explanation_of(message.estimate, shares=map(share_of, message.shares))
