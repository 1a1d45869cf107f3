"""A pairs copy as a directory: what is there before a run, and how a run puts its manifest in the old one's place."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dp_service.queries.pairs_manifest import (
    MOST_PERIODS,
    MOST_ROWS,
    CopiedPeriod,
    LeftOut,
    ManifestError,
    PairsManifest,
    read_manifest,
)
from dp_service.queries.times import Refresh, first_day
from dp_service.terms import ColumnType
from gris_data.bound.pairs_pinot import by_selectivity, pinot_schema, pinot_table
from gris_data.bound.pairs_rows import PeriodContent
from gris_data.bound.pairs_source import Counts, PairsCopyRequest
from gris_data.bound.whole_files import complete_or_nothing
from gris_data.errors import InputError

MANIFEST = "manifest.json"
PERIODS = "periods"
_FIRST_DAY = datetime.date(1970, 1, 1)


@dataclass(frozen=True)
class PairsMade:
    """What was read and written. These are true counts, for the owner of the data."""

    rows: int
    left_out: LeftOut
    rows_of_open_periods: int
    periods: int
    pairs: int


def made_of(counts: Counts, added: Sequence[CopiedPeriod]) -> PairsMade:
    """Return what was made of so many rows."""
    pairs = sum(each.rows for each in added)
    return PairsMade(counts.rows, counts.left_out, counts.of_open_periods, len(added), pairs)


def present(folder: Path) -> PairsManifest | None:
    """Return the manifest of the copy that is there, all of whose files are as they were written; None: none is there.

    Raises:
        InputError: There is a manifest that is none, or a file is another one than it names.
    """
    try:
        found = read_manifest((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        return None
    except ManifestError as error:
        raise InputError(f"{MANIFEST} of the copy: {error}") from None
    for each in found.periods:
        path = folder / each.file
        if not path.is_file() or checksum(path) != each.checksum:
            raise InputError(f"{each.file} of the copy is not the file that its manifest names")
    return found


def asked_manifest(
    asked: PairsCopyRequest, null_member: str | int | None, left_out: LeftOut, before: PairsManifest | None
) -> PairsManifest:
    """Return the manifest that is asked for, without periods.

    Raises:
        InputError: The copy that is there is another one.
    """
    manifest = PairsManifest(
        table=asked.table,
        member=asked.columns.member,
        null_member=null_member,
        elements=asked.columns.elements,
        attributes=asked.attributes,
        time=asked.columns.period,
        zone=asked.columns.zone,
        calendar=Refresh(asked.columns.calendar),
        end=asked.until,
        left_out=left_out,
        periods=(),
        first_attributes=asked.first_attributes,
    )
    if before is not None:
        _require_same(before, manifest)
    return manifest


def _require_same(before: PairsManifest, manifest: PairsManifest) -> None:
    """Refuse to append to another copy than the one that is asked for."""
    for name in ("table", "member", "null_member", "elements", "attributes", "time", "zone", "calendar"):
        if getattr(before, name) != getattr(manifest, name):
            raise InputError(
                f"the copy that is there was made with another {name}: name another directory, or state the same"
            )
    if before.first_attributes and not manifest.first_attributes:
        raise InputError(
            "the copy that is there keeps members' first attributes: state that again",
            remedy="first_attributes",
        )
    if manifest.end < before.end:
        raise InputError(f"the copy that is there holds all periods before {before.end} already", "until")


def last_before(manifest: PairsManifest) -> datetime.date:
    """Return the first day of the last period before the end."""
    return first_day(manifest.end - datetime.timedelta(days=1), manifest.calendar)


def file_of(start: datetime.date) -> str:
    """Return the name of a period's file, relative to the manifest."""
    return f"{PERIODS}/{start.isoformat()}.parquet"


def require_few_periods(before: PairsManifest | None, added: Sequence[PeriodContent]) -> None:
    """Refuse a copy of more periods than engines can be asked for with their previous ones.

    Raises:
        InputError: It has more.
    """
    if len(added) + (0 if before is None else len(before.periods)) > MOST_PERIODS:
        raise InputError(f"expected at most {MOST_PERIODS} periods in a copy: state longer ones", "calendar")


def copied(folder: Path, manifest: PairsManifest, content: PeriodContent) -> CopiedPeriod:
    """Return what the manifest says of a period whose file has been written.

    Raises:
        InputError: It has more rows than sums of their check numbers allow for.
    """
    if content.rows > MOST_ROWS:
        raise InputError(f"expected at most {MOST_ROWS} pairs in a period: state shorter ones", "calendar")
    start = day_of(content.period)
    name = file_of(start)
    return CopiedPeriod(
        start=start,
        file=name,
        checksum=checksum(folder / name),
        rows=content.rows,
        build=content.build(manifest.identity),
        check_sum=content.check_sum,
    )


def put(
    folder: Path,
    manifest: PairsManifest,
    before: PairsManifest | None,
    added: Sequence[CopiedPeriod],
    types: Mapping[str, ColumnType],
) -> None:
    """Write what belongs beside the files of all periods; the manifest takes its place last."""
    periods = (*(() if before is None else before.periods), *added)
    _put(folder / "pinot-schema.json", pinot_schema(manifest, types))
    filters = by_selectivity(manifest, folder / periods[-1].file)
    _put(folder / "pinot-table.json", pinot_table(manifest, filters))
    _put(folder / MANIFEST, replace(manifest, periods=periods).to_json())


def _put(path: Path, content: str) -> None:
    with complete_or_nothing(path) as unfinished:
        unfinished.write_text(content, encoding="utf-8")


def checksum(path: Path) -> str:
    """Return `sha256:` and the hash of a file."""
    with path.open("rb") as stream:
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"


def number_of(day: datetime.date) -> int:
    """Return a day as its number of days since 1970-01-01."""
    return (day - _FIRST_DAY).days


def day_of(number: int) -> datetime.date:
    """Return the day of a number."""
    return _FIRST_DAY + datetime.timedelta(days=number)
