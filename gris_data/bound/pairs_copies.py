"""Pairs copies: one row for each member, element and closed period, as SQL that DuckDB and Spark run alike.

Each run appends the periods that have closed since the last one. Of the rows that are there only those are looked for
that say which period came before a new row, and which attributes a member of a new row had.

A row of a period that was copied before would change `gris_previous` of the next row of its member and element, so an
input that has other pairs in such a period is refused. With `new_only` these periods of the input are not read.
"""

# ruff: noqa: S608  (names and texts are quoted)
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dp_service.queries.pairs_manifest import (
    BUILD_COLUMN,
    CHECK_COLUMN,
    CHECK_MODULUS,
    NO_PERIOD,
    PERIOD_COLUMN,
    PREVIOUS_COLUMN,
    PairsManifest,
    weight_of,
)
from gris_data.bound.engine import CopyEngine, PairsEngine
from gris_data.bound.pairs_attributes import keep_first_attributes, require_one_value
from gris_data.bound.pairs_folder import (
    PERIODS,
    PairsMade,
    asked_manifest,
    last_before,
    made_of,
    number_of,
    present,
    put,
    require_few_periods,
)
from gris_data.bound.pairs_rows import DIGITS, NO_TEXT, PeriodContent
from gris_data.bound.pairs_source import (
    FIRST_ROW,
    FIRST_TIME,
    FRESH,
    GIVEN,
    PRESENT,
    SEEN,
    Conditions,
    PairsCopyRequest,
    check_columns,
    conditions_of,
    counted,
    null_member,
    require_plain_midnights,
)
from gris_data.bound.source import odd_texts
from gris_data.dialects import DataDialect
from gris_data.errors import InputError

ADDED = "gris_added"
"""The table of new rows, each with the period before and its numbers."""

_NUMBERS = ("first_number", "second_number", CHECK_COLUMN)
CHECKS = f"sum(CAST({CHECK_COLUMN} * (CAST({PREVIOUS_COLUMN} AS BIGINT) + {weight_of(0)}) AS DECIMAL(20, 0)))"
"""The sum of check numbers, each times the weight of its row's previous period."""


def append(engine: PairsEngine, folder: Path, asked: PairsCopyRequest) -> PairsMade:
    """Make the pairs copy of the engine's input, or append to it what has closed since.

    The manifest takes the place of the one that is there at the end; until then the copy is what it was.

    Raises:
        InputError: The input cannot be read or copied, changed meanwhile, or does not fit the copy that is there.
        OSError: The copy cannot be written.
    """
    before = present(folder)
    types = engine.open(asked.columns, before.end if before is not None and asked.new_only else None)
    check_columns(engine.dialect, types, asked.columns, asked.attributes)
    require_plain_midnights(asked.columns, asked.until)
    missing = null_member(engine.dialect, types[asked.columns.member], asked.null_member)
    conditions = conditions_of(engine.dialect, types, asked, missing)
    counts = counted(engine, conditions, odd_texts(engine.dialect, types))
    manifest = asked_manifest(asked, missing, counts.left_out, before)
    _read_pairs(engine, conditions, manifest)
    if before is not None:
        files = [str(folder / each.file) for each in before.periods]
        engine.show_present(files, (*_keys(manifest), *manifest.attributes, PERIOD_COLUMN))
    _check_pairs(engine, before, manifest, new_only=asked.new_only)
    engine.add(_added_rows(engine, before, manifest))
    (folder / PERIODS).mkdir(exist_ok=True)
    contents = _added_contents(engine, before, manifest)
    added = [engine.write(manifest, each) for each in contents]
    engine.finish(added)
    kinds = {
        name: engine.dialect.elements[types[name]] for name in (*manifest.elements, *manifest.attributes)
    }
    put(folder, manifest, before, added, kinds)
    return made_of(counts, added)


def _read_pairs(engine: CopyEngine, conditions: Conditions, manifest: PairsManifest) -> None:
    """Make the table of the input's pairs, with the number of the first row of each."""
    dialect = engine.dialect
    held = ", ".join(f"given.{dialect.quoted(name)}" for name in (*_keys(manifest), *manifest.attributes))
    time = dialect.time(f"given.{dialect.quoted(manifest.time)}")
    first = f", min({time}) AS {FIRST_TIME}" if manifest.first_attributes else ""
    query = (
        f"SELECT {held}, CAST({dialect.of_questions.days(conditions.first_day)} AS INT) AS {PERIOD_COLUMN}, "
        f"min({dialect.row_number}) AS {FIRST_ROW}{first} FROM {GIVEN} AS given "
        f"WHERE {conditions.whole} AND {conditions.closed} GROUP BY ALL"
    )
    engine.table(SEEN if manifest.first_attributes else FRESH, query, "reading pairs")


def _check_pairs(
    engine: CopyEngine, before: PairsManifest | None, manifest: PairsManifest, *, new_only: bool
) -> None:
    """Compare the input's pairs with what is there, the view `PRESENT`, and give each member one value of an attribute.

    Raises:
        InputError: They do not fit.
    """
    seen = SEEN if manifest.first_attributes else FRESH
    if before is None:
        columns = engine.dialect.listed((*_keys(manifest), *manifest.attributes, PERIOD_COLUMN))
        engine.table(PRESENT, f"SELECT {columns} FROM {seen} WHERE false")
    else:
        _require_same_types(engine, seen, manifest)
        if not new_only:
            _require_no_backfill(engine, seen, before, manifest)
    if manifest.first_attributes:
        keep_first_attributes(engine, manifest)
    else:
        require_one_value(engine, manifest)


def _keys(manifest: PairsManifest) -> tuple[str, ...]:
    """Return the columns of a pair."""
    return (manifest.member, *manifest.elements)


def _require_same_types(engine: CopyEngine, seen: str, manifest: PairsManifest) -> None:
    """Refuse texts beside numbers: read together, '1' and '01' would be one element, and a member count there twice."""
    held, fresh = map(engine.types, (PRESENT, seen))
    for name in (*_keys(manifest), *manifest.attributes):
        if held[name] != fresh[name]:
            raise InputError(
                f"column {name}: expected {held[name]}, as in the copy that is there, and not {fresh[name]}: give "
                "it that type, or name another directory"
            )


def _require_no_backfill(
    engine: CopyEngine, seen: str, before: PairsManifest, manifest: PairsManifest
) -> None:
    """Refuse an input that has other pairs than the copy in a period that the copy holds."""
    keys = engine.dialect.listed((*_keys(manifest), PERIOD_COLUMN))
    held = f"{PERIOD_COLUMN} < {number_of(before.end)}"
    found, first = engine.row(
        f"SELECT count(*), min({FIRST_ROW}) FROM {seen} ANTI JOIN {PRESENT} USING ({keys}) WHERE {held}"
    )
    if found:
        where = "" if first is None else f"row {first + 1}: "
        raise InputError(
            f"{where}{found} pairs are of periods before {before.end}, and the copy that is there does not have them. "
            "They would change later rows of the copy: make it anew in another directory"
        )
    (lost,) = engine.row(
        f"SELECT count(*) FROM {PRESENT} ANTI JOIN {seen} USING ({keys}) "
        f"WHERE {PERIOD_COLUMN} IN (SELECT DISTINCT {PERIOD_COLUMN} FROM {seen} WHERE {held})"
    )
    if lost:
        raise InputError(
            f"the input lacks {lost} pairs that the copy has, in periods that both have: make the copy anew in "
            "another directory, or leave these periods out of the input"
        )


def _added_rows(engine: CopyEngine, before: PairsManifest | None, manifest: PairsManifest) -> str:
    """Write the query for new rows, each with the period before and its numbers."""
    dialect = engine.dialect
    keys = dialect.listed(_keys(manifest))
    is_new = "true" if before is None else f"{PERIOD_COLUMN} >= {number_of(before.end)}"
    columns = dialect.listed((*_keys(manifest), *manifest.attributes, PERIOD_COLUMN))
    new = f"SELECT {columns} FROM {FRESH} WHERE {is_new}"
    # Of one period no row comes before another, and nothing has to be sorted.
    (periods,) = engine.row(f"SELECT count(DISTINCT {PERIOD_COLUMN}) FROM ({new})")
    of_new = f"lag({PERIOD_COLUMN}) OVER (PARTITION BY {keys} ORDER BY {PERIOD_COLUMN})"
    earlier = [of_new] if periods > 1 else []
    last = ""
    if before is not None:
        earlier.append("last_period")
        last = (
            f"LEFT JOIN (SELECT {keys}, max({PERIOD_COLUMN}) AS last_period FROM {PRESENT} "
            f"SEMI JOIN new_pairs USING ({keys}) GROUP BY {keys}) USING ({keys})"
        )
    previous = f"CAST(coalesce({', '.join([*earlier, str(NO_PERIOD)])}) AS INT) AS {PREVIOUS_COLUMN}"
    chained = f"SELECT {columns}, {previous} FROM new_pairs {last}"
    hashed = f"SELECT *, {dialect.sha256(_text_of_row(dialect, manifest))} AS digest FROM ({chained})"
    numbers = ", ".join(
        f"{dialect.number(f'substr(digest, {start}, {length})')} AS {name}"
        for name, (start, length) in zip(_NUMBERS, DIGITS, strict=True)
    )
    return f"WITH new_pairs AS ({new}) SELECT {columns}, {PREVIOUS_COLUMN}, {numbers} FROM ({hashed})"


def _text_of_row(dialect: DataDialect, manifest: PairsManifest) -> str:
    """Write the text that is hashed of a row; see `hashed_text`."""
    names = (*_keys(manifest), *manifest.attributes, PERIOD_COLUMN, PREVIOUS_COLUMN)
    texts = (f"CAST({dialect.quoted(name)} AS STRING)" for name in names)
    return " || ".join(
        f"coalesce(CAST({dialect.size(text)} AS STRING) || ':' || {text} || ',', '{NO_TEXT}')"
        for text in texts
    )


def _added_contents(
    engine: CopyEngine, before: PairsManifest | None, manifest: PairsManifest
) -> list[PeriodContent]:
    """Return what the rows of `ADDED` add up to in each period.

    Raises:
        InputError: A copy would have more periods than engines can be asked for.
    """
    sums = ", ".join(f"sum(CAST({name} AS DECIMAL(20, 0)))" for name in _NUMBERS[:2])
    found = engine.rows(
        f"SELECT {PERIOD_COLUMN}, count(*), {sums}, {CHECKS} FROM {ADDED} "
        f"GROUP BY {PERIOD_COLUMN} ORDER BY {PERIOD_COLUMN}"
    )
    contents = [
        PeriodContent(period, rows, (int(one), int(two)), int(check) % CHECK_MODULUS)
        for period, rows, one, two, check in found
    ]
    if not contents and before is None:
        # A copy without rows has its columns all the same.
        contents = [PeriodContent(number_of(last_before(manifest)), 0, (0, 0), 0)]
    require_few_periods(before, contents)
    return contents


def period_rows(dialect: DataDialect, manifest: PairsManifest, content: PeriodContent) -> str:
    """Write the query for a period's rows as its file has them, without their order."""
    shown = dialect.listed((*manifest.elements, *manifest.attributes, manifest.member))
    build = f"CAST({content.build(manifest.identity)} AS BIGINT) AS {BUILD_COLUMN}"
    check = f"CAST({CHECK_COLUMN} AS INT) AS {CHECK_COLUMN}"
    return (
        f"SELECT {shown}, {PERIOD_COLUMN}, {PREVIOUS_COLUMN}, {build}, {check} FROM {ADDED} "
        f"WHERE {PERIOD_COLUMN} = {content.period}"
    )


def order_of_rows(dialect: DataDialect, manifest: PairsManifest) -> str:
    """Write the order in a file. Members of one attribute are together, so that a condition on it skips the others."""
    names: Sequence[str] = (*manifest.attributes, *manifest.elements, manifest.member)
    return ", ".join(f"{dialect.quoted(name)} ASC NULLS LAST" for name in names)
