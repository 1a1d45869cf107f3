"""A publication on Spark: Parquet or a table of its catalogue, read and discovered there."""

from __future__ import annotations

import secrets

from pyspark.sql import DataFrame, SparkSession

from dp_service.noise.stream import SEED_BYTES
from dp_service.partitions.spark import discover_on_spark
from dp_service.terms import ColumnType
from gris_cli.data.dialects import SPARK
from gris_cli.data.domain.canonical_pairs import ROWS, Source
from gris_cli.data.domain.publishing import Found, Publication
from gris_cli.data.errors import InputError
from gris_cli.data.spark import read_table, run_on_spark, types_of
from pinot_connector.engines.spark.sources import source_of


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
        raise InputError("Spark Connect would see the seed; use local[*], spark:// or yarn", "spark")
    return run_on_spark(url, lambda session: _found(session, publication))


def canonical_pairs(session: SparkSession, source: Source) -> tuple[DataFrame, ColumnType]:
    """Return the columns `member` and `element` as canonical texts, and the type of the elements.

    What no answer can carry is left out, as it is on one machine and from every question.

    Raises InputError: there is no such data or column, a column has another type than expected, or rows without member
    or element are there and not dropped.
    """
    named = str(source.data)

    def read() -> tuple[DataFrame, ColumnType]:
        rows = source_of(named).open(session)
        return rows, source.element_type(SPARK, types_of(rows))

    rows, kind = read_table(named, read)
    rows.createOrReplaceTempView(ROWS)
    source.require_whole(len(session.sql(source.missing_rows(SPARK)).collect()))
    return session.sql(source.pairs(SPARK, kind)), kind


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
