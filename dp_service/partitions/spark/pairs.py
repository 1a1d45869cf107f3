"""The pairs of a DataFrame: distinct, in the order in which a member's elements are kept, and bounded.

One shuffle puts all pairs of a member together; everything here happens where they are then.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf

from dp_service.noise.encoding import length_prefixed

MEMBER, ELEMENT, POSITION, SIZE = "member", "element", "position", "size"
_SEEN = "seen"


def ordered_pairs(texts: DataFrame, salt: bytes) -> DataFrame:
    """Return distinct pairs with their position in their member's order, counted from 1.

    `texts` has the columns `member` and `element`, both canonical texts without NULL. The result lies by members.
    Source: `dp_service.bounding.order`; hexadecimal texts are ordered as their bytes are.
    """
    position = sf.row_number().over(Window.partitionBy(MEMBER).orderBy(_order_hash(salt), ELEMENT))
    together = texts.select(MEMBER, ELEMENT).repartition(sf.col(MEMBER))
    return together.dropDuplicates([MEMBER, ELEMENT]).withColumn(POSITION, position)


def bounded_pairs(pairs: DataFrame, typical: int) -> DataFrame:
    """Return every member's first `typical` pairs, each with how many its member keeps (`size`)."""
    of_member = Window.partitionBy(MEMBER)
    seen = sf.row_number().over(of_member.orderBy(POSITION))
    size = sf.least(sf.count(sf.lit(1)).over(of_member), sf.lit(typical)).cast("int")
    return pairs.withColumn(_SEEN, seen).withColumn(SIZE, size).where(sf.col(_SEEN) <= typical)


def member_count(bounded: DataFrame) -> int:
    """Return how many members hold a pair."""
    return bounded.where(sf.col(_SEEN) == 1).count()


def without(pairs: DataFrame, gone: DataFrame) -> DataFrame:
    """Return the pairs of other elements than those in `gone`, by members again. Two shuffles of the pairs."""
    return pairs.join(gone, ELEMENT, "left_anti").repartition(sf.col(MEMBER))


def _order_hash(salt: bytes) -> Column:
    prefix = sf.unhex(sf.lit(length_prefixed(salt).hex()))
    parts = [part for name in (MEMBER, ELEMENT) for part in (_length(name), sf.col(name).cast("binary"))]
    return sf.sha2(sf.concat(prefix, *parts), 256)


def _length(name: str) -> Column:
    """Return the length of a text in bytes, as eight bytes."""
    return sf.unhex(sf.lpad(sf.hex(sf.octet_length(sf.col(name)).cast("bigint")), 16, "0"))
