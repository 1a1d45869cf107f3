"""OpenDP's Polars interface, of which each kind of question has a context of its own."""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

from bench.privolap.questions import Budget, Data, Kind, Question
from bench.privolap.systems.frames import Library, keyed_rows, keys_of_a_member, known_keys

MOST_ROWS = 10_000_000


class OpenDP(Library):
    """As the documentation has it: a part of epsilon and delta for each question.

    Tuned, questions pay with zero-concentrated privacy, which composes better, by the rho that the library converts to
    the promise; only lists take a part of delta; members count in twice as many names, which was best of 4 to 32 with
    Cofacts; each member's amount is added up before it is clipped; and the library relies on how many keys a member has
    in the prepared rows, instead of choosing them itself.
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
        if known_keys(question) != ["0"]:
            rows = rows.filter(pl.int_range(pl.len()).shuffle().over("member") < groups)
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
        keys, groups = known_keys(question), self._groups(question, data)
        unit = dp.unit_of(contributions=1, identifier=pl.col("member"))
        if is_prepared := self.tuned and keys != ["0"]:
            bound = dp.polars.Bound(by=["key"], per_group=most, num_groups=groups)
            unit = dp.unit_of(contributions=[bound])
        query = dp.Context.compositor(
            data=rows.lazy(),
            privacy_unit=unit,
            privacy_loss=loss,
            split_evenly_over=1,
            margins=[dp.polars.Margin(max_length=MOST_ROWS)],
        ).query()
        if keys == ["0"]:
            return query.truncate_per_group(most).select(counted)
        if not is_prepared:
            query = query.truncate_per_group(most, by=["key"])
            # A member of n groups keeps n - 1 of them.
            query = query.truncate_num_groups(groups + 1, by=["key"], keep="first")
        query = query.group_by("key").agg(counted)
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
        names = {"delta": budget.delta / 2 * budget.share_of_a_list} if takes_delta else {}
        return dp.loss_of(rho=rho_of(budget.epsilon, budget.delta / 2) * share, **names)


@cache
def rho_of(epsilon: float, delta: float) -> float:
    """Return the zero-concentrated privacy that OpenDP converts to a promise, to three digits."""
    low, high = 1e-3, 1e3
    while high > low * 1.0005:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if epsilon_of(middle, delta) <= epsilon else (middle, high)
    return 1 / (2 * high**2)


def epsilon_of(scale: float, delta: float) -> float:
    """Return what OpenDP promises of a number that changes by 1, by Gaussian noise of this scale."""
    import opendp.prelude as dp  # noqa: PLC0415 - an extra

    dp.enable_features("contrib")
    noise = dp.m.make_gaussian(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale)
    return float(dp.c.make_zCDP_to_approxDP(noise).map(1).epsilon(delta))
