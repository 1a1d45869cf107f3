"""A table that takes in a stream is answered once all rows of a closed period are in, or refused."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from pinot_connector.engines.base import ClosedStream, ColumnType, ReadColumn
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import DataChanged, EngineRefused, IncompleteAnswer
from tests.engines.pinot.queries import confirmed
from tests.support.fake_pinot import FakePinot
from tests.support.fake_streams import (
    BY_DELAY,
    BY_OFFSETS,
    DONE,
    FIRST,
    SECOND,
    SEGMENTS,
    asked,
    placed,
    reported,
    streaming,
)

INFO = "/tables/t/consumingSegmentsInfo"


@pytest.fixture
def pinot() -> Iterator[FakePinot]:
    """A fake Pinot whose table takes in two partitions, both of them up to their end."""
    with streaming() as fake:
        yield fake


@pytest.fixture
def engine(opened: Callable[..., PinotEngine]) -> PinotEngine:
    """An engine for the fake Pinot."""
    return opened()


@pytest.mark.parametrize("stream", [BY_OFFSETS, BY_DELAY])
def test_a_closed_period_is_answered_when_all_of_it_is_in(
    pinot: FakePinot, engine: PinotEngine, stream: ClosedStream
) -> None:
    """Each segment is where it is meant to be, and each partition is in up to its end."""
    assert [5] == confirmed(engine, asked(stream)).counts


@pytest.mark.parametrize("behind", [FIRST, SECOND])
def test_one_partition_that_is_behind_keeps_all_answers_back(
    pinot: FakePinot, engine: PinotEngine, behind: str
) -> None:
    """The slowest one counts, and by the delay alone nothing of this is known."""
    pinot.replies[INFO] = reported({FIRST: 5, SECOND: 9} | {behind: 4}, {FIRST: 5, SECOND: 9})
    with pytest.raises(DataChanged, match="not every row of the period"):
        confirmed(engine, asked(BY_OFFSETS))
    assert pinot.queries == []
    assert [5] == confirmed(engine, asked(BY_DELAY)).counts


def test_rows_that_come_after_the_first_question_of_a_period_keep_nothing_back(
    pinot: FakePinot, engine: PinotEngine
) -> None:
    """A stream that never ends is complete where it ended once; for the next period it is asked again where it ends."""
    confirmed(engine, asked(BY_OFFSETS))
    pinot.replies[INFO] = reported({FIRST: 6, SECOND: 9}, {FIRST: 8, SECOND: 9})
    assert [5] == confirmed(engine, asked(BY_OFFSETS)).counts
    assert [5] == confirmed(engine, asked(replace(BY_OFFSETS, end=19_000))).counts
    with pytest.raises(DataChanged):
        confirmed(engine, asked(replace(BY_OFFSETS, end=20_001)))


def test_a_partition_that_stands_still_keeps_nothing_back(pinot: FakePinot, engine: PinotEngine) -> None:
    """No row has come for ever, and none has to come; the time of the newest row is not looked at."""
    pinot.replies["/query/sql"] |= {"minConsumingFreshnessTimeMs": 1}
    pinot.replies[INFO] = reported({FIRST: 0, SECOND: 9}, {FIRST: 0, SECOND: 9})
    assert [5] == confirmed(engine, asked(BY_OFFSETS)).counts


def test_a_clock_that_is_ahead_makes_nothing_complete(pinot: FakePinot, engine: PinotEngine) -> None:
    """Rows stamped with a far future say nothing about the ones that are still to be taken in."""
    pinot.replies["/query/sql"] |= {"minConsumingFreshnessTimeMs": 2**53}
    pinot.replies[INFO] = reported({FIRST: 4, SECOND: 9}, {FIRST: 5, SECOND: 9})
    with pytest.raises(DataChanged):
        confirmed(engine, asked(BY_OFFSETS))


def test_a_stream_that_was_made_anew_blocks_nothing(pinot: FakePinot, engine: PinotEngine) -> None:
    """It ends before the offsets that are remembered, so its present end counts."""
    confirmed(engine, asked(BY_OFFSETS))
    pinot.replies[INFO] = reported({FIRST: 2, SECOND: 2}, {FIRST: 2, SECOND: 2})
    assert [5] == confirmed(engine, asked(BY_OFFSETS)).counts
    pinot.replies[INFO] = reported({FIRST: 2, SECOND: 1}, {FIRST: 2, SECOND: 2})
    with pytest.raises(DataChanged):
        confirmed(engine, asked(BY_OFFSETS))


def _completed() -> dict[str, str]:
    return SEGMENTS | {FIRST: "ONLINE", FIRST.replace("__1__", "__2__"): "CONSUMING"}


@pytest.mark.parametrize(
    "after",
    [
        # Completed: another segment takes in what follows.
        {"/tables/t/idealstate": placed(_completed()), "/tables/t/externalview": placed(_completed())},
        # Meant to be complete, and the server still has it as it was.
        {"/tables/t/idealstate": placed(_completed())},
        # Its server died and came back, and takes the rows in again.
        {INFO: reported({FIRST: 0, SECOND: 9}, {FIRST: 5, SECOND: 9})},
        {"/tables/t/externalview": placed(SEGMENTS | {DONE: "ERROR"})},
        {"/tables/t/externalview": placed(SEGMENTS | {DONE: "OFFLINE"})},
        # Removed by retention.
        {
            "/tables/t/idealstate": placed({FIRST: "CONSUMING", SECOND: "CONSUMING"}),
            "/tables/t/externalview": placed({FIRST: "CONSUMING", SECOND: "CONSUMING"}),
        },
    ],
    ids=["completed", "completing", "taken in again", "error", "offline", "removed"],
)
def test_what_changes_during_the_question_is_noticed(
    pinot: FakePinot, engine: PinotEngine, after: dict[str, Any]
) -> None:
    """The answer may be on rows of before or of after, so there is none."""
    pinot.before_answer = lambda: pinot.replies.update(after)
    with pytest.raises(DataChanged):
        confirmed(engine, asked(BY_OFFSETS))


@pytest.mark.parametrize(
    "covers",
    [
        {"numSegmentsQueried": 2},
        {"numConsumingSegmentsQueried": 1},
        {"numSegmentsQueried": 2, "numSegmentsPrunedByBroker": 1},
    ],
)
def test_an_answer_that_leaves_out_a_segment_is_refused(
    pinot: FakePinot, engine: PinotEngine, covers: dict[str, int]
) -> None:
    """Pinot does so in silence while a server is away."""
    pinot.replies["/query/sql"] |= covers
    with pytest.raises(IncompleteAnswer):
        confirmed(engine, asked(BY_OFFSETS))


def test_a_broker_that_asks_for_other_segments_is_not_asked(pinot: FakePinot, engine: PinotEngine) -> None:
    """It learns of segments with a delay, and their number may be the same."""
    pinot.routes_of["t_REALTIME"] = {"t__0__7__20250101T0000Z": 7, FIRST: 7, SECOND: 7}
    with pytest.raises(DataChanged, match="broker"):
        confirmed(engine, asked(BY_OFFSETS))
    assert pinot.queries == []


def _replicated() -> dict[str, Any]:
    return {
        "OFFLINE": None,
        "REALTIME": {name: {"server": state, "other": state} for name, state in SEGMENTS.items()},
    }


def test_a_replica_that_may_answer_has_to_be_as_far(pinot: FakePinot, engine: PinotEngine) -> None:
    """Nobody knows which replica will be asked; one that is gone is not."""
    pinot.replies["/tables/t/idealstate"] = _replicated()
    assert [5] == confirmed(engine, asked(BY_OFFSETS)).counts
    pinot.replies["/tables/t/externalview"] = _replicated()
    with pytest.raises(DataChanged, match="does not report"):
        confirmed(engine, asked(BY_OFFSETS))
    for replicas in pinot.replies[INFO]["_segmentToConsumingInfoMap"].values():
        late = replicas[0]["partitionOffsetInfo"]["currentOffsetsMap"]
        replicas.append(
            replicas[0]
            | {
                "serverName": "other",
                "partitionOffsetInfo": replicas[0]["partitionOffsetInfo"]
                | {"currentOffsetsMap": dict.fromkeys(late, "1")},
            }
        )
    with pytest.raises(DataChanged, match="not every row of the period"):
        confirmed(engine, asked(BY_OFFSETS))


@pytest.mark.parametrize("stream", [BY_OFFSETS, BY_DELAY])
def test_a_consumer_that_has_stopped_is_noticed(
    pinot: FakePinot, engine: PinotEngine, stream: ClosedStream
) -> None:
    """Neither its state nor a partition without a consuming segment goes unseen."""
    whole = pinot.replies[INFO]
    pinot.replies[INFO] = reported({FIRST: 5, SECOND: 9}, {FIRST: 5, SECOND: 9}, "NOT_CONSUMING")
    with pytest.raises(DataChanged, match="not being taken in"):
        confirmed(engine, asked(stream))
    pinot.replies[INFO] = whole
    for path in ("/tables/t/idealstate", "/tables/t/externalview"):
        pinot.replies[path] = placed({DONE: "ONLINE", SECOND: "CONSUMING"})
    with pytest.raises(DataChanged, match="not being taken in"):
        confirmed(engine, asked(stream))


def test_a_partition_that_stopped_before_its_first_commit_is_noticed(
    pinot: FakePinot, engine: PinotEngine
) -> None:
    """Its only segment is meant to be offline, so that neither a committed nor a consuming one names it."""
    for path in ("/tables/t/idealstate", "/tables/t/externalview"):
        pinot.replies[path] = placed(SEGMENTS | {"t__2__0__20260101T0000Z": "OFFLINE"})
    with pytest.raises(DataChanged, match="not being taken in"):
        confirmed(engine, asked(BY_OFFSETS))


def test_periods_of_another_column_are_asked_for_anew(pinot: FakePinot, engine: PinotEngine) -> None:
    """What is remembered of a large number of milliseconds lies behind no day."""
    confirmed(engine, asked(replace(BY_OFFSETS, time_column="ms", end=1_700_000_000_000)))
    pinot.replies[INFO] = reported({FIRST: 5, SECOND: 9}, {FIRST: 8, SECOND: 9})
    with pytest.raises(DataChanged, match="not every row of the period"):
        confirmed(engine, asked(BY_OFFSETS))


TODAY = int(time.time()) // 86_400


@pytest.mark.parametrize(
    ("column", "start", "is_kept"),
    [
        ({"dataType": "INT", "format": "1:DAYS:EPOCH"}, TODAY - 2, True),
        ({"dataType": "INT", "format": "1:DAYS:EPOCH"}, TODAY - 5, False),
        ({"dataType": "LONG", "format": "EPOCH|SECONDS|1"}, (TODAY - 2) * 86_400, True),
        ({"dataType": "LONG", "format": "EPOCH|SECONDS|1"}, (TODAY - 5) * 86_400, False),
        ({"dataType": "TIMESTAMP", "format": "TIMESTAMP"}, (TODAY - 2) * 86_400_000_000, True),
        ({"dataType": "TIMESTAMP", "format": "TIMESTAMP"}, (TODAY - 5) * 86_400_000_000, False),
        ({"dataType": "STRING", "format": "SIMPLE_DATE_FORMAT|yyyyMMdd"}, TODAY - 3, False),
    ],
)
def test_a_question_that_reaches_back_beyond_the_retention_is_refused(
    pinot: FakePinot, engine: PinotEngine, column: dict[str, str], start: int, is_kept: bool
) -> None:
    """One late row keeps a whole segment, so what is older is there or not because of one member."""
    config = {"timeColumnName": "day", "retentionTimeUnit": "DAYS", "retentionTimeValue": "4"}
    pinot.replies["/tables/t"] = {"REALTIME": {"segmentsConfig": config}}
    pinot.replies["/tables/t/schema"] |= {"dateTimeFieldSpecs": [{"name": "day"} | column]}
    stream = replace(BY_DELAY, start=start, end=start + 1)
    if is_kept:
        assert [5] == confirmed(engine, asked(stream)).counts
        return
    with pytest.raises(EngineRefused, match="retention"):
        confirmed(engine, asked(stream))


def test_a_retention_by_another_column_keeps_nothing_for_certain(
    pinot: FakePinot, engine: PinotEngine
) -> None:
    """How young a row is in the policy's column says nothing about when it is removed."""
    config = {"timeColumnName": "other", "retentionTimeUnit": "DAYS", "retentionTimeValue": "4"}
    pinot.replies["/tables/t"] = {"REALTIME": {"segmentsConfig": config}}
    day = {"name": "day", "dataType": "INT", "format": "1:DAYS:EPOCH"}
    pinot.replies["/tables/t/schema"] |= {"dateTimeFieldSpecs": [day]}
    with pytest.raises(EngineRefused, match="not of the policy's time column"):
        confirmed(engine, asked(replace(BY_DELAY, start=TODAY, end=TODAY + 1)))


def test_a_pinot_that_does_not_report_the_end_is_refused_by_offsets(
    pinot: FakePinot, engine: PinotEngine
) -> None:
    """Before 0.12 there are no ends; and some streams have offsets that are no numbers."""
    for replicas in pinot.replies[INFO]["_segmentToConsumingInfoMap"].values():
        offsets = replicas[0]["partitionOffsetInfo"]
        offsets["latestUpstreamOffsetMap"] = dict.fromkeys(offsets["latestUpstreamOffsetMap"], "shard-1:17")
    with pytest.raises(EngineRefused, match="complete_by: delay"):
        confirmed(engine, asked(BY_OFFSETS))
    for replicas in pinot.replies[INFO]["_segmentToConsumingInfoMap"].values():
        del replicas[0]["partitionOffsetInfo"]
    with pytest.raises(EngineRefused, match="complete_by: delay"):
        confirmed(engine, asked(BY_OFFSETS))
    assert [5] == confirmed(engine, asked(BY_DELAY)).counts


def test_a_policy_without_closed_periods_of_a_stream_is_refused(
    pinot: FakePinot, engine: PinotEngine
) -> None:
    """There is no version of what arrives all the time; the refusal says what the policy has to state."""
    with pytest.raises(EngineRefused, match="refresh, delay_minutes and complete_by"):
        confirmed(engine, asked(None))
    assert pinot.queries == []


def test_replaced_rows_need_a_promise(pinot: FakePinot, engine: PinotEngine) -> None:
    """A row of today may replace one of a closed period, which would not be closed then."""
    pinot.replies["/tables/t/schema"] |= {"primaryKeyColumns": ["m", "day"]}
    for config in ({"dedupConfig": {"dedupEnabled": True}}, {"upsertConfig": {"mode": "FULL"}}):
        pinot.replies["/tables/t"] = {"REALTIME": config}
        with pytest.raises(EngineRefused, match="replaced_rows: until_closed"):
            confirmed(engine, asked(BY_OFFSETS))
    promised = replace(BY_OFFSETS, replaced_until_closed=True, member="m")
    assert [5] == confirmed(engine, asked(promised)).counts
    # Without all segments, a server does not know which rows are replaced.
    pinot.replies["/tables/t/idealstate"] = _replicated()
    with pytest.raises(DataChanged, match="moved or loaded"):
        confirmed(engine, asked(promised))


@pytest.mark.parametrize(
    "schema", [{}, {"primaryKeyColumns": None}, {"primaryKeyColumns": ["day", "M", "mm"]}]
)
def test_a_key_that_the_member_is_not_part_of_needs_another_promise(
    pinot: FakePinot, engine: PinotEngine, schema: dict[str, Any]
) -> None:
    """Else the rows of one member could take any number of others' out of the counts; the refusal names the column."""
    pinot.replies["/tables/t"] = {"REALTIME": {"upsertConfig": {"mode": "FULL"}}}
    pinot.replies["/tables/t/schema"] |= schema
    promised = replace(BY_OFFSETS, replaced_until_closed=True, member="m")
    with pytest.raises(
        EngineRefused, match=r"member column m is not part of it.*until_closed_by_same_member"
    ):
        confirmed(engine, asked(promised))
    assert pinot.queries == []
    assert [5] == confirmed(engine, asked(replace(promised, replaced_by_same_member=True))).counts


@pytest.mark.parametrize(("mode", "is_refused"), [("SNAPSHOT", True), ("SYNC", False), ("NONE", False)])
def test_a_view_of_some_seconds_ago_is_refused(
    pinot: FakePinot, engine: PinotEngine, mode: str, is_refused: bool
) -> None:
    """All rows are taken in, and the last ones of them are in no answer yet."""
    pinot.replies["/tables/t"] = {"REALTIME": {"upsertConfig": {"mode": "FULL", "consistencyMode": mode}}}
    promised = replace(BY_OFFSETS, replaced_until_closed=True, replaced_by_same_member=True)
    if not is_refused:
        assert [5] == confirmed(engine, asked(promised)).counts
        return
    with pytest.raises(EngineRefused, match="consistencyMode: SNAPSHOT"):
        confirmed(engine, asked(promised))


@pytest.mark.parametrize(
    ("part", "is_refused"),
    [
        ({"upsertConfig": {"mode": "FULL", "metadataTTL": 3600}}, True),
        ({"upsertConfig": {"mode": "FULL", "deletedKeysTTL": 0.5}}, True),
        ({"dedupConfig": {"dedupEnabled": True, "metadataTTL": "1"}}, True),
        ({"upsertConfig": {"mode": "FULL", "metadataTTL": 0.0, "deletedKeysTTL": 0}}, False),
    ],
)
def test_keys_that_are_forgotten_by_the_latest_row_are_refused(
    pinot: FakePinot, engine: PinotEngine, part: dict[str, Any], is_refused: bool
) -> None:
    """One member's row of the year 2099 would let the rows of all others count beside those that replace them."""
    pinot.replies["/tables/t"] = {"REALTIME": part}
    promised = replace(BY_OFFSETS, replaced_until_closed=True, replaced_by_same_member=True)
    if not is_refused:
        assert [5] == confirmed(engine, asked(promised)).counts
        return
    with pytest.raises(EngineRefused, match="forgets keys"):
        confirmed(engine, asked(promised))


def test_a_stream_whose_segments_the_broker_prunes_is_refused(pinot: FakePinot, engine: PinotEngine) -> None:
    """What it leaves out is not known, and a question of a closed period names the time column."""
    pinot.replies["/tables/t"] = {
        "REALTIME": {
            "segmentsConfig": {"timeColumnName": "d"},
            "routing": {"segmentPrunerTypes": ["time"]},
        }
    }
    reads = (ReadColumn("d", ColumnType.STRING, "null"),)
    with pytest.raises(EngineRefused, match="segmentPrunerTypes"):
        confirmed(engine, replace(asked(BY_OFFSETS), reads=reads))
