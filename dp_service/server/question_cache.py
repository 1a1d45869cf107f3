"""What questions mean under the policy of now, kept for those that are asked again.

A resolution follows from the question, the policy, the audience and which periods are closed, and from nothing else:
never from data, and not from who asks. So what is kept is named by the whole question, the audience and where the
closed periods end, and is forgotten when another policy is served. Plans are not kept: each has a time, and may have
random bytes, of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import TypeAlias

from gris_api.dp.v1 import dp_pb2, question_pb2

from dp_service.queries.audience_terms import AskedAs
from dp_service.queries.filters import Filter
from dp_service.queries.policy import Policy
from dp_service.queries.render import render, required_features
from dp_service.queries.resolution import Resolution
from dp_service.queries.sql import parse_condition, with_dimensions, with_places
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.kinds import kind_of
from dp_service.releases.resolving import resolve_question
from dp_service.releases.usefulness import PublicSizes, TypicalError, public_sizes, typical_errors
from dp_service.server.errors import RequestError
from dp_service.server.messages import FEATURES
from dp_service.server.question_messages import structured_question
from dp_service.server.sql_cache import ParsedSqlCache

MAX_KEPT = 256
# What is kept of larger ones could fill the memory.
MAX_QUESTION_BYTES = 16 * 1024
MAX_ELEMENTS = 1000
# A question that is read and resolved within a millisecond, if one like it was.
MAX_QUICK_BYTES = 2048

_Key: TypeAlias = tuple[str | bytes, int | None, AskedAs | None]


@dataclass(frozen=True)
class CachedQuestion:
    """A question, its resolution, and the policy statement of the policy that resolved it.

    `allowed` are the units that it may cost by what it says of how exact it has to be; empty: it has no such price.
    `sizes` is what is public of how large its numbers can be.
    """

    query: HistogramQuery
    resolution: Resolution
    policy_statement: str
    sizes: PublicSizes
    allowed: Sequence[int] = ()
    _rendered: dict[str, dp_pb2.EngineQuery] = field(default_factory=dict, compare=False, repr=False)

    def engine_queries(self, dialects: Iterable[str]) -> list[dp_pb2.EngineQuery]:
        """Return the question's query for each of these engines; each is written once. Do not change them."""
        found = []
        for dialect in dialects:
            if dialect not in self._rendered:
                self._rendered[dialect] = engine_query(self.resolution, dialect)
            found.append(self._rendered[dialect])
        return found

    @cached_property
    def typical_errors(self) -> list[TypicalError]:
        """How far noise moves each number of the answer."""
        return list(typical_errors(kind_of(self.resolution.parameters), self.sizes))

    @cached_property
    def is_small(self) -> bool:
        """Whether it takes little memory, and little time to make a plan of it."""
        parameters = self.resolution.parameters
        listed = [parameters.domain, *parameters.within]
        return sum(len(each) for each in listed if each is not None) <= MAX_ELEMENTS


class QuestionCache:
    """The meanings of the last 256 questions, under one policy: another policy begins anew. Thread-safe."""

    def __init__(self) -> None:
        self._parsed_sql = ParsedSqlCache()
        self._lock = Lock()
        self._kept: tuple[Policy, dict[_Key, CachedQuestion]] | None = None
        # What differs in conditions alone has the same domains and, but for rare cases, the same mechanism.
        self._quick: tuple[Policy, set[bytes]] | None = None

    def is_quick(self, question: question_pb2.Question, policy: Policy) -> bool:
        """Return whether a question takes no longer than handing it to a thread is worth.

        It is small and structured, and one that differs in nothing but conditions has been asked under this policy, and
        turned out to be small as well. It depends on questions and the policy, and on no data.
        """
        quick = self._quick
        if quick is None or quick[0] is not policy:
            return False
        return _without_conditions(question) in quick[1]

    def resolve(self, question: question_pb2.Question, policy: Policy, *, now: int) -> CachedQuestion:
        """Return what a question means.

        Args:
            question: The question.
            policy: The policy of now, as the question's audience sees it; a served one is never changed, only replaced.
            now: Seconds since 1970 (UTC); decides which periods are closed.

        Raises:
            RequestError: The question has no form.
            QuestionError: No policy could answer the question; nothing is kept of that.
            RefusedByPolicyError: The policy does not allow the question.
        """
        query = self._query(question, policy)
        table = policy.table(query.table)
        closed_before = None if table.time is None else table.time.closed_before(now)
        key = _form(question), closed_before, policy.asked_as
        if (known := self._known(key, policy)) is not None:
            return known

        def resolved() -> Resolution:
            return resolve_question(query, policy, now=now)

        answered = with_places(question.sql, policy, resolved) if question.sql else resolved()
        allowed = () if table.contributions is None else table.contributions.allowed_units
        sizes = public_sizes(answered.query, table)
        found = CachedQuestion(query, answered, policy.statement, sizes, allowed)
        self._keep(key, question, policy, found)
        return found

    def _query(self, question: question_pb2.Question, policy: Policy) -> HistogramQuery:
        match question.WhichOneof("form"):
            case "structured":
                asked = question.structured

                def condition(text: str, grouped: tuple[str, ...]) -> tuple[Filter, ...]:
                    return parse_condition(text, policy.table(asked.table), policy, grouped=grouped)

                return with_dimensions(structured_question(asked, condition), policy)
            case "sql":
                return self._parsed_sql.question(question.sql, policy)
            case _:
                raise RequestError("question", "expected one of structured, sql")

    def _known(self, key: _Key, policy: Policy) -> CachedQuestion | None:
        kept = self._kept
        return kept[1].get(key) if kept is not None and kept[0] is _whole(policy) else None

    def _note_quick(self, form: bytes | None, policy: Policy) -> None:
        if form is None:
            return
        if self._quick is None or self._quick[0] is not _whole(policy):
            self._quick = _whole(policy), set()
        if len(self._quick[1]) < MAX_KEPT:
            self._quick[1].add(form)

    def _keep(
        self, key: _Key, question: question_pb2.Question, policy: Policy, found: CachedQuestion
    ) -> None:
        if len(key[0]) > MAX_QUESTION_BYTES or not found.is_small:
            return
        with self._lock:
            if all(each.lookup is None for each in policy.table(found.query.table).columns):
                # Else a condition can bring a file of entries into the query.
                self._note_quick(_without_conditions(question), policy)
            if self._kept is None or self._kept[0] is not _whole(policy):
                self._kept = _whole(policy), {}
            kept = self._kept[1]
            if len(kept) >= MAX_KEPT:
                del kept[next(iter(kept))]
            kept[key] = found


def _whole(policy: Policy) -> Policy:
    return policy.whole or policy


def sql_of(question: question_pb2.Question) -> str:
    """Return the SQL of a question: all of it, or its condition and what it groups by."""
    structured = question.structured
    functions = (each for each in structured.dimensions if "(" in each)
    return question.sql or "".join((structured.condition, *functions))


def _form(question: question_pb2.Question) -> str | bytes:
    """Return the whole question, also what this version does not know of it."""
    return question.sql or question.structured.SerializeToString(deterministic=True)


def _without_conditions(question: question_pb2.Question) -> bytes | None:
    """Return a small structured question without its conditions; None: it is none, or SQL has to be parsed."""
    is_small = question.WhichOneof("form") == "structured" and question.ByteSize() <= MAX_QUICK_BYTES
    if not is_small or sql_of(question):
        return None
    asked = question_pb2.Question(audience=question.audience)
    asked.structured.CopyFrom(question.structured)
    asked.structured.ClearField("filters")
    return asked.SerializeToString(deterministic=True)


def engine_query(resolution: Resolution, dialect: str) -> dp_pb2.EngineQuery:
    """Return the query of a resolved question for an engine."""
    return dp_pb2.EngineQuery(
        dialect=dialect,
        sql=render(resolution, dialect),
        requires=[FEATURES[each] for each in required_features(resolution, dialect)],
        look=look_of(resolution),
    )


def look_of(resolution: Resolution) -> int:
    """Return which of two looks a query is for; 0: there is one look."""
    stated = resolution.parameters.contributions
    if stated is None or stated.names is None:
        return 0
    return 1 if resolution.names is None else 2
