"""A fake Pinot whose table `t` takes in a stream of two partitions; what it says is what Pinot 1.5 says.

The forms are those of ConsumingSegmentInfoReader and PinotBrokerDebug in Pinot's source, release 1.5.1.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pinot_connector.engines.base import ClosedStream, CompleteBy, EngineQuery
from tests.support.fake_pinot import ANSWER, QUERY, FakePinot

DONE, FIRST, SECOND = "t__0__0__20260101T0000Z", "t__0__1__20260101T0000Z", "t__1__0__20260101T0000Z"
SEGMENTS = {DONE: "ONLINE", FIRST: "CONSUMING", SECOND: "CONSUMING"}
BY_OFFSETS = ClosedStream("day", -(2**31), 20_000, CompleteBy.OFFSETS)
BY_DELAY = replace(BY_OFFSETS, complete_by=CompleteBy.DELAY)


def asked(stream: ClosedStream | None, table: str = "t") -> EngineQuery:
    """Return a question about a closed period of a stream."""
    return replace(QUERY, table=table, stream=stream)


def placed(segments: dict[str, str], server: str = "server") -> dict[str, Any]:
    """Return where segments are: each on one server, in this state."""
    return {"OFFLINE": None, "REALTIME": {name: {server: state} for name, state in segments.items()}}


def reported(current: dict[str, int], ends: dict[str, int], state: str = "CONSUMING") -> dict[str, Any]:
    """Return how far the server is in each consuming segment, whose partition ends at this offset."""
    names = {FIRST: "0", SECOND: "1"}
    return {
        "serversFailingToRespond": 0,
        "serversUnparsableRespond": 0,
        "_segmentToConsumingInfoMap": {
            name: [
                {
                    "serverName": "server",
                    "consumerState": state,
                    "lastConsumedTimestamp": 0,
                    "partitionToOffsetMap": {partition: str(current[name])},
                    "partitionOffsetInfo": {
                        "currentOffsetsMap": {partition: str(current[name])},
                        "recordsLagMap": {partition: str(ends[name] - current[name])},
                        "latestUpstreamOffsetMap": {partition: str(ends[name])},
                        "availabilityLagMsMap": {partition: "0"},
                    },
                }
            ]
            for name, partition in names.items()
        },
    }


@contextmanager
def streaming() -> Iterator[FakePinot]:
    """Serve a table that takes in a stream, and has taken in all of it."""
    covers = {"numSegmentsQueried": 3, "numConsumingSegmentsQueried": 2, "totalDocs": 21}
    with FakePinot().serving() as fake:
        fake.routes_of["t_REALTIME"] = {DONE: 7, FIRST: 7, SECOND: 7}
        fake.routes_say = {"numConsumingSegmentsQueried": 2}
        fake.replies |= {
            "/query/sql": ANSWER | covers,
            "/tables/t": {"REALTIME": {"tableName": "t_REALTIME"}},
            "/tables/t/idealstate": placed(SEGMENTS),
            "/tables/t/externalview": placed(SEGMENTS),
            "/tables/t/consumingSegmentsInfo": reported({FIRST: 5, SECOND: 9}, {FIRST: 5, SECOND: 9}),
        }
        yield fake


@contextmanager
def divided() -> Iterator[FakePinot]:
    """Serve the same table with an offline part of one segment with seven rows; Pinot divides them after day 19,990."""
    with streaming() as fake:
        stream = {"tableName": "t_REALTIME", "segmentsConfig": {"timeColumnName": "day"}}
        both = {"OFFLINE": {"s": {"server": "ONLINE"}}}
        day = {"name": "day", "dataType": "INT", "format": "1:DAYS:EPOCH"}
        schema = {"dateTimeFieldSpecs": [day], "dimensionFieldSpecs": [{"name": "d", "dataType": "STRING"}]}
        fake.replies |= {
            "/tables/t": {"OFFLINE": {"tableName": "t_OFFLINE"}, "REALTIME": stream},
            "/tables/t_OFFLINE": {"OFFLINE": {"tableName": "t_OFFLINE"}},
            "/tables/t/schema": schema,
            "/tables/t_OFFLINE/schema": schema,
            "/tables/t/idealstate": placed(SEGMENTS) | both,
            "/tables/t/externalview": placed(SEGMENTS) | both,
            "/tables/t_OFFLINE/idealstate": both,
            "/tables/t_OFFLINE/externalview": both,
            "/segments/t_OFFLINE": [{"OFFLINE": ["s"]}],
            "/debug/timeBoundary/t": {"timeColumn": "day", "timeValue": "19990"},
        }
        fake.replies["/query/sql"] |= {"numSegmentsQueried": 4, "totalDocs": 28}
        yield fake
