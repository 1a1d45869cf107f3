"""Conversions and variances of one release beside the same numbers asked apart, and beside OpenDP, for the same rho.

    python -m bench.numbers [--runs 2000] [--groups 50]

Of the customers of Online Retail, by their pieces, each within 0 and 3000: the part that buys at least 500, and the
variance. `one release` counts customers and adds up what the number needs beside them; `apart` asks for each count and
sum alone, none of them centred, with equal parts of rho; so does OpenDP. Its own variance, which takes the number of
customers for public, has a line of its own. OpenDP is left out, by name, where it is not installed.

Errors are root mean squares over all runs, of a group of so many customers in its data, and as ratios to one release.
"""

from __future__ import annotations

import argparse
import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from bench.sums import CLAMP, CURRENCY, UNITS, Floats, Integers, members_totals, noise_of
from dp_service.mechanisms import Histogram
from dp_service.mechanisms.aggregates import BoundMoments, ColumnSums, SumShare
from dp_service.mechanisms.bounded import ContributionBound
from dp_service.noise.gaussian_price import variance_for
from dp_service.values.bounds import Clamp
from dp_service.values.squares import Squares

BUYS_MUCH = 500
HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
Released = Callable[[Sequence[Integers], Sequence[int], int], list[Floats]]
"""Of members' numbers and the largest of each: their number and sums, as so many groups release them."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--groups", type=int, default=50)
    options = parser.parse_args(arguments)
    totals = members_totals()
    rho = float(_asked((SumShare(CLAMP, HALF),)).rho)
    print(f"{totals.size} customers, rho = {rho:.5f}")
    print(f"{'':28} {'conversion':>12} {'ratio':>6} {'variance':>12} {'ratio':>6}")
    first: tuple[float, float] | None = None
    for name, conversion, variance in ways(totals, options.groups):
        rounds = math.ceil(options.runs / options.groups)
        found = (
            _error(conversion, float(np.mean(totals >= BUYS_MUCH)), rounds),
            _error(variance, float(np.var(totals)), rounds),
        )
        first = first or found
        cells = (f"{each:12.5g} {each / best:6.2f}" for each, best in zip(found, first, strict=True))
        print(f"{name:28} {' '.join(cells)}", flush=True)


def _error(draw: Callable[[], Floats] | None, true: float, rounds: int) -> float:
    if draw is None:
        return math.nan
    found = np.concatenate([draw() for _ in range(rounds)])
    return float(np.sqrt(np.mean((found - true) ** 2)))


def ways(
    totals: Integers, groups: int
) -> Iterator[tuple[str, Callable[[], Floats] | None, Callable[[], Floats] | None]]:
    """Yield every way of releasing both numbers."""
    much = (totals >= BUYS_MUCH).astype(np.int64)
    yield "one release", lambda: _conversion(much, groups), lambda: _variance(totals, groups)

    def of_parts(released: Released) -> tuple[Callable[[], Floats], Callable[[], Floats]]:
        def conversion() -> Floats:
            members, buying = released([much], [1], groups)
            return buying / np.maximum(members, 1)

        def variance() -> Floats:
            found = released([totals, totals**2], [CLAMP.high, CLAMP.high**2], groups)
            members, total, squared = found
            members = np.maximum(members, 1)
            return np.maximum(squared / members - (total / members) ** 2, 0)

        return conversion, variance

    yield ("apart, Gris", *of_parts(_apart))
    try:
        prelude: Any = importlib.import_module("opendp.prelude")
    except ImportError as missing:
        print(f"OpenDP is left out, for {missing.name} is not installed: pip install '.[bench]'")
        return
    prelude.enable_features("contrib")
    yield ("apart, OpenDP", *of_parts(_opendp(prelude)))
    yield "its variance, size is public", None, _opendp_variance(prelude, totals, groups)


def _asked(columns: tuple[SumShare, ...]) -> BoundMoments:
    return BoundMoments(CURRENCY, Fraction(UNITS), ContributionBound(1), None, HALF, columns)


def _conversion(much: Integers, groups: int) -> Floats:
    asked = _asked((SumShare(Clamp(0, 1), HALF),))
    centred = int((2 * much - 1).sum())
    found = asked.run(*_true(much.size, (centred,), groups), noise_of())
    members = np.maximum(found.counts, 1)
    return (found.columns[0].centred + found.counts) / 2 / members


def _variance(totals: Integers, groups: int) -> Floats:
    squares = Squares.of_sums(CLAMP, terms=10**6)
    asked = _asked((SumShare(CLAMP, QUARTER), SumShare(squares.clamp, QUARTER)))
    squared = sum(map(squares, totals.tolist()))
    sums = int((2 * totals - CLAMP.centre).sum()), 2 * squared - squares.clamp.centre * totals.size
    found = asked.run(*_true(totals.size, sums, groups), noise_of())
    members = np.maximum(found.counts, 1)
    mean, square = (each.centred / members for each in found.columns)
    of_squares = float(squares.size) * (square + squares.clamp.centre) / 2
    return np.maximum(of_squares - mean**2, 0) / 4


def _true(members: int, sums: Sequence[int], groups: int) -> tuple[Histogram, tuple[ColumnSums, ...]]:
    columns = tuple(ColumnSums.from_group_order([each] * groups) for each in sums)
    return Histogram.from_element_order([members] * groups), columns


def _apart(numbers: Sequence[Integers], largest: Sequence[int], groups: int) -> list[Floats]:
    rho = _asked((SumShare(CLAMP, HALF),)).rho / (len(numbers) + 1)
    noise = noise_of()
    true = [(numbers[0].size, 1), *zip((int(each.sum()) for each in numbers), largest, strict=True)]
    return [
        (value + noise.discrete_gaussian(variance_for(most**2, rho), groups, str(place))).astype(float)
        for place, (value, most) in enumerate(true)
    ]


def _opendp(prelude: Any) -> Released:
    space = prelude.vector_domain(prelude.atom_domain(T="i64")), prelude.l2_distance(T=float)

    def released(numbers: Sequence[Integers], largest: Sequence[int], groups: int) -> list[Floats]:
        rho = float(_asked((SumShare(CLAMP, HALF),)).rho) / (len(numbers) + 1)
        true = [(numbers[0].size, 1), *zip((int(each.sum()) for each in numbers), largest, strict=True)]
        return [
            np.array(
                (space >> prelude.m.then_gaussian(scale=most / math.sqrt(2 * rho)))([value] * groups),
                dtype=float,
            )
            for value, most in true
        ]

    return released


def _opendp_variance(prelude: Any, totals: Integers, groups: int) -> Callable[[], Floats]:
    bounds = (float(CLAMP.low), float(CLAMP.high))
    space = (
        prelude.vector_domain(prelude.atom_domain(bounds=bounds, nan=False), size=totals.size),
        prelude.symmetric_distance(),
    )
    rho = float(_asked((SumShare(CLAMP, HALF),)).rho)
    aggregated = space >> prelude.t.then_variance(ddof=0)
    # Datasets of one size differ by replacing a row, which is a distance of 2.
    scale: float = prelude.binary_search_param(
        lambda tried: aggregated >> prelude.m.then_gaussian(scale=tried), d_in=2, d_out=rho, T=float
    )
    measured, rows = aggregated >> prelude.m.then_gaussian(scale=scale), totals.astype(float).tolist()
    return lambda: np.array([measured(rows) for _ in range(groups)], dtype=float)


if __name__ == "__main__":
    main()
