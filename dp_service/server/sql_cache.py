"""Texts of SQL that were parsed lately: most of what translating one costs, and the same for all who send it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from dp_service.queries.audience_terms import AskedAs
from dp_service.queries.policy import Policy
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery

MAX_TEXTS = 256
# Longer ones are rare: of those that are kept, so many are a few megabytes.
MAX_LENGTH = 16_384


@dataclass(frozen=True)
class _Seen:
    """What an audience sees of one policy, named by the audience."""

    asked_as: AskedAs | None
    policy: Policy = field(compare=False)


_Parse = Callable[[str, _Seen], HistogramQuery]


class ParsedSqlCache:
    """The questions of the last 256 texts, under one policy: another policy begins anew. Thread-safe."""

    def __init__(self) -> None:
        self._parsing: tuple[Policy, _Parse] | None = None

    def question(self, text: str, policy: Policy) -> HistogramQuery:
        """Returns what a text asks under a policy, or what an audience sees of one.

        Args:
            text: The SQL.
            policy: The policy of now; a served policy is never changed, only replaced.

        Raises:
            QuestionError: A construct is not accepted; nothing is kept of that.
            RefusedByPolicyError: The policy does not list a name.
        """
        if len(text) > MAX_LENGTH:
            return parse_sql(text, policy)
        whole, parsing = policy.whole or policy, self._parsing
        if parsing is None or parsing[0] is not whole:
            parsing = self._parsing = whole, lru_cache(MAX_TEXTS)(_parsed)
        return parsing[1](text, _Seen(policy.asked_as, policy))


def _parsed(text: str, seen: _Seen) -> HistogramQuery:
    return parse_sql(text, seen.policy)
