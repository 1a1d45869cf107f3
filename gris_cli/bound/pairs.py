"""Pairs copies, made by DuckDB in limited memory: one row for each member, element and closed period.

Each run appends the periods that have closed since the last one, each as a file of its own, and then puts a new
manifest in the place of the old one; until then the copy is what it was. The rows that are there are read again: they
say which period came before, and whether an attribute is the same as it was.

A row of a period that was copied before would change `gris_previous` of the next row of its member and element, so an
input that has other pairs in such a period is refused.
"""

from __future__ import annotations

import datetime
import hashlib
import os
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path

import duckdb

from dp_service.queries.pairs_manifest import (
    NO_PERIOD,
    PERIOD_COLUMN,
    PREVIOUS_COLUMN,
    CopiedPeriod,
    LeftOut,
    ManifestError,
    PairsManifest,
    read_manifest,
)
from dp_service.queries.times import Refresh, first_day
from gris_cli.bound.copying import Work, complete_or_nothing
from gris_cli.bound.pairs_pinot import pinot_schema, pinot_table
from gris_cli.bound.pairs_source import FRESH, Copying, open_pairs, quoted_list
from gris_cli.bound.source import InputError
from gris_cli.bound.spilling import OWN_MISTAKES, spilling
from pinot_connector.engines.parquet import literal, quoted

MANIFEST = "manifest.json"
_FIRST_DAY = datetime.date(1970, 1, 1)


@dataclass(frozen=True)
class PairsMade:
    """What was read and written. These are true counts, for the owner of the data."""

    rows: int
    left_out: LeftOut
    rows_of_open_periods: int
    periods: int
    pairs: int


def pairs_copy(source: Path, folder: Path, asked: Copying, *, work: Work) -> PairsMade:
    """Make the pairs copy of a file, or append to it what has closed since.

    Raises:
        InputError: The input cannot be read or copied, changed meanwhile, or does not fit the copy that is there.
        OSError: The copy cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with spilling(folder, asked.memory) as connection:
        failure = None
        try:
            return _made(connection, source, folder, asked, work)
        except duckdb.OutOfMemoryException:
            failure = InputError(f"--memory {asked.memory} is too little for this input")
        except OWN_MISTAKES:
            raise
        except duckdb.Error:
            # What DuckDB says may quote the file's content.
            failure = InputError("expected a file that can be read to its end")
    raise failure


def _present(folder: Path) -> PairsManifest | None:
    """Return the manifest of the copy that is there, all of whose files are as they were written."""
    try:
        found = read_manifest((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        return None
    except ManifestError as error:
        raise InputError(f"{MANIFEST} of the copy: {error}") from None
    for each in found.periods:
        path = folder / each.file
        if not path.is_file() or _checksum(path) != each.checksum:
            raise InputError(f"{each.file} of the copy is not the file that its manifest names")
    return found


def _made(
    connection: duckdb.DuckDBPyConnection,
    source: Path,
    folder: Path,
    asked: Copying,
    work: Work,
) -> PairsMade:
    before = _present(folder)
    opened = open_pairs(connection, source, asked)
    stamp = _stamp(source)
    manifest = PairsManifest(
        table=asked.table,
        member=asked.columns.member,
        null_member=opened.null_member,
        elements=asked.columns.elements,
        attributes=asked.attributes,
        time=asked.columns.period,
        zone=asked.columns.zone,
        calendar=Refresh(asked.columns.calendar),
        end=asked.until,
        left_out=opened.left_out,
        periods=(),
    )
    if before is not None:
        _require_same(before, manifest)
    work(connection, opened.statement, "reading pairs")
    if _stamp(source) != stamp:
        raise InputError("the input changed while it was read")
    _view_present(connection, folder, before, manifest)
    _require_same_types(connection, manifest)
    _require_no_backfill(connection, before, manifest)
    _require_attributes(connection, manifest)
    work(connection, _chained(before, manifest), "finding earlier periods")
    _require_chained(connection)
    added = _written(connection, folder, before, manifest, work)
    periods = (*(() if before is None else before.periods), *added)
    _put(folder / MANIFEST, replace(manifest, periods=periods).to_json())
    _put(folder / "pinot-schema.json", pinot_schema(manifest, opened.types))
    _put(folder / "pinot-table.json", pinot_table(manifest))
    return PairsMade(
        rows=opened.rows,
        left_out=opened.left_out,
        rows_of_open_periods=opened.rows_of_open_periods,
        periods=len(added),
        pairs=sum(each.rows for each in added),
    )


def _require_same(before: PairsManifest, manifest: PairsManifest) -> None:
    """Refuse to append to another copy than the one that is asked for."""
    for name in ("table", "member", "null_member", "elements", "attributes", "time", "zone", "calendar"):
        if getattr(before, name) != getattr(manifest, name):
            raise InputError(
                f"the copy that is there was made with another {name}: name another directory, or state the same"
            )
    if manifest.end < before.end:
        raise InputError(f"--until: the copy that is there holds all periods before {before.end} already")


def _keys(manifest: PairsManifest) -> tuple[str, ...]:
    return (manifest.member, *manifest.elements)


def _view_present(
    connection: duckdb.DuckDBPyConnection, folder: Path, before: PairsManifest | None, manifest: PairsManifest
) -> None:
    """Make the view `present` of the rows that are there."""
    columns = (*_keys(manifest), *manifest.attributes, PERIOD_COLUMN, PREVIOUS_COLUMN)
    if before is None:
        rows = f"SELECT *, 0::INTEGER AS {PREVIOUS_COLUMN} FROM {FRESH} WHERE false"  # noqa: S608
    else:
        files = ", ".join(literal(escape(str(folder / each.file))) for each in before.periods)
        rows = f"SELECT * FROM read_parquet([{files}], hive_partitioning = false)"  # noqa: S608
    connection.execute(
        f"CREATE TEMP VIEW present AS SELECT {quoted_list(columns)} FROM ({rows})"  # noqa: S608
    )


def _require_same_types(connection: duckdb.DuckDBPyConnection, manifest: PairsManifest) -> None:
    """Refuse texts beside numbers: read together, '1' and '01' would be one element, and a member count there twice."""
    present, fresh = (
        {name: kind for name, kind, *_ in connection.execute(f"DESCRIBE {each}").fetchall()}
        for each in ("present", FRESH)
    )
    for name in (*_keys(manifest), *manifest.attributes):
        if present[name] != fresh[name]:
            raise InputError(
                f"column {name}: expected {present[name]}, as in the copy that is there, and not {fresh[name]}: give "
                "it that type, or name another directory"
            )


def _require_no_backfill(
    connection: duckdb.DuckDBPyConnection, before: PairsManifest | None, manifest: PairsManifest
) -> None:
    """Refuse an input that has other pairs than the copy in a period that the copy holds."""
    if before is None:
        return
    keys = quoted_list((*_keys(manifest), PERIOD_COLUMN))
    held = f"{PERIOD_COLUMN} < {_number(before.end)}"
    found = connection.execute(
        f"SELECT count(*), min(first_row) FROM {FRESH} ANTI JOIN present USING ({keys}) WHERE {held}"  # noqa: S608
    ).fetchone()
    lost = connection.execute(
        f"SELECT count(*) FROM present ANTI JOIN {FRESH} USING ({keys}) "  # noqa: S608
        f"WHERE {PERIOD_COLUMN} IN (SELECT DISTINCT {PERIOD_COLUMN} FROM {FRESH} WHERE {held})"
    ).fetchone()
    if found is not None and found[0]:
        raise InputError(
            f"row {found[1] + 1}: {found[0]} pairs are of periods before {before.end}, and the copy that is there does "
            "not have them. They would change later rows of the copy: make it anew in another directory"
        )
    if lost is not None and lost[0]:
        raise InputError(
            f"the input lacks {lost[0]} pairs that the copy has, in periods that both have: make the copy anew in "
            "another directory, or leave these periods out of the input"
        )


def _require_attributes(connection: duckdb.DuckDBPyConnection, manifest: PairsManifest) -> None:
    """Refuse an attribute of which a member has two values, NULL among them, whenever it had them."""
    member = quoted(manifest.member)
    for name in manifest.attributes:
        values = (
            f"SELECT {member} AS member, {quoted(name)} AS value, first_row FROM {FRESH} UNION ALL "  # noqa: S608
            f"SELECT {member}, {quoted(name)}, -1 FROM present"
        )
        found = connection.execute(
            "SELECT count(DISTINCT member), min(first_row) FILTER (place = 2) FROM (SELECT member, first_row, "  # noqa: S608
            "row_number() OVER of_member AS place, count(*) OVER (PARTITION BY member) AS number FROM "
            f"(SELECT member, value, min(first_row) AS first_row FROM ({values}) GROUP BY member, value) "
            "WINDOW of_member AS (PARTITION BY member ORDER BY first_row)) WHERE number > 1"
        ).fetchone()
        if found is not None and found[0]:
            raise InputError(
                f"row {found[1] + 1}, column {name}: {found[0]} members have more than one value; expected one for "
                "each member, in all periods, of an attribute"
            )


def _chained(before: PairsManifest | None, manifest: PairsManifest) -> str:
    """Return SQL for all rows, new and old, with the period before; `stated` is what an old row says of it."""
    columns = quoted_list((*_keys(manifest), *manifest.attributes, PERIOD_COLUMN))
    is_new = "true" if before is None else f"{PERIOD_COLUMN} >= {_number(before.end)}"
    rows = (
        f"SELECT {columns}, NULL::INTEGER AS stated FROM {FRESH} WHERE {is_new} "  # noqa: S608
        f"UNION ALL SELECT {columns}, {PREVIOUS_COLUMN} AS stated FROM present"
    )
    earlier = (
        f"lag({PERIOD_COLUMN}) OVER (PARTITION BY {quoted_list(_keys(manifest))} ORDER BY {PERIOD_COLUMN})"
    )
    return (
        f"CREATE TEMP TABLE chained AS SELECT *, coalesce({earlier}, {NO_PERIOD})::INTEGER AS {PREVIOUS_COLUMN} "  # noqa: S608
        f"FROM ({rows})"
    )


def _require_chained(connection: duckdb.DuckDBPyConnection) -> None:
    found = connection.execute(
        f"SELECT count(*) FROM chained WHERE stated <> {PREVIOUS_COLUMN}"  # noqa: S608
    ).fetchone()
    if found is not None and found[0]:
        raise InputError(
            f"the copy that is there has {found[0]} rows whose {PREVIOUS_COLUMN} is wrong: make it anew in another "
            "directory"
        )


def _written(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    before: PairsManifest | None,
    manifest: PairsManifest,
    work: Work,
) -> tuple[CopiedPeriod, ...]:
    """Write the file of each new period."""
    (folder / "periods").mkdir(exist_ok=True)
    found = connection.execute(
        f"SELECT DISTINCT {PERIOD_COLUMN} FROM chained WHERE stated IS NULL ORDER BY 1"  # noqa: S608
    ).fetchall()
    periods = [_FIRST_DAY + datetime.timedelta(days=number) for (number,) in found]
    if not periods and before is None:
        # A copy without rows has its columns all the same.
        periods = [_last_before(manifest)]
    return tuple(_period_file(connection, folder, manifest, start, work) for start in periods)


def _last_before(manifest: PairsManifest) -> datetime.date:
    return first_day(manifest.end - datetime.timedelta(days=1), manifest.calendar)


def _period_file(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    manifest: PairsManifest,
    start: datetime.date,
    work: Work,
) -> CopiedPeriod:
    name = f"periods/{start.isoformat()}.parquet"
    shown = (*manifest.elements, *manifest.attributes)
    columns = quoted_list((*shown, manifest.member, PERIOD_COLUMN, PREVIOUS_COLUMN))
    rows = (
        f"SELECT {columns} FROM chained WHERE {PERIOD_COLUMN} = {_number(start)} "  # noqa: S608
        f"ORDER BY {quoted_list((*shown, manifest.member))}"
    )
    with complete_or_nothing(folder / name) as unfinished:
        work(
            connection,
            f"COPY ({rows}) TO {literal(str(unfinished))} (FORMAT parquet, COMPRESSION zstd)",
            f"writing {start}",
        )
        counted = connection.execute(
            "SELECT num_rows FROM parquet_file_metadata(?)", [escape(str(unfinished))]
        ).fetchone()
        checksum = _checksum(unfinished)
    return CopiedPeriod(start, name, checksum, counted[0] if counted else 0)


def _put(path: Path, content: str) -> None:
    with complete_or_nothing(path) as unfinished:
        unfinished.write_text(content, encoding="utf-8")


def _checksum(path: Path) -> str:
    with path.open("rb") as stream:
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"


def _stamp(path: Path) -> tuple[int, ...]:
    found = os.stat(path)  # noqa: PTH116
    return found.st_ino, found.st_size, found.st_mtime_ns


def _number(day: datetime.date) -> int:
    return (day - _FIRST_DAY).days
