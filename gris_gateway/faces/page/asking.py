"""What a form of the page asks of the gateway, and what the page then shows."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Awaitable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeVar

from pinot_connector.budgets import Level, questions_left
from pinot_connector.catalog import BlocksEntry, TableEntry
from pinot_connector.errors import ErrorCode, GrisError, IntegrityError, OutcomeUnknown, ReleaseNotRecorded
from pinot_connector.gateway_client import AsyncGatewayClient
from pinot_connector.questions import sql_question
from pinot_connector.results import Explanation, PrivateResult

PRICE, ASK = "price", "ask"
_STATUS = {
    ErrorCode.INVALID_QUESTION: HTTPStatus.UNPROCESSABLE_ENTITY,
    ErrorCode.REFUSED_BY_POLICY: HTTPStatus.FORBIDDEN,
    ErrorCode.BUDGET_EXHAUSTED: HTTPStatus.TOO_MANY_REQUESTS,
    ErrorCode.ACCOUNT_UNKNOWN: HTTPStatus.NOT_FOUND,
    ErrorCode.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
    ErrorCode.UNEXPECTED: HTTPStatus.BAD_GATEWAY,
}
_TITLES = {
    ErrorCode.INVALID_QUESTION: "This cannot be asked in this form",
    ErrorCode.REFUSED_BY_POLICY: "The policy does not allow this",
    ErrorCode.BUDGET_EXHAUSTED: "The budget does not hold this",
    ErrorCode.ACCOUNT_UNKNOWN: "This account has no budget",
    ErrorCode.UNAVAILABLE: "There is no answer now",
    ErrorCode.UNEXPECTED: "Something went wrong",
}
_NOTHING_CHARGED = "Nothing was charged."
_MAYBE_CHARGED = (
    "The question may have been charged. Send the same form again: it gets the answer that was paid for, and is not "
    "charged twice."
)
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Form:
    """What somebody sent: nothing, a question whose price is wanted, or one that is asked.

    `sent` names the form, so that a form that is sent twice is paid once; `most` is the price that the page has shown.
    """

    act: str = ""
    sql: str = ""
    sent: str = ""
    most: int | None = None

    @property
    def request_id(self) -> str:
        """The name of the request: another question in the same form is another request."""
        return hashlib.sha256(f"{self.sent}\n{self.sql}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True)
class Problem:
    """Why there is no answer; no message of the connector holds data."""

    title: str
    text: str
    advice: str
    status: HTTPStatus

    @classmethod
    def of(cls, error: GrisError) -> Problem:
        """Return what the page says of an error."""
        return cls(_TITLES[error.code], error.with_request(), _advice(error), _STATUS[error.code])


@dataclass
class Seen:
    """What the page shows; `sent` names its form."""

    form: Form
    sent: str = field(default_factory=lambda: secrets.token_hex(16))
    price: Explanation | None = None
    result: PrivateResult | None = None
    problem: Problem | None = None
    tables: tuple[TableEntry, ...] = ()
    levels: tuple[Level, ...] = ()
    blocks: BlocksEntry | None = None

    @property
    def status(self) -> HTTPStatus:
        """The page's status."""
        return HTTPStatus.OK if self.problem is None else self.problem.status

    @property
    def questions_left(self) -> int | None:
        """How many questions of this price the budget holds; None: any number."""
        return None if self.price is None else questions_left(self.levels, self.price.worst_case_cost)


async def seen_by(client: AsyncGatewayClient, form: Form) -> Seen:
    """Do what a form asks for, and return what the page shows then."""
    seen = Seen(form)
    if form.act == PRICE:
        seen.price = await _or_problem(seen, client.explain(form.sql))
    elif form.act == ASK:
        seen.result = await _or_problem(seen, _asked(client, form))
        if seen.result is None:
            seen.sent = form.sent
        elif seen.result.explanation is not None:
            # SQL that begins with EXPLAIN asks for the price alone.
            seen.price, seen.result = seen.result.explanation, None
    if (catalog := await _or_problem(seen, client.catalog())) is not None:
        seen.tables, seen.blocks = catalog.tables, catalog.blocks
    seen.levels = await _or_problem(seen, client.remaining()) or ()
    return seen


async def _asked(client: AsyncGatewayClient, form: Form) -> PrivateResult:
    return await client.ask(sql_question(form.sql), request_id=form.request_id, max_cost=form.most)


async def _or_problem(seen: Seen, called: Awaitable[_Value]) -> _Value | None:
    """Return what a call returns; None: it failed, and the page says why the first one did."""
    try:
        return await called
    except GrisError as error:
        seen.problem = seen.problem or Problem.of(error)
        return None


def _advice(error: GrisError) -> str:
    is_unread = isinstance(error, IntegrityError) and not isinstance(error, ReleaseNotRecorded)
    if is_unread or isinstance(error, OutcomeUnknown):
        return _MAYBE_CHARGED
    return "" if hasattr(error, "charged") else _NOTHING_CHARGED
