"""Private domain discovery on DataFrames, round by round; the guarantee is that of `dp_service.partitions.discovery`.

Shuffles, with I rounds of equal weights: one puts pairs by members, one per round sums by elements, and two between
rounds take away what was left out and put the rest by members again: 3 (I - 1) + 2, as in Swanberg et al. 2023, section
4. Together with the pairs, the elements to be removed are shuffled, once between rounds. What a round
needs more than once is kept by Spark, in memory or on disk.
"""

from __future__ import annotations

from contextlib import ExitStack

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from dp_service.partitions.parameters import Parameters
from dp_service.partitions.schedule import STANDARD_GRIDS, Grids, Round, rounds
from dp_service.partitions.spark.failures import guarded
from dp_service.partitions.spark.noise import LEVEL, judged
from dp_service.partitions.spark.pairs import ELEMENT, bounded_pairs, member_count, ordered_pairs, without
from dp_service.partitions.spark.weights import require_parallel, weighted
from dp_service.partitions.weighting import check_room


def discover_on_spark(
    texts: DataFrame, parameters: Parameters, *, seed: bytes, salt: bytes, grids: Grids = STANDARD_GRIDS
) -> tuple[tuple[str, ...], ...]:
    """Return the canonical texts of the released elements, round by round, each round's in code-point order.

    Args:
        texts: The columns `member` and `element`: canonical texts (docs/domains.md) without NULL; pairs may repeat.
        parameters: A method of equal or adaptive weights, and what it is to give.
        seed: 32 fresh secret bytes for every publication.
        salt: The public salt of the order in which a member's elements are kept.
        grids: Those of `discover`.

    Raises:
        ValueError: The seed has another length, or the method is for one machine only.
        TooManyError: There are more members or pairs than the grid allows.
        SparkFailedError: Spark could not do the work.
    """
    turns = rounds(parameters, grids)
    require_parallel(turns)
    return guarded(lambda: _rounds(texts, parameters, turns, seed, salt))


def _rounds(
    texts: DataFrame, parameters: Parameters, turns: tuple[Round, ...], seed: bytes, salt: bytes
) -> tuple[tuple[str, ...], ...]:
    released = []
    with _Kept() as kept:
        pairs = kept.frame(ordered_pairs(texts, salt))
        for turn in turns:
            bounded = kept.frame(bounded_pairs(pairs, turn.typical))
            check_room(turn, member_count(bounded), bounded.count)
            levels = kept.frame(judged(weighted(bounded, turn, kept.frame), turn, parameters.method, seed))
            released.append(_texts(levels.where(sf.col(LEVEL) == len(turn.cuts))))
            if turn is not turns[-1]:
                pairs = kept.frame(without(pairs, _left_out(levels, turn)))
    return tuple(released)


class _Kept(ExitStack):
    """DataFrames that Spark keeps while they are needed."""

    def frame(self, frame: DataFrame) -> DataFrame:
        kept = frame.persist(StorageLevel.MEMORY_AND_DISK)
        self.callback(kept.unpersist)
        return kept


def _left_out(levels: DataFrame, turn: Round) -> DataFrame:
    """Return the elements that the rounds after this one leave out."""
    is_released = sf.col(LEVEL) == len(turn.cuts)
    is_light = (sf.col(LEVEL) == 0) & sf.lit(len(turn.cuts) > 1)
    return levels.where(is_released | is_light).select(ELEMENT)


def _texts(released: DataFrame) -> tuple[str, ...]:
    # Python orders texts by code points.
    return tuple(sorted(row[0] for row in released.select(ELEMENT).toLocalIterator()))
