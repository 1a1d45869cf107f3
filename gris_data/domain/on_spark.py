"""A publication on Spark: Parquet or a table of its catalogue, read and discovered there."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from dp_service.noise.stream import SEED_BYTES
from dp_service.partitions.spark import SparkFailedError, discover_on_spark, guarded
from dp_service.queries.structured import MAXIMUM_TEXT_LENGTH
from dp_service.terms import ColumnType
from gris_data.domain.member_data import Source
from gris_data.domain.publishing import Found, Publication
from gris_data.errors import InputError
from pinot_connector.engines.spark.sessions import own_session, started
from pinot_connector.engines.spark.sources import require_plain_texts, source_of
from pinot_connector.errors import EngineRefused, EngineUnavailable

_TYPES = {
    "string": ColumnType.STRING,
    "boolean": ColumnType.BOOL,
    "date": ColumnType.DATE,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), ColumnType.INT64),
}
_DAYS = ("0001-01-01", "9999-12-31")
_Done = TypeVar("_Done")


def found_on_spark(publication: Publication, url: str) -> Found:
    """Discover on a Spark at a URL, which ends with it. The seed is drawn here and forgotten here.

    Raises:
        InputError: The data cannot be read as pairs.
        InputError: The method is for one machine only, or the URL is of Spark Connect.
        TooManyError: There are more members or pairs than fit.
        EngineUnavailable: There is no Java, or Spark cannot be reached or did not complete the work.
    """
    if url.startswith("sc://"):
        # Its server records what it is asked, functions and what they hold included.
        raise InputError("--spark: Spark Connect would see the seed; use local[*], spark:// or yarn")
    session = started(url)
    try:
        with own_session(session) as own:
            return _on_spark(lambda: _found(own, publication))
    finally:
        session.stop()


def canonical_pairs(session: SparkSession, source: Source) -> tuple[DataFrame, ColumnType]:
    """Return the columns `member` and `element` as canonical texts, and the type of the elements.

    What no answer can carry is left out, as it is on one machine and from every question.

    Raises InputError: there is no such data or column, a column has another type than expected, or rows without member
    or element are there and not dropped.
    """
    rows = _read(session, str(source.data))
    kind = _checked_types(rows, source)
    member, element = rows[source.member], rows[source.column]
    missing = member.isNull() | element.isNull()
    if not source.drops_nulls and rows.where(missing).limit(1).count():
        raise InputError(f"expected no row without {source.member} or {source.column}, or --drop-nulls")
    pairs = rows.where(~missing)
    if kind is ColumnType.DATE:
        pairs = pairs.where(element.between(*(sf.lit(day).cast("date") for day in _DAYS)))
    texts = pairs.select(member.cast("string").alias("member"), element.cast("string").alias("element"))
    return texts.where(
        f"length(element) <= {MAXIMUM_TEXT_LENGTH} AND instr(element, chr(0)) = 0 "
        "AND encode(element, 'UTF-8') = CAST(element AS BINARY)"
    ), kind


def _found(session: SparkSession, publication: Publication) -> Found:
    texts, kind = canonical_pairs(session, publication.source)
    try:
        released = discover_on_spark(
            texts, publication.parameters, seed=secrets.token_bytes(SEED_BYTES), salt=publication.salt
        )
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        raise InputError(f"--{error}") from None
    return Found([text for texts in released for text in texts], kind)


def _read(session: SparkSession, source: str) -> DataFrame:
    """Return the rows at a path, or of a table of the catalogue.

    CSV is refused: Spark reads on where a quote is broken and replaces bytes that are no UTF-8, so that one member's
    row could change what the rows of others mean.
    """
    if source.lower().endswith((".csv", ".tsv")):
        raise InputError("expected Parquet or catalog:NAME on Spark; CSV is read on one machine only")
    try:
        return source_of(source).open(session)
    except EngineRefused as error:
        raise InputError(str(error)) from None
    except AnalysisException:
        missing = InputError(f"there is nothing to read at {source}, or it is not what its name says")
    raise missing


def _checked_types(rows: DataFrame, source: Source) -> ColumnType:
    """Return the type of the elements, or refuse columns that cannot be members or elements."""
    types = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    for name in (source.member, source.column):
        if name not in types:
            raise InputError(f"there is no column {name}")
        if types[name] not in _TYPES:
            raise InputError(f"{name}: expected texts, integers, truth values or days")
    try:
        require_plain_texts(rows)
    except EngineRefused as error:
        raise InputError(str(error)) from None
    return _TYPES[types[source.column]]


def _on_spark(work: Callable[[], _Done]) -> _Done:
    try:
        return guarded(work)
    except SparkFailedError as error:
        raise EngineUnavailable(str(error)) from None
