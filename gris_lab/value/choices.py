"""What upper bounds, quanta and grids are worth beside what is known of values: the tables of `gris plan value`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dp_service.mechanisms.aggregates import BoundMoments, Quantile, SumShare, rank_error
from dp_service.mechanisms.bounded import ContributionBound
from dp_service.mechanisms.parameters import Currency
from dp_service.values.bounds import SUMS_IN_DOUBLES, Clamp, ValueBounds, require_exact_sums
from dp_service.values.quantum import Quantum
from gris_data.sheets import Cell, Column, Sheet, percent, plainly
from gris_lab.value.spread import Spread

CELLS = (100, 500, 2000)
_QUANTA = tuple(Fraction(10) ** power for power in range(6, -7, -1))
_ALPHA = Fraction(1, 20)
# Rounding that adds this to the variance of a sum's noise is not seen.
_UNSEEN = 0.01


@dataclass(frozen=True)
class Price:
    """What a question for one sum pays: so many units, a share of them for counts, with members in delta_0 elements."""

    currency: Currency
    units: int
    delta_0: int
    share: Fraction

    def mechanism(self, clamp: Clamp) -> BoundMoments:
        """Return the release of one column.

        Raises:
            ValueError: Its noise cannot be drawn.
        """
        column = SumShare(clamp, 1 - self.share)
        bound = ContributionBound(self.delta_0)
        return BoundMoments(self.currency, Fraction(self.units), bound, None, self.share, (column,))

    def noise(self, upper: Fraction, step: Fraction) -> tuple[float, float, float]:
        """Return the standard deviations of a sum, of B / 2 and of N, for totals from 0 to an upper bound."""
        asked = self.mechanism(Clamp(0, Quantum(step).exact_steps(upper)))
        centred = float(step) * math.sqrt(asked.sum_variance(0)) / 2
        of_counts = math.sqrt(asked.count_variance)
        return math.hypot(centred, float(upper) / 2 * of_counts), centred, of_counts


@dataclass(frozen=True)
class Table:
    """How large the table ever gets, and the largest value of a row that counts."""

    max_members: int
    max_rows: int
    row_upper: Fraction | None


def bounds_sheet(spread: Spread, uppers: Sequence[Fraction], price: Price) -> Sheet:
    """Return what each upper bound cuts, at least and at most, beside the noise of sums and averages.

    Raises:
        ValueError: The noise of a bound cannot be drawn.
    """
    rows = [_bound_row(spread, upper, price) for upper in sorted(set(uppers))]
    errors = [row[-1] for row in rows]
    bounded = [error for error in errors if isinstance(error, float)]
    best = errors.index(min(bounded)) if bounded else None
    note = (
        "a member's total counts with at most the upper bound. What is cut is the same in every answer, so it does not "
        "average out; noise does. The best bound has the smallest error of a sum, at most"
        + ("" if bounded else ": without the largest total that anybody can have, what is cut has no end")
    )
    return Sheet(
        (
            Column("upper", "upper"),
            Column("members_cut_least", "members cut", percent),
            Column("members_cut_most", "at most", percent),
            Column("sum_cut_least", "sum is less by", _roughly),
            Column("sum_cut_most", "at most", _roughly),
            Column("sum_noise", "noise of sum", _roughly),
            Column("average_noise", "of average", _roughly),
            Column("sum_error_most", "error at most", _roughly),
            Column("best", "best"),
        ),
        [(*row, place == best) for place, row in enumerate(rows)],
        (("bounds", note),),
    )


def _roughly(value: Cell) -> str:
    """Return a number of a planned release with four digits, so that all of them fit into a line."""
    return f"{float(value):.4g}" if isinstance(value, float | Fraction) else plainly(value)


_BoundRow = tuple[Fraction, float, float, Fraction, Fraction | None, float, float, float | None]


def _bound_row(spread: Spread, upper: Fraction, price: Price) -> _BoundRow:
    above, cut = spread.above(upper), spread.cut(upper)
    noise, centred, of_counts = price.noise(upper, _step_of(upper))
    mean_least, mean_most = spread.mean()
    # The average that is the furthest from the middle of the bounds has the most noise.
    means = [min(upper, mean) for mean in (mean_least, upper if mean_most is None else mean_most)]
    offset = max(abs(float(mean - upper / 2)) for mean in means)
    of_average = math.hypot(centred, offset * of_counts) / spread.members
    most = None if cut[1] is None else math.hypot(noise, float(cut[1]))
    return upper, float(above[0]), float(above[1]), *cut, noise, of_average, most


def _step_of(upper: Fraction) -> Fraction:
    """Return a quantum that divides a bound: noise in the units of the column does not depend on it."""
    return Fraction(1, upper.denominator)


def quanta_sheet(upper: Fraction, table: Table, price: Price) -> Sheet:
    """Return what each quantum rounds, beside the noise of a sum, and whether engines can sum so exactly.

    Raises:
        ValueError: The bounds of rows and totals are not in order.
    """
    noise, _, _ = price.noise(upper, _step_of(upper))
    rows = [(each, *_rounding(each, upper, table)) for each in _quanta_of(upper, table)]
    unseen = [row[0] for row in rows if row[2] and row[1] ** 2 <= _UNSEEN * noise**2]
    best = max(unseen, default=None)
    return Sheet(
        (
            Column("quantum", "quantum"),
            Column("rounding", "rounding of sum"),
            Column("exact", "exact"),
            Column("best", "best"),
        ),
        [(*row, row[0] == best) for row in rows],
        (
            (
                "quanta",
                "the standard deviation of a sum over all rows if what is rounded off is spread evenly; exact says "
                "whether every engine sums so many rows without loss; other policies are refused. The best is the "
                "coarsest that adds at most 1 % to the variance of the noise",
            ),
        ),
    )


def _quanta_of(upper: Fraction, table: Table) -> Iterator[Fraction]:
    """Yield powers of ten that divide the bounds."""
    ends = [upper, upper if table.row_upper is None else table.row_upper]
    yield from (each for each in _QUANTA if all((end / each).denominator == 1 for end in ends))


def _rounding(step: Fraction, upper: Fraction, table: Table) -> tuple[float, bool]:
    row_upper = upper if table.row_upper is None else table.row_upper
    bounds = ValueBounds.of(step, (Fraction(0), row_upper), (Fraction(0), upper))
    try:
        require_exact_sums(
            bounds,
            members=table.max_members,
            rows_of_member=None,
            rows=table.max_rows,
            below=SUMS_IN_DOUBLES,
        )
    except ValueError:
        return float(step) * math.sqrt(table.max_rows / 12), False
    return float(step) * math.sqrt(table.max_rows / 12), True


def grids_sheet(spread: Spread, upper: Fraction, currency: Currency) -> Sheet:
    """Return how wide the cells of grids are up to a bound, and how far the rank of a median may be off."""
    start = min((each.value for each in spread.known if 0 < each.value < upper), default=upper / 1000)
    rows = [
        (
            cells,
            upper / cells,
            start,
            float(upper / start) ** (1 / cells) - 1,
            error := float(rank_error(currency, Quantile(Fraction(1, 2)), cells, alpha=_ALPHA)),
            error / spread.members,
        )
        for cells in CELLS
    ]
    return Sheet(
        (
            Column("cells", "cells"),
            Column("linear_width", "linear: width"),
            Column("geometric_from", "geometric: from"),
            Column("geometric_growth", "wider by", percent),
            Column("rank_error", "rank within, 95 %"),
            Column("rank_error_part", "of members", percent),
        ),
        rows,
        (
            (
                "grids",
                "of quantiles up to the best bound, or the largest; the rank is that of a median for one unit",
            ),
        ),
    )
