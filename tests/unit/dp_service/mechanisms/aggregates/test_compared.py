"""Differences and quotients of numbers of one release: the law of their noise, where they are shown, and their ends."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dp_service.mechanisms.aggregates.compared import (
    Weighted,
    doubled_total,
    least_divisor,
    quotient,
    quotient_intervals,
    total_intervals,
    upper_tails,
)
from dp_service.mechanisms.aggregates.intervals import ShownRows, sum_intervals
from dp_service.mechanisms.aggregates.released import ReleasedColumn, ReleasedMoments
from dp_service.values.bounds import Clamp
from tests.unit.dp_service.mechanisms.bounded.laws import masses

ALPHA = Fraction(1, 5)
VARIANCE = Fraction(100)
UNIT = Clamp(0, 1)


def exact_tails(noise: tuple[tuple[int, int], ...]) -> dict[int, float]:
    """Return Pr[S >= x] of every x, by adding up the laws of all draws with whole weights."""
    found = {0: 1.0}
    for weight, variance in noise:
        law = masses(Fraction(variance))
        added: dict[int, float] = {}
        for value, mass in found.items():
            for place, other in enumerate(law):
                at = value + weight * (place - law.size // 2)
                added[at] = added.get(at, 0.0) + mass * float(other)
        found = added
    tails, total = {}, 0.0
    for value in sorted(found, reverse=True):
        total += found[value]
        tails[value] = total
    return tails


@pytest.mark.parametrize(
    ("noise", "excess"),
    [
        (((1, 4), (-1, 4)), 0.1),
        (((3, 9), (2, 16)), 0.4),
        (((1, 100), (-2, 30)), 0.15),
        (((1, 3),), 0.15),
        (((1, 1), (-1, 1)), math.inf),
        (((1, 400), (30, 1)), math.inf),
    ],
)
def test_no_tail_is_below_that_of_the_exact_law(noise: tuple[tuple[int, int], ...], excess: float) -> None:
    """Where the noise is not small, it is that of the law, at steps of the largest part; else a bound."""
    exact = exact_tails(noise)
    as_floats = tuple((float(weight), float(variance)) for weight, variance in noise)
    tried = [x for x, tail in exact.items() if 1e-9 < tail < 0.2]
    found = upper_tails(as_floats, np.array(tried, dtype=np.float64))
    for x, tail in zip(tried, found, strict=True):
        assert exact[x] * (1 - 1e-6) <= tail
        assert exact[x] < 1e-3 or tail <= exact[x] * (1 + excess)


def released(
    rows: list[tuple[int, int, int]], *, threshold: int | None = None, above: Clamp = UNIT
) -> ReleasedMoments:
    """Return a release of N and twice two numbers, of noise of parameter 100 each for a width of 1."""
    counts, first, second = (np.array(each, dtype=np.int64) for each in zip(*rows, strict=True))
    columns = [
        ReleasedColumn(
            clamp, twice - clamp.centre * counts, counts, VARIANCE * clamp.width**2, VARIANCE, False
        )
        for clamp, twice in ((above, first), (UNIT, second))
    ]
    return ReleasedMoments(np.arange(counts.size), counts, tuple(columns), VARIANCE, threshold, 1)


def shown(release: ReleasedMoments) -> ShownRows:
    """Return all of a release."""
    t = None if release.threshold is None else release.threshold + 1
    return ShownRows(tuple(range(release.groups.size)), (t,) * release.groups.size)


@pytest.mark.parametrize("threshold", [None, 50])
def test_a_quotient_is_shown_only_where_the_interval_of_its_divisor_is_above_0(threshold: int | None) -> None:
    """Where nothing selected the row, exactly there; and its interval holds it."""
    release = released([(90, 40, twice) for twice in range(-20, 180, 3)], threshold=threshold)
    found = quotient_intervals(release, 0, 1, shown(release), alpha=ALPHA)
    of_divisor = sum_intervals(release, 1, shown(release), alpha=ALPHA)
    certain = [interval.lower > 0 for interval in of_divisor]
    has_value = [each is not None for each in found]
    assert any(has_value)
    assert (
        has_value == certain
        if threshold is None
        else all(c for c, h in zip(certain, has_value, strict=True) if h)
    )
    assert least_divisor(release, 1, None if threshold is None else 51, alpha=ALPHA) > 0
    for row, interval in enumerate(found):
        if interval is not None:
            assert 0 <= interval.lower <= quotient(release, 0, 1, row) <= interval.upper


def test_a_quotient_by_what_may_be_next_to_0_has_a_wide_interval() -> None:
    """The nearer the divisor is to where it would not be shown, the wider, and each has an end."""
    release = released([(500, 120, twice) for twice in (60, 100, 200, 400, 800)])
    widths = []
    for interval in quotient_intervals(release, 0, 1, shown(release), alpha=ALPHA):
        assert interval is not None
        widths.append(float(interval.upper - interval.lower))
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 20 * widths[-1]
    # Twice 400 of both, without N: (Z_a - r Z_b + (1 - r) Z_n) / 800, at 1.2816 standard deviations.
    r = 120 / 800
    deviation = 10 * math.sqrt(1 + r**2 + (1 - r) ** 2) / 800
    assert widths[-1] == pytest.approx(2 * 1.2816 * deviation, rel=0.08)


def test_a_difference_of_two_counts_has_none_of_the_noise_of_the_count() -> None:
    """It is what it is whether or not its row was selected; with another weight on N it is not."""
    free, selected = (released([(52, 60, 30)], threshold=threshold) for threshold in (None, 50))
    both = (Weighted(0, Fraction(1)), Weighted(1, Fraction(-1)))
    of_both = [total_intervals(each, both, shown(each), alpha=ALPHA) for each in (free, selected)]
    assert of_both[0] == of_both[1]
    assert doubled_total(free, both, 0) == 30
    # (Z_a - Z_b) / 2 has a standard deviation of 7.07.
    assert of_both[0][0].upper - of_both[0][0].lower == pytest.approx(2 * 1.2816 * 7.07, abs=1)
    rest = (Weighted(None, Fraction(1)), Weighted(0, Fraction(-1)))
    plain, given = (total_intervals(each, rest, shown(each), alpha=ALPHA)[0] for each in (free, selected))
    assert given.lower < plain.lower


def test_a_quotient_of_what_can_be_negative_can_be_negative() -> None:
    """Of what cannot it is not, whatever the noise is."""
    signed = released([(400, -300, 500)], above=Clamp(-2, 2))
    (interval,) = quotient_intervals(signed, 0, 1, shown(signed), alpha=ALPHA)
    assert interval is not None
    assert interval.lower < Fraction(-3, 5) < interval.upper
    unsigned = released([(400, -10, 500)])
    assert quotient(unsigned, 0, 1, 0) == 0
    (interval,) = quotient_intervals(unsigned, 0, 1, shown(unsigned), alpha=ALPHA)
    assert interval is not None
    assert interval.lower == 0 < interval.upper


@pytest.mark.parametrize(("first", "second"), [(200, 2), (390, 10), (60, 3)])
def test_a_quotient_covers_given_that_it_is_shown_also_where_its_divisor_is_next_to_0(
    first: int, second: int
) -> None:
    """There it is shown for its noise alone: a test that did not take that into account would cover a third."""
    drawn = np.rint(np.random.default_rng(11).normal(0, 10, (3, 4000))).astype(int)
    rows = [(400 + n, 2 * first + a + n, 2 * second + b + n) for n, a, b in drawn.T.tolist()]
    release = released(rows)
    found = [
        each for each in quotient_intervals(release, 0, 1, shown(release), alpha=ALPHA) if each is not None
    ]
    assert 100 < len(found) < 3000
    covered = sum(each.lower <= Fraction(first, second) <= each.upper for each in found)
    assert covered >= len(found) * (1 - float(ALPHA)) - 5 * math.sqrt(len(found) * 0.16)
