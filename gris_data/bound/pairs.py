"""Pairs copies, made by DuckDB in limited memory: one row for each member, element and closed period.

Each run appends the periods that have closed since the last one, each as a file of its own, and then puts a new
manifest in the place of the old one; until then the copy is what it was. Of the rows that are there only those are
looked for that say which period came before a new row, and which attributes a member of a new row had.

A row of a period that was copied before would change `gris_previous` of the next row of its member and element, so an
input that has other pairs in such a period is refused. With `new_only` these periods of the input are not read.
"""

from __future__ import annotations

from glob import escape
from pathlib import Path

import duckdb

from dp_service.queries.pairs_manifest import (
    BUILD_COLUMN,
    CHECK_COLUMN,
    CHECK_MODULUS,
    NO_PERIOD,
    PERIOD_COLUMN,
    PREVIOUS_COLUMN,
    CopiedPeriod,
    PairsManifest,
    weight_of,
)
from gris_data.bound.bounded_copies import Work, complete_or_nothing
from gris_data.bound.pairs_attributes import keep_first_attributes, require_one_value
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
    stamp,
)
from gris_data.bound.pairs_rows import DIGITS, NO_TEXT, PeriodContent
from gris_data.bound.pairs_source import FRESH, PRESENT, PairsCopyRequest, open_pairs, quoted_list
from gris_data.bound.spilling import OWN_MISTAKES, spilling
from gris_data.errors import InputError
from pinot_connector.engines.parquet import literal, quoted

_ADDED = "added"
_NUMBERS = ("first_number", "second_number", CHECK_COLUMN)


def pairs_copy(source: Path, folder: Path, asked: PairsCopyRequest, *, work: Work) -> PairsMade:
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


def _made(
    connection: duckdb.DuckDBPyConnection,
    source: Path,
    folder: Path,
    asked: PairsCopyRequest,
    work: Work,
) -> PairsMade:
    before = present(folder)
    opened = open_pairs(connection, source, asked, None if before is None else before.end)
    begun = stamp(source)
    manifest = asked_manifest(asked, opened.null_member, opened.left_out, before)
    work(connection, opened.statement, "reading pairs")
    if stamp(source) != begun:
        raise InputError("the input changed while it was read")
    _view_present(connection, folder, before, manifest)
    _require_same_types(connection, manifest)
    if not asked.new_only:
        _require_no_backfill(connection, before, manifest)
    if asked.first_attributes:
        keep_first_attributes(connection, manifest)
    else:
        require_one_value(connection, manifest)
    work(connection, _added(connection, before, manifest), "finding earlier periods")
    added = _written(connection, folder, before, manifest, work)
    put(folder, manifest, (*(() if before is None else before.periods), *added), opened.types)
    return PairsMade(
        rows=opened.rows,
        left_out=opened.left_out,
        rows_of_open_periods=opened.rows_of_open_periods,
        periods=len(added),
        pairs=sum(each.rows for each in added),
    )


def _keys(manifest: PairsManifest) -> tuple[str, ...]:
    return (manifest.member, *manifest.elements)


def _view_present(
    connection: duckdb.DuckDBPyConnection, folder: Path, before: PairsManifest | None, manifest: PairsManifest
) -> None:
    """Make the view of the rows that are there."""
    columns = quoted_list((*_keys(manifest), *manifest.attributes, PERIOD_COLUMN))
    if before is None:
        rows = f"SELECT * FROM {FRESH} WHERE false"  # noqa: S608
    else:
        files = ", ".join(literal(escape(str(folder / each.file))) for each in before.periods)
        rows = f"SELECT * FROM read_parquet([{files}], hive_partitioning = false)"  # noqa: S608
    connection.execute(f"CREATE TEMP VIEW {PRESENT} AS SELECT {columns} FROM ({rows})")  # noqa: S608


def _require_same_types(connection: duckdb.DuckDBPyConnection, manifest: PairsManifest) -> None:
    """Refuse texts beside numbers: read together, '1' and '01' would be one element, and a member count there twice."""
    held, fresh = (
        {name: kind for name, kind, *_ in connection.execute(f"DESCRIBE {each}").fetchall()}
        for each in (PRESENT, FRESH)
    )
    for name in (*_keys(manifest), *manifest.attributes):
        if held[name] != fresh[name]:
            raise InputError(
                f"column {name}: expected {held[name]}, as in the copy that is there, and not {fresh[name]}: give "
                "it that type, or name another directory"
            )


def _require_no_backfill(
    connection: duckdb.DuckDBPyConnection, before: PairsManifest | None, manifest: PairsManifest
) -> None:
    """Refuse an input that has other pairs than the copy in a period that the copy holds."""
    if before is None:
        return
    keys = quoted_list((*_keys(manifest), PERIOD_COLUMN))
    held = f"{PERIOD_COLUMN} < {number_of(before.end)}"
    found = connection.execute(
        f"SELECT count(*), min(first_row) FROM {FRESH} ANTI JOIN {PRESENT} USING ({keys}) WHERE {held}"  # noqa: S608
    ).fetchone()
    lost = connection.execute(
        f"SELECT count(*) FROM {PRESENT} ANTI JOIN {FRESH} USING ({keys}) "  # noqa: S608
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


def _added(
    connection: duckdb.DuckDBPyConnection, before: PairsManifest | None, manifest: PairsManifest
) -> str:
    """Return SQL for the table of new rows, each with the period before and its numbers."""
    keys = quoted_list(_keys(manifest))
    is_new = "true" if before is None else f"{PERIOD_COLUMN} >= {number_of(before.end)}"
    columns = quoted_list((*_keys(manifest), *manifest.attributes, PERIOD_COLUMN))
    new = f"SELECT {columns} FROM {FRESH} WHERE {is_new}"  # noqa: S608
    # Of one period no row comes before another, and nothing has to be sorted.
    of_new = f"lag({PERIOD_COLUMN}) OVER (PARTITION BY {keys} ORDER BY {PERIOD_COLUMN})"
    several = connection.execute(f"SELECT count(DISTINCT {PERIOD_COLUMN}) > 1 FROM ({new})").fetchone()  # noqa: S608
    earlier = [of_new] if several and several[0] else []
    last = ""
    if before is not None:
        earlier.append("last_period")
        last = (
            f"LEFT JOIN (SELECT {keys}, max({PERIOD_COLUMN}) AS last_period FROM {PRESENT} "  # noqa: S608
            f"SEMI JOIN new USING ({keys}) GROUP BY {keys}) USING ({keys})"
        )
    previous = f"coalesce({', '.join([*earlier, str(NO_PERIOD)])})::INTEGER AS {PREVIOUS_COLUMN}"
    chained = f"SELECT {columns}, {previous} FROM new {last}"  # noqa: S608
    hashed = f"SELECT *, sha256({_text_of_row(manifest)}) AS digest FROM ({chained})"  # noqa: S608
    numbers = ", ".join(
        f"('0x' || substr(digest, {start}, {length}))::BIGINT AS {name}"
        for name, (start, length) in zip(_NUMBERS, DIGITS, strict=True)
    )
    return (
        f"CREATE TEMP TABLE {_ADDED} AS WITH new AS MATERIALIZED ({new}) "  # noqa: S608
        f"SELECT * EXCLUDE (digest), {numbers} FROM ({hashed})"
    )


def _text_of_row(manifest: PairsManifest) -> str:
    """Write the text that is hashed of a row."""
    names = (*_keys(manifest), *manifest.attributes, PERIOD_COLUMN, PREVIOUS_COLUMN)
    texts = (f"{quoted(name)}::VARCHAR" for name in names)
    return " || ".join(
        f"coalesce(strlen({text}) || ':' || {text} || ',', {literal(NO_TEXT)})" for text in texts
    )


def _written(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    before: PairsManifest | None,
    manifest: PairsManifest,
    work: Work,
) -> tuple[CopiedPeriod, ...]:
    """Write the file of each new period."""
    (folder / PERIODS).mkdir(exist_ok=True)
    first, second, check = _NUMBERS
    sums = f"sum({first}), sum({second}), sum({check} * ({PREVIOUS_COLUMN}::BIGINT + {weight_of(0)}))"
    found = connection.execute(
        f"SELECT {PERIOD_COLUMN}, count(*), {sums} FROM {_ADDED} GROUP BY ALL ORDER BY 1"  # noqa: S608
    ).fetchall()
    contents = [
        PeriodContent(period, rows, (one, two), check % CHECK_MODULUS)
        for period, rows, one, two, check in found
    ]
    if not contents and before is None:
        # A copy without rows has its columns all the same.
        contents = [PeriodContent(number_of(last_before(manifest)), 0, (0, 0), 0)]
    require_few_periods(before, contents)
    return tuple(_period_file(connection, folder, manifest, each, work) for each in contents)


def _period_file(
    connection: duckdb.DuckDBPyConnection,
    folder: Path,
    manifest: PairsManifest,
    content: PeriodContent,
    work: Work,
) -> CopiedPeriod:
    """Write the file of a period. Members of one attribute are together, so that a condition on it skips the others."""
    start = day_of(content.period)
    shown = (*manifest.elements, *manifest.attributes)
    own = f"{PERIOD_COLUMN}, {PREVIOUS_COLUMN}, {content.build(manifest.identity)}::BIGINT AS {BUILD_COLUMN}"
    columns = f"{quoted_list((*shown, manifest.member))}, {own}, {CHECK_COLUMN}::INTEGER AS {CHECK_COLUMN}"
    order = quoted_list((*manifest.attributes, *manifest.elements, manifest.member))
    rows = f"SELECT {columns} FROM {_ADDED} WHERE {PERIOD_COLUMN} = {content.period} ORDER BY {order}"  # noqa: S608
    with complete_or_nothing(folder / file_of(start)) as unfinished:
        work(
            connection,
            f"COPY ({rows}) TO {literal(str(unfinished))} (FORMAT parquet, COMPRESSION zstd)",
            f"writing {start}",
        )
    return copied(folder, manifest, content)
