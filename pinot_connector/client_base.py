"""The questions that both clients offer, written once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from gris_api.dp.v1 import question_pb2

from pinot_connector.questions import Condition, Measure, TimeBound, sql_question, structured_question

Answered = TypeVar("Answered")


class ClientBase(ABC, Generic[Answered]):
    """Something that answers questions: with a result, or with one to wait for."""

    @abstractmethod
    def ask(self, question: question_pb2.Question) -> Answered:
        """Answers a question that `questions` built; every other method here ends in this one.

        The result has been paid for when it is returned, and nothing of it exists for the caller before.

        Raises:
            InvalidQuestion, RefusedByPolicy: the question may not be asked.
            BudgetExhausted: its worst case does not fit; `shortfalls` says where.
            GrisError: there is no result for another reason; see `errors`.
        """

    def top_k(
        self,
        table: str,
        by: str | Sequence[str],
        k: int,
        *,
        measure: Measure | str = Measure.DISTINCT_MEMBERS,
        where: Mapping[str, Condition] | None = None,
        time_range: tuple[TimeBound, TimeBound] | None = None,
        counts: bool = True,
    ) -> Answered:
        """Ranks the `k` largest elements of `by`; arguments as for `questions.structured_question`."""
        return self.ask(
            structured_question(
                table, by, k=k, measure=measure, where=where, time_range=time_range, counts=counts
            )
        )

    def histogram(
        self,
        table: str,
        by: str | Sequence[str],
        *,
        measure: Measure | str = Measure.DISTINCT_MEMBERS,
        where: Mapping[str, Condition] | None = None,
        time_range: tuple[TimeBound, TimeBound] | None = None,
        counts: bool = True,
    ) -> Answered:
        """Counts all elements of `by` that may be shown.

        Mechanisms whose price grows with k refuse this; they need a `top_k`.
        """
        return self.ask(
            structured_question(
                table, by, k=None, measure=measure, where=where, time_range=time_range, counts=counts
            )
        )

    def sql(self, text: str) -> Answered:
        """Answers SQL of the accepted subset; its text never reaches an engine."""
        return self.ask(sql_question(text))
