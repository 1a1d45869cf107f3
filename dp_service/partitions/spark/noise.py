"""Noisy weights against the cuts of a round, where the elements are.

The sub-key of a round travels to the executors inside a pickled function, never in a query's text or plan.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from dp_service.partitions.element_noise import KEY_BYTES, ElementUniforms, round_key
from dp_service.partitions.noisy_comparison import NoisyComparison
from dp_service.partitions.parameters import Method
from dp_service.partitions.schedule import Round
from dp_service.partitions.spark.arrays import of_columns
from dp_service.partitions.spark.pairs import ELEMENT
from dp_service.partitions.spark.weights import WEIGHT

LEVEL = "level"


def judged(weights: DataFrame, turn: Round, method: Method, seed: bytes) -> DataFrame:
    """Return elements with how many cuts their noisy weight exceeds (`level`); the same as `KeyedElementNoise`."""
    level = _levels(round_key(seed, method.value, turn.number), turn.variance, turn.cuts)
    key = sf.unhex(sf.sha2(sf.col(ELEMENT).cast("binary"), KEY_BYTES * 8))
    return weights.select(ELEMENT, level(key, sf.col(WEIGHT)).alias(LEVEL))


def _levels(sub_key: bytes, variance: Fraction, cuts: tuple[int, ...]) -> Callable[..., Column]:
    def level(keys: NDArray[np.object_], weights: NDArray[np.int64]) -> NDArray[np.int64]:
        rows = np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(-1, KEY_BYTES)
        return NoisyComparison(variance).levels(weights, cuts, ElementUniforms(sub_key, rows))

    return of_columns(level, "bigint")
