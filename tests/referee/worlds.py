"""The tables that are asked, and policies that use everything that a policy can say."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from dp_service.queries.lookups import hash_of
from tests.support.typical import typically

COUNTRIES = ("AT", "DE", "FR", "it's", "é😀")
SHOPS = ("north", "south", "web")
ARTICLES = tuple(f"article {number}" for number in range(30))
TOPICS = b"article,topic\n" + b"".join(
    f"article {number},{('health', 'money', 'sports')[number % 3]}\n".encode() for number in range(24)
)
FIRST_DAY, DAYS = datetime.date(2023, 11, 1), 120
_MEMBERS, _ROWS = 900, 9000
_WRITER = re.compile(rb"parquet-cpp-arrow version [\d.]+")

_TIME = "time: {column: day, type: date}"
_COUNTED = "measures: {distinct_members: true, events: {tau: 3, tau_is: clipped}}"
_KNOWN = '[AT, DE, FR, "it\'s", "é😀", nobody]'
_COLUMNS = f"""
    columns:
      member: {{type: string}}
      country: {{type: string, group_by: true, filter: [in, not_in], domain: {_KNOWN}DELTA3}}
      article: {{type: string, group_by: true, filter: [in, not_in]DELTA9}}
      shop: {{type: string, group_by: true, filter: [in, not_in], nulls: keep, null_value: none DELTA1}}
      stars: {{type: int64, group_by: true, filter: [in, not_in, range], domain: [1, 2, 3, 4, 5]DELTA5}}
      again: {{type: bool, group_by: true, filter: [in, not_in]DELTA2}}
      day: {{type: date, group_by: true, filter: [in, not_in, range]DELTA9}}
"""
_VALUES = """
    values:
      paid: {type: int64, lower: 0, upper: 40, row_lower: 0, row_upper: 15}
      owed: {type: decimal, quantum: '0.25', lower: -10, upper: 10, row_lower: -4, row_upper: 4}
"""
_QUANTILES = _VALUES.replace(
    "row_upper: 15", "row_upper: 15, grid: {scale: linear, from: 0, to: 20, cells: 10}"
).replace("row_upper: 4", "row_upper: 4, grid: {scale: linear, from: -8, to: 8, cells: 16}")
_IN_QUERY = "contributions: {bound: in_query, units: 40, min_count: 2"
_SUMS = "sums: {max_members: 1000000, max_rows: 100000000}"
_NAMES = "longest_list: 12"


def _columns(*, deltas: bool) -> str:
    text = _COLUMNS
    for number in (1, 2, 3, 5, 9):
        text = text.replace(f"DELTA{number}", f", delta: {number}" if deltas and number != 9 else "")
    return text


def _table(name: str, *parts: str, deltas: bool = False) -> str:
    lines = "\n    ".join(["member: member", *parts])
    return f"  {name}:\n    {lines}{_columns(deltas=deltas)}"


_HEAD = "epsilon_per: 1\ndelta: 1e-6\nmax_k: 20\ncount_noise: {noise}\ntables:\n"
_UNBOUNDED = (
    _table("few", _TIME, "d_bar: 40", _COUNTED, deltas=True),
    _table("fixed", _TIME, "data_version: first export", "reserve_first: true", _COUNTED, deltas=True),
    _table("shown", "measures: {events: {tau: 60, tau_is: assumed}}", deltas=False),
)
_SERIES = (
    "time: {column: day, type: date, buckets: {day: 7, week: 7, month: 7, quarter: 7, year: 7}, "
    "parts: [weekday, week, month]}"
)
_BOUNDED = tuple(
    typically(5, each)
    for each in (
        _table("counts", _TIME, f"{_IN_QUERY}}}", _COUNTED),
        _table("sums", _SERIES, f"{_IN_QUERY}, {_SUMS}}}", _COUNTED) + _VALUES,
        _table("looks", _TIME, f"{_IN_QUERY}, {_NAMES}, {_SUMS}}}", _COUNTED) + _QUANTILES,
        _table("cells", _TIME, f"{_IN_QUERY}, {_SUMS}}}", _COUNTED) + _QUANTILES,
        _table("topics", _TIME, f"{_IN_QUERY}}}", _COUNTED)
        + "      topic: {type: string, group_by: true, filter: [in, not_in], "
        + f"lookup: {{column: article, file: topics.csv, hash: '{hash_of(TOPICS)}'}}}}\n",
    )
)


@dataclass(frozen=True)
class World:
    """Policies whose noise is of one kind: the text, and the names of its tables."""

    name: str
    policy: str
    tables: tuple[str, ...]

    def write(self, folder: Path) -> dict[str, Path]:
        """Write what the policy names, and the data; return where each table is."""
        (folder / "topics.csv").write_bytes(TOPICS)
        rows = folder / "rows.parquet"
        write_rows(rows)
        return dict.fromkeys(self.tables, rows)


WORLDS = (
    World(
        "laplace",
        _HEAD.format(noise="laplace") + "".join(_UNBOUNDED),
        ("few", "fixed", "shown"),
    ),
    World(
        "gaussian",
        _HEAD.format(noise="gaussian") + "".join((*_UNBOUNDED[:1], *_BOUNDED)),
        ("few", "counts", "sums", "looks", "cells", "topics"),
    ),
)


def write_rows(path: Path) -> None:
    """Write the rows that every table has: members of whom some have many, with missing values in each column."""
    chosen = Random(2026)

    def one_of(values: tuple[str, ...], steep: float) -> str | None:
        return None if chosen.random() < 0.02 else values[int(len(values) * chosen.random() ** steep)]

    members = [f"m{int(_MEMBERS * chosen.random() ** 1.5)}" for _ in range(_ROWS)]
    columns = {
        "member": pa.array([None if chosen.random() < 0.01 else member for member in members], pa.string()),
        "country": pa.array([one_of(COUNTRIES, 2) for _ in members], pa.string()),
        "article": pa.array([one_of(ARTICLES, 2) for _ in members], pa.string()),
        # A member has one shop.
        "shop": pa.array([SHOPS[int(member[1:]) % len(SHOPS)] for member in members], pa.string()),
        "stars": pa.array([chosen.choice((1, 2, 3, 4, 5, 5, 6, None)) for _ in members], pa.int64()),
        "again": pa.array([chosen.choice((True, True, False, None)) for _ in members], pa.bool_()),
        "day": pa.array([_day(chosen) for _ in members], pa.date32()),
        "paid": pa.array([chosen.choice((None, *range(-2, 20))) for _ in members], pa.int64()),
        "owed": pa.array([chosen.choice((None, *range(-24, 24))) for _ in members], pa.float64()),
    }
    columns["owed"] = pa.array([None if one is None else one / 4 for one in columns["owed"].to_pylist()])
    pq.write_table(pa.table(columns), path, compression="none", store_schema=False)
    # The version of the data is a hash of the file, which says by which version of a library it was written.
    written = path.read_bytes()
    path.write_bytes(_WRITER.sub(lambda found: re.sub(rb"\d", b"0", found.group()), written))


def _day(chosen: Random) -> datetime.date | None:
    return None if chosen.random() < 0.02 else FIRST_DAY + datetime.timedelta(chosen.randrange(DAYS))
