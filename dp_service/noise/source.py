"""The interface through which mechanisms draw noise, and its keyed implementation.

Mechanisms state what they draw, never how: tests run the same mechanism code under a source that enumerates
every outcome. A further law is a further method of `NoiseSource`.
"""

from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dp_service.noise.discrete_gaussian import discrete_gaussian
from dp_service.noise.discrete_laplace import discrete_laplace
from dp_service.noise.gumbel import gumbel_order
from dp_service.noise.random_order import random_order
from dp_service.noise.stream import KeyedStream
from dp_service.noise.uniforms import KeyedUniforms
from dp_service.noise.weights import LogWeights

SAMPLER_VERSION = 2
"""Changes whenever the same seed would give different noise; it is part of every seed."""


class NoiseSource(Protocol):
    """Independent exact draws, each under a label that is used once."""

    def discrete_laplace(self, inverse_scale: Fraction, size: int, label: str) -> NDArray[np.int64]:
        """Draw `size` numbers with Pr[Z = z] proportional to exp(-inverse_scale |z|); shape (size,)."""
        ...

    def discrete_gaussian(self, variance: Fraction, size: int, label: str) -> NDArray[np.int64]:
        """Draw `size` numbers with Pr[Z = z] proportional to exp(-z^2 / (2 variance)); shape (size,)."""
        ...

    def gumbel_order(self, weights: LogWeights, count: int, label: str) -> NDArray[np.int64]:
        """Draw `count` entries without replacement, each with probability proportional to its weight.

        Entries that are not eligible come after all others. Returns indices into `weights` in the order of
        their drawing, shape (count,).
        """
        ...

    def random_order(self, size: int, label: str) -> NDArray[np.int64]:
        """Draw an order of 0..size-1 that is independent of the data, shape (size,).

        It is for work whose timing must not reveal the original order; no law may rest on it.
        """
        ...


class KeyedNoise:
    """Noise that is a function of a seed: the same seed and labels give the same draws, bit for bit.

    A label used twice would give the same random words twice, which breaks every guarantee, so a draw raises
    ValueError then.
    """

    def __init__(self, stream: KeyedStream) -> None:
        self._stream = stream
        self._used_labels: set[str] = set()

    def discrete_laplace(self, inverse_scale: Fraction, size: int, label: str) -> NDArray[np.int64]:
        """Draw exactly from the discrete Laplace law; see `NoiseSource`."""
        self._use(label)
        return discrete_laplace(self._stream, (label,), inverse_scale, size)

    def discrete_gaussian(self, variance: Fraction, size: int, label: str) -> NDArray[np.int64]:
        """Draw exactly from the discrete Gaussian law; see `NoiseSource`."""
        self._use(label)
        return discrete_gaussian(self._stream, (label,), variance, size)

    def gumbel_order(self, weights: LogWeights, count: int, label: str) -> NDArray[np.int64]:
        """Draw exactly from the Plackett-Luce law; see `NoiseSource`."""
        self._use(label)
        return gumbel_order(KeyedUniforms(self._stream, (label,), len(weights)), weights, count)

    def random_order(self, size: int, label: str) -> NDArray[np.int64]:
        """Draw an order; see `NoiseSource`."""
        self._use(label)
        return random_order(KeyedUniforms(self._stream, (label,), size))

    def _use(self, label: str) -> None:
        if label in self._used_labels:
            raise ValueError(f"label {label!r} has been drawn from already")
        self._used_labels.add(label)
