"""The questions that every client offers, written once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from gris_api.dp.v1 import question_pb2

from pinot_connector.questions import (
    MaxError,
    Measure,
    QuantileLike,
    TimeBound,
    Where,
    sql_question,
    structured_question,
)

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
        counts: bool = True,
        sums: Sequence[str] = (),
        averages: Sequence[str] = (),
        numbers: Sequence[str] = (),
        order_by: str | None = None,
        having: str | Sequence[str] = (),
        max_error: MaxError = None,
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
            counts: whether to show noisy counts, in members or events, with intervals; a ranking alone costs less.
            sums: the value columns whose sums to show beside the counts: in `Row.values`, in this order.
            averages: the value columns whose averages to show: over members' totals, or rows if events are counted.
            numbers: numbers of the rows that meet a condition: `members where <condition>`, `rows where ..`,
                `sum:<column> where ..`, `avg:<column> where ..`; or `rows` beside a count of members.
            order_by: one of these, as `sum:<column>`, `avg:<column>` or as in `numbers`: the list is in its descending
                order. None: it is in the order of its counts.
            having: conditions on what is released, such as `"count >= 100"` or `"sum:amount < 2500.50"`: elements that
                do not meet all of them are not shown, before the `k` largest are. They cost nothing.
            max_error: how far a count may be off on average by noise, or as a part of the smallest one, as `"10%"`: the
                price is the lowest of the policy's with which that is expected. In SQL, `OPTION(max_error=16)`.
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
                counts=counts,
                sums=sums,
                averages=averages,
                numbers=numbers,
                order_by=order_by,
                having=having,
                max_error=max_error,
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
        counts: bool = True,
        sums: Sequence[str] = (),
        averages: Sequence[str] = (),
        numbers: Sequence[str] = (),
        order_by: str | None = None,
        quantiles: Mapping[str, Sequence[QuantileLike]] | None = None,
        having: str | Sequence[str] = (),
        max_error: MaxError = None,
        max_cost: int | None = None,
    ) -> Answered:
        """Counts all elements of `by` that may be shown.

        A mechanism whose cost grows with k refuses this question; use `top_k` there.

        Guarantee: together with everything else that the account's budget pays for in a window, the result is
        (epsilon, delta)-differentially private for every member, with the values that `guarantee` returns.

        Args:
            table: a table of the policy.
            by: a column, or a function in SQL: funnels, retention, .. (`catalog` has examples). Or one to four of them.
            measure, where, time_range, counts, sums, averages, numbers, order_by: see `top_k`.
            quantiles: the quantiles of one column to show instead of counts, such as `{"amount": [0.25, 0.5, 0.75]}`,
                with "min" and "max" for about the smallest and the largest value: in `Row.values`, in this order.
            having: conditions on what is released, such as `"count >= 100"` or `"sum:amount < 2500.50"`: elements that
                do not meet all of them are not shown. They cost nothing.
            max_error: how exact counts have to be, which the price follows from; see `top_k`.
            max_cost: the most information units that the question may cost; see `ask`.

        Returns:
            The result: one row for each element, the largest first; quantiles are in the order of the elements.

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
                counts=counts,
                sums=sums,
                averages=averages,
                numbers=numbers,
                order_by=order_by,
                quantiles=quantiles,
                having=having,
                max_error=max_error,
            ),
            max_cost=max_cost,
        )

    def series(
        self,
        table: str,
        bucket: str,
        *,
        by: str | Sequence[str] = (),
        measure: Measure | str = Measure.DISTINCT_MEMBERS,
        where: Where | None = None,
        time_range: tuple[TimeBound, TimeBound] | None = None,
        sums: Sequence[str] = (),
        averages: Sequence[str] = (),
        numbers: Sequence[str] = (),
        having: str | Sequence[str] = (),
        max_error: MaxError = None,
        max_cost: int | None = None,
    ) -> Answered:
        """Counts by buckets of time, in the order of time.

        Guarantee: together with everything else that the account's budget pays for in a window, the result is
        (epsilon, delta)-differentially private for every member, with the values that `guarantee` returns.

        Args:
            table: a table of the policy.
            bucket: the policy's time column and how it is divided: `<length>:<column>`, such as `month:day`, with one
                of day, week, month, quarter and year.
            by: columns to group by as well; an element has the bucket before their values.
            measure, where, sums, averages, numbers, having, max_error, max_cost: see `histogram`.
            time_range: as `histogram` has it; the buckets are those in it, and in closed periods.

        Returns:
            The result: one row for each bucket, named by its first day, also where nothing was counted.

        Raises:
            InvalidQuestion: an argument is malformed, or the range of time has no two ends; `field` says which.
            GrisError: there is no result for another reason; see `histogram`.

        Example:
            >>> year = datetime.date(2025, 1, 1), datetime.date(2026, 1, 1)
            >>> result = client.series("invoices", "month:day", time_range=year, sums=["amount"])
            >>> len(result.rows)
            12
        """
        return self.ask(
            structured_question(
                table,
                by,
                k=None,
                measure=measure,
                where=where,
                time_range=time_range,
                sums=sums,
                averages=averages,
                numbers=numbers,
                bucket=bucket,
                having=having,
                max_error=max_error,
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
        sums: Sequence[str] = (),
        averages: Sequence[str] = (),
        numbers: Sequence[str] = (),
        quantiles: Mapping[str, Sequence[QuantileLike]] | None = None,
        max_error: MaxError = None,
        max_cost: int | None = None,
    ) -> Answered:
        """Counts everything that meets the conditions, as one number.

        Guarantee: together with everything else that the account's budget pays for in a window, the result is
        (epsilon, delta)-differentially private for every member, with the values that `guarantee` returns.

        Args:
            table: a table of the policy.
            measure: what to count: distinct members (default), or events, where the policy clips them.
            where, time_range, sums, averages, numbers, quantiles, max_error, max_cost: see `histogram`.

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
                sums=sums,
                averages=averages,
                numbers=numbers,
                quantiles=quantiles,
                max_error=max_error,
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
