"""What callers ask of the gateway: functions of a call and a message, whatever protocol has carried them."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from gris_api.app.v1 import app_pb2
from gris_api.budget.v1 import budget_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2

from gris_gateway import messages, offered_results, rpc_errors
from gris_gateway.accounts import AccountError, Caller, OutOfReachError
from gris_gateway.history import MAX_ELEMENT_BYTES, History
from gris_gateway.limits import DEFAULT_LIMITS, GatewayLimits
from gris_gateway.offered_tables import OfferedTables
from gris_gateway.page_tokens import PageTokens
from gris_gateway.rate_limits import AdmittedCall, TooManyError
from gris_gateway.rpc_errors import RequestError
from gris_serving import logs
from pinot_connector import telemetry
from pinot_connector.checked_arguments import require_confidence, require_max_cost
from pinot_connector.client import AsyncPrivateClient
from pinot_connector.guarantees import PublishedDomain
from pinot_connector.query_pipeline import Admission
from pinot_connector.results import PrivateResult
from pinot_connector.views import message_of

MAX_REQUEST_ID = 128
# What is left of a call's time for the answer that its budget is held.
ANSWERING_SECONDS = 1.0
SMALL_ROWS = 1000

Account = tuple[str, ...]
_Converted = TypeVar("_Converted")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Call:
    """A call that has been admitted.

    Attributes:
        caller: Who calls.
        admitted: The call within the caller's limits.
        seconds: How long it may take; None: any time.
    """

    caller: Caller
    admitted: AdmittedCall
    seconds: float | None

    @property
    def wait_seconds(self) -> float | None:
        """How long a question may wait for budget, so that its caller still gets an answer; None: any time."""
        return None if self.seconds is None else max(0.0, self.seconds - ANSWERING_SECONDS)

    def account(self, message: budget_pb2.Account) -> Account:
        """Return the account that pays.

        Raises:
            RequestError: It cannot be an account.
            OutOfReachError: The caller may not name it.
        """
        try:
            return self.caller.account(message.path)
        except AccountError as error:
            raise RequestError("account.path", str(error)) from None


@dataclass(frozen=True)
class Answer:
    """A result as it is sent."""

    chunks: tuple[dp_pb2.ShownElements, ...]
    end: app_pb2.Result

    @classmethod
    def of(cls, result: PrivateResult) -> Answer:
        """Return the messages of a result."""
        return cls(tuple(messages.element_chunks(result)), messages.result_message(result))

    @property
    def messages(self) -> Iterator[app_pb2.AskResponse]:
        """All of them, in order."""
        for chunk in self.chunks:
            yield app_pb2.AskResponse(chunk=chunk)
        yield app_pb2.AskResponse(end=self.end)


class Questions:
    """Answers what callers ask. A method raises `grpc.aio.AioRpcError` with what its caller may know of a failure.

    Args:
        client: Asks the questions.
        history: Keeps the results.
        limits: How long pages are.
        offered: Which tables the catalogue lists; None: all of the policy.
    """

    def __init__(
        self,
        client: AsyncPrivateClient,
        history: History,
        limits: GatewayLimits = DEFAULT_LIMITS,
        *,
        offered: OfferedTables | None = None,
    ) -> None:
        self._client = client
        self._history = history
        self._limits = limits
        self._offered = offered
        self._page_tokens = PageTokens()
        self._answering: dict[tuple[Account, str], asyncio.Event] = {}
        self._finishing: set[asyncio.Task[Answer]] = set()

    async def ask(self, call: Call, request: app_pb2.AskRequest) -> Answer:
        """Answer a question once it is paid for."""
        with _reporting_errors(call, request):
            return await self._answered(call, request)

    async def explain(self, call: Call, request: app_pb2.ExplainRequest) -> app_pb2.ExplainResponse:
        """Return what a question would cost, and its share of each level's budget."""
        with _reporting_errors(call):
            client = self._client_of(call, call.account(request.account))
            await call.admitted.turn()
            return messages.explanation_message(await client.explain(_question(request.question)))

    async def remaining(
        self, call: Call, request: app_pb2.GetRemainingRequest
    ) -> app_pb2.GetRemainingResponse:
        """Return what is left."""
        with _reporting_errors(call):
            account = call.account(request.account)
            await call.admitted.turn()
            client = self._client_of(call, account)
            levels = await offered_results.remaining(client, call.caller.audience)
            return app_pb2.GetRemainingResponse(account=budget_pb2.Account(path=account), levels=levels)

    async def guarantee(
        self, call: Call, request: app_pb2.GetGuaranteeRequest
    ) -> app_pb2.GetGuaranteeResponse:
        """Return the guarantee for everything that an account is shown."""
        with _reporting_errors(call):
            client = self._client.on_behalf_of(call.account(request.account))
            await call.admitted.turn()
            # dp_service reads the numbers, and refuses them by name.
            domains = [PublishedDomain(each.rho, each.delta) for each in request.domains]
            return message_of(app_pb2.GetGuaranteeResponse, await client.guarantee(domains=domains))

    async def catalog(self, call: Call, request: app_pb2.GetCatalogRequest) -> app_pb2.GetCatalogResponse:
        """Return a page of what may be asked."""
        with _reporting_errors(call):
            page = dp_pb2.GetCatalogRequest(
                table=request.table, page_size=request.page_size, page_token=request.page_token
            )
            await call.admitted.turn()
            found = await self._client_of(call, call.caller.own).catalog_page(page)
            if self._offered is not None:
                found = await self._offered.of_page(found, request.table)
            return app_pb2.GetCatalogResponse(page=found)

    async def releases(
        self, call: Call, request: app_pb2.ListReleasesRequest
    ) -> app_pb2.ListReleasesResponse:
        """List what an account has paid for; one that is closed reads nothing."""
        with _reporting_errors(call):
            account, most = call.account(request.account), self._page_size(request.page_size)
            await call.admitted.turn()
            position = self._page_tokens.position(account, request.page_token)
            client = self._client_of(call, account)
            page = await self._history.page(account, most, position)
            if page.releases:
                await client.require_not_closed()
            after = self._page_tokens.token(account, page.after)
            offered = await offered_results.offered(client, page.releases, call.caller.audience)
            listed = [
                each if is_offered else offered_results.without_numbers(each)
                for each, is_offered in zip(page.releases, offered, strict=True)
            ]
            return app_pb2.ListReleasesResponse(releases=listed, next_page_token=after)

    async def finish(self) -> None:
        """Wait until everything is kept that has to be; call it before the release store is closed."""
        await asyncio.gather(*self._finishing, return_exceptions=True)

    async def _answered(self, call: Call, request: app_pb2.AskRequest) -> Answer:
        account = call.account(request.account)
        question, request_id = _question(request.question), _request_id(request.request_id)
        confidence, max_cost = _confidence(request.confidence), _max_cost(request)
        with await self._alone(account, request_id) as alone:
            client = self._client_of(call, account)
            known = await self._history.find(account, request_id) if request_id else None
            if known is not None and (known.question, known.confidence) != (question, request.confidence):
                raise RequestError("request_id", "was used before with another question or confidence")
            if known is not None and not known.elements_omitted:
                await client.require_not_closed()
                if not all(await offered_results.offered(client, [known], call.caller.audience)):
                    raise RequestError(
                        "request_id", "was used before, by an audience that was offered other rows"
                    )
                return _replay(known)
            finishing: list[asyncio.Task[Answer]] = []

            def paid(result: PrivateResult) -> None:
                finishing.append(self._begin_to_finish(call, request, result, alone.pop_all()))

            # An answer from what is kept takes no turn; the query pipeline takes it once there is none.
            turn = partial(call.admitted.turn, request.ByteSize())
            asking = self._client_of(call, account, turn)
            result = await asking.ask(
                question, confidence=confidence, max_cost=max_cost, paid=paid, wait_seconds=call.wait_seconds
            )
        if not finishing:
            # No data were read and nothing was paid, so nothing is kept. Such questions take their turn, too.
            await turn()
            return await _converted(result, lambda: Answer.of(result))
        return await asyncio.shield(finishing[0])

    def _begin_to_finish(
        self, call: Call, request: app_pb2.AskRequest, result: PrivateResult, alone: ExitStack
    ) -> asyncio.Task[Answer]:
        """Begin to keep a result that is paid for: it must not be lost if the caller has left.

        Another request of the same id has to wait for it.
        """
        finishing = asyncio.create_task(self._finished(call, request, result))
        self._finishing.add(finishing)
        finishing.add_done_callback(self._finishing.discard)
        finishing.add_done_callback(lambda _: alone.close())
        return finishing

    async def _finished(self, call: Call, request: app_pb2.AskRequest, result: PrivateResult) -> Answer:
        account, answer = call.account(request.account), await _converted(result, lambda: Answer.of(result))
        client = self._client_of(call, account)
        await offered_results.without_others(client, answer.end.remaining, call.caller.audience)
        past = app_pb2.PastRelease(
            question=request.question,
            request_id=request.request_id,
            result=answer.end,
            confidence=request.confidence,
        )
        past.released_at.GetCurrentTime()
        if sum(chunk.ByteSize() for chunk in answer.chunks) <= MAX_ELEMENT_BYTES:
            past.elements.CopyFrom(messages.all_elements(result))
        else:
            past.elements_omitted = True
        try:
            await self._history.add(account, past)
        except Exception as error:
            # The caller has paid and gets the result all the same.
            fields = {"error": type(error).__name__}
            log.error(
                "A result could not be kept in the history.",
                extra={"event": "history.not_written", "fields": fields},
            )
        return answer

    def _client_of(
        self, call: Call, account: Account, admission: Admission | None = None
    ) -> AsyncPrivateClient:
        """Return a client that asks for an account, as the audience of the caller."""
        return self._client.on_behalf_of(account, admission=admission, audience=call.caller.audience)

    def _page_size(self, wanted: int) -> int:
        largest, default = self._limits.page_size, self._limits.default_page_size
        if not 0 <= wanted <= largest:
            raise RequestError("page_size", f"expected 1 to {largest}, or 0 for {default}")
        return wanted or default

    async def _alone(self, account: Account, request_id: str) -> ExitStack:
        """Wait while another request of an id is being answered, and let none be until the stack is closed."""
        stack = ExitStack()
        if request_id:
            key = (account, request_id)
            while (other := self._answering.get(key)) is not None:
                await other.wait()
            self._answering[key] = ended = asyncio.Event()
            stack.callback(ended.set)
            stack.callback(self._answering.pop, key)
        return stack


async def _converted(result: PrivateResult, convert: Callable[[], _Converted]) -> _Converted:
    """Convert a result off the event loop, unless it is so small that a thread would take longer."""
    return convert() if len(result.rows) <= SMALL_ROWS else await asyncio.to_thread(convert)


def _replay(known: app_pb2.PastRelease) -> Answer:
    end = app_pb2.Result(replayed=True)
    end.MergeFrom(known.result)
    # It was charged for the request before.
    end.charged.information = end.charged.calls = 0
    return Answer((known.elements,), end)


def _question(question: question_pb2.Question) -> question_pb2.Question:
    if question.WhichOneof("form") is None:
        raise RequestError("question", "expected one of structured, sql")
    if question.HasField("audience"):
        raise RequestError("question.audience", "expected none: it follows from who asks")
    return question


def _confidence(stated: float) -> float | None:
    """Return the confidence that a request states; None: none."""
    if not stated:
        return None
    require_confidence(stated)
    return stated


def _max_cost(request: app_pb2.AskRequest) -> int | None:
    stated = request.max_cost if request.HasField("max_cost") else None
    require_max_cost(stated)
    return stated


def _request_id(text: str) -> str:
    if len(text) > MAX_REQUEST_ID or not (text.isascii() and text.isprintable()):
        raise RequestError("request_id", f"expected at most {MAX_REQUEST_ID} printable ASCII characters")
    return text


@contextmanager
def _named(caller: Caller) -> Iterator[None]:
    """Pass the caller's request id on to the calls that are made for it, and let services tell callers apart."""
    with ExitStack() as stack:
        stack.enter_context(telemetry.asking_for(caller.name))
        if (given := logs.request_id()) is not None:
            stack.enter_context(telemetry.request_id(given))
        yield


def _id_of(request: app_pb2.AskRequest, error: Exception) -> str:
    """Return what names a question that is not answered: its own id, that of the call, or a new one."""
    is_unusable = isinstance(error, RequestError) and error.field == "request_id"
    return ("" if is_unusable else request.request_id) or logs.request_id() or uuid.uuid4().hex


@contextmanager
def _reporting_errors(call: Call, question: app_pb2.AskRequest | None = None) -> Iterator[None]:
    """Raise what the caller may know of whatever the block raises; of a question, with its id."""
    try:
        with _named(call.caller):
            yield
    except TooManyError as error:
        raise rpc_errors.too_many(error) from None
    except Exception as error:
        status = rpc_errors.status_of_error(error)
        if question is not None and not isinstance(error, OutOfReachError):
            status = rpc_errors.named(status, _id_of(question, error))
        raise rpc_errors.refusal(status) from None
