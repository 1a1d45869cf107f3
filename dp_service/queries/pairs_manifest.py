"""The manifest of a pairs copy: what `gris bound --pairs` writes beside the files, and what a policy rests on.

A pairs copy has one row for each member, element and period, and in each row `PREVIOUS_COLUMN`: the last earlier period
in which the same member had the same element. Of the rows whose period is in [from, to) exactly one for each member and
element has a previous one before `from`. So COUNT(*) of these counts each member once, whatever the range is.

That holds for the rows of one copy. Of two copies of a table, one made before and one after rows came late, periods may
have as many rows and other previous ones, and a member could count twice in parts of both. So every row carries
`BUILD_COLUMN`, which names the content of its period, and `CHECK_COLUMN`, whose sums over the rows of the period with
the same previous one show rows that are there twice while as many others are missing, and rows whose previous period is
another. The manifest states both for each period, and chains the periods.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dp_service.noise.encoding import length_prefixed
from dp_service.queries.times import Refresh, first_day

PERIOD_COLUMN = "gris_period"
"""The first day of a row's period, as its number of days since 1970-01-01."""

PREVIOUS_COLUMN = "gris_previous"
"""The period of the row before, of the same member and element; `NO_PERIOD` if there is none."""

NO_PERIOD = -(2**31)
"""Before all periods. It is also what Pinot stores in such a column where a value is missing."""

BUILD_COLUMN = "gris_build"
"""What names the content of a row's period: the same number in all of its rows, and in no other copy's, unless that one
has exactly the same rows there."""

CHECK_COLUMN = "gris_check"
"""A number for each row, from 0 to below `CHECKS`."""

CHECKS = 2**20
LARGEST_BUILD = 2**52 - 1
CHECK_MODULUS = 2**61 - 1
"""What `check_sum` is counted by."""

MOST_ROWS = 2**33
"""Of a period: up to there, sums of `CHECK_COLUMN` are exact in doubles, by which Pinot adds."""

OWN_COLUMNS = (PERIOD_COLUMN, PREVIOUS_COLUMN, BUILD_COLUMN, CHECK_COLUMN)
"""The columns that a copy has and its table does not."""

FORMAT = "gris-pairs/3"
_MADE_ANEW = {
    "gris-pairs/1": "its rows do not say which build wrote them, so parts of two copies could not be kept apart",
    "gris-pairs/2": "its sums do not show whether rows have the previous periods that they had",
}
MOST_PERIODS = 1_400
"""Of these, rows have fewer than 10^6 pairs of a period and a previous one, which engines are asked for."""

LARGEST_MANIFEST_BYTES = 64 * 2**20

_CHECKSUM_KEY = "checksum"
_CHECKSUM = re.compile(r"sha256:[0-9a-f]{64}")


class ManifestError(ValueError):
    """A file is no manifest of a pairs copy; the text says what was expected."""


@dataclass(frozen=True)
class CopiedPeriod:
    """One period of a copy.

    Attributes:
        start: Its first day.
        file: Its file, relative to the manifest; all its rows are there.
        checksum: `sha256:` and the hash of the file.
        rows: How many rows it has. It is a true count, for the owner of the data and what they trust.
        build: What `BUILD_COLUMN` is in each of them.
        check_sum: The sum of `CHECK_COLUMN` over them, times `weight_of` their previous period, modulo `CHECK_MODULUS`.
    """

    start: datetime.date
    file: str
    checksum: str
    rows: int
    build: int
    check_sum: int


@dataclass(frozen=True)
class LeftOut:
    """How many rows of the input are not in the copy, since they lack something; a row that lacks more counts once."""

    member: int
    time: int
    element: int


@dataclass(frozen=True)
class PairsManifest:
    """What a pairs copy holds.

    Attributes:
        table: The name in the policy of the table that was copied.
        member: The column of members.
        null_member: The value that stands for no member, besides NULL; None: no other does.
        elements: The columns that make up an element together.
        attributes: The columns of which every member has one value, in all rows.
        first_attributes: Members whose value changed keep the first one; else their rows were refused.
        time: The column of days or timestamps that rows were put into periods by.
        zone: The zone in which days begin; empty: the column holds days.
        calendar: How long a period is.
        end: The first day after all periods that were copied.
        left_out: What the copy lacks.
        periods: The periods that have rows, in ascending order. If none has, one without.
    """

    table: str
    member: str
    null_member: str | int | None
    elements: tuple[str, ...]
    attributes: tuple[str, ...]
    time: str
    zone: str
    calendar: Refresh
    end: datetime.date
    left_out: LeftOut
    periods: tuple[CopiedPeriod, ...]
    first_attributes: bool = False

    @property
    def identity(self) -> bytes:
        """What tells this copy from those of other tables, or by other columns."""
        return _identity(self._content())

    def to_json(self) -> str:
        """Return the content of the manifest's file."""
        content = self._content()
        for period, link in zip(content["periods"], chain(content), strict=True):
            period["chain"] = link
        content[_CHECKSUM_KEY] = _checksum_of(content)
        return json.dumps(content, ensure_ascii=False, indent=1) + "\n"

    def _content(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "table": self.table,
            "member": self.member,
            "null_member": self.null_member,
            "elements": list(self.elements),
            "attributes": list(self.attributes),
            "first_attributes": self.first_attributes,
            "time": self.time,
            "zone": self.zone,
            "calendar": self.calendar.value,
            "end": self.end.isoformat(),
            "left_out": {
                "member": self.left_out.member,
                "time": self.left_out.time,
                "element": self.left_out.element,
            },
            "periods": [
                {
                    "period": each.start.isoformat(),
                    "file": each.file,
                    "checksum": each.checksum,
                    "rows": each.rows,
                    "build": each.build,
                    "check_sum": each.check_sum,
                }
                for each in self.periods
            ],
        }


def weight_of(previous: int) -> int:
    """Return what check numbers of rows with this `PREVIOUS_COLUMN` are multiplied by: from 1, another for each.

    >>> weight_of(NO_PERIOD), weight_of(0)
    (1, 2147483649)
    """
    return previous - NO_PERIOD + 1


def chain(content: dict[str, Any]) -> Iterator[str]:
    """Yield for each period of a manifest's content the hash of all that is said of it and of those before.

    So periods of two manifests make no third one: what was appended to one copy does not follow in another.
    """
    link = _identity(content).hex()
    for period in content["periods"]:
        stated = {name: value for name, value in period.items() if name != "chain"}
        link = hashlib.sha256(
            length_prefixed(b"gris/pairs-chain/v1", link.encode(), _canonical(stated))
        ).hexdigest()
        yield f"sha256:{link}"


def _identity(content: dict[str, Any]) -> bytes:
    names = ("table", "member", "null_member", "elements", "attributes", "time", "zone", "calendar")
    stated = _canonical({name: content[name] for name in names})
    return hashlib.sha256(length_prefixed(b"gris/pairs-copy/v1", stated)).digest()


def _checksum_of(content: dict[str, Any]) -> str:
    """Return the hash of all that a manifest says: the chain does not show where it ends, nor to which day."""
    stated = {name: value for name, value in content.items() if name != _CHECKSUM_KEY}
    digest = hashlib.sha256(length_prefixed(b"gris/pairs-manifest/v1", _canonical(stated)))
    return f"sha256:{digest.hexdigest()}"


def _canonical(content: dict[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def read_manifest(content: bytes) -> PairsManifest:
    """Return what a manifest says.

    Raises:
        ManifestError: It is none, or what it says cannot be true of a copy.
    """
    raw, manifest, is_chained, is_whole = None, None, False, False
    try:
        raw = json.loads(content)
        if isinstance(raw, dict) and raw.get("format") == FORMAT:
            manifest = _manifest(raw)
            is_chained = [each["chain"] for each in raw["periods"]] == list(chain(raw))
            # Those that were written by versions before state no checksum.
            is_whole = _CHECKSUM_KEY not in raw or raw[_CHECKSUM_KEY] == _checksum_of(raw)
    except (ValueError, LookupError, TypeError, AttributeError):
        manifest = None
    if isinstance(raw, dict) and (why := _MADE_ANEW.get(str(raw.get("format")))):
        raise ManifestError(
            f"expected a manifest of the form {FORMAT}: {why}. Make it anew with gris bound --pairs, in another "
            "directory"
        )
    if manifest is None:
        raise ManifestError(f"expected a manifest of the form {FORMAT}, as gris bound --pairs writes it")
    _check(manifest)
    if not is_chained:
        raise ManifestError("expected periods of one copy only: a period does not follow the one before it")
    if not is_whole:
        raise ManifestError(
            "expected the manifest as gris bound --pairs wrote it: it was changed or cut since"
        )
    return manifest


def _manifest(raw: dict[str, Any]) -> PairsManifest:
    left_out = raw["left_out"]
    null_member = raw["null_member"]
    if null_member is not None and type(null_member) not in (str, int):
        raise TypeError
    return PairsManifest(
        table=_text(raw["table"]),
        member=_text(raw["member"]),
        null_member=null_member,
        elements=tuple(map(_text, raw["elements"])),
        attributes=tuple(map(_text, raw["attributes"])),
        time=_text(raw["time"]),
        zone=raw["zone"] and _text(raw["zone"]),
        calendar=Refresh(raw["calendar"]),
        end=datetime.date.fromisoformat(raw["end"]),
        left_out=LeftOut(*(_count(left_out[name]) for name in ("member", "time", "element"))),
        periods=tuple(map(_period, raw["periods"])),
        first_attributes=_truth(raw["first_attributes"]),
    )


def _period(raw: dict[str, Any]) -> CopiedPeriod:
    return CopiedPeriod(
        start=datetime.date.fromisoformat(raw["period"]),
        file=_text(raw["file"]),
        checksum=_text(raw["checksum"]),
        rows=_count(raw["rows"]),
        build=_count(raw["build"]),
        check_sum=_count(raw["check_sum"]),
    )


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError
    return value


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError
    return value


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _check(manifest: PairsManifest) -> None:
    """Raise ManifestError if a copy cannot be so."""
    columns = (manifest.member, *manifest.elements, *manifest.attributes, manifest.time)
    if not manifest.elements or len(set(columns)) < len(columns):
        raise ManifestError("expected elements, and each column as one thing only")
    if len(manifest.periods) > MOST_PERIODS:
        raise ManifestError(f"expected at most {MOST_PERIODS} periods")
    starts = [each.start for each in manifest.periods]
    if starts != sorted(set(starts)):
        raise ManifestError("expected each period once, in ascending order")
    if any(first_day(day, manifest.calendar) != day for day in (*starts, manifest.end)):
        raise ManifestError(f"expected first days of a {manifest.calendar}")
    if starts and starts[-1] >= manifest.end:
        raise ManifestError("expected periods before the end of the copy")
    files = [each.file for each in manifest.periods]
    if len(set(files)) < len(files) or any(
        not _CHECKSUM.fullmatch(each.checksum) for each in manifest.periods
    ):
        raise ManifestError("expected one file for each period, with its checksum")
    if not manifest.periods:
        raise ManifestError("expected at least one period; it may have no rows")
    if any(each.rows > MOST_ROWS or each.build > LARGEST_BUILD for each in manifest.periods):
        raise ManifestError(f"expected builds of at most {LARGEST_BUILD}, and {MOST_ROWS} rows of a period")
