"""Composition bounds side by side: their table and ratios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TypeAlias

from dp_service.accounting.bounds import Portion, basic, dong_durfee_rogers, rho_of
from dp_service.accounting.rounding import rounded_up
from dp_service.accounting.zcdp import epsilon_of_zcdp
from gris_cli.data.sheets import Cell, Column, Sheet, upwards
from research.accounting.adaptive import UpperTable
from research.accounting.durfee_rogers import durfee_rogers
from research.accounting.optimal import MAX_BATCH, fixed_batch_epsilon, optimal_composition


class Bound(StrEnum):
    """A composition bound."""

    BASIC = "adding up"
    DURFEE_ROGERS = "lemma 4.4"
    DONG_DURFEE_ROGERS = "Dong et al."
    ZCDP = "zCDP"
    ADAPTIVE = "adaptive, smallest"


Tables: TypeAlias = Mapping[Fraction, Sequence[UpperTable]]
"""The tables of the adaptive bound by epsilon_per: of no unit, of one, and so on."""


def compose_sheet(portions: Sequence[Portion], delta: Fraction, tables: Tables) -> Sheet:
    """Return the epsilon of each bound for each portion, at one delta."""
    rows = []
    for portion in portions:
        rows.append(_row(portion, delta, tables))
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
    return (epsilon_per, count, *(by_bound[bound] for bound in Bound), batch, general)


def epsilons(portion: Portion, slack: Fraction, tables: Tables) -> dict[Bound, float]:
    """Return the epsilon of each bound for mechanisms without calls."""
    return {
        Bound.BASIC: rounded_up(basic(portion)),
        Bound.DURFEE_ROGERS: durfee_rogers([portion], slack),
        Bound.DONG_DURFEE_ROGERS: rounded_up(dong_durfee_rogers(portion, slack)),
        Bound.ZCDP: epsilon_of_zcdp(rho_of(portion), slack).value,
        Bound.ADAPTIVE: tables[portion.epsilon_per][portion.information].epsilon(slack),
    }


@dataclass(frozen=True)
class Ratio:
    """The optimal epsilon of general epsilon-DP over that of bounded range, by lemma 4.4, by zCDP and by the adaptive
    bound. Without `uses_delta`, delta is too small for any composition to
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
) -> Iterator[Ratio]:
    """Yield the ratios, at the delta that the optimal composition really has, which is at most `delta`.

    Source: Durfee and Rogers 2019, figure 1.
    """
    for epsilon_per in epsilons_per:
        for count in counts:
            yield _ratio(Portion(epsilon_per, count), delta, tables)


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
        float(optimal.epsilon) / by_bound[Bound.ADAPTIVE],
    )


@dataclass(frozen=True)
class Composed:
    """The epsilon of so many mechanisms by each bound that there is, at one delta."""

    count: int
    by_bound: Mapping[Bound, float]


def composed(epsilon_per: Fraction, counts: Sequence[int], delta: Fraction, tables: Tables) -> list[Composed]:
    """Return the epsilons of one epsilon_per for each count."""
    return [Composed(count, epsilons(Portion(epsilon_per, count), delta, tables)) for count in counts]
