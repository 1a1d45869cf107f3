"""Texts of SQL that were parsed lately: most of what translating one costs, and the same for all who send it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial

from dp_service.queries.policy import Policy
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery

MAX_TEXTS = 256
# Longer ones are rare: of those that are kept, so many are a few megabytes.
MAX_LENGTH = 16_384

_Parse = Callable[[str], HistogramQuery]


class ParsedSqlCache:
    """The questions of the last 256 texts, under one policy: another policy begins anew. Thread-safe."""

    def __init__(self) -> None:
        self._parsing: tuple[Policy, _Parse] | None = None

    def question(self, text: str, policy: Policy) -> HistogramQuery:
        """Returns what a text asks under a policy.

        Args:
            text: The SQL.
            policy: The policy of now; a served policy is never changed, only replaced.

        Raises:
            QuestionError: A construct is not accepted; nothing is kept of that.
            RefusedByPolicyError: The policy does not list a name.
        """
        parsing = self._parsing
        if parsing is None or parsing[0] is not policy:
            parsing = self._parsing = policy, lru_cache(MAX_TEXTS)(partial(parse_sql, policy=policy))
        return parsing[1](text) if len(text) <= MAX_LENGTH else parse_sql(text, policy)
