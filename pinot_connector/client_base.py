"""The questions that every client offers, written once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from gris_api.dp.v1 import question_pb2

from pinot_connector.questions import Measure, TimeBound, Where, sql_question, structured_question

Answered = TypeVar("Answered")


class ClientBase(ABC, Generic[Answered]):
    """Answers questions.

    A synchronous client returns a `PrivateResult`. An asynchronous one returns an awaitable of it: there, write `await`
    before each call in the examples.
    """

    @abstractmethod
    def ask(
        self,
        question: question_pb2.Question,
        *,
        confidence: float | None = None,
        max_cost: int | None = None,
    ) -> Answered:
        """Answers a question that `structured_question` or `sql_question` built.

        `top_k`, `histogram` and `sql` build such a question and call this method.

        Guarantee: together with everything else that the account's budget pays for in a window, the result is
        (epsilon, delta)-differentially private for every member, with the values that `guarantee` returns.

        Args:
            question: what to ask.
            confidence: the probability that an interval covers the number before noise, strictly between 0.5 and 1;
                None: that of the client, or of the gateway. Of a release that is paid for, any confidence is free.
            max_cost: the most information units that the question may cost: one whose worst case is more is refused
                before anything is asked. What is paid for stays free. None: whatever the budget holds.

        Returns:
            The result, which has been charged; nothing of it is available before.

        Raises:
            InvalidQuestion: the question or the confidence is malformed; `field` says where.
            RefusedByPolicy: the policy forbids the question.
            BudgetExhausted: the budget does not hold the worst-case cost; `shortfalls` says where.
            AccountUnknown: the account has no budget.
            GrisError: there is no result for another reason; see `errors`.

        Example:
            >>> question = structured_question("feedback", "app", k=None)
            >>> client.ask(question).parameters.domain_size
            4
        """

    def top_k(
        self,
        table: str,
        by: str | Sequence[str],
        k: int,
        *,
        measure: Measure | str = Measure.DISTINCT_MEMBERS,
        where: Where | None = None,
        time_range: tuple[TimeBound, TimeBound] | None = None,
        max_cost: int | None = None,
    ) -> Answered:
        """Ranks the `k` elements of `by` with the largest counts.

        Guarantee: together with everything else that the account's budget pays for in a window, the result is
        (epsilon, delta)-differentially private for every member, with the values that `guarantee` returns.

        Args:
            table: a table of the policy.
            by: a column, or a function in SQL: funnels, retention, .. (`catalog` has examples). Or one to four of them.
            k: the most elements to show, at least 1. It determines the worst-case cost.
            measure: what to count for each element: distinct members (default), events, that is rows, or
                `distinct:COLUMN`, the distinct values of a column.
            where: conditions by column, all of which must hold: a value, a sequence of values (one of which must
                match), `In`, `NotIn` or `Between`. Or a condition in SQL, as it stands behind WHERE.
            time_range: `(from, to)` on the policy's time column, without `to` itself; None leaves an end open. A day
                means its beginning in the zone of that column; a datetime needs a time zone.
            max_cost: the most information units that the question may cost; see `ask`.

        Returns:
            The result: at most `k` rows, the largest first, and fewer if it ended in bottom.

        Raises:
            InvalidQuestion: an argument is malformed; `field` says which.
            RefusedByPolicy: the policy forbids the question.
            BudgetExhausted: the budget does not hold the worst-case cost; `shortfalls` says where.
            AccountUnknown: the account has no budget.
            GrisError: there is no result for another reason; see `errors`.

        Example:
            >>> result = client.top_k("feedback", by="article_id", k=3, where={"score": 1})
            >>> len(result.rows)
            3
            >>> lower, upper = result.rows[0].interval
            >>> lower <= result.rows[0].noisy_count <= upper
            True
        """
        return self.ask(
            structured_question(
                table,
                by,
                k=k,
                measure=measure,
                where=where,
                time_range=time_range,
            ),
            max_cost=max_cost,
        )

    def histogram(
        self,
        table: str,
        by: str | Sequence[str],
        *,
        measure: Measure | str = Measure.DISTINCT_MEMBERS,
        where: Where | None = None,
        time_range: tuple[TimeBound, TimeBound] | None = None,
        max_cost: int | None = None,
    ) -> Answered:
        """Counts all elements of `by` that may be shown.

        A mechanism whose cost grows with k refuses this question; use `top_k` there.

        Guarantee: together with everything else that the account's budget pays for in a window, the result is
        (epsilon, delta)-differentially private for every member, with the values that `guarantee` returns.

        Args:
            table: a table of the policy.
            by: a column, or a function in SQL: funnels, retention, .. (`catalog` has examples). Or one to four of them.
            measure, where, time_range: see `top_k`.
            max_cost: the most information units that the question may cost; see `ask`.

        Returns:
            The result: one row for each element, the largest first; buckets of time are in the order of time.

        Raises:
            InvalidQuestion: an argument is malformed; `field` says which.
            RefusedByPolicy: the policy forbids the question.
            BudgetExhausted: the budget does not hold the worst-case cost; `shortfalls` says where.
            AccountUnknown: the account has no budget.
            GrisError: there is no result for another reason; see `errors`.

        Example:
            >>> result = client.histogram("feedback", by="app", measure="distinct_members")
            >>> sorted(row.element[0] for row in result.rows)
            ['DEVELOPMENT_BACKEND', 'DEVELOPMENT_FRONTEND', 'RUMORS_LINE_BOT', 'WEBSITE']
        """
        return self.ask(
            structured_question(
                table,
                by,
                k=None,
                measure=measure,
                where=where,
                time_range=time_range,
            ),
            max_cost=max_cost,
        )

    def total(
        self,
        table: str,
        *,
        measure: Measure | str = Measure.DISTINCT_MEMBERS,
        where: Where | None = None,
        time_range: tuple[TimeBound, TimeBound] | None = None,
        max_cost: int | None = None,
    ) -> Answered:
        """Counts everything that meets the conditions, as one number.

        Guarantee: together with everything else that the account's budget pays for in a window, the result is
        (epsilon, delta)-differentially private for every member, with the values that `guarantee` returns.

        Args:
            table: a table of the policy.
            measure: what to count: distinct members (default), or events, where the policy clips them.
            where, time_range, max_cost: see `histogram`.

        Returns:
            The result: always one row, whose element has no values; its count is near 0 if nothing matches.

        Raises:
            InvalidQuestion: an argument is malformed; `field` says which.
            GrisError: there is no result for another reason; see `histogram`.

        Example:
            >>> (row,) = client.total("feedback", where={"score": 1}).rows
            >>> row.element
            ()
            >>> lower, upper = row.interval
            >>> lower <= row.noisy_count <= upper
            True
        """
        return self.ask(
            structured_question(
                table,
                (),
                k=None,
                measure=measure,
                where=where,
                time_range=time_range,
            ),
            max_cost=max_cost,
        )

    def sql(self, text: str, *, max_cost: int | None = None) -> Answered:
        """Answers a question in SQL.

        dp_service parses the text and renders a query of its own; no engine sees the text.

        Guarantee: together with everything else that the account's budget pays for in a window, the result is
        (epsilon, delta)-differentially private for every member, with the values that `guarantee` returns.

        Args:
            text: one SELECT of the accepted subset: a count by up to four columns, with `LIMIT` for a top k.
            max_cost: the most information units that the question may cost; see `ask`.

        Returns:
            The result; `count_alias` is the name that the text gives the count.

        Raises:
            InvalidQuestion: the text is not SQL of the accepted subset; `field` is "sql".
            RefusedByPolicy: the policy forbids the question.
            BudgetExhausted: the budget does not hold the worst-case cost; `shortfalls` says where.
            AccountUnknown: the account has no budget.
            GrisError: there is no result for another reason; see `errors`.

        Example:
            >>> result = client.sql('''
            ...     SELECT article_id, COUNT(DISTINCT member_id) AS members FROM feedback
            ...     GROUP BY article_id ORDER BY members DESC LIMIT 3''')
            >>> result.count_alias, len(result.rows)
            ('members', 3)
        """
        return self.ask(sql_question(text), max_cost=max_cost)
