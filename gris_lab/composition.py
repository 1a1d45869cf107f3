"""Composition bounds side by side: their table and ratios."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from dp_service.accounting.bounds import Portion, durfee_rogers
from dp_service.accounting.composition import Bound, guarantees
from dp_service.accounting.epsilon_table import EpsilonTable
from gris_data.sheets import Cell, Column, Sheet, upwards
from gris_lab.accounting.optimal import MAX_BATCH, fixed_batch_epsilon, optimal_composition

_BOUNDS = (Bound.BASIC, Bound.DURFEE_ROGERS, Bound.DONG_DURFEE_ROGERS, Bound.ZCDP, Bound.ADAPTIVE)

Tables: TypeAlias = Mapping[Fraction, EpsilonTable | None]
"""The tables of the adaptive bound by epsilon_per; None where there is none."""


def compose_sheet(
    portions: Sequence[Portion], delta: Fraction, tables: Tables, advance: Callable[[], None]
) -> Sheet:
    """Return the epsilon of each bound for each portion, at one delta."""
    rows = []
    for portion in portions:
        rows.append(_row(portion, delta, tables))
        advance()
    return Sheet(
        (
            Column("epsilon_per", "epsilon_per"),
            Column("count", "k"),
            Column("basic", "adding up", upwards),
            Column("durfee_rogers", "lemma 4.4", upwards),
            Column("dong_durfee_rogers", "Dong et al.", upwards),
            Column("zcdp", "zCDP", upwards),
            Column("adaptive", "adaptive", upwards),
            Column("fixed_batch", "fixed batch, optimal", upwards),
            Column("general_dp", "any DP, optimal", upwards),
        ),
        rows,
        (
            (
                "fixed batch",
                "only for mechanisms that are all chosen beforehand; it covers no analyst who asks on",
            ),
            ("any DP", "for mechanisms that are epsilon_per-DP and no more (Kairouz, Oh and Viswanath 2017)"),
        ),
    )


def _row(portion: Portion, delta: Fraction, tables: Tables) -> tuple[Cell, ...]:
    count, epsilon_per = portion.information, portion.epsilon_per
    by_bound = epsilons(portion, delta, tables)
    batch = fixed_batch_epsilon(portion, delta) if count <= MAX_BATCH else None
    general = optimal_composition(epsilon_per, count, delta).epsilon
    return (epsilon_per, count, *(by_bound.get(bound) for bound in _BOUNDS), batch, general)


def epsilons(portion: Portion, slack: Fraction, tables: Tables) -> dict[Bound, float]:
    """Return the epsilon of each bound that there is for mechanisms without calls."""
    found = guarantees(
        portion.epsilon_per,
        slack,
        information=portion.information,
        calls=0,
        slack=slack,
        table=tables.get(portion.epsilon_per),
    )
    return {each.bound: each.epsilon for each in found}


@dataclass(frozen=True)
class Ratio:
    """The optimal epsilon of general epsilon-DP over that of bounded range, by lemma 4.4, by zCDP and by the adaptive
    bound; the last is not a number where there is none. Without `uses_delta`, delta is too small for any composition to
    be better than the sum.
    """

    epsilon_per: Fraction
    count: int
    lemma_4_4: float
    zcdp: float
    adaptive: float
    uses_delta: bool = True


def ratios(
    epsilons_per: Sequence[Fraction],
    counts: Sequence[int],
    delta: Fraction,
    tables: Tables,
    advance: Callable[[], None],
) -> Iterator[Ratio]:
    """Yield the ratios, at the delta that the optimal composition really has, which is at most `delta`.

    Source: Durfee and Rogers 2019, figure 1.
    """
    for epsilon_per in epsilons_per:
        for count in counts:
            yield _ratio(Portion(epsilon_per, count), delta, tables)
            advance()


def _ratio(portion: Portion, delta: Fraction, tables: Tables) -> Ratio:
    optimal = optimal_composition(portion.epsilon_per, portion.information, delta)
    if not optimal.delta:
        # Without any delta all are the sum.
        return Ratio(portion.epsilon_per, portion.information, 1.0, 1.0, 1.0, uses_delta=False)
    slack = Fraction(optimal.delta)
    by_bound = epsilons(portion, slack, tables)
    return Ratio(
        portion.epsilon_per,
        portion.information,
        float(optimal.epsilon) / durfee_rogers([portion], slack),
        float(optimal.epsilon) / min(by_bound[Bound.ZCDP], by_bound[Bound.BASIC]),
        float(optimal.epsilon) / by_bound.get(Bound.ADAPTIVE, math.nan),
    )


@dataclass(frozen=True)
class Composed:
    """The epsilon of so many mechanisms by each bound that there is, at one delta."""

    count: int
    by_bound: Mapping[Bound, float]


def composed(epsilon_per: Fraction, counts: Sequence[int], delta: Fraction, tables: Tables) -> list[Composed]:
    """Return the epsilons of one epsilon_per for each count."""
    return [Composed(count, epsilons(Portion(epsilon_per, count), delta, tables)) for count in counts]
