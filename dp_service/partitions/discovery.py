"""Private domain discovery on one machine: arrays in, released elements out.

Guarantee: `discover` is `parameters.delta`-approximate `parameters.rho`-zCDP for adding or removing one member with any
set of elements, in all that `Discovery` holds. Each round is: the noisy weights of all elements there could be, novel
ones included, are a Gaussian mechanism of l2 sensitivity `grid.sensitivity` (Canonne, Kamath and Steinke 2020,
theorem 4); that only elements of the data are looked at changes what comes out with probability at most delta, by the
choice of T. Rounds compose (Bun and Steinke 2016, lemma 8.2): what a round leaves out is a function of noisy weights
of those before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dp_service.bounding.contributions import Contributions
from dp_service.partitions.element_noise import ElementUniforms, Keys, round_key
from dp_service.partitions.noisy_comparison import NoisyComparison
from dp_service.partitions.parameters import Parameters
from dp_service.partitions.schedule import STANDARD_GRIDS, Grids, Round, rounds
from dp_service.partitions.weighting import weigh

Integers = NDArray[np.int64]


class Noise(Protocol):
    """Compares noisy weights with cuts."""

    def levels(self, turn: Round, elements: Integers, weights: Integers) -> Integers:
        """Return how many of the round's cuts each of some elements exceeds with its noise; shape (n,)."""
        ...


class KeyedElementNoise:
    """Noise that is a function of the seed, the method, the round and the element.

    `seed` is 32 fresh secret bytes for every publication: an element that met the same noise twice would give away
    the difference of its weights. `keys` are the elements' keys, shape (element_count, 32).
    """

    def __init__(self, seed: bytes, parameters: Parameters, keys: Keys) -> None:
        self._seed = seed
        self._method = parameters.method.value
        self._keys = keys

    def levels(self, turn: Round, elements: Integers, weights: Integers) -> Integers:
        """Return how many cuts are exceeded; see `Noise`."""
        uniforms = ElementUniforms(round_key(self._seed, self._method, turn.number), self._keys[elements])
        return NoisyComparison(turn.variance).levels(weights, turn.cuts, uniforms)


@dataclass(frozen=True, eq=False)
class Discovery:
    """The codes of the released elements, ascending, round by round."""

    released: tuple[Integers, ...]

    @property
    def elements(self) -> Integers:
        """All of them, ascending."""
        return np.sort(np.concatenate(self.released))


def discover(
    contributions: Contributions, parameters: Parameters, noise: Noise, grids: Grids = STANDARD_GRIDS
) -> Discovery:
    """Return the elements that are safe to name; see the guarantee above.

    Args:
        contributions: All pairs of the data, unbounded, each member's elements in the order in which they are kept.
        parameters: The method and the guarantee of the publication.
        noise: Decides which noisy weights exceed a cut.
        grids: The grids of the weights; tests use coarser ones.

    Raises:
        TooManyError: There are more members or pairs than the grid allows.
    """
    left_out = np.zeros(contributions.element_count, dtype=np.bool_)
    released = []
    for turn in rounds(parameters, grids):
        names, left = _one_round(contributions.bounded(turn.typical, left_out), turn, noise)
        released.append(names)
        left_out[left] = True
    return Discovery(tuple(released))


def _one_round(bounded: Contributions, turn: Round, noise: Noise) -> tuple[Integers, Integers]:
    """Return what a round releases, and what the rounds after it leave out."""
    weights = weigh(bounded, turn)
    held = np.flatnonzero(np.bincount(bounded.elements, minlength=bounded.element_count))
    levels = noise.levels(turn, held, weights[held])
    released = levels == len(turn.cuts)
    dropped = (levels == 0) & (len(turn.cuts) > 1)
    return held[released], held[released | dropped]
