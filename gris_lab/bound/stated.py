"""Members and elements as their owner describes them, instead of data: pairs that a few numbers stand for.

How many elements members have is given by its median, its quantiles of 90 % and 99 % and the largest; between them
sizes grow geometrically. How popular elements are is a power law: the element of rank r is held in proportion to
r^-exponent.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gris_data.bound.spilling import spilling
from gris_data.errors import InputError
from gris_lab.bound.contributions import SHARES, BoundedCounts, Floats, summed

MOST_MEMBERS = 10**10
MOST_ELEMENTS = 10**6
STEEPEST = 5

_QUANTILES = (0.0, SHARES[1], SHARES[3], SHARES[4], 1.0)
_MOST_DRAWN = 3 * 10**6
_STEPS = 80
_NEARLY_ALL = 0.99


@dataclass(frozen=True)
class Stated:
    """What an owner states.

    Attributes:
        members: How many members there are.
        element_count: How many different elements there are.
        per_member: How many elements a member has: median, quantiles of 90 % and 99 %, and the largest.
        exponent: How steeply popularity falls with rank; 0 is not at all.

    Raises:
        InputError: A number is out of range.
    """

    members: int
    element_count: int
    per_member: tuple[int, ...]
    exponent: float

    def __post_init__(self) -> None:
        if not 1 <= self.members <= MOST_MEMBERS:
            raise InputError(f"expected a number from 1 to {MOST_MEMBERS}, got {self.members}", "members")
        if not 1 <= self.element_count <= MOST_ELEMENTS:
            raise InputError(
                f"expected a number from 1 to {MOST_ELEMENTS}, got {self.element_count}", "element_count"
            )
        if not 0 <= self.exponent <= STEEPEST:
            raise InputError(f"expected a number from 0 to {STEEPEST}, got {self.exponent:g}", "exponent")
        if len(self.per_member) != len(_QUANTILES) - 1 or self.per_member[0] < 1:
            raise InputError(
                "expected four numbers from 1: the median, 90 %, 99 % and the largest", "per_member"
            )
        if list(self.per_member) != sorted(self.per_member):
            raise InputError("expected numbers that do not fall: the median comes first", "per_member")
        if self.per_member[-1] > self.element_count:
            raise InputError(
                f"nobody can have {self.per_member[-1]} of {self.element_count} elements",
                "per_member",
                "element_count",
            )


def counts_of_stated(stated: Stated, k: int, most_names: int, bounds: Sequence[int] = ()) -> BoundedCounts:
    """Return what bounds leave of the counts of such members; the same numbers give the same counts.

    At most a few million pairs are drawn, with members that stand for several each.

    Raises:
        InputError: There are fewer than k elements.
    """
    members, elements = _drawn_pairs(stated)
    with spilling(Path(tempfile.gettempdir()), "2GB") as connection:
        connection.register("drawn", {"member": members, "element": elements})
        connection.execute("CREATE TEMP TABLE pairs AS SELECT DISTINCT member, element FROM drawn")
        sampled = int(members[-1]) + 1
        return summed(connection, k, most_names, bounds, stated.members / sampled)


def _drawn_pairs(stated: Stated) -> tuple[np.ndarray, np.ndarray]:
    """Return members and elements of pairs, in the order of the members; a pair may be there more than once.

    Who draws c elements with replacement holds about so many different ones as `_draws_for` was made for.
    """
    weights = np.arange(1, stated.element_count + 1, dtype=np.float64) ** -stated.exponent
    weights /= weights.sum()
    mean_draws = _draws_for(_sizes(stated, 1000), weights).mean()
    sampled = max(1, min(stated.members, int(_MOST_DRAWN / mean_draws)))
    drawn = np.random.Generator(np.random.PCG64(0))
    draws = np.maximum(1, drawn.poisson(_draws_for(_sizes(stated, sampled), weights)))
    places = np.searchsorted(np.cumsum(weights), drawn.random(int(draws.sum())))
    return np.repeat(np.arange(sampled), draws), np.minimum(places, stated.element_count - 1)


def _sizes(stated: Stated, members: int) -> Floats:
    """Return how many elements each of so many members has, ascending."""
    logarithms = [0.0, *(math.log(size) for size in stated.per_member)]
    return np.exp(np.interp((np.arange(members) + 0.5) / members, _QUANTILES, logarithms))


def _draws_for(sizes: Floats, weights: Floats) -> Floats:
    """Return how often a member has to draw to hold so many different elements, on average.

    Nearly all elements of many would take very many draws; who should hold more gets nearly all.
    """
    largest = min(float(sizes.max()), _NEARLY_ALL * weights.size)
    draws = [1.0]
    held = [-np.expm1(-weights).sum()]
    while held[-1] < largest:
        draws.append(draws[-1] * 1.25)
        held.append(-np.expm1(-draws[-1] * weights).sum())
    return np.exp(np.interp(sizes, held, np.log(draws)))
