"""How far a chosen cell may be from the rank that was wanted, whatever the data: intervals by rank.

Of d cells at least one has score 0, and at most d - 1 have a score of -t or less. With w = exp(-e t / (tau range))
these are chosen with probability at most (d - 1) w / (1 + (d - 1) w). The smallest t for which this is at most alpha is
found in interval arithmetic, in doubt a larger one. So with probability 1 - alpha the wanted rank is at most (t - 1) /
steps_of_rank values from the ranks that the cell holds, from those before it to those up to it.

*Several quantiles.* A part lies between two cuts. With lambda the place of q between q_low and q_high, the rank that is
wanted in it is (1 - lambda) L(cut of q_low) + lambda L(cut of q_high) of all values. A cut for q_low that is D values
off has L(cut) - q_low n between -D and D plus the values in its cell, as these all go left. So the rank wanted in a
part is off by at most (1 - lambda) (D + cell of the lower cut) + lambda (D' + cell of the upper cut), which comes on
top of the error of the choice itself. How many values share a cut's cell nobody knows, so it stays in the statement:
on a grid that is fine where values are many it is small.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from dp_service.mechanisms.aggregates.quantile_gumb import CellsOfGroups, Part, QuantileGumb
from dp_service.mechanisms.aggregates.rank_scores import Quantile, Wanted
from dp_service.mechanisms.parameters import Currency
from dp_service.noise.distribution import exact_bound, exponential, smallest_with_tail_at_most


@dataclass(frozen=True)
class RankError:
    """The wanted rank is within `values` of the ranks of the chosen cell, and of what `cuts` adds.

    Attributes:
        values: A number of values, for certain but for alpha.
        cuts: For each earlier quantile, by its place, which part of the values in its cell comes on top.
    """

    values: Fraction
    cuts: Mapping[int, Fraction]


@lru_cache(maxsize=1024)
def largest_loss(currency: Currency, score_range: int, cells: int, alpha: Fraction) -> int:
    """Return the smallest s such that the chosen cell has a score of at least -s, but for a probability alpha.

    Raises:
        ValueError: Unless alpha lies strictly between 0 and 1.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie strictly between 0 and 1, got {alpha}")
    # (d - 1) w / (1 + (d - 1) w) <= alpha exactly if w (d - 1) (1 - alpha) <= alpha.
    others = exact_bound((cells - 1) * (1 - alpha))
    step = currency.epsilon_per / score_range
    first_rare = smallest_with_tail_at_most(lambda t: exponential(-step * t) * others, exact_bound(alpha))
    return max(first_rare - 1, 0)


def rank_error(currency: Currency, wanted: Wanted, among: CellsOfGroups, *, alpha: Fraction) -> Fraction:
    """Return within how many values of the wanted rank a single choice is, but for a probability alpha.

    >>> from dp_service.mechanisms.bounded import ContributionBound
    >>> median = Quantile(Fraction(1, 2))
    >>> among = CellsOfGroups(1, 500, ContributionBound(1))
    >>> float(rank_error(Currency(Fraction("0.15"), Fraction("1e-10")), median, among, alpha=Fraction(1, 20)))
    61.0

    Raises:
        ValueError: Unless alpha lies strictly between 0 and 1.
    """
    moved = among.bound.tau * wanted.score_range
    return Fraction(largest_loss(currency, moved, among.cells, alpha), wanted.steps_of_rank)


def rank_errors(asked: QuantileGumb, *, alpha: Fraction) -> list[RankError]:
    """Return the errors of all quantiles of one group, which hold together but for a probability alpha.

    Raises:
        ValueError: Unless alpha lies strictly between 0 and 1.
    """
    found: dict[int, RankError] = {}
    each = alpha / len(asked.quantiles)
    certain = RankError(Fraction(0), {})
    parts = [
        (Part(0, len(asked.quantiles), 0, asked.among.cells, Fraction(0), Fraction(1)), certain, certain)
    ]
    while parts:
        part, low, high = parts.pop()
        if part.first == part.end:
            continue
        middle, q = part.middle, asked.quantiles[part.middle]
        wanted = Quantile(part.relative(q))
        own = rank_error(asked.currency, wanted, asked.among, alpha=each)
        found[middle] = _added(own, wanted.q, low, high)
        cut = RankError(found[middle].values, {**found[middle].cuts, middle: Fraction(1)})
        # Which cell it is cut at has no part in these errors.
        left, right = part.split(part.end_cell - 1, q)
        parts += [(left, low, cut), (right._replace(end_cell=part.end_cell), cut, high)]
    return [found[place] for place in range(len(asked.quantiles))]


def _added(own: Fraction, place: Fraction, low: RankError, high: RankError) -> RankError:
    """Return the error of a choice with what the cuts of its part add."""
    cuts = {
        cut: (1 - place) * low.cuts.get(cut, Fraction(0)) + place * high.cuts.get(cut, Fraction(0))
        for cut in {**low.cuts, **high.cuts}
    }
    return RankError(own + (1 - place) * low.values + place * high.values, cuts)


def spare_values(currency: Currency, among: CellsOfGroups, *, alpha: Fraction) -> int:
    """Return a c with which the largest value of `ExtremeGumb` is below the true one, but for a probability alpha.

    It is the smallest c above every loss that is not rare, about 2 tau ln(cells / alpha) / e: a cell above which, or in
    which, no value is has a score of -c. It holds wherever there are at least c values.

    Raises:
        ValueError: Unless alpha lies strictly between 0 and 1.
    """
    return largest_loss(currency, 2 * among.bound.tau, among.cells, alpha) + 1
