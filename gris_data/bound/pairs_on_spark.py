"""Pairs copies, made by Apache Spark, for tables that one machine does not hold.

The copy is that of one machine, row by row, with the same builds: what began on one engine may be appended to by the
other.
Only the directory of the copy has to be one that Spark's workers and this process see by the same path, because the
manifest holds checksums of its files.

New rows are written once, into a directory that is removed. From there come what their periods add up to and, sorted,
the file of each period. So the manifest states what was written, whatever Spark does twice.
"""

from __future__ import annotations

import datetime
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from dp_service.queries.intervals import END_OF_TIMESTAMPS, FIRST_TIMESTAMP
from dp_service.queries.pairs_manifest import (
    BUILD_COLUMN,
    CHECK_COLUMN,
    CHECK_MODULUS,
    NO_PERIOD,
    PERIOD_COLUMN,
    PREVIOUS_COLUMN,
    CopiedPeriod,
    LeftOut,
    PairsManifest,
    weight_of,
)
from dp_service.queries.structured import INT64_MINIMUM, MAXIMUM_TEXT_LENGTH
from dp_service.queries.times import start_of_day
from gris_data.bound.bounded_copies import complete_or_nothing
from gris_data.bound.pairs_attributes import CHANGED
from gris_data.bound.pairs_folder import (
    PERIODS,
    PairsMade,
    asked_manifest,
    copied,
    day_of,
    file_of,
    last_before,
    number_of,
    present,
    put,
    require_few_periods,
)
from gris_data.bound.pairs_rows import DIGITS, NO_TEXT, PeriodContent
from gris_data.bound.pairs_source import (
    FIRST_TIME,
    PairsCopyRequest,
    check_columns,
    null_member,
    require_plain_midnights,
)
from gris_data.bound.source import Columns
from gris_data.bound.spark_source import (
    TYPES,
    column,
    ended_well,
    first_day,
    is_no_utf8,
    opened,
    types_of,
)
from gris_data.errors import InputError
from pinot_connector.engines.spark.sessions import own_session, started
from pinot_connector.engines.spark.sources import source_of

_HASHES = ("first_number", "second_number")
_NUMBERS = (*_HASHES, CHECK_COLUMN)
_STAGED = "gris_staged"
# DuckDB's names, by which Pinot's schema is written.
_NAMED = {"string": "VARCHAR", "boolean": "BOOLEAN", "date": "DATE"}
_PATTERN = frozenset("*?[]{}\\")


@dataclass(frozen=True)
class _Read:
    """The input: its rows with conditions on them, each a column of truth values, and what they say in sum."""

    closed: DataFrame
    types: dict[str, str]
    missing: str | int | None
    rows: int
    left_out: LeftOut
    rows_of_open_periods: int


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
    session = started(url)
    try:
        with own_session(session) as own:
            return ended_well(lambda: paired(own, source, folder, asked))
    finally:
        session.stop()


def paired(session: SparkSession, source: str, folder: Path, asked: PairsCopyRequest) -> PairsMade:
    """Make or append to a pairs copy in a session that has the settings of `own_session`; see `pairs_copy_on_spark`."""
    folder = folder.resolve()
    if _PATTERN & set(str(folder)):
        raise InputError("--pairs: Spark takes *, ?, brackets and backslashes in a path for a pattern")
    folder.mkdir(parents=True, exist_ok=True)
    before = present(folder)
    rows, version = opened(session, source, asked.columns, is_all_read=False)
    read = _read(rows, asked, before)
    manifest = asked_manifest(asked, read.missing, read.left_out, before)
    fresh = _pairs(read.closed, asked)
    held = None if before is None else _held(session, folder, before, manifest)
    if held is not None:
        _require_same_types(held, fresh, manifest)
        if before is not None and not asked.new_only:
            _require_no_backfill(held, fresh, before, manifest)
    if asked.first_attributes:
        fresh = _with_first_attributes(held, fresh, manifest)
    else:
        _require_one_value(held, fresh, manifest)
    new = fresh if before is None else fresh.where(sf.col(PERIOD_COLUMN) >= number_of(before.end))
    with tempfile.TemporaryDirectory(prefix=".gris-bound-", dir=folder) as staging:
        _let_workers_write(Path(staging))
        staged = f"file://{staging}/rows"
        rows = _numbered(held, new, manifest)
        rows.withColumn(_STAGED, sf.col(PERIOD_COLUMN)).write.partitionBy(_STAGED).parquet(staged)
        contents = _contents(session, Path(staging))
        if not contents and before is None:
            # A copy without rows has its columns all the same.
            contents = [PeriodContent(number_of(last_before(manifest)), 0, (0, 0), 0)]
        require_few_periods(before, contents)
        for each in (Path(staging), folder):
            (each / PERIODS).mkdir(exist_ok=True)
        added = tuple(
            _period_file(_staged(session, Path(staging), each, rows), Path(staging), manifest, each)
            for each in contents
        )
        if source_of(source).version(session) != version:
            raise InputError("the input changed while it was read")
        for period in added:
            _move(Path(staging) / period.file, folder / period.file)
    put(folder, manifest, (*(() if before is None else before.periods), *added), _duckdb_types(read.types))
    return PairsMade(
        rows=read.rows,
        left_out=read.left_out,
        rows_of_open_periods=read.rows_of_open_periods,
        periods=len(added),
        pairs=sum(each.rows for each in added),
    )


def _read(rows: DataFrame, asked: PairsCopyRequest, before: PairsManifest | None) -> _Read:
    """Return the rows that are whole and of closed periods, and count the others by what they lack first."""
    columns = asked.columns
    types = types_of(rows)
    check_columns(types, columns, asked.attributes, TYPES)
    require_plain_midnights(columns, asked.until)
    missing = null_member(_duckdb_types(types)[columns.member], asked.null_member)
    if asked.new_only and before is not None:
        rows = rows.where(_since(types, columns, before.end))
    member, time = _is_member(columns, missing), _is_time(types, columns)
    element = reduce(and_, (part for name in columns.elements for part in _is_element(name, types[name])))
    # Only what has a time has a period: others could be beyond what the calendar knows.
    closed = sf.when(time, first_day(columns) < sf.lit(asked.until)).otherwise(sf.lit(False))
    texts = [name for name, kind in types.items() if kind == "string"]
    counted = {
        "rows": sf.lit(True),
        "member": ~member,
        "time": member & ~time,
        "element": member & time & ~element,
        "open": member & time & element & ~closed,
        **{f"text {name}": is_no_utf8(name) for name in texts},
    }
    found = rows.agg(
        *(sf.count_if(each).alias(str(place)) for place, each in enumerate(counted.values()))
    ).collect()[0]
    counts = dict(zip(counted, found, strict=True))
    for name in texts:
        if counts[f"text {name}"]:
            raise InputError(f"column {name}: {counts[f'text {name}']} rows hold a text that is not UTF-8")
    return _Read(
        closed=rows.where(member & time & element & closed),
        types=types,
        missing=missing,
        rows=counts["rows"],
        left_out=LeftOut(counts["member"], counts["time"], counts["element"]),
        rows_of_open_periods=counts["open"],
    )


def _is_member(columns: Columns, missing: str | int | None) -> Column:
    member = column(columns.member)
    if missing is None or (isinstance(missing, int) and abs(missing) > -INT64_MINIMUM):
        # No integer of Spark's is beyond 64 bits.
        return member.isNotNull()
    return sf.coalesce(member != sf.lit(missing), sf.lit(False))


def _is_time(types: dict[str, str], columns: Columns) -> Column:
    time = column(columns.period)
    if types[columns.period] == "date":
        first, last = (sf.lit(day).cast("date") for day in ("0001-01-01", "9999-12-31"))
        return sf.coalesce(time.between(first, last), sf.lit(False))
    time = time.cast("timestamp")
    return sf.coalesce(
        (time >= _timestamp(FIRST_TIMESTAMP)) & (time < _timestamp(END_OF_TIMESTAMPS)), sf.lit(False)
    )


def _is_element(name: str, kind: str) -> Iterable[Column]:
    yield column(name).isNotNull()
    if kind == "string":
        # As Java measures it, in units of 16 bits: Pinot cuts what is longer, and at a NUL character.
        length = sf.octet_length(sf.encode(column(name), "UTF-16BE"))
        yield sf.coalesce(length <= 2 * MAXIMUM_TEXT_LENGTH, sf.lit(False))
        yield ~sf.contains(column(name), sf.lit("\0"))


def _since(types: dict[str, str], columns: Columns, since: datetime.date) -> Column:
    """Return whether a row is not before a day, as it can be compared with what files say of their parts.

    Rows without a time are of no period, so every run counts them.
    """
    time, kind = column(columns.period), types[columns.period]
    if kind == "date":
        return (time >= sf.lit(since)) | time.isNull()
    return (time >= _timestamp(start_of_day(since, columns.zone or "UTC")).cast(kind)) | time.isNull()


def _timestamp(time: datetime.datetime) -> Column:
    return sf.lit(time.isoformat()).cast("timestamp")


def _pairs(closed: DataFrame, asked: PairsCopyRequest) -> DataFrame:
    """Return each pair of a period once, with attributes."""
    columns = asked.columns
    held = [column(name) for name in (columns.member, *columns.elements, *asked.attributes)]
    period = sf.unix_date(first_day(columns)).alias(PERIOD_COLUMN)
    return closed.groupBy(*held, period).agg(sf.min(column(columns.period)).alias(FIRST_TIME))


def _keys(manifest: PairsManifest) -> list[str]:
    return [manifest.member, *manifest.elements]


def _held(session: SparkSession, folder: Path, before: PairsManifest, manifest: PairsManifest) -> DataFrame:
    names = (*_keys(manifest), *manifest.attributes, PERIOD_COLUMN)
    files = [f"file://{folder / each.file}" for each in before.periods]
    return session.read.parquet(*files).select(*map(column, names))


def _require_same_types(held: DataFrame, fresh: DataFrame, manifest: PairsManifest) -> None:
    """Refuse texts beside numbers, as on one machine."""
    stated, given = types_of(held), types_of(fresh)
    for name in (*_keys(manifest), *manifest.attributes):
        if stated[name] != given[name]:
            raise InputError(
                f"column {name}: expected {stated[name]}, as in the copy that is there, and not {given[name]}: give "
                "it that type, or name another directory"
            )


def _require_no_backfill(
    held: DataFrame, fresh: DataFrame, before: PairsManifest, manifest: PairsManifest
) -> None:
    """Refuse an input that has other pairs than the copy in a period that the copy holds."""
    keys = [*_keys(manifest), PERIOD_COLUMN]
    old = fresh.where(sf.col(PERIOD_COLUMN) < number_of(before.end))
    found = old.join(held, keys, "left_anti").count()
    if found:
        raise InputError(
            f"{found} pairs are of periods before {before.end}, and the copy that is there does not have them. They "
            "would change later rows of the copy: make it anew in another directory"
        )
    periods = old.select(PERIOD_COLUMN).distinct()
    lost = held.join(periods, PERIOD_COLUMN, "left_semi").join(old, keys, "left_anti")
    if missing := lost.count():
        raise InputError(
            f"the input lacks {missing} pairs that the copy has, in periods that both have: make the copy anew in "
            "another directory, or leave these periods out of the input"
        )


def _require_one_value(held: DataFrame | None, fresh: DataFrame, manifest: PairsManifest) -> None:
    """Refuse an attribute of which a member has two values, NULL among them, whenever it had them."""
    names = [manifest.member, *manifest.attributes]
    seen = fresh.select(*map(column, names))
    if held is not None:
        of_members = held.join(seen.select(column(manifest.member)), manifest.member, "left_semi")
        seen = seen.unionByName(of_members.select(*map(column, names)))
    for name in manifest.attributes:
        value = sf.struct(column(name).isNull(), column(name))
        changed = seen.groupBy(column(manifest.member)).agg((sf.min(value) != sf.max(value)).alias("changed"))
        members = changed.where("changed").count()
        if members:
            raise InputError(CHANGED.format(where="", name=name, members=members))


def _with_first_attributes(held: DataFrame | None, fresh: DataFrame, manifest: PairsManifest) -> DataFrame:
    """Return the pairs with the attributes that their members had first, as on one machine."""
    names = [column(name) for name in (manifest.member, *manifest.attributes)]
    time = sf.col(FIRST_TIME)
    seen = fresh.select(*names, sf.lit(True).alias("is_new"), time)
    if held is not None:
        of_members = held.join(seen.select(column(manifest.member)), manifest.member, "left_semi")
        none = sf.lit(None).cast(fresh.schema[FIRST_TIME].dataType).alias(FIRST_TIME)
        seen = seen.unionByName(of_members.select(*names, sf.lit(False).alias("is_new"), none))
    firsts = [
        sf.min(
            sf.struct(
                sf.col("is_new"), time, column(name).isNull().alias("is_null"), column(name).alias("value")
            )
        )
        .getField("value")
        .alias(name)
        for name in manifest.attributes
    ]
    if not firsts:
        return fresh
    kept = fresh.drop(*manifest.attributes).join(
        seen.groupBy(column(manifest.member)).agg(*firsts), manifest.member
    )
    held_names = (*_keys(manifest), *manifest.attributes, PERIOD_COLUMN)
    return kept.select(*map(column, held_names)).distinct()


def _numbered(held: DataFrame | None, new: DataFrame, manifest: PairsManifest) -> DataFrame:
    """Return the new rows, each with the period before and its numbers."""
    keys = _keys(manifest)
    names = (*manifest.elements, *manifest.attributes, manifest.member, PERIOD_COLUMN)
    earlier = [sf.lag(PERIOD_COLUMN).over(Window.partitionBy(*map(column, keys)).orderBy(PERIOD_COLUMN))]
    if held is not None:
        of_keys = held.join(new.select(*map(column, keys)), keys, "left_semi")
        last = of_keys.groupBy(*map(column, keys)).agg(sf.max(PERIOD_COLUMN).alias("last_period"))
        new = new.join(last, keys, "left")
        earlier.append(sf.col("last_period"))
    previous = sf.coalesce(*earlier, sf.lit(NO_PERIOD)).cast("int").alias(PREVIOUS_COLUMN)
    chained = new.select(*map(column, names), previous)
    digest = sf.sha2(_text_of_row(manifest).cast("binary"), 256).alias("digest")
    hashed = chained.select(*map(column, (*names, PREVIOUS_COLUMN)), digest)
    numbers = [
        sf.conv(sf.substring("digest", start, length), 16, 10).cast("bigint").alias(name)
        for name, (start, length) in zip(_NUMBERS, DIGITS, strict=True)
    ]
    return hashed.select(*map(column, (*names, PREVIOUS_COLUMN)), *numbers)


def _text_of_row(manifest: PairsManifest) -> Column:
    """Return the text that is hashed of a row."""
    names = (*_keys(manifest), *manifest.attributes, PERIOD_COLUMN, PREVIOUS_COLUMN)
    texts = [column(name).cast("string") for name in names]
    return sf.concat(
        *(
            sf.coalesce(
                sf.concat(sf.octet_length(text).cast("string"), sf.lit(":"), text, sf.lit(",")),
                sf.lit(NO_TEXT),
            )
            for text in texts
        )
    )


def _contents(session: SparkSession, staging: Path) -> list[PeriodContent]:
    """Return what the new rows of each period add up to."""
    if not any((staging / "rows").glob(f"{_STAGED}=*")):
        return []
    sums = [*(sf.sum(sf.col(name).cast("decimal(20,0)")) for name in _HASHES), _weighted_checks()]
    rows = session.read.parquet(f"file://{staging}/rows")
    found = rows.groupBy(PERIOD_COLUMN).agg(sf.count(sf.lit(1)), *sums).orderBy(PERIOD_COLUMN).collect()
    return [
        PeriodContent(period, rows, (int(one), int(two)), int(check) % CHECK_MODULUS)
        for period, rows, one, two, check in found
    ]


def _weighted_checks() -> Column:
    """Return the sum of check numbers, each times the weight of its row's previous period."""
    weight = sf.col(PREVIOUS_COLUMN).cast("bigint") + sf.lit(weight_of(0))
    return sf.sum((sf.col(CHECK_COLUMN).cast("bigint") * weight).cast("decimal(20,0)"))


def _staged(session: SparkSession, staging: Path, content: PeriodContent, rows: DataFrame) -> DataFrame:
    """Return the new rows of a period as they were written; of none, the columns of `rows`."""
    if not content.rows:
        return session.createDataFrame([], rows.schema)
    return session.read.parquet(f"file://{staging}/rows/{_STAGED}={content.period}")


def _period_file(
    rows: DataFrame, staging: Path, manifest: PairsManifest, content: PeriodContent
) -> CopiedPeriod:
    """Write the file of a period by one task, in the order of one machine."""
    build = sf.lit(content.build(manifest.identity)).cast("bigint").alias(BUILD_COLUMN)
    shown: Sequence[str] = (*manifest.elements, *manifest.attributes, manifest.member)
    order = (*manifest.attributes, *manifest.elements, manifest.member)
    target = staging / f"sorted-{content.period}"
    (
        rows.select(
            *map(column, shown),
            sf.col(PERIOD_COLUMN),
            sf.col(PREVIOUS_COLUMN),
            build,
            sf.col(CHECK_COLUMN).cast("int").alias(CHECK_COLUMN),
        )
        .repartition(1)
        .sortWithinPartitions(*(column(name).asc_nulls_last() for name in order))
        .write.option("compression", "zstd")
        .parquet(f"file://{target}")
    )
    (written,) = target.glob("part-*.parquet")
    name = file_of(day_of(content.period))
    written.replace(staging / name)
    made = rows.sparkSession.read.parquet(f"file://{staging / name}")
    count, check = made.agg(sf.count(sf.lit(1)), _weighted_checks()).collect()[0]
    if (count, int(check or 0) % CHECK_MODULUS) != (content.rows, content.check_sum):
        raise InputError("the copy could not be written as it was counted: run it again")
    return copied(staging, manifest, content)


def _move(source: Path, target: Path) -> None:
    with complete_or_nothing(target) as unfinished:
        source.replace(unfinished)


def _let_workers_write(folder: Path) -> None:
    """Workers may have another user's name: they get what the directory of the copy allows them."""
    os.chmod(folder, folder.parent.stat().st_mode & 0o777)  # noqa: PTH101


def _duckdb_types(types: dict[str, str]) -> dict[str, str]:
    return {name: _NAMED.get(kind, "BIGINT") for name, kind in types.items()}
