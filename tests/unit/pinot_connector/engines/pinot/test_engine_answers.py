"""Only a whole answer of the expected shape is accepted; every way of being less is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from pinot_connector.engines.base import ColumnType, EngineAnswer, EngineQuery, ExpectedColumn
from pinot_connector.engines.pinot.answer import Coverage, judge, require_whole
from pinot_connector.engines.pinot.table_state import Segment, TableState
from pinot_connector.errors import EngineError, EngineRefused, EngineUnavailable, IncompleteAnswer

STATE = TableState(
    {name: Segment(name, documents, 0.0) for name, documents in (("a", 10), ("b", 20), ("c", 70))}
)
QUERY = EngineQuery("t", "SELECT secret", (ExpectedColumn("d0", ColumnType.STRING),), row_limit=3)
Change = Callable[[dict[str, Any]], object]


def whole_response() -> dict[str, Any]:
    """A response that is right in every respect."""
    return {
        "resultTable": {
            "dataSchema": {"columnNames": ["d0", "gris_count"], "columnDataTypes": ["STRING", "INT"]},
            "rows": [["x", 5], ["y", 4]],
        },
        "exceptions": [],
        "numServersQueried": 2,
        "numServersResponded": 2,
        "numSegmentsQueried": 3,
        "numSegmentsPrunedByBroker": 0,
        "totalDocs": 100,
        "partialResult": False,
        "numGroupsLimitReached": False,
        "groupsTrimmed": False,
    }


def judged(response: dict[str, Any], query: EngineQuery) -> EngineAnswer:
    """Return the answer if the response is a whole answer on the state."""
    answer = judge(response, query, STATE.data_version)
    assert isinstance(answer.coverage, Coverage)
    require_whole(answer.coverage, STATE)
    return answer


def is_whole(coverage: Coverage, state: TableState) -> bool:
    """Return whether an answer is of every segment and document of a state."""
    try:
        require_whole(coverage, state)
    except IncompleteAnswer:
        return False
    return True


def with_table(**changes: Any) -> Change:
    """Change the table of the result."""
    return lambda response: response["resultTable"].update(changes)


def with_schema(**changes: Any) -> Change:
    """Change the schema of the result."""
    return lambda response: response["resultTable"]["dataSchema"].update(changes)


def setting(**changes: Any) -> Change:
    """Change the response itself."""
    return lambda response: response.update(changes)


def without(name: str) -> Change:
    """Leave out a part of the response."""
    return lambda response: response.pop(name)


def test_a_whole_answer_is_accepted() -> None:
    """Elements and counts come back column by column, under the version of the state."""
    answer = judged(whole_response(), QUERY)
    assert answer.elements == (["x", "y"],)
    assert answer.counts == [5, 4]
    assert answer.data_version == STATE.data_version


@pytest.mark.parametrize("name", ["partialResult", "groupsTrimmed", "numSegmentsPrunedByBroker"])
def test_what_old_releases_do_not_say_is_not_demanded(name: str) -> None:
    """Pinot 0.11 has no such field where 1.x has one, and the other way round."""
    response = whole_response()
    del response[name]
    assert judged(response, QUERY).counts == [5, 4]


@pytest.mark.parametrize(
    "change",
    [
        setting(exceptions=[{"errorCode": 425, "message": "secret"}]),
        setting(exceptions=[{"errorCode": 305}]),
        setting(exceptions=["malformed"]),
        setting(partialResult=True),
        setting(numGroupsLimitReached=True),
        setting(groupsTrimmed=True),
        setting(numServersResponded=1),
        setting(numSegmentsQueried=2),
        setting(numSegmentsQueried=2, totalDocs=90),
        setting(numServersQueried=0, numServersResponded=0, numSegmentsQueried=0, totalDocs=0),
        setting(totalDocs=99),
        setting(totalDocs=101),
        setting(totalDocs=True),
        setting(numSegmentsQueried=2, numSegmentsPrunedByBroker=1, totalDocs=29),
        setting(numSegmentsQueried=2, numSegmentsPrunedByBroker=1, totalDocs=91),
        setting(numSegmentsQueried=4, numSegmentsPrunedByBroker=-1),
        without("numServersQueried"),
        without("numServersResponded"),
        without("numSegmentsQueried"),
        without("totalDocs"),
        without("resultTable"),
        with_table(dataSchema=None),
        with_table(rows=None),
        with_table(rows=[["x"]]),
        with_table(rows=[["w", 4], ["x", 3], ["y", 2], ["z", 1]]),
        with_table(rows=[["x", 5], ["x", 4]]),
        with_table(rows=[["x", "5"]]),
        with_table(rows=[["x", 5.0]]),
        with_table(rows=[["x", True]]),
        with_table(rows=[["x", -1]]),
        with_table(rows=[["x", None]]),
        with_table(rows=[[None, 5]]),
        with_table(rows=[[7, 5]]),
        with_schema(columnNames=["gris_count", "d0"]),
        with_schema(columnNames=["d0", "other"]),
        with_schema(columnDataTypes=["LONG", "INT"]),
        with_schema(columnDataTypes=["STRING", "DOUBLE"]),
        with_schema(columnDataTypes=["STRING"]),
        with_schema(columnDataTypes=None),
        # What no Pinot says, but a proxy, a bug or a stranger at its address might.
        setting(exceptions=5),
        setting(exceptions={"errorCode": 150}),
        setting(exceptions=[{"errorCode": [1]}]),
        setting(resultTable=[]),
        with_table(dataSchema=[1]),
        with_table(dataSchema="x"),
        with_table(rows={"x": 5}),
        with_table(rows=[5]),
        with_table(rows=[None]),
        with_table(rows=[{}]),
        with_table(rows=[{"a": 1, "b": 2}]),
        with_table(rows=["ab"]),
        with_table(rows=[[["x"], 5]]),
        with_schema(columnNames=5),
        with_schema(columnDataTypes=5),
        with_schema(columnDataTypes="ab"),
        with_schema(columnDataTypes=[["STRING"], "INT"]),
        setting(
            numServersQueried=0,
            numServersResponded=0,
            numSegmentsQueried=0,
            numSegmentsPrunedByBroker=3,
            totalDocs=0,
        ),
    ],
)
def test_anything_less_is_refused(change: Change) -> None:
    """One fault is enough, and the message tells nothing of the response or the query."""
    response = whole_response()
    change(response)
    with pytest.raises(IncompleteAnswer) as caught:
        judged(response, QUERY)
    assert not any(character.isdigit() for character in str(caught.value))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (150, EngineRefused),
        (190, EngineRefused),
        (710, EngineRefused),
        (250, EngineUnavailable),
        (427, IncompleteAnswer),
    ],
)
def test_an_exception_of_pinot_becomes_our_own(code: int, error: type[EngineError]) -> None:
    """A refused query and one that may succeed the next time raise different errors, in our own words."""
    with pytest.raises(error) as caught:
        judged({"exceptions": [{"errorCode": code, "message": "secret"}]}, QUERY)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "text"),
    [(429, "quota"), (211, "capacity"), (245, "stopped"), (503, "cancelled"), (191, "disabled")],
)
def test_a_query_that_was_turned_away_is_no_partial_answer(code: int, text: str) -> None:
    """Nothing was left out: there is no answer, and a later question may have one."""
    with pytest.raises(EngineUnavailable, match=text):
        judged({"exceptions": [{"errorCode": code, "message": "secret"}]}, QUERY)


@pytest.mark.parametrize("documents", [30, 80, 90])
def test_pruned_segments_may_hold_any_of_the_documents(documents: int) -> None:
    """Without one of three segments, each sum of two is possible."""
    response = whole_response() | {
        "numSegmentsQueried": 2,
        "numSegmentsPrunedByBroker": 1,
        "totalDocs": documents,
    }
    assert judged(response, QUERY).counts == [5, 4]


@pytest.mark.parametrize(("queried", "pruned"), [(1, 0), (2, 0), (3, 0), (1, 2)])
def test_segments_without_documents_may_be_left_out_or_not(queried: int, pruned: int) -> None:
    """Some brokers leave them out and tell it, others do not: the first row of a segment decides nothing."""
    state = TableState(
        {name: Segment(name, documents, 0.0) for name, documents in zip("abc", (0, 0, 7), strict=True)}
    )
    assert is_whole(Coverage(queried, pruned, 7), state)


@pytest.mark.parametrize(
    "coverage", [Coverage(1, 0, 5), Coverage(1, 1, 5), Coverage(0, 0, 0), Coverage(0, 1, 0)]
)
def test_a_segment_with_documents_is_never_taken_for_an_empty_one(coverage: Coverage) -> None:
    """One of two full segments is gone with its server, beside one that is empty."""
    state = TableState(
        {name: Segment(name, documents, 0.0) for name, documents in zip("abc", (0, 5, 5), strict=True)}
    )
    assert not is_whole(coverage, state)


@pytest.mark.parametrize("documents", [(), (0,), (0, 0)])
def test_an_answer_of_nothing_is_whole_where_there_is_nothing(documents: tuple[int, ...]) -> None:
    """A table's first row must not decide whether there is an answer."""
    state = TableState({str(i): Segment(str(i), each, 0.0) for i, each in enumerate(documents)})
    assert is_whole(Coverage(0, 0, 0), state)


@pytest.mark.parametrize(
    ("kind", "pinot", "value"),
    [
        (ColumnType.INT64, "INT", -3),
        (ColumnType.INT64, "LONG", 2**53 + 1),
        (ColumnType.DATE, "INT", 17897),
        (ColumnType.BOOL, "BOOLEAN", True),
        (ColumnType.STRING, "STRING", ""),
    ],
)
def test_a_value_of_each_type_is_kept(kind: ColumnType, pinot: str, value: object) -> None:
    """A value comes back as it is, with all its digits."""
    response = whole_response()
    with_schema(columnDataTypes=[pinot, "LONG"])(response)
    with_table(rows=[[value, 1]])(response)
    query = EngineQuery("t", "", (ExpectedColumn("d0", kind),), row_limit=3)
    assert judged(response, query).elements == ([value],)


@pytest.mark.parametrize(
    ("kind", "pinot", "value"),
    [(ColumnType.INT64, "INT", True), (ColumnType.BOOL, "INT", 1), (ColumnType.DATE, "STRING", "2019-01-01")],
)
def test_a_value_of_another_type_is_refused(kind: ColumnType, pinot: str, value: object) -> None:
    """Nothing is converted silently."""
    response = whole_response()
    with_schema(columnDataTypes=[pinot, "LONG"])(response)
    with_table(rows=[[value, 1]])(response)
    with pytest.raises(IncompleteAnswer):
        judged(response, EngineQuery("t", "", (ExpectedColumn("d0", kind),), row_limit=3))


def test_a_version_changes_with_every_name_and_checksum() -> None:
    """Two states share a version only if they hold the same segments."""
    segment = Segment("1", 10, 0.0)
    states = [
        TableState({}),
        TableState({"a": segment}),
        TableState({"b": segment}),
        TableState({"a": Segment("2", 10, 0.0)}),
        TableState({"a": segment, "b": segment}),
    ]
    assert len({state.data_version for state in states}) == len(states)
    assert TableState({"b": segment, "a": segment}).data_version == states[-1].data_version


@pytest.mark.parametrize(("count", "segments", "is_answer"), [(5, 3, True), (0, 0, True), (5, 0, False)])
def test_a_total_counts_rows_of_segments_alone(count: int, segments: int, *, is_answer: bool) -> None:
    """Without a segment there is nothing to count: such an answer is 0, or none."""
    table = {"dataSchema": {"columnNames": ["gris_count"], "columnDataTypes": ["LONG"]}, "rows": [[count]]}
    response = whole_response() | {
        "resultTable": table,
        "numSegmentsQueried": segments,
        "totalDocs": segments,
    }
    query = EngineQuery("t", "", (), row_limit=1)
    if is_answer:
        assert [count] == judge(response, query, "v").counts
    else:
        with pytest.raises(IncompleteAnswer, match="counts rows of no data"):
            judge(response, query, "v")
