"""Tables whose members are active in many periods, their pairs copies, and policies that name them."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import datetime
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.filters import AnyOf, Filter, In, Like, TimeRange
from dp_service.queries.pairs_manifest import NO_PERIOD
from dp_service.queries.structured import HistogramQuery
from gris_data.bound.pairs_folder import PairsMade
from gris_data.bound.pairs_on_duckdb import pairs_copy
from gris_data.bound.pairs_source import PairsCopyRequest
from gris_data.bound.source import Columns

Row = tuple[str | None, str | None, str | None, datetime.date | None]
"""Member, element, the member's country, day."""

SCHEMA = pa.schema(
    [("who", pa.string()), ("what", pa.string()), ("country", pa.string()), ("day", pa.date32())]
)
UNTIL = datetime.date(2024, 7, 1)
START = datetime.date(2024, 1, 1)
COUNTRIES = {"a": "FR", "b": "DE", "c": "FR"}
MONTHS = [datetime.datetime(2024, month, 1, tzinfo=datetime.UTC) for month in range(1, 8)]


def random_rows(count: int, seed: int, *, members: int = 40, elements: int = 12) -> list[Row]:
    """Return rows of half a year, in which members come back to their elements in many periods."""
    chosen = Random(seed)
    days = (UNTIL - START).days
    return [
        (
            f"m{(who := min(members - 1, int(chosen.paretovariate(0.8)))):02}",
            f"e{int(chosen.paretovariate(0.6)) % elements}",
            ["FR", "DE", "US"][who % 3],
            START + datetime.timedelta(days=chosen.randrange(days)),
        )
        for _ in range(count)
    ]


def write(path: Path, rows: Sequence[Row]) -> Path:
    """Write rows as a Parquet file."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(SCHEMA)
    pq.write_table(pa.table([list(column) for column in columns], schema=SCHEMA), path)
    return path


def asked(
    calendar: str = "month",
    until: datetime.date = UNTIL,
    *,
    elements: tuple[str, ...] = ("what",),
    attributes: tuple[str, ...] = ("country",),
) -> PairsCopyRequest:
    """Return what is to be copied of the table `visits`."""
    return PairsCopyRequest("visits", Columns("who", elements, "day", calendar), attributes, None, until)


def make(source: Path, folder: Path, what: PairsCopyRequest | None = None) -> PairsMade:
    """Make a pairs copy, or append to it."""

    def work(connection: duckdb.DuckDBPyConnection, statement: str, _what: str) -> None:
        connection.execute(statement)

    return pairs_copy(source, folder, what or asked(), work=work)


def rows_of(folder: Path, *, numbers: bool = False) -> list[tuple[Any, ...]]:
    """Return the rows of a copy, with what tells them apart if that is asked for."""
    own = ", gris_build, gris_check" if numbers else ""
    files = [
        str(folder / each["file"]) for each in json.loads((folder / "manifest.json").read_bytes())["periods"]
    ]
    with duckdb.connect() as connection:
        rows = connection.execute(
            f"SELECT who, what, country, gris_period, gris_previous{own} FROM read_parquet({files})"
        ).fetchall()
    return sorted(rows, key=repr)


def number(day: datetime.date) -> int:
    """Return a day as a copy holds it."""
    return (day - datetime.date(1970, 1, 1)).days


def reference(rows: list[Row], until: datetime.date = UNTIL) -> list[tuple[object, ...]]:
    """Return the rows of a monthly copy, from what it is defined to be."""
    periods: dict[tuple[str | None, ...], set[int]] = {}
    for who, what, country, day in rows:
        if who not in (None, "null") and what is not None and day is not None and day < until:
            periods.setdefault((who, what, country), set()).add(number(day.replace(day=1)))
    return sorted(
        (
            (*pair, period, max((each for each in found if each < period), default=NO_PERIOD))
            for pair, found in periods.items()
            for period in found
        ),
        key=repr,
    )


LATE: list[Row] = [
    ("m99", "e0", "FR", datetime.date(2024, 2, 5)),
    ("m99", "e0", "FR", datetime.date(2024, 3, 5)),
]
"""Rows of a member who came back: without the first one, the second would be their first."""


def mixed(folder: Path, rows: Sequence[Row]) -> Path:
    """Return a copy of these rows and of `LATE` whose March was made before February's row had come.

    March has as many rows in both. The copy as it should be is `copy` in the folder.
    """
    make(write(folder / "early.parquet", [*rows, *LATE[1:]]), folder / "early")
    make(write(folder / "visits.parquet", [*rows, *LATE]), folder / "copy")
    shutil.copytree(folder / "copy", folder / "mixed")
    march = "periods/2024-03-01.parquet"
    shutil.copy(folder / "early" / march, folder / "mixed" / march)
    counts = [pq.read_metadata(folder / each / march).num_rows for each in ("copy", "mixed")]
    assert counts[0] == counts[1]
    return folder / "mixed"


POLICY = """
epsilon_per: 0.15
delta: 1e-10
tables:
  visits:
    member: who
    time: {{column: day, type: date{refresh}}}
    measures: {{distinct_members: true, events: {{tau: 3, tau_is: clipped}}}}
    columns:
      who: {{type: string}}
      what: {{type: string, group_by: true, filter: [in, not_in]{what}}}
      country: {{type: string, group_by: true, filter: [in, not_in], attribute: true}}
      day: {{type: date, group_by: true, filter: [in, range]}}
    prepared: {{table: visits_pairs, manifest: {manifest}}}
"""


def policy_text(manifest: Path | str, *, refresh: str = "", what: str = "") -> str:
    """Return a policy whose table has this copy."""
    return POLICY.format(manifest=manifest, refresh=refresh, what=what)


def questions(chosen: Random) -> list[HistogramQuery]:
    """Return questions of some months, of all before one, with an attribute, and with alternatives."""
    start, end = sorted(chosen.sample(MONTHS, 2))
    ranges = [TimeRange(start, end), TimeRange(None, end)]
    alternatives = AnyOf((In("country", ("FR",)), Like("what", "%1%")))
    filters: list[tuple[Filter, ...]] = [(), (In("country", ("FR", "US")),), (alternatives,)]
    return [
        HistogramQuery("visits", ("what",), Measure.DISTINCT_MEMBERS, each, time_range, k=3)
        for each in filters
        for time_range in ranges
    ]
