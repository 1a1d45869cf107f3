"""What one answer of a broker is worth: pruned to nothing, late, filtered, or given while a server was lost."""

import itertools
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from pinot_connector.engines.base import ColumnType, ReadColumn
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.engines.pinot.answer import Coverage, judge
from pinot_connector.engines.pinot.configuration import EXACT
from pinot_connector.engines.pinot.pruning import pruning_columns
from pinot_connector.errors import EngineRefused, EngineUnavailable, IncompleteAnswer
from tests.engines.pinot.queries import confirmed
from tests.support.fake_pinot import ANSWER, QUERY, FakePinot

BY_TIME = {
    "tableName": "t_OFFLINE",
    "routing": {"segmentPrunerTypes": ["time"]},
    "segmentsConfig": {"timeColumnName": "d"},
}
FILTERED = replace(QUERY, reads=(ReadColumn("d", ColumnType.STRING, "null"),))
# What 0.11 says where no segment is left, and how 1.5.1 and 1.4.0 say it.
NOTHING: dict[str, Any] = {
    "exceptions": [],
    "numServersQueried": 0,
    "numServersResponded": 0,
    "numSegmentsQueried": 0,
    "numSegmentsPrunedByBroker": 0,
    "totalDocs": 0,
}
EMPTY_TABLE = {**NOTHING, "partialResult": False, "resultTable": {**ANSWER["resultTable"], "rows": []}}  # type: ignore[dict-item]
UNNAMED = {"columnNames": ["d", "count(*)"], "columnDataTypes": ["STRING", "LONG"]}
UNNAMED_TABLE = {**EMPTY_TABLE, "resultTable": {"dataSchema": UNNAMED, "rows": []}}
LOST = {**ANSWER, "exceptions": [{"errorCode": 427}], "numServersQueried": 2}


@pytest.fixture
def engine(pinot: FakePinot) -> Iterator[PinotEngine]:
    """An engine for the fake Pinot that does not wait long."""
    engine = PinotEngine(controller=pinot.url, broker=pinot.url, timeout_seconds=2.0)
    yield engine
    engine.close()


@pytest.mark.parametrize("nothing", [NOTHING, EMPTY_TABLE, UNNAMED_TABLE], ids=["0.11", "1.5.1", "1.4.0"])
def test_an_answer_of_no_segment_is_as_good_as_any_other(
    pinot: FakePinot, engine: PinotEngine, nothing: dict[str, Any]
) -> None:
    """Pinot and its controller hear the same, whatever the answer is."""
    pinot.replies["/tables/t"] = {"OFFLINE": BY_TIME}
    confirmed(engine, FILTERED)
    heard = []
    for reply, counts in ((ANSWER, [5]), (nothing, [])):
        pinot.replies["/query/sql"] = reply
        pinot.paths.clear()
        assert counts == confirmed(engine, FILTERED).counts
        heard.append(list(pinot.paths))
    assert [["/count", "/query/sql", "/count", "/segments/t_OFFLINE/zkmetadata"]] * 2 == heard


@pytest.mark.parametrize(
    "reply",
    [
        {**ANSWER, "resultTable": {**ANSWER["resultTable"], "dataSchema": UNNAMED}},  # type: ignore[dict-item]
        {**NOTHING, "resultTable": {"dataSchema": {"columnNames": ["d"]}, "rows": []}},
    ],
    ids=["segments", "another number"],
)
def test_columns_of_other_names_are_those_of_no_segment_alone(
    pinot: FakePinot, engine: PinotEngine, reply: dict[str, Any]
) -> None:
    """Where a server was asked, or a column is missing, the answer is to another question."""
    pinot.replies |= {"/tables/t": {"OFFLINE": BY_TIME}, "/query/sql": reply}
    with pytest.raises(IncompleteAnswer, match="other columns"):
        confirmed(engine, FILTERED)


def test_every_query_of_the_connectors_own_sets_the_options_of_questions(
    pinot: FakePinot, engine: PinotEngine
) -> None:
    """Counts, plans and lists of segments are cut as little as answers are."""
    pinot.replies["/tables/t"] = {"OFFLINE": BY_TIME}
    confirmed(engine, FILTERED)
    own = (pinot.counts, pinot.explained, pinot.routes_asked)
    assert all(own)
    assert all(sql.startswith(EXACT) for queries in own for sql in queries)


PARTIAL = {**NOTHING, "numServersQueried": 1, "numServersResponded": 1}


@pytest.mark.slow
@pytest.mark.parametrize("reply", [ANSWER, NOTHING], ids=["some", "none"])
@pytest.mark.parametrize(
    "count", [PARTIAL, {**PARTIAL, "exceptions": [{"errorCode": 305}]}, {**ANSWER, "totalDocs": 6}]
)
@pytest.mark.parametrize("is_before", [True, False])
def test_a_count_that_is_not_whole_refuses_every_answer(
    pinot: FakePinot, engine: PinotEngine, reply: dict[str, Any], count: dict[str, Any], is_before: bool
) -> None:
    """Before or after: a server was missing, and the broker might have left its segments out."""
    pinot.replies["/tables/t"] = {"OFFLINE": BY_TIME}
    pinot.replies["/query/sql"] = reply
    counts = [count, pinot.replies["/count"]]
    first, then = counts if is_before else reversed(counts)
    pinot.replies["/count"] = first
    pinot.before_answer = lambda: pinot.replies.update({"/count": then})
    with pytest.raises(IncompleteAnswer):
        confirmed(engine, FILTERED)


@pytest.mark.parametrize("fault", [{"exceptions": [{"errorCode": 305}]}, {"partialResult": True}])
def test_an_answer_of_no_segment_that_says_that_it_is_partial_is_refused(
    pinot: FakePinot, engine: PinotEngine, fault: dict[str, Any]
) -> None:
    """Two whole counts do not make it whole."""
    pinot.replies |= {"/tables/t": {"OFFLINE": BY_TIME}, "/query/sql": NOTHING | fault}
    with pytest.raises(IncompleteAnswer):
        confirmed(engine, FILTERED)


def test_no_segment_is_refused_where_nothing_is_pruned(pinot: FakePinot, engine: PinotEngine) -> None:
    """Neither without a pruner, nor where the question names none of its columns."""
    pinot.replies["/query/sql"] = NOTHING
    with pytest.raises(IncompleteAnswer):
        confirmed(engine, FILTERED)
    pinot.replies["/tables/t"] = {"OFFLINE": {**BY_TIME, "segmentsConfig": {"timeColumnName": "other"}}}
    other = PinotEngine(controller=pinot.url, broker=pinot.url)
    with pytest.raises(IncompleteAnswer):
        confirmed(other, FILTERED)
    other.close()
    assert [] == pinot.counts


def test_brokers_that_take_turns_are_each_counted(pinot: FakePinot, engine: PinotEngine) -> None:
    """A broker may know of other segments than the one beside it, so its own counts are what tells."""
    pinot.replies |= {"/tables/t": {"OFFLINE": BY_TIME}, "/query/sql": NOTHING}
    pinot.brokers = itertools.cycle(["Broker_a", "Broker_b"])
    for _ in range(3):
        assert [] == confirmed(engine, FILTERED).counts


def test_the_counts_of_one_broker_say_nothing_of_another(pinot: FakePinot, engine: PinotEngine) -> None:
    """What is confirmed was answered by the broker that counts all, whichever broker answers beside it."""
    pinot.replies |= {"/tables/t": {"OFFLINE": BY_TIME}, "/query/sql": NOTHING}
    pinot.brokers = itertools.cycle(["Broker_whole", "Broker_partial"])
    pinot.counts_of["Broker_partial"] = PARTIAL
    answer = engine.run(FILTERED, engine.data_version("t"))
    assert isinstance(answer.coverage, Coverage)
    assert "Broker_whole" == answer.coverage.broker
    engine.confirm(FILTERED, answer)


def test_a_broker_that_is_met_but_once_is_not_trusted(pinot: FakePinot, engine: PinotEngine) -> None:
    """Its answer is refused whatever it is, in a bounded number of tries."""
    pinot.replies["/tables/t"] = {"OFFLINE": BY_TIME}
    pinot.brokers = (f"Broker_{i}" for i in itertools.count())
    for reply in (ANSWER, NOTHING):
        pinot.replies["/query/sql"] = reply
        with pytest.raises(EngineUnavailable, match="several brokers"):
            confirmed(engine, FILTERED)


@pytest.mark.parametrize(
    ("config", "columns"),
    [
        ({}, set()),
        ({"routing": None}, set()),
        ({"routing": {"segmentPrunerTypes": None}}, set()),
        (BY_TIME, {"d"}),
        ({"routing": {"segmentPrunerTypes": ["TIME"]}, "segmentsConfig": {}}, set()),
        ({"routing": {"segmentPrunerTypes": ["empty"]}, "segmentsConfig": {"timeColumnName": "d"}}, set()),
        (
            {
                "routing": {"segmentPrunerTypes": ["Partition"]},
                "tableIndexConfig": {"segmentPartitionConfig": {"columnPartitionMap": {"a": {}, "b": {}}}},
            },
            {"a", "b"},
        ),
        (
            {
                "routing": {"routingTableBuilderName": "PartitionAwareOffline"},
                "tableIndexConfig": {"segmentPartitionConfig": {"columnPartitionMap": {"a": {}}}},
            },
            {"a"},
        ),
        ({"routing": {"segmentPrunerTypes": ["partition"]}}, set()),
    ],
)
def test_a_tables_configuration_tells_what_is_pruned_by(config: dict[str, Any], columns: set[str]) -> None:
    """As Pinot reads it: in any case, and in the old way too."""
    assert columns == pruning_columns(config)


def test_the_engines_time_out_goes_with_every_request(pinot: FakePinot, engine: PinotEngine) -> None:
    """What is left of it, so that a table's own time-out, and the broker's, decide nothing."""
    pinot.replies["/tables/t"] = {"OFFLINE": BY_TIME}
    confirmed(engine, FILTERED)
    named = [str(option).partition("=") for option in pinot.options]
    assert {"timeoutMs"} == {name for name, _, _ in named}
    left = [int(value) for _, _, value in named]
    assert 5 == len(left)
    # Routes, two counts, the question and a plan; asking and confirming have the time-out each.
    assert 2000 >= left[0] >= left[1] >= left[2] > 0
    assert 2000 >= left[3] >= left[4] > 0


def test_an_answer_on_rows_that_were_filtered_is_refused(pinot: FakePinot, engine: PinotEngine) -> None:
    """Row-level security shows a principal its own view; a policy speaks of all rows."""
    pinot.replies["/query/sql"] = {**ANSWER, "rlsFiltersApplied": True}
    with pytest.raises(EngineRefused, match="rlsFiltersApplied"):
        confirmed(engine, QUERY)
    pinot.replies["/query/sql"] = {**ANSWER, "rlsFiltersApplied": False}
    assert [5] == confirmed(engine, QUERY).counts


# What one answer of Pinot 1.5.1's two engines holds beside what is read, and what those before it held.
OTHER_FIELDS = re.findall(
    r"\w+",
    """
    numRowsResultSet numGroupsWarningLimitReached numGroups maxRowsInJoin maxRowsInWindow timeUsedMs stageStats
    maxRowsInOperator requestId clientRequestId numDocsScanned numEntriesScannedInFilter numEntriesScannedPostFilter
    numSegmentsProcessed numSegmentsMatched numConsumingSegmentsProcessed numConsumingSegmentsMatched
    minConsumingFreshnessTimeMs numSegmentsPrunedByServer numSegmentsPrunedByLimit numSegmentsPrunedByValue
    brokerReduceTimeMs offlineThreadCpuTimeNs realtimeThreadCpuTimeNs offlineSystemActivitiesCpuTimeNs
    realtimeSystemActivitiesCpuTimeNs offlineResponseSerializationCpuTimeNs realtimeResponseSerializationCpuTimeNs
    offlineTotalCpuTimeNs realtimeTotalCpuTimeNs explainPlanNumEmptyFilterSegments
    explainPlanNumMatchAllFilterSegments traceInfo tablesQueried offlineThreadMemAllocatedBytes
    realtimeThreadMemAllocatedBytes offlineResponseSerMemAllocatedBytes realtimeResponseSerMemAllocatedBytes
    offlineTotalMemAllocatedBytes realtimeTotalMemAllocatedBytes pools segmentStatistics
""",
)
FLAGS = re.findall(
    r"\w+",
    """
    partialResult groupsTrimmed numGroupsLimitReached maxRowsInJoinReached maxRowsInWindowReached
    maxRowsInDistinctReached maxRowsWithoutChangeInDistinctReached maxExecutionTimeInDistinctReached
    mseLiteLeafStageLimitReached earlyTerminationReasons
""",
)


def test_fields_that_say_nothing_of_rows_are_allowed() -> None:
    """Every one that Pinot 0.11.0 and 1.0 to 1.5.1 write, whatever it holds, and flags that are not raised."""
    fields = dict.fromkeys(OTHER_FIELDS, 1) | dict.fromkeys(FLAGS, False)
    assert [5] == judge(ANSWER | fields, QUERY, "1").counts


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("value", [True, "", {}])
def test_a_flag_of_an_answer_on_part_of_the_data_is_refused(flag: str, value: object) -> None:
    """Pinot raises some of them without any exception; one of another type is not taken for a flag that is down."""
    with pytest.raises(IncompleteAnswer):
        judge(ANSWER | {flag: value}, QUERY, "1")


@pytest.mark.parametrize("value", [{}, 0, ""])
def test_exceptions_of_another_type_are_not_taken_for_none(value: object) -> None:
    """A list without entries says that there are none, or no field at all."""
    with pytest.raises(IncompleteAnswer):
        judge(ANSWER | {"exceptions": value}, QUERY, "1")


@pytest.mark.parametrize(
    ("field", "shown"), [("rowsHiddenFromYou", "rowsHiddenFromYou"), ("some 5 rows", "of an unusual name")]
)
@pytest.mark.parametrize("value", [False, "secret"])
def test_an_unknown_field_is_refused_by_its_name(field: str, shown: str, value: object) -> None:
    """A later Pinot may say by it that rows were left out; its value is not repeated."""
    with pytest.raises(
        EngineRefused, match=f"unknown field {shown}, .* of Pinot 0.11.0 and 1.0 to 1.5.1"
    ) as raised:
        judge(ANSWER | {field: value}, QUERY, "1")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "lost",
    [
        LOST,
        {**ANSWER, "numServersQueried": 2},
        *({**ANSWER, "exceptions": [{"errorCode": code}]} for code in (210, 235, 305, 425)),
    ],
)
def test_a_question_is_asked_once_more_when_a_server_was_lost(
    pinot: FakePinot, engine: PinotEngine, lost: dict[str, Any]
) -> None:
    """Another replica answers the second time; a second loss is an error."""
    pinot.replies["/query/sql"] = lost
    with pytest.raises(IncompleteAnswer):
        confirmed(engine, QUERY)
    assert 2 == len(pinot.queries)
    replies = iter([lost, ANSWER])
    pinot.before_answer = lambda: pinot.replies.update({"/query/sql": next(replies)})
    assert [5] == confirmed(engine, QUERY).counts


@pytest.mark.parametrize("codes", [[250], [400], [427, 250], [150], [200]])
def test_what_would_end_alike_is_not_asked_again(
    pinot: FakePinot, engine: PinotEngine, codes: list[int]
) -> None:
    """A time-out least of all."""
    pinot.replies["/query/sql"] = {**ANSWER, "exceptions": [{"errorCode": code} for code in codes]}
    with pytest.raises((EngineRefused, EngineUnavailable, IncompleteAnswer)):
        confirmed(engine, QUERY)
    assert 1 == len(pinot.queries)


@pytest.mark.slow
def test_a_server_that_is_lost_late_leaves_no_time_for_a_second_try(
    pinot: FakePinot, engine: PinotEngine
) -> None:
    """Both tries have one time-out together."""
    pinot.replies["/query/sql"] = LOST
    pinot.before_answer = lambda: time.sleep(1.95)
    with pytest.raises(EngineUnavailable, match="in time"):
        confirmed(engine, QUERY)
    assert 1 == len(pinot.queries)
