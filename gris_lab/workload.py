"""The queries of a dashboard under a policy: what each would be answered and cost, and for how long budgets last.

All of it follows from the policy and the queries, and is what dp_service says of a question before it is asked: no
data are read, and nothing is charged.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from gris_api.dp.v1 import question_pb2

from dp_service.queries.audience_terms import AskedAs
from dp_service.queries.errors import PolicyError, RefusedByPolicyError
from dp_service.queries.sql.places import MAXIMUM_LENGTH
from dp_service.queries.tables import Policy
from dp_service.releases.keys import KEY_BYTES, NoiseKey
from dp_service.releases.kinds import UnusableParametersError
from dp_service.releases.translation import FRESH_BYTES, IssueContext, plan_for
from dp_service.server.errors import RequestError, is_expected_error
from dp_service.server.pricing import priced
from dp_service.server.question_cache import QuestionCache
from dp_service.server.question_messages import audience_of
from dp_service.server.served_policy import PolicyContent, usable_policy
from gris_data.errors import InputError
from pinot_connector.audiences import Audience, asked_as
from pinot_connector.budgets import Cost
from pinot_connector.errors import ErrorCode
from pinot_connector.liveness import is_liveness_check
from pinot_connector.questions import sql_question
from pinot_connector.results import Explanation, explanation_of

MONTH_DAYS = Fraction(487, 16)
MOST_QUERIES = 1000
# Of so many audiences errors give the names.
_LISTED = 20
_PIECE = re.compile(
    r"""(?P<quoted>'(?:[^']|'')*+'?|"(?:[^"]|"")*+"?|`(?:[^`]|``)*+`?)
      | (?P<comment>--[^\r\n]*|/\*.*?\*/)
      | (?P<space>\s++)
      | (?P<end>;)
      | (?P<other>[^\s;'"`/-]++|.)""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT_SIGNS = re.compile(r"^(?:--|/\*)|\*/$")


@dataclass(frozen=True)
class Query:
    """One statement of a file.

    Attributes:
        line: The line of the file where it begins.
        title: The comment before it; empty if there is none.
        text: Its SQL behind as many lines and columns as there are before it, so that places in it are the file's.
    """

    line: int
    title: str
    text: str


def queries_of(text: str) -> list[Query]:
    """Return the statements of a file, which `;` separates, without `SELECT 1`, which asks nothing.

    Raises:
        InputError: It has none, or is longer than any question, or has too many.
    """
    if len(text.encode()) > MAXIMUM_LENGTH:
        raise InputError(f"expected at most {MAXIMUM_LENGTH:,} bytes of SQL")
    found = [each for each in _statements(text) if not is_liveness_check(each.text)]
    if not 1 <= len(found) <= MOST_QUERIES:
        raise InputError(
            f"expected 1 to {MOST_QUERIES:,} statements, separated by semicolons, got {len(found):,}"
        )
    return found


def _statements(text: str) -> Iterator[Query]:
    begun, title = None, ""
    for piece in (*_PIECE.finditer(text), None):
        kind = "end" if piece is None else piece.lastgroup
        if kind == "end":
            if begun is not None:
                yield _query(text, begun, len(text) if piece is None else piece.start(), title)
            begun, title = None, ""
        elif piece is not None and begun is None and kind == "comment":
            title = _COMMENT_SIGNS.sub("", piece[0]).strip()
        elif piece is not None and begun is None and kind != "space":
            begun = piece.start()


def _query(text: str, start: int, end: int, title: str) -> Query:
    lines, column = text.count("\n", 0, start), start - text.rfind("\n", 0, start) - 1
    return Query(lines + 1, title.partition("\n")[0], "\n" * lines + " " * column + text[start:end])


@dataclass(frozen=True)
class Refusal:
    """Why a query is not answered, in the words of the service: with place, and with what to write instead."""

    code: ErrorCode
    message: str
    rule: str = ""


@dataclass(frozen=True)
class Answered:
    """What becomes of a query.

    Attributes:
        query: The query.
        outcome: What it would cost at most and be answered, or why it is refused.
        is_free: Whether nothing is paid for it, no matter who asks.
        repeats: The line of the query before it that asks the same, so that this one is free; 0: there is none.
    """

    query: Query
    outcome: Explanation | Refusal
    is_free: bool = False
    repeats: int = 0

    @property
    def cost(self) -> Cost | None:
        """The most that is paid for it beside the queries before it; None: nothing is, or it is refused."""
        if self.is_free or self.repeats or isinstance(self.outcome, Refusal):
            return None
        return self.outcome.worst_case_cost


def answers(policy: Path, queries: Sequence[Query], audience: Audience | None, *, now: int) -> list[Answered]:
    """Return what a policy makes of queries, in their order.

    Args:
        policy: The policy's file.
        queries: The queries.
        audience: As which audience they are asked; None: the policy states none.
        now: Seconds since 1970 (UTC); decides which periods are closed.

    Raises:
        InputError: The policy cannot be used, or has no such audience.
    """
    asking = _Asking.of(policy, audience, now)
    found: list[Answered] = []
    first: dict[str, int] = {}
    for query in queries:
        found.append(asking.answered(query, first))
    return found


def _audience_fault(policy: Policy, asking: AskedAs | None) -> str:
    got = "none" if asking is None else ",".join((asking.audience, *(f"{k}={v}" for k, v in asking.values)))
    known = [
        ",".join((name, *(f"{value}=VALUE" for value in sorted(each.names))))
        for name, each in sorted(policy.audiences.items())
    ]
    if not known:
        return f"the policy states no audiences, got {got}"
    more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
    return f"the policy answers audiences alone: expected {' or '.join(known[:_LISTED])}{more}; got {got}"


@dataclass(frozen=True)
class _Asking:
    content: PolicyContent
    audience: Audience | None
    now: int
    cache: QuestionCache
    # It names questions, and is forgotten: nothing is drawn with it.
    key: NoiseKey

    @classmethod
    def of(cls, policy: Path, audience: Audience | None, now: int) -> _Asking:
        key = NoiseKey(secrets.token_bytes(KEY_BYTES))
        try:
            content = usable_policy(policy.read_bytes(), str(policy), key)
            asking = audience_of(asked_as(question_pb2.Question(), audience))
        except OSError as error:
            raise InputError(f"{policy}: {error.strerror}", "policy") from None
        except (PolicyError, UnusableParametersError) as error:
            raise InputError(str(error), "policy") from None
        except RequestError as error:
            raise InputError(str(error), "audience") from None
        try:
            seen = content.seen_by(asking)
        except RefusedByPolicyError:
            # Analysts are shown no names; the owner has the policy.
            raise InputError(_audience_fault(content.policy, asking), "audience") from None
        return cls(seen, audience, now, QuestionCache(), key)

    def answered(self, query: Query, first: dict[str, int]) -> Answered:
        """Return what becomes of a query; `first` has the lines of those before it, by what they ask."""
        try:
            return self._priced(query, first)
        except Exception as error:
            if not is_expected_error(error):
                raise
            if isinstance(error, RefusedByPolicyError):
                refusal = Refusal(ErrorCode.REFUSED_BY_POLICY, str(error), error.rule.value)
            else:
                refusal = Refusal(ErrorCode.INVALID_QUESTION, str(error))
        return Answered(query, refusal)

    def _priced(self, query: Query, first: dict[str, int]) -> Answered:
        question = asked_as(sql_question(query.text), self.audience)
        asked = self.cache.resolve(question, self.content.policy, now=self.now)
        message = priced(asked, question)
        explanation = explanation_of(message.estimate, message.engine_queries)
        if asked.query.free is not None or asked.query.explained:
            return Answered(query, explanation, is_free=True)
        # Where each question has noise of its own, so has each id.
        issued = IssueContext(self.now, secrets.token_bytes(FRESH_BYTES))
        name = plan_for(asked.resolution, "data", self.key, issued).query_id
        before = first.setdefault(name, query.line)
        return Answered(query, explanation, repeats=0 if before == query.line else before)


def costs_of(found: Sequence[Answered], purpose: str = "") -> tuple[Cost, ...]:
    """Return what all queries, or those for a purpose, together cost at most.

    It is one cost, or one for each block of members that pays for some.
    """
    costs = [each.cost for each in found if each.cost is not None]
    paid = [each for each in costs if purpose in ("", each.purpose)]
    if not paid:
        return ()
    payers: set[tuple[str, ...]] = {(block,) for each in paid for block in each.blocks}
    return tuple(
        _summed([each for each in paid if _pays(payer, each)], payer) for payer in sorted(payers or {()})
    )


def _pays(payer: tuple[str, ...], cost: Cost) -> bool:
    return not cost.blocks or set(payer) <= set(cost.blocks)


def _summed(counted: Sequence[Cost], payer: tuple[str, ...]) -> Cost:
    information, calls = sum(each.information for each in counted), sum(each.calls for each in counted)
    return Cost(information, calls, counted[0].unit_id, payer)


@dataclass(frozen=True)
class Limit:
    """A limit of units and calls, renewed after a window of so many days; 0: never. It may be recorded alone.

    With a purpose, it is what the limit has for that alone.
    """

    name: str
    information: int
    calls: int
    window: str
    days: Fraction
    is_enforced: bool = True
    purpose: str = ""


@dataclass(frozen=True)
class Renewed:
    """How often a month the budget pays for all queries, and for how many accounts at the stated rate."""

    each_month: Fraction
    accounts: int


@dataclass(frozen=True)
class Lasting:
    """For how many months a budget that is never renewed pays for one account at the stated rate."""

    months: Fraction


@dataclass(frozen=True)
class Carried:
    """How far a budget goes: how often all queries fit into it, each time on new data, and for whom or how long."""

    budget: Limit
    fits: int
    goes: Renewed | Lasting


def carried(costs: Sequence[Cost], budget: Limit, rate: Fraction) -> Carried:
    """Return how far a budget goes at a rate of refreshes a month, for queries that cost something."""
    fits = min(
        limit // each
        for cost in costs
        for limit, each in ((budget.information, cost.information), (budget.calls, cost.calls))
        if each
    )
    if not budget.days:
        return Carried(budget, fits, Lasting(fits / rate))
    each_month = fits * MONTH_DAYS / budget.days
    return Carried(budget, fits, Renewed(each_month, int(each_month / rate)))
