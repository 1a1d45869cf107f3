"""OpenDP's Polars interface, of which each kind of question has a context of its own."""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

from research.privolap.questions import Budget, Data, Kind, Question, version_of
from research.privolap.systems.frames import (
    Library,
    keyed_rows,
    keys_of_a_member,
    known_keys,
    looks_of,
    total_of_a_member,
)

MOST_ROWS = 10_000_000


class OpenDP(Library):
    """As the documentation has it: a part of epsilon and delta for each question, by the library's own truncations.

    Each member's amount is added up before it is clipped, in both forms: its queries have no bound of a member's total.

    Tuned, questions pay with zero-concentrated privacy, which composes better, by the rho that the library converts to
    the promise; only lists take a part of delta, and are found by two looks; and the library relies on how many keys a
    member has in the prepared rows, instead of choosing them itself.
    """

    def __init__(self, *, tuned: bool = False) -> None:
        super().__init__("OpenDP", tuned=tuned)
        # Amounts are added up before in both forms.
        self.of_the_adapter |= {"NaN"}
        self._measurements: dict[object, Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process resolves measurements of its own.
        return partial(OpenDP, tuned=self.tuned), ()

    def version(self) -> str:
        """Return that of the package."""
        return version_of("opendp")

    def release(self, question: Question, data: Data, budget: Budget, share: float) -> dict[str, float]:
        """Answer a question by the measurement of its kind, which is resolved once."""
        import opendp.prelude as dp  # noqa: PLC0415 - an extra

        dp.enable_features("contrib")
        rows, keys = keyed_rows(question, data), known_keys(question)
        if self.tuned and keys is None:
            return self._listed(rows, question, data, budget, share)
        if question.kind is Kind.SUM:
            rows = rows.group_by("member").agg(amount=total_of_a_member(data).round().cast(int))
        groups = keys_of_a_member(question, data)
        if keys != ["0"]:
            rows = _sampled(rows, groups)
        name = question.kind, tuple(keys or ()), budget.epsilon, budget.delta, share, groups, data.rows
        if name not in self._measurements:
            loss = self._loss(question, budget, share)
            self._measurements[name] = self._query(question, data, rows, loss).resolve()
        found = self._measurements[name](rows.lazy()).collect()
        if keys == ["0"]:
            return {"0": float(found.item())}
        return _by_key(found)

    def _query(self, question: Question, data: Data, rows: Any, loss: Any) -> Any:
        import opendp.prelude as dp  # noqa: PLC0415 - an extra
        import polars as pl  # noqa: PLC0415

        keys, groups = known_keys(question), keys_of_a_member(question, data)
        counted: Any = dp.len(signed=True)
        if self.tuned and keys != ["0"]:
            return _prepared(rows, groups, loss, keys)
        if question.kind is Kind.SUM:
            counted = pl.col("amount").fill_null(0).dp.sum((0, data.total))
        most = data.rows if question.kind is Kind.ROWS else 1
        unit = dp.unit_of(contributions=1, identifier=pl.col("member"))
        query = _asked(rows, unit, loss)
        if keys == ["0"]:
            return query.truncate_per_group(most).select(counted)
        query = query.truncate_per_group(most, by=["key"])
        # A member of n groups keeps n - 1 of them.
        query = query.truncate_num_groups(groups + 1, by=["key"], keep="first")
        query = query.group_by("key").agg(counted)
        return query if keys is None else query.with_keys(pl.LazyFrame({"key": keys}))

    def _loss(self, question: Question, budget: Budget, share: float) -> Any:
        import opendp.prelude as dp  # noqa: PLC0415 - an extra

        if self.tuned:
            return dp.loss_of(rho=rho_of(budget.epsilon, budget.delta / 2) * share)
        delta = budget.delta * share if question.kind is Kind.TOP else 0.0
        return dp.loss_of(epsilon=budget.epsilon * share, delta=delta)

    def _listed(
        self, rows: Any, question: Question, data: Data, budget: Budget, share: float
    ) -> dict[str, float]:
        """Return names by a first look, and their numbers by a second one."""
        import opendp.prelude as dp  # noqa: PLC0415 - an extra
        import polars as pl  # noqa: PLC0415

        looks, rho = looks_of(question, data), rho_of(budget.epsilon, budget.delta / 2) * share
        # Half of delta is for names, half for what rho promises.
        delta = budget.delta / 2 * budget.share_of_a_list

        def look(rows: Any, groups: int, rho: float, keys: list[str] | None, **further: float) -> Any:
            rows, name = _sampled(rows, groups), (groups, rho, tuple(keys or ()), *further.values())
            if name not in self._measurements:
                loss = dp.loss_of(rho=rho, **further)
                self._measurements[name] = _prepared(rows, groups, loss, keys).resolve()
            return _by_key(self._measurements[name](rows.lazy()).collect())

        names = looks.names(look(rows, looks.narrow, looks.share * rho, None, delta=delta))
        if not names:
            return {}
        # Names have numbers instead, the same for every list of a length, of which a measurement is resolved once.
        places = {name: str(place) for place, name in enumerate(names)}
        rows = rows.filter(pl.col("key").is_in(names)).with_columns(pl.col("key").replace_strict(places))
        every = [str(place) for place in range(looks.most)]
        found = look(rows, looks.wide, (1 - looks.share) * rho, every)
        return {name: found[place] for name, place in places.items()}


def _sampled(rows: Any, groups: int) -> Any:
    """Return a sample of each member's keys, for `truncate_num_groups(keep="sample")` fails in 0.16.0."""
    import polars as pl  # noqa: PLC0415 - an extra

    return rows.filter(pl.int_range(pl.len()).shuffle().over("member") < groups)


def _asked(rows: Any, unit: Any, loss: Any) -> Any:
    import opendp.prelude as dp  # noqa: PLC0415 - an extra

    return dp.Context.compositor(
        data=rows.lazy(),
        privacy_unit=unit,
        privacy_loss=loss,
        split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=MOST_ROWS)],
    ).query()


def _prepared(rows: Any, groups: int, loss: Any, keys: list[str] | None) -> Any:
    """Return a query of members by key, of which each one has so many with a row each."""
    import opendp.prelude as dp  # noqa: PLC0415 - an extra
    import polars as pl  # noqa: PLC0415

    bound = dp.polars.Bound(by=["key"], per_group=1, num_groups=groups)
    query = _asked(rows, dp.unit_of(contributions=[bound]), loss).group_by("key").agg(dp.len(signed=True))
    return query if keys is None else query.with_keys(pl.LazyFrame({"key": keys}))


def _by_key(found: Any) -> dict[str, float]:
    return {key: float(value) for key, value in found.iter_rows()}


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
