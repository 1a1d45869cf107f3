"""Composition bounds side by side: the table and the ratios of `gris plan compose`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dp_service.accounting.bounds import Portion, durfee_rogers
from dp_service.accounting.composition import Bound, guarantees
from dp_service.accounting.optimal import MAX_BATCH, fixed_batch_epsilon, optimal_composition
from gris_cli.plan.sheets import Cell, Column, Sheet, upwards

_BOUNDS = (Bound.BASIC, Bound.DURFEE_ROGERS, Bound.DONG_DURFEE_ROGERS, Bound.ZCDP)


def compose_sheet(portions: Sequence[Portion], delta: Fraction, advance: Callable[[], None]) -> Sheet:
    """Return the epsilon of each bound for each portion, at one delta."""
    rows = []
    for portion in portions:
        rows.append(_row(portion, delta))
        advance()
    return Sheet(
        (
            Column("epsilon_per", "epsilon_per"),
            Column("count", "k"),
            Column("basic", "adding up", upwards),
            Column("durfee_rogers", "lemma 4.4", upwards),
            Column("dong_durfee_rogers", "Dong et al.", upwards),
            Column("zcdp", "zCDP", upwards),
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


def _row(portion: Portion, delta: Fraction) -> tuple[Cell, ...]:
    count, epsilon_per = portion.information, portion.epsilon_per
    by_bound = {
        each.bound: each.epsilon
        for each in guarantees(epsilon_per, delta, information=count, calls=0, slack=delta)
    }
    batch = fixed_batch_epsilon(portion, delta) if count <= MAX_BATCH else None
    general = optimal_composition(epsilon_per, count, delta).epsilon
    return (epsilon_per, count, *(by_bound[bound] for bound in _BOUNDS), batch, general)


@dataclass(frozen=True)
class Ratio:
    """The optimal epsilon of general epsilon-DP over that of bounded range, by lemma 4.4 and by zCDP."""

    epsilon_per: Fraction
    count: int
    lemma_4_4: float
    zcdp: float


def ratios(
    epsilons: Sequence[Fraction], counts: Sequence[int], delta: Fraction, advance: Callable[[], None]
) -> Iterator[Ratio]:
    """Yield the ratios, at the delta that the optimal composition really has, which is at most `delta`.

    Source: Durfee and Rogers 2019, figure 1.
    """
    for epsilon_per in epsilons:
        for count in counts:
            yield _ratio(Portion(epsilon_per, count), delta)
            advance()


def _ratio(portion: Portion, delta: Fraction) -> Ratio:
    optimal = optimal_composition(portion.epsilon_per, portion.information, delta)
    if not optimal.delta:
        # Without any delta both are the sum.
        return Ratio(portion.epsilon_per, portion.information, 1.0, 1.0)
    slack = Fraction(optimal.delta)
    by_bound = {
        each.bound: each.epsilon
        for each in guarantees(
            portion.epsilon_per, slack, information=portion.information, calls=0, slack=slack
        )
    }
    return Ratio(
        portion.epsilon_per,
        portion.information,
        float(optimal.epsilon) / durfee_rogers([portion], slack),
        float(optimal.epsilon) / min(by_bound[Bound.ZCDP], by_bound[Bound.BASIC]),
    )
