"""Weighted histograms of bounded pairs, as `dp_service.partitions.weighting` has them for arrays.

Sums are of 64-bit integers, so the order in which Spark adds does not matter. Formulas that are in float64 are computed
by the same functions of NumPy as on arrays, on whole Arrow batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from dp_service.partitions.adaptive import first_weights, rerouted, returned, returned_fractions
from dp_service.partitions.schedule import Round, Weighting
from dp_service.partitions.spark.arrays import of_columns
from dp_service.partitions.spark.pairs import ELEMENT, MEMBER, SIZE

WEIGHT = "weight"

Keep = Callable[[DataFrame], DataFrame]
_FIRST, _BACK, _SUM = "first", "back", "first_sum"


def weighted(bounded: DataFrame, turn: Round, keep: Keep) -> DataFrame:
    """Return every element that a member holds with its weight, by elements.

    `bounded` are the pairs of `bounded_pairs`, by members. `keep` makes Spark keep what is needed twice. Equal weights
    take one shuffle, adaptive ones four.
    """
    if turn.weighting is Weighting.ADAPTIVE:
        return _adaptive(bounded, turn, keep)
    return _summed(bounded, _looked_up(turn.grid.equal_weights(turn.typical)))


def require_parallel(turns: Iterable[Round]) -> None:
    """Make sure that no round reads members one after the other.

    Raises:
        ValueError: The method is for one machine only; the message names its kind of weights.
    """
    for turn in turns:
        if turn.weighting not in (Weighting.EQUAL, Weighting.ADAPTIVE):
            raise ValueError(
                f"method: {turn.weighting} weights are for one machine only; use sips, mad or mad2r"
            )


def _adaptive(bounded: DataFrame, turn: Round, keep: Keep) -> DataFrame:
    """Return the weights of MAD; the letters are those of `dp_service.partitions.adaptive`."""
    grid, sizes = turn.grid, np.arange(turn.typical + 1, dtype=np.int64)
    a_k = first_weights(grid.units, sizes)
    firsts = keep(_summed(bounded, _looked_up(a_k)).withColumnRenamed(WEIGHT, _SUM))
    r = of_columns(lambda sums: returned_fractions(sums, turn.enough), "double")
    e_i = (
        bounded.join(firsts.withColumn("r", r(_SUM)), ELEMENT)
        .withColumn(_BACK, of_columns(returned, "bigint")(_looked_up(a_k), "r"))
        .groupBy(MEMBER)
        .agg(sf.sum(_BACK).alias(_BACK))
    )
    own = _looked_up(grid.equal_weights(turn.typical) - a_k)
    more = _summed(bounded.join(e_i, MEMBER), own + of_columns(rerouted, "bigint")(_BACK))
    kept = sf.least(sf.col(_SUM), sf.lit(turn.enough))
    return firsts.join(more, ELEMENT).select(ELEMENT, (kept + sf.col(WEIGHT)).alias(WEIGHT))


def _summed(pairs: DataFrame, of_pair: Column) -> DataFrame:
    return pairs.groupBy(ELEMENT).agg(sf.sum(of_pair).alias(WEIGHT))


def _looked_up(of_sizes: NDArray[np.int64]) -> Column:
    """Return what a member of each size adds. The table is one text: a plan of ten thousand numbers is slow to make."""
    table = sf.split(sf.lit(",".join(map(str, of_sizes.tolist()))), ",").cast("array<bigint>")
    return sf.element_at(table, sf.col(SIZE) + 1)
