"""What is rendered for Pinot is read by the parser of Pinot 1.5.1, and means there what it means in DuckDB."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from subprocess import CalledProcessError

import duckdb
import pytest

from dp_service.queries.policy import parse_policy
from dp_service.queries.render import render
from dp_service.queries.resolution import resolve
from dp_service.queries.sql import parse_sql
from tests.support.rings import needs

from .planner import Planned, Table, is_there, planned

pytestmark = pytest.mark.skipif(
    not is_there(),
    reason="Pinot's parser needs a JDK 17 and Maven (Debian: openjdk-17-jdk-headless and maven)",
)

POLICY = parse_policy("""
epsilon_per: 1
delta: 1e-2
tables:
  visits:
    member: visitor
    measures: {distinct_members: true, events: {tau: 2, tau_is: clipped}}
    columns:
      page: {type: string, group_by: true, filter: [in, not_in]}
      score: {type: int64, group_by: true, filter: [in, not_in, range]}
      active: {type: bool, group_by: true, filter: [in]}
      day: {type: date, group_by: true, filter: [in, range]}
      seen: {type: timestamp, zone: Europe/Berlin, filter: [range]}
      region: {type: string, group_by: true, domain: ["DE", "it's", "Zürich"], delta: 1, nulls: keep, null_value: none}
""")
PAGES = ("a", "b'b", 'c"c', "d%d", "e\\e", "ü\U0001f600", "", "--", "SET x=1; ")
REGIONS = ("DE", "it's", "Zürich", "none")
FIRST_DAY = datetime.date(2024, 1, 1)
# In milliseconds since 1970, as Pinot stores timestamps.
SEEN = 1_704_063_600_000
QUESTIONS = (
    "SELECT page, COUNT(DISTINCT visitor) FROM visits GROUP BY page ORDER BY 2 DESC LIMIT 3",
    "SELECT page, COUNT(*) FROM visits GROUP BY page ORDER BY 2 DESC LIMIT 3",
    "SELECT page, score, active, day, COUNT(*) FROM visits GROUP BY page, score, active, day ORDER BY 5 DESC LIMIT 3",
    "SELECT region, COUNT(*) FROM visits GROUP BY region",
    "SELECT region, COUNT(DISTINCT visitor) FROM visits GROUP BY region",
    "SELECT page, COUNT(*) FROM visits WHERE page IN ('b''b', 'ü\U0001f600', 'e\\e', '--', 'SET x=1; ') GROUP BY page "
    "ORDER BY 2 DESC LIMIT 3",
    "SELECT score, COUNT(*) FROM visits WHERE page NOT IN ('a', '') AND score >= -3 AND score < 2 AND active = TRUE "
    "AND day BETWEEN DATE '2024-01-02' AND DATE '2024-01-05' GROUP BY score ORDER BY 2 DESC LIMIT 3",
    "SELECT page, COUNT(*) FROM visits WHERE seen >= DATE '2024-01-02' AND seen <= TIMESTAMP '2024-01-05 00:30:00' "
    "GROUP BY page ORDER BY 2 DESC LIMIT 3",
)


@dataclass(frozen=True)
class Asked:
    """What one question is rendered as, and what it came to on both engines."""

    pinot: Planned
    duckdb: list[tuple[object, ...]]


def _rows() -> list[tuple[object, ...]]:
    """Return 600 visits, in which members come back to the same element up to eight times."""
    return [
        (
            f"v{i % 23}",
            PAGES[i % 7 * (i % 3) % 9],
            i % 6 - 3,
            i % 4 > 0,
            i % 8,
            REGIONS[i * i % 4],
            SEEN + i * 777_777,
        )
        for i in range(600)
    ]


def _on_duckdb(sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as engine:
        engine.execute(
            "CREATE TABLE visits (visitor TEXT, page TEXT, score BIGINT, active BOOLEAN, day DATE, region TEXT, "
            "seen TIMESTAMP)"
        )
        rows = [(*row[:4], FIRST_DAY + datetime.timedelta(int(str(row[4]))), *row[5:]) for row in _rows()]
        engine.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?, ?, make_timestamp(? * 1000))", rows)
        return [tuple(map(_as_in_pinot, row)) for row in engine.execute(sql).fetchall()]


def _as_in_pinot(value: object) -> object:
    return (value - datetime.date(1970, 1, 1)).days if isinstance(value, datetime.date) else value


def _table() -> Table:
    names = ("visitor", "page", "score", "active", "day", "region", "seen")
    types = ("VARCHAR", "VARCHAR", "BIGINT", "BOOLEAN", "INTEGER", "VARCHAR", "TIMESTAMP")
    epoch = (FIRST_DAY - datetime.date(1970, 1, 1)).days
    rows = [(*row[:4], epoch + int(str(row[4])), *row[5:]) for row in _rows()]
    return Table(dict(zip(names, types, strict=True)), rows)


@pytest.fixture(scope="module")
@needs("pinot")
def asked() -> list[Asked]:
    """Every question, asked of both."""
    resolutions = [resolve(parse_sql(sql, POLICY), POLICY, now=0) for sql in QUESTIONS]
    found = planned({"visits": _table()}, [render(each, "pinot") for each in resolutions])
    wanted = [_on_duckdb(render(each, "duckdb")) for each in resolutions]
    return [Asked(pinot, duck) for pinot, duck in zip(found, wanted, strict=True)]


def test_every_option_is_one_that_pinot_knows(asked: list[Asked]) -> None:
    """A misspelt option would be ignored without a word, and counts would be wrong."""
    assert not any(each.pinot.unknown_options for each in asked)
    assert all(each.pinot.options["numGroupsLimit"] == "100000000" for each in asked)


def test_no_broker_decides_what_becomes_of_nulls(asked: list[Asked]) -> None:
    """A broker's own default stands only where the query does not say what it wants."""
    assert {"false"} == {each.pinot.options.get("enableNullHandling") for each in asked}


def test_only_clipped_questions_go_to_the_multi_stage_engine(asked: list[Asked]) -> None:
    """Pinot's parser sees the option where the policy clips, and nowhere else."""
    is_multistage = ["useMultistageEngine" in each.pinot.options for each in asked]
    assert ["COUNT(*)" in question for question in QUESTIONS] == is_multistage


def test_a_query_means_the_same_to_calcite_and_to_duckdb(asked: list[Asked]) -> None:
    """Counts, their clipping, filters, quoted texts and the total order, all of them."""
    assert [each.duckdb for each in asked] == [each.pinot.rows for each in asked]
    assert all(each.duckdb for each in asked)


def test_counts_are_whole_numbers_of_64_bits(asked: list[Asked]) -> None:
    """A clipped sum is no float, as LEAST would make it."""
    assert {("gris_count", "BIGINT")} == {each.pinot.columns[-1] for each in asked}


@pytest.mark.usefixtures("starts_pinot")
def test_what_pinot_does_not_take_is_noticed() -> None:
    """A misspelt option is found, and so is SQL that is not Pinot's."""
    (misspelt,) = planned({"visits": _table()}, ['SET minServerTrimSize=-1; SELECT "page" FROM "visits"'])
    assert ["minServerTrimSize"] == misspelt.unknown_options
    with pytest.raises(CalledProcessError):
        planned({"visits": _table()}, ['SELECT "no_such_column" FROM "visits"'])
