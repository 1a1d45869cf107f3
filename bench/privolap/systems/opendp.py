"""OpenDP's Polars interface, of which each kind of question has a context of its own."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from bench.privolap.questions import Budget, Data, Kind, Question
from bench.privolap.systems.frames import Library, keyed_rows, keys_of_a_member, known_keys

MOST_ROWS = 10_000_000


class OpenDP(Library):
    """As the documentation has it: a part of epsilon and delta for each question.

    Tuned, questions pay with zero-concentrated privacy, which composes better, only lists take a part of delta, members
    count in twice as many names, which was best of 4 to 32 with Cofacts, and each member's amount is added up before it
    is clipped.
    """

    def __init__(self, *, tuned: bool = False) -> None:
        super().__init__("OpenDP", tuned=tuned)
        self._measurements: dict[object, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process resolves measurements of its own.
        return partial(OpenDP, tuned=self.tuned), ()

    def release(self, question: Question, data: Data, budget: Budget, share: float) -> dict[str, float]:
        """Answer a question by the measurement of its kind, which is resolved once."""
        import opendp.prelude as dp  # noqa: PLC0415 - an extra
        import polars as pl  # noqa: PLC0415

        dp.enable_features("contrib")
        rows = keyed_rows(question, data)
        if question.kind is Kind.SUM:
            rows = self._amounts(rows, data, pl)
        # A sample of each member's keys, for `truncate_num_groups(keep="sample")` fails in 0.16.0.
        groups = self._groups(question, data)
        rows = rows.filter(pl.int_range(pl.len()).shuffle().over("member") < groups) if groups > 1 else rows
        keys, promise = known_keys(question), (budget.epsilon, budget.delta, budget.share_of_a_list, share)
        name = question.kind, tuple(keys or ()), promise, groups, data.rows
        if name not in self._measurements:
            loss = self._loss(dp, question, budget, share)
            self._measurements[name] = self._query(dp, question, data, rows, loss).resolve()
        found = self._measurements[name](rows.lazy()).collect()
        if keys == ["0"]:
            return {"0": float(found.item())}
        return {key: float(value) for key, value in found.iter_rows()}

    def _groups(self, question: Question, data: Data) -> int:
        wider = 2 if self.tuned and question.kind is Kind.TOP else 1
        return wider * keys_of_a_member(question, data)

    def _query(self, dp: Any, question: Question, data: Data, rows: Any, loss: Any) -> Any:
        import polars as pl  # noqa: PLC0415 - an extra

        most = data.rows if question.kind is Kind.ROWS else 1
        counted: Any = dp.len(signed=True)
        if question.kind is Kind.SUM:
            most, bounds = (1, (0, data.total)) if self.tuned else (data.rows, (-data.row, data.row))
            counted = pl.col("amount").fill_null(0).dp.sum(bounds)
        query = dp.Context.compositor(
            data=rows.lazy(),
            privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("member")),
            privacy_loss=loss,
            split_evenly_over=1,
            margins=[dp.polars.Margin(max_length=MOST_ROWS)],
        ).query()
        keys = known_keys(question)
        if keys == ["0"]:
            return query.truncate_per_group(most).select(counted)
        # A member of n groups keeps n - 1 of them.
        groups = self._groups(question, data) + 1
        query = query.truncate_per_group(most, by=["key"])
        query = query.truncate_num_groups(groups, by=["key"], keep="first").group_by("key").agg(counted)
        return query if keys is None else query.with_keys(pl.LazyFrame({"key": keys}))

    def _amounts(self, rows: Any, data: Data, pl: Any) -> Any:
        amount = pl.col("amount").fill_nan(0.0).fill_null(0.0).clip(-data.row, data.row)
        if not self.tuned:
            return rows.with_columns(amount.round().cast(int).alias("amount"))
        return rows.group_by("member").agg(amount.sum().clip(0, data.total).round().cast(int).alias("amount"))

    def _loss(self, dp: Any, question: Question, budget: Budget, share: float) -> Any:
        takes_delta = question.kind is Kind.TOP
        if not self.tuned:
            delta = budget.delta * share
            return dp.loss_of(epsilon=budget.epsilon * share, delta=delta if takes_delta else 0.0)
        # Half of delta is for names, half for what rho promises.
        log = math.log(2 / budget.delta)
        rho = (math.sqrt(log + budget.epsilon) - math.sqrt(log)) ** 2
        names = {"delta": budget.delta / 2 * budget.share_of_a_list} if takes_delta else {}
        return dp.loss_of(rho=rho * share, **names)
