"""A table with an offline part and a stream is answered only while Pinot divides it in one place."""

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from pinot_connector.engines.base import ClosedStream
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import (
    DataChanged,
    EngineError,
    EngineRefused,
    EngineUnavailable,
    IncompleteAnswer,
)
from tests.engines.pinot.queries import confirmed
from tests.support.fake_pinot import FakePinot
from tests.support.fake_streams import BY_OFFSETS, asked, divided

PROMISED = replace(BY_OFFSETS, offline_days_are_whole=True)
BOUNDARY = "/debug/timeBoundary/t"
TODAY = int(time.time()) // 86_400


@pytest.fixture
def pinot() -> Iterator[FakePinot]:
    """A fake Pinot whose table has two parts."""
    with divided() as fake:
        yield fake


@pytest.fixture
def engine(opened: Callable[..., PinotEngine]) -> PinotEngine:
    """An engine for the fake Pinot."""
    return opened()


def test_both_parts_are_asked_if_the_policy_promises_whole_days(
    pinot: FakePinot, engine: PinotEngine
) -> None:
    """Without the promise, one late row of the offline part could change what is counted of all others."""
    assert [5] == confirmed(engine, asked(PROMISED)).counts
    with pytest.raises(EngineRefused, match="offline_part: whole_days"):
        confirmed(engine, asked(BY_OFFSETS))


@pytest.mark.parametrize(
    "after",
    [
        {BOUNDARY: {"timeColumn": "day", "timeValue": "19991"}},
        {BOUNDARY: None},
        {"/segments/t_OFFLINE/zkmetadata": {"s": {"segment.crc": "2", "segment.total.docs": "7"}}},
    ],
    ids=["moved", "gone", "pushed"],
)
def test_what_moves_during_the_question_is_noticed(
    pinot: FakePinot, engine: PinotEngine, after: dict[str, Any]
) -> None:
    """Rows may have been counted in both parts, or in neither."""
    pinot.before_answer = lambda: pinot.replies.update(after)
    with pytest.raises(DataChanged):
        confirmed(engine, asked(PROMISED))


@pytest.mark.parametrize(
    ("stated", "problem"),
    [
        (
            {"timeColumn": "other", "timeValue": "19990"},
            "divides the table between its two parts by the column other",
        ),
        (
            {"timeColumn": "day", "timeValue": "2024-10-01 00:00:00.0"},
            "column day: expected a number since 1970",
        ),
    ],
)
def test_a_boundary_that_cannot_be_compared_is_refused(
    pinot: FakePinot, engine: PinotEngine, stated: dict[str, str], problem: str
) -> None:
    """The policy's time column has to be the one that Pinot divides by."""
    pinot.replies[BOUNDARY] = stated
    with pytest.raises(EngineRefused, match=problem):
        confirmed(engine, asked(PROMISED))


BEFORE = replace(PROMISED, end=19_991)
AFTER = replace(PROMISED, start=19_991)
BOTH = {"numSegmentsQueried": 4, "numConsumingSegmentsQueried": 2, "totalDocs": 28}
ONLY_OFFLINE = {"numSegmentsQueried": 1, "numConsumingSegmentsQueried": 0, "totalDocs": 7}
ONLY_STREAM = {"numSegmentsQueried": 3, "numConsumingSegmentsQueried": 2, "totalDocs": 21}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stream", "covers", "is_whole"),
    [
        (PROMISED, ONLY_OFFLINE, False),
        (PROMISED, ONLY_STREAM, False),
        (PROMISED, BOTH | {"numSegmentsPrunedByBroker": 1}, False),
        (PROMISED, BOTH | {"numConsumingSegmentsQueried": 1}, False),
        (PROMISED, BOTH | {"totalDocs": 6}, False),
        (BEFORE, BOTH, True),
        (BEFORE, ONLY_OFFLINE, True),
        (BEFORE, ONLY_OFFLINE | {"totalDocs": 6}, False),
        (BEFORE, ONLY_STREAM, False),
        (replace(BEFORE, end=19_992), ONLY_OFFLINE, False),
        (AFTER, BOTH, True),
        (AFTER, ONLY_STREAM, True),
        (AFTER, ONLY_OFFLINE, False),
        (replace(AFTER, start=19_990), ONLY_STREAM, False),
    ],
)
def test_a_part_may_be_missing_only_where_it_cannot_have_rows(
    pinot: FakePinot, engine: PinotEngine, stream: ClosedStream, covers: dict[str, int], is_whole: bool
) -> None:
    """Pinot leaves out a part in silence where the question rules it out, and where no server has it."""
    pinot.replies["/query/sql"] |= covers
    if is_whole:
        assert [5] == confirmed(engine, asked(stream)).counts
        return
    with pytest.raises(IncompleteAnswer):
        confirmed(engine, asked(stream))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("divided_at", "stream", "error"),
    [
        ((TODAY - 4, "DAYS", "5"), PROMISED, None),
        ((TODAY - 4, "HOURS", "120"), PROMISED, None),
        ((TODAY - 6, "DAYS", "5"), PROMISED, EngineUnavailable),
        ((TODAY - 6, "HOURS", "120"), PROMISED, EngineUnavailable),
        ((TODAY - 6, "DAYS", "5"), replace(PROMISED, start=TODAY - 3), None),
        ((TODAY - 6, "DAYS", "5"), replace(PROMISED, end=TODAY - 6), None),
        ((TODAY - 6, "FORTNIGHTS", "5"), PROMISED, EngineRefused),
    ],
)
def test_rows_that_retention_may_have_removed_between_the_parts_are_missed(
    pinot: FakePinot,
    engine: PinotEngine,
    divided_at: tuple[int, str, str],
    stream: ClosedStream,
    error: type[EngineError] | None,
) -> None:
    """What the offline part does not answer for must still be in the stream, if the question sees it."""
    boundary, unit, value = divided_at
    pinot.replies[BOUNDARY] = {"timeColumn": "day", "timeValue": str(boundary)}
    config = pinot.replies["/tables/t"]["REALTIME"]["segmentsConfig"]
    config |= {"retentionTimeUnit": unit, "retentionTimeValue": value}
    end = TODAY if stream.end == PROMISED.end else stream.end
    question = asked(replace(stream, end=end))
    if error is None:
        assert [5] == confirmed(engine, question).counts
        return
    with pytest.raises(error, match="retention"):
        confirmed(engine, question)


def test_an_offline_part_may_have_removed_rows_too(pinot: FakePinot, engine: PinotEngine) -> None:
    """Only where the question asks it at all."""
    config = {"timeColumnName": "day", "retentionTimeUnit": "DAYS", "retentionTimeValue": "30"}
    pinot.replies["/tables/t"]["OFFLINE"]["segmentsConfig"] = config
    pinot.replies[BOUNDARY] = {"timeColumn": "day", "timeValue": str(TODAY - 4)}
    with pytest.raises(EngineRefused, match="retention"):
        confirmed(engine, asked(replace(PROMISED, end=TODAY)))
    for start in (TODAY - 28, TODAY - 3):
        assert [5] == confirmed(engine, asked(replace(PROMISED, start=start, end=TODAY))).counts


def test_a_segment_without_rows_hides_no_segment_that_was_left_out(
    pinot: FakePinot, engine: PinotEngine
) -> None:
    """Four segments of five may be all but the empty one, or all but one with rows: a plain count tells them apart."""
    empty = {"segment.crc": "2", "segment.total.docs": "0"}
    described = pinot.replies["/segments/t_OFFLINE/zkmetadata"]
    pinot.replies["/segments/t_OFFLINE/zkmetadata"] = described | {"empty": empty}
    both = {"OFFLINE": {name: {"server": "ONLINE"} for name in ("s", "empty")}}
    for name in ("idealstate", "externalview"):
        pinot.replies[f"/tables/t_OFFLINE/{name}"] = both
        pinot.replies[f"/tables/t/{name}"] = pinot.replies[f"/tables/t/{name}"] | both
    pinot.replies["/segments/t_OFFLINE/metadata"] |= {
        "empty": {"segmentName": "empty", "crc": 2, "totalDocs": 0}
    }
    pinot.replies["/segments/t_OFFLINE"] = [{"OFFLINE": ["s", "empty"]}]
    pinot.replies["/count"] |= {"numSegmentsQueried": 1, "totalDocs": 7}
    assert [5] == confirmed(engine, asked(PROMISED)).counts
    pinot.before_answer = lambda: pinot.replies["/count"].update(numSegmentsQueried=1, totalDocs=0)
    with pytest.raises(IncompleteAnswer):
        confirmed(engine, asked(PROMISED))


def test_a_broker_that_has_not_shown_its_offline_segments_is_asked_to(
    pinot: FakePinot, engine: PinotEngine
) -> None:
    """Behind an address with several brokers, one may have shown the stream's segments and another the others."""
    pinot.brokers = itertools.chain(["a"], itertools.repeat("b"))
    assert [5] == confirmed(engine, asked(PROMISED)).counts
    assert sum('FROM "t_OFFLINE"' in each for each in pinot.routes_asked) == 2
