"""Weighted histograms of bounded contributions on a grid: how much weight every element gets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dp_service.bounding.contributions import Codes, Contributions
from dp_service.partitions.adaptive import first_weights, rerouted, returned, returned_fractions
from dp_service.partitions.grid import WeightGrid
from dp_service.partitions.schedule import Round, Weighting
from dp_service.partitions.sequential import greedy_weights, policy_weights

Integers = NDArray[np.int64]
_HALF_BITS = 18


class TooManyError(ValueError):
    """There are more members or pairs than a grid has room for."""


def weigh(contributions: Contributions, turn: Round) -> Integers:
    """Return the weight of every element in units of the round's grid, shape (element_count,).

    `contributions` are bounded already. One member more or less changes the result by at most `turn.grid.sensitivity`
    in l2.

    Raises:
        TooManyError: There are more members or pairs than the grid allows.
    """
    check_room(turn, contributions.member_count, lambda: contributions.elements.size)
    match turn.weighting:
        case Weighting.EQUAL:
            return equal_weights(contributions, turn.grid)
        case Weighting.ADAPTIVE:
            return adaptive_weights(contributions, turn.grid, turn.enough)
        case Weighting.POLICY:
            return policy_weights(contributions, turn.grid.units, turn.enough)
        case Weighting.GREEDY:
            return greedy_weights(contributions, turn.grid.units, turn.enough)


def equal_weights(contributions: Contributions, grid: WeightGrid) -> Integers:
    """Return the sum of 1 / sqrt(k) over the members of each element, where k is how many elements a member has."""
    sizes = contributions.sizes
    return _summed(contributions, grid.equal_weights(_largest(sizes))[sizes])


def adaptive_weights(contributions: Contributions, grid: WeightGrid, enough: int) -> Integers:
    """Return the weights of MAD; see `dp_service.partitions.adaptive`."""
    sizes = contributions.sizes
    first = first_weights(grid.units, sizes)
    weights = _summed(contributions, first)
    fractions = returned_fractions(weights, enough)
    pairs = returned(np.repeat(first, sizes), fractions[contributions.elements])
    before = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(pairs)))
    back = rerouted(np.diff(before[contributions.offsets]))
    own = grid.equal_weights(_largest(sizes))[sizes]
    return np.minimum(weights, enough) + _summed(contributions, own - first + back)


def _summed(contributions: Contributions, of_members: Integers) -> Integers:
    """Return the sum over each element's members, exactly; `of_members` is not negative."""
    of_pairs = np.repeat(of_members, contributions.sizes)
    low, high = of_pairs & (2**_HALF_BITS - 1), of_pairs >> _HALF_BITS
    count = contributions.element_count
    return _sums(contributions.elements, low, count) + (
        _sums(contributions.elements, high, count) << _HALF_BITS
    )


def _sums(elements: Codes, values: Integers, count: int) -> Integers:
    """Return sums of numbers below 2^20: in float64 they are exact up to 2^33 of them."""
    return np.bincount(elements, values, count).astype(np.int64)


def check_room(turn: Round, members: int, pairs: Callable[[], int]) -> None:
    """Make sure that the grid of a round has room for the data; pairs are counted only where they are limited.

    Raises:
        TooManyError: There are more members or pairs than the grid allows.
    """
    grid = turn.grid
    if members > grid.most_members:
        raise TooManyError(f"expected at most {grid.most_members} members for {turn.weighting} weights")
    if grid.adaptive_pairs and pairs() > grid.adaptive_pairs:
        raise TooManyError(f"expected at most {grid.adaptive_pairs} pairs for {turn.weighting} weights")


def _largest(sizes: Integers) -> int:
    return int(sizes.max(initial=0))
