"""Tables that take in a stream, as a Pinot would hold them: what one member's rows change, and for whom.

A world is the rows that came, one after the other, and how a Pinot keeps them: in segments, with a retention that takes
whole ones, with rows that replace others, beside an offline part. The real connector asks it over HTTP; the counts are
DuckDB's, over the rows that such a Pinot would look at. The same world without one member has other segments, another
boundary and other rows that retention has taken.
"""

from __future__ import annotations

import datetime
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import strategies as st

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.filters import TimeRange
from dp_service.queries.policy import parse_policy
from dp_service.queries.render import render
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.structured import HistogramQuery
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import EngineError
from tests.engines.pinot.queries import confirmed
from tests.support.engine_queries import engine_query
from tests.support.fake_pinot import FakePinot
from tests.support.skipped_time import skipped_time

MEMBERS = ("m0", "m1", "m2")
PARTITIONS = 2
TODAY = int(time.time()) // 86_400
_MOST_ARTICLES = 3
_COVERS = {"exceptions": [], "numServersQueried": 1, "numServersResponded": 1}

NO_TRUTH = "the answer is not the truth"
DECIDES = "a member decides whether there is an answer"
TOO_MUCH = "a member changes a count by something else than its own 1"
OTHERS = "a member changes the count of an article that it has no row of"

Counts = Mapping[str, int]


@dataclass(frozen=True)
class Sent:
    """A row of the stream; `day` counts from today on, by the producer's clock."""

    member: str
    article: str
    day: int
    order: int = 0


@dataclass(frozen=True)
class Kept:
    """How Pinot keeps the rows; a day is a number from today on, and None says that there is no such thing.

    Args:
        flush: how many rows a segment of the stream has.
        retention: for how many days the stream's segments are kept after their last row.
        pushed: the last day of the offline part.
        lacks: the offline part lacks the rows of this order number.
        key: the columns of the key by which newer rows replace older ones.
    """

    flush: int = 3
    retention: int | None = None
    pushed: int | None = None
    lacks: int | None = None
    key: tuple[str, ...] | None = None


@dataclass(frozen=True)
class StreamWorld:
    """Rows in the order in which they came, how they are kept, what the policy promises, and what is asked."""

    rows: tuple[Sent, ...]
    kept: Kept
    promises: str = ""
    start: int | None = None
    waiting: frozenset[int] = field(default=frozenset())
    """Partitions of which the last row has not been taken in."""

    def without(self, member: str) -> StreamWorld:
        """Return the same world without a member."""
        return replace(self, rows=tuple(row for row in self.rows if row.member != member))


@dataclass
class StreamTotals:
    """What a campaign has looked at."""

    answered: Counter[str] = field(default_factory=Counter)
    refused: int = 0

    def __str__(self) -> str:
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(self.answered.items()))
        return f"streams: {self.answered.total()} worlds answered ({kinds}), {self.refused} refused for all alike"


@st.composite
def stream_worlds(draw: st.DrawFn) -> StreamWorld:
    """Draw a world; what its policy promises is true of it."""
    key = draw(st.sampled_from([None, None, ("member", "day"), ("orderer", "day"), ("order", "day")]))
    pushed = draw(st.sampled_from([None, None, -1, -2, -4])) if key is None else None
    kept = Kept(
        flush=draw(st.integers(1, 4)),
        retention=draw(st.sampled_from([None, None, 4, 7])),
        pushed=pushed,
        lacks=None if pushed is None else draw(st.sampled_from([None, None, 1])),
        key=key,
    )
    promises = ""
    if key is not None and draw(st.integers(0, 4)):
        promises += ", replaced_rows: until_closed"
        promises += "_by_same_member" if key[0] == "orderer" and draw(st.integers(0, 3)) else ""
    if pushed is not None and kept.lacks is None and draw(st.integers(0, 4)):
        promises += ", offline_part: whole_days"
    rows = draw(st.lists(_row(), min_size=6, max_size=20))
    if pushed is not None:
        # Without its last row the offline part would end a day earlier; that this is no one member's is promised too.
        rows = [*(Sent("m9", "a", day) for day in range(-9, 0)), *rows]
    start = draw(st.sampled_from([None, -2, -3, -6, -8]))
    return StreamWorld(tuple(rows), kept, promises, start)


def _row() -> st.SearchStrategy[Sent]:
    # The clocks of some rows are ahead, and others come late: no row is where its day would put it.
    day = st.one_of(st.integers(-9, 1), st.sampled_from([-2, -1, 0, 400]))
    return st.builds(Sent, st.sampled_from(MEMBERS), st.sampled_from(["a", "b", "c"]), day, st.integers(0, 2))


def _key_of(row: Sent, columns: tuple[str, ...]) -> tuple[object, ...]:
    # The number of an orderer is of one member.
    named = {
        "member": row.member,
        "day": row.day,
        "order": row.order,
        "orderer": (row.member, row.order),
    }
    return tuple(named[each] for each in columns)


def _segments(world: StreamWorld) -> list[list[list[Sent]]]:
    """Return the segments of each partition, of which the last one is consuming; retention has taken some."""
    found = []
    for partition in range(PARTITIONS):
        own = [row for row in world.rows if int(row.member[1:]) % PARTITIONS == partition]
        taken = own[:-1] if partition in world.waiting else own
        flush = world.kept.flush
        cut = len(taken) // flush * flush
        found.append([taken[at : at + flush] for at in range(0, cut, flush)] + [taken[cut:]])
    oldest = world.kept.retention
    if oldest is None:
        return found
    return [
        [*(each for each in own[:-1] if max(row.day for row in each) >= -oldest), own[-1]] for own in found
    ]


def _offline(world: StreamWorld) -> dict[str, list[Sent]]:
    """Return the segments of the offline part: one for each day that was pushed, whether it has rows or not."""
    last, lacks = world.kept.pushed, world.kept.lacks
    if last is None:
        return {}
    return {
        f"day{day}": [row for row in world.rows if row.day == day and row.order != lacks]
        for day in range(-9, last + 1)
    }


def _boundary(world: StreamWorld) -> int | None:
    days = [row.day for rows in _offline(world).values() for row in rows]
    return max(days) - 1 if days else None


def _counted(world: StreamWorld) -> list[Sent]:
    """Return the rows that such a Pinot looks at."""
    streamed = [row for own in _segments(world) for each in own for row in each]
    columns = world.kept.key
    if columns is not None:
        streamed = _newest(streamed, columns)
    boundary = _boundary(world)
    if boundary is None:
        return streamed
    offline = [row for rows in _offline(world).values() for row in rows]
    return [row for row in offline if row.day <= boundary] + [row for row in streamed if row.day > boundary]


def _newest(rows: list[Sent], columns: tuple[str, ...]) -> list[Sent]:
    return list({_key_of(row, columns): row for row in rows}.values())


def resolution_of(world: StreamWorld) -> Resolution:
    """Return the question under the world's policy, as of today."""
    policy = parse_policy(f"""
epsilon_per: 0.15
delta: 1e-10
tables:
  t:
    member: member
    time: {{column: day, type: date, refresh: day, delay_minutes: 0, complete_by: offsets{world.promises}}}
    measures: {{distinct_members: true}}
    columns:
      article: {{type: string, group_by: true, delta: {_MOST_ARTICLES}}}
""")
    since = None if world.start is None else TimeRange(_midnight(world.start), None)
    question = HistogramQuery("t", ("article",), Measure.DISTINCT_MEMBERS, k=3, time_range=since)
    return resolve(question, policy, now=TODAY * 86_400)


def _midnight(day: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp((TODAY + day) * 86_400, datetime.UTC)


def counts_of(resolution: Resolution, rows: list[Sent]) -> Counts:
    """Return the counts of the question over these rows, as DuckDB has them."""
    columns = {
        "member": pa.array([row.member for row in rows], pa.string()),
        "article": pa.array([row.article for row in rows], pa.string()),
        "day": pa.array([_midnight(row.day).date() for row in rows], pa.date32()),
    }
    with duckdb.connect() as database:
        database.register("t", pa.table(columns))
        return dict(database.execute(render(resolution, "duckdb")).fetchall())


def truth(world: StreamWorld) -> Counts:
    """Return the counts over all rows that ever came; of those with one key, over the newest."""
    rows = list(world.rows)
    newest = rows if world.kept.key is None else _newest(rows, world.kept.key)
    return counts_of(resolution_of(world), newest)


def reports_of(world: StreamWorld, resolution: Resolution) -> tuple[dict[str, Any], dict[str, int]]:
    """Return what controller and broker say of the world, and the rows of each segment of the stream."""
    streamed, places, infos = {}, {}, {}
    for partition, own in enumerate(_segments(world)):
        first = len(own)
        for number, rows in enumerate(own):
            is_last = number == first - 1
            name = f"t__{partition}__{number}__20260101T0000Z"
            streamed[name] = len(rows)
            places[name] = {"server": "CONSUMING" if is_last else "ONLINE"}
            if is_last:
                infos[name] = [_consuming(world, partition)]
    offline = _offline(world)
    counts = counts_of(resolution, _counted(world))
    boundary = _boundary(world)
    is_both = boundary is not None
    covers = {
        "numSegmentsQueried": len(streamed) + len(offline) * is_both,
        "numConsumingSegmentsQueried": PARTITIONS,
        "minConsumingFreshnessTimeMs": 86_400_000 * (TODAY + max((row.day for row in world.rows), default=0)),
        "totalDocs": sum(streamed.values()) + sum(map(len, offline.values())) * is_both,
    }
    placed = {"OFFLINE": _online(offline) if offline else None, "REALTIME": places}
    replies = {
        "/version": {"pinot-controller": "1.5.1"},
        "/cluster/configs": {},
        "/query/sql": _COVERS | covers | {"resultTable": _table(resolution.columns[0][0], counts)},
        "/tables/t": _configuration(world),
        "/tables/t/schema": _schema(world),
        "/tables/t/idealstate": placed,
        "/tables/t/externalview": placed,
        "/tables/t/consumingSegmentsInfo": {"_segmentToConsumingInfoMap": infos},
        **_offline_reports(offline, world),
    }
    if boundary is not None:
        replies["/debug/timeBoundary/t"] = {"timeColumn": "day", "timeValue": str(TODAY + boundary)}
    return replies, streamed


def _consuming(world: StreamWorld, partition: int) -> dict[str, Any]:
    end = sum(int(row.member[1:]) % PARTITIONS == partition for row in world.rows)
    here = max(0, end - (partition in world.waiting))
    offsets = {"currentOffsetsMap": {str(partition): str(here)}}
    offsets["latestUpstreamOffsetMap"] = {str(partition): str(end)}
    return {"serverName": "server", "consumerState": "CONSUMING", "partitionOffsetInfo": offsets}


def _online(offline: Mapping[str, list[Sent]]) -> dict[str, Any]:
    return {name: {"server": "ONLINE"} for name in offline}


def _table(column: str, counts: Counts) -> dict[str, Any]:
    names = {"columnNames": [column, "gris_count"], "columnDataTypes": ["STRING", "INT"]}
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return {"dataSchema": names, "rows": [list(each) for each in ordered]}


def _configuration(world: StreamWorld) -> dict[str, Any]:
    kept = world.kept
    segments: dict[str, Any] = {"timeColumnName": "day"}
    if kept.retention is not None:
        segments |= {"retentionTimeUnit": "DAYS", "retentionTimeValue": str(kept.retention)}
    stream: dict[str, Any] = {"tableName": "t_REALTIME", "segmentsConfig": segments}
    if kept.key is not None:
        stream["upsertConfig"] = {"mode": "FULL"}
    if kept.pushed is None:
        return {"REALTIME": stream}
    return {"REALTIME": stream, "OFFLINE": {"segmentsConfig": {"timeColumnName": "day"}}}


def _schema(world: StreamWorld) -> dict[str, Any]:
    texts = [{"name": name, "dataType": "STRING"} for name in ("member", "article", "order", "orderer")]
    return {
        "dimensionFieldSpecs": texts,
        "dateTimeFieldSpecs": [{"name": "day", "dataType": "INT", "format": "1:DAYS:EPOCH"}],
        "primaryKeyColumns": None if world.kept.key is None else list(world.kept.key),
    }


def _offline_reports(offline: Mapping[str, list[Sent]], world: StreamWorld) -> dict[str, Any]:
    if not offline:
        return {}
    alone = {"OFFLINE": _online(offline), "REALTIME": None}
    documents = {name: len(rows) for name, rows in offline.items()}
    described = {
        name: {"segment.crc": "1", "segment.total.docs": str(rows)} for name, rows in documents.items()
    }
    return {
        "/tables/t_OFFLINE": {"OFFLINE": _configuration(world)["OFFLINE"]},
        "/tables/t_OFFLINE/schema": _schema(world),
        "/tables/t_OFFLINE/idealstate": alone,
        "/tables/t_OFFLINE/externalview": alone,
        "/segments/t_OFFLINE": [{"OFFLINE": [*offline]}],
        "/segments/t_OFFLINE/zkmetadata": described,
        "/segments/t_OFFLINE/metadata": {
            name: {"segmentName": name, "crc": 1, "totalDocs": rows} for name, rows in documents.items()
        },
        "/count": _COVERS | {"numSegmentsQueried": len(offline), "totalDocs": sum(documents.values())},
    }


def outcome(world: StreamWorld, pinot: FakePinot) -> Counts | str:
    """Return the counts that the connector has confirmed, or its refusal."""
    resolution = resolution_of(world)
    pinot.replies, pinot.routes_of["t_REALTIME"] = reports_of(world, resolution)
    pinot.routes_say = {"numConsumingSegmentsQueried": PARTITIONS}
    with skipped_time(), closing(PinotEngine(controller=pinot.url, broker=pinot.url)) as engine:
        try:
            answer = confirmed(engine, engine_query(resolution, "pinot"))
        except EngineError as error:
            return f"{type(error).__name__}: {error}"
    return {str(each): count for each, count in zip(answer.elements[0], answer.counts, strict=True)}


def stream_faults(world: StreamWorld, pinot: FakePinot, totals: StreamTotals | None = None) -> Iterator[str]:
    """Yield what one member decides beyond its own counts, and what is answered that is not the truth.

    When a partition has caught up is a matter of time, and in no world.
    """
    whole = outcome(world, pinot)
    if totals is not None:
        _count(totals, world, whole)
    if not isinstance(whole, str) and whole != truth(world):
        yield NO_TRUTH
    for member in MEMBERS:
        other = outcome(world.without(member), pinot)
        if isinstance(whole, str) or isinstance(other, str):
            if whole != other:
                yield DECIDES
            continue
        changes = {each: whole.get(each, 0) - other.get(each, 0) for each in whole.keys() | other.keys()}
        if any(not 0 <= change <= 1 for change in changes.values()):
            yield TOO_MUCH
        if not {each for each, change in changes.items() if change} <= {
            row.article for row in world.rows if row.member == member
        }:
            yield OTHERS


def _count(totals: StreamTotals, world: StreamWorld, whole: Counts | str) -> None:
    if isinstance(whole, str):
        totals.refused += 1
        return
    kind = "hybrid" if world.kept.pushed is not None else "with keys" if world.kept.key else "plain"
    totals.answered[kind] += 1
