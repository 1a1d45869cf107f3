"""Pairs copies, made by Apache Spark, for tables that one machine does not hold.

The copy is that of one machine, row by row, with the same builds: what began on one engine may be appended to by the
other.
Only the directory of the copy has to be one that Spark's workers and this process see by the same path, because the
manifest holds checksums of its files.

New rows are written once, into a directory that is removed. From there come what their periods add up to and, sorted,
the file of each period. So the manifest states what was written, whatever Spark does twice.
"""

# ruff: noqa: S608  (names are quoted)
from __future__ import annotations

import datetime
import os
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from dp_service.queries.pairs_manifest import CHECK_MODULUS, PERIOD_COLUMN, CopiedPeriod, PairsManifest
from gris_data.bound.pairs_copies import ADDED, CHECKS, append, order_of_rows, period_rows
from gris_data.bound.pairs_folder import PERIODS, PairsMade, copied, day_of, file_of
from gris_data.bound.pairs_rows import PeriodContent
from gris_data.bound.pairs_source import GIVEN, PRESENT, PairsCopyRequest, since_day
from gris_data.bound.source import Columns
from gris_data.bound.spark_source import SparkTables, opened, require_unchanged
from gris_data.bound.whole_files import complete_or_nothing
from gris_data.dialects import SPARK
from gris_data.errors import InputError
from gris_data.spark import run_on_spark, types_of

_STAGED = "gris_staged"
_PERIOD = "gris_of_period"
_PATTERN = frozenset("*?[]{}\\")


def pairs_copy_on_spark(source: str, folder: Path, asked: PairsCopyRequest, url: str) -> PairsMade:
    """Make the pairs copy of a table, or append to it what has closed since, by a Spark at a URL, which ends with it.

    Args:
        source: A path to Parquet, or `catalog:` and the name of a table of Spark's catalogue.
        folder: The copy, at a path that Spark's workers see as well.
        asked: What is to be made.
        url: `local[4]`, `spark://host:7077` or `yarn`.

    Raises:
        InputError: The input cannot be read or copied, changed meanwhile, or does not fit the copy that is there.
        EngineUnavailable: There is no Java, or Spark cannot be reached or did not complete the work.
        OSError: The copy cannot be written.
    """
    if url.startswith("sc://"):
        raise InputError(
            "Spark Connect cannot write into a directory of this machine; use local[*], spark:// or yarn"
        )
    return run_on_spark(url, lambda session: paired(session, source, folder, asked))


def paired(session: SparkSession, source: str, folder: Path, asked: PairsCopyRequest) -> PairsMade:
    """Make or append to a pairs copy in a session that has the settings of `own_session`; see `append`."""
    folder = folder.resolve()
    if _PATTERN & set(str(folder)):
        raise InputError("Spark takes *, ?, brackets and backslashes in a path for a pattern", "pairs")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".gris-bound-", dir=folder) as staging:
        # Workers may have another user's name: they get what the directory of the copy allows them.
        os.chmod(staging, folder.stat().st_mode & 0o777)  # noqa: PTH101
        with closing(_SparkPairs(session, source, Path(staging))) as engine:
            return append(engine, folder, asked)


class _SparkPairs(SparkTables):
    """See `PairsEngine`."""

    def __init__(self, session: SparkSession, source: str, staging: Path) -> None:
        super().__init__(session)
        self._source = source
        self._version = ""
        self._staging = staging
        (staging / PERIODS).mkdir()

    def open(self, columns: Columns, since: datetime.date | None) -> dict[str, str]:
        """See `PairsEngine.open`."""
        rows, self._version = opened(self.session, self._source, columns, is_all_read=False)
        types = types_of(rows)
        read = rows.where(since_day(SPARK, types, SPARK.quoted(columns.period), columns, since))
        read.createOrReplaceTempView(GIVEN)
        return types

    def show_present(self, files: Sequence[str], columns: Sequence[str]) -> None:
        """See `PairsEngine.show_present`."""
        self._read(*files).select(*map(SPARK.quoted, columns)).createOrReplaceTempView(PRESENT)

    def add(self, query: str) -> None:
        """See `PairsEngine.add`."""
        numbered = self.session.sql(query)
        staged = numbered.withColumn(_STAGED, numbered[PERIOD_COLUMN])
        staged.write.partitionBy(_STAGED).parquet(f"file://{self._staging}/rows")
        if any((self._staging / "rows").glob(f"{_STAGED}=*")):
            self._read(f"{self._staging}/rows").createOrReplaceTempView(ADDED)
        else:
            numbered.limit(0).createOrReplaceTempView(ADDED)

    def write(self, manifest: PairsManifest, content: PeriodContent) -> CopiedPeriod:
        """See `PairsEngine.write`. One task writes it, in the order of one machine."""
        if content.rows:
            # Only the files of this period are looked at.
            of_period = self._read(f"{self._staging}/rows/{_STAGED}={content.period}")
            of_period.createOrReplaceTempView(ADDED)
        rows = self.session.sql(period_rows(SPARK, manifest, content))
        rows.repartition(1).createOrReplaceTempView(_PERIOD)
        ordered = self.session.sql(f"SELECT * FROM {_PERIOD} SORT BY {order_of_rows(SPARK, manifest)}")
        target = self._staging / f"sorted-{content.period}"
        ordered.write.option("compression", "zstd").parquet(f"file://{target}")
        (written,) = target.glob("part-*.parquet")
        file = self._staging / file_of(day_of(content.period))
        written.replace(file)
        self._read(str(file)).createOrReplaceTempView(_PERIOD)
        count, check = self.row(f"SELECT count(*), {CHECKS} FROM {_PERIOD}")
        if (count, int(check or 0) % CHECK_MODULUS) != (content.rows, content.check_sum):
            raise InputError("the copy could not be written as it was counted: run it again")
        return copied(self._staging, manifest, content)

    def finish(self, added: Sequence[CopiedPeriod]) -> None:
        """See `PairsEngine.finish`."""
        require_unchanged(self.session, self._source, self._version)
        for period in added:
            with complete_or_nothing(self._staging.parent / period.file) as unfinished:
                (self._staging / period.file).replace(unfinished)

    def _read(self, *files: str) -> DataFrame:
        """Return the rows of files that this process sees as well."""
        return self.session.read.parquet(*(f"file://{each}" for each in files))
