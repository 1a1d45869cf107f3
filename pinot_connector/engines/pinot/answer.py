"""Judges a broker's answer: of the expected shape, whole, or refused.

Pure. No message repeats the answer: Pinot's error texts hold SQL and data, and its statistics are exact counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pinot_connector.engines.base import (
    ColumnType,
    Element,
    EngineAnswer,
    EngineQuery,
    ExpectedColumn,
    ValueType,
)
from pinot_connector.engines.pinot.response_fields import PARTIAL_FLAGS, require_known_fields
from pinot_connector.engines.pinot.stream_readings import StreamReading
from pinot_connector.engines.pinot.table_state import TableState
from pinot_connector.errors import EngineError, EngineRefused, EngineUnavailable, IncompleteAnswer

# Codes of a query that would fail again: not parsed, access, no such table, not valid, no such column, no plan.
_REFUSED_CODES = frozenset({150, 180, 190, 700, 710, 720})
# Scheduling, execution and broker time-outs.
_TIMEOUT_CODES = frozenset({240, 250, 400})
# Codes of a query that was turned away or stopped as a whole, which is no answer and not a part of one. A broker and a
# server's scheduler over their quota say 429, a server whose queue is full 211, one that is short of memory 245.
_TURNED_AWAY: Mapping[int, str] = {
    429: "Pinot refuses more queries for now (quota)",
    211: "Pinot's servers have no capacity for more queries now",
    245: "Pinot stopped the query, which took more than its servers have to give now",
    503: "the query was cancelled in Pinot",
    191: "the table is disabled in Pinot",
}
# A server that shuts down, or a segment that is not where it was, cannot be reached by the broker, or has no server.
_LOST_SERVER_CODES = frozenset({210, 235, 305, 425, 427})
_PARTIAL = "Pinot answered on part of the data"
_OTHER_DATA = "Pinot answered on other data than the controller lists"
PINOT_TYPES: Mapping[ColumnType, frozenset[str]] = {
    ColumnType.STRING: frozenset({"STRING"}),
    ColumnType.INT64: frozenset({"INT", "LONG"}),
    ColumnType.BOOL: frozenset({"BOOLEAN"}),
    # A date is stored as its number of days since 1970.
    ColumnType.DATE: frozenset({"INT", "LONG"}),
    ColumnType.TIMESTAMP: frozenset({"TIMESTAMP"}),
}
SUMMED_TYPES: Mapping[ValueType, frozenset[str]] = {
    ValueType.INT64: PINOT_TYPES[ColumnType.INT64],
    ValueType.DECIMAL: frozenset({"FLOAT", "DOUBLE", "BIG_DECIMAL"}),
    ValueType.DATE: PINOT_TYPES[ColumnType.DATE],
}
_DOUBLES = frozenset({"DOUBLE"})
_FIRST_ROUNDED = 2**53
_VALUE_TYPES: Mapping[ColumnType, type] = {
    ColumnType.STRING: str,
    ColumnType.INT64: int,
    ColumnType.BOOL: bool,
    ColumnType.DATE: int,
}


@dataclass(frozen=True)
class Coverage:
    """What an answer of Pinot covers, by its own statistics; they are true, and never leave the engine.

    `broker` is the name of the broker that answered, empty before Pinot 1.0. `counted_before` is what a plain count of
    the whole table covered just before, on the same broker; None: no segment could be pruned for this answer. `use`
    stands for the use of the table's version that it began under (`Controller.use`); 0: none. `consuming` is how many
    of the segments still take in a stream, and `stream` what was known of the table's stream before the query; None: it
    has none.
    """

    segments_queried: int
    segments_pruned: int
    documents: int
    broker: str = ""
    counted_before: Coverage | None = None
    use: int = 0
    consuming: int = 0
    stream: StreamReading | None = None

    @property
    def is_of_no_segment(self) -> bool:
        """Whether no server was asked."""
        return self.segments_queried == self.segments_pruned == self.documents == 0


def judge(response: Mapping[str, Any], query: EngineQuery, data_version: str) -> EngineAnswer:
    """Returns the answer in a broker's response if the response itself reports no problem.

    `require_whole` checks that it covers all data of `data_version`.

    Raises:
        IncompleteAnswer: Pinot reports that it left something out, or the answer has another shape than was asked for.
        EngineUnavailable: Pinot gave up after its time-out.
        EngineRefused: Pinot refuses this query.
    """
    coverage = coverage_of(response)
    rows = _rows(response, query, coverage)
    elements = tuple(_values(rows, i, column) for i, column in enumerate(query.columns))
    if rows and query.columns and not coverage.segments_queried:
        raise IncompleteAnswer("Pinot's answer holds elements of no data")
    width = len(query.columns)
    numbers = [[row[width + place] for row in rows] for place in range(len(query.numbers))]
    if query.bounded_copy is not None:
        # A sum of weights, which is a double where no query is nested.
        numbers[0] = list(map(_exact, numbers[0]))
    answer = query.answer(elements, numbers, data_version, coverage)
    _require_whole_numbers(answer)
    if any(answer.counts) and not coverage.segments_queried:
        raise IncompleteAnswer("Pinot's answer counts rows of no data")
    if query.columns and _distinct(elements) != len(rows):
        raise IncompleteAnswer("Pinot's answer names an element twice")
    return answer


def _exact(number: object) -> object:
    """Returns a double that is a whole number, and that no rounding can have led to, as an integer."""
    if isinstance(number, float) and number.is_integer() and abs(number) < _FIRST_ROUNDED:
        return int(number)
    return number


def _require_whole_numbers(answer: EngineAnswer) -> None:
    # A Boolean is an integer to Python, but no count.
    for counts in (answer.counts, answer.first_counts):
        if not set(map(type, counts)) <= {int} or min(counts, default=0) < 0:
            raise IncompleteAnswer("Pinot's answer holds something else than counts")
    if any(not set(map(type, sums)) <= {int} for sums in answer.sums):
        raise IncompleteAnswer("Pinot's answer holds something else than sums of whole numbers")


def coverage_of(response: Mapping[str, Any]) -> Coverage:
    """Returns what a broker's response covers if the response itself reports no problem.

    Raises:
        IncompleteAnswer, EngineUnavailable, EngineRefused: as for `judge`.
    """
    require_no_exceptions(response)
    require_known_fields(response)
    if response.get("rlsFiltersApplied") not in (None, False):
        raise EngineRefused(
            "Pinot leaves out rows for the connector's own login (rlsFiltersApplied): "
            "give it one without row-level filters, so that questions are answered on all rows"
        )
    # Before Pinot 1.4, servers leave out segments that are older than a column of the query, and raise no flag. It
    # depends on schema and segments, and on no row.
    if response.get("numSegmentsPrunedInvalid"):
        raise EngineRefused(
            "Pinot left out segments that lack a column of the question, which is newer than they are: "
            "reload the table's segments (POST /segments/{table}/reload)"
        )
    return _coverage(response)


def coverage_in(answer: EngineAnswer) -> Coverage:
    """Returns what an answer covers."""
    if not isinstance(answer.coverage, Coverage):
        raise IncompleteAnswer("Pinot did not say what its answer covers")
    return answer.coverage


def require_whole(coverage: Coverage, state: TableState) -> None:
    """Refuses an answer in which any segment or document of this state is missing.

    An answer that segments could be pruned for may cover none, if the count before it covered all. The caller checks
    the count after it.
    """
    if coverage.counted_before is not None:
        require_all(coverage.counted_before, state)
        if coverage.is_of_no_segment:
            return
    if not coverage.segments_pruned:
        require_all(coverage, state)
        return
    documents = state.documents
    queried, pruned = coverage.segments_queried, coverage.segments_pruned
    if queried + pruned != len(documents):
        raise IncompleteAnswer(_PARTIAL)
    # The broker does not say which segments it pruned, so their documents are known only between two bounds.
    fewest, most = sum(documents[:queried]), sum(documents[pruned:])
    if not fewest <= coverage.documents <= most:
        raise IncompleteAnswer(_OTHER_DATA)


def require_all(coverage: Coverage, state: TableState) -> None:
    """Refuses an answer that does not cover every document of this state.

    A segment without documents may be missing: some brokers leave it out, and not all of them say so. Otherwise the
    first row of a segment would decide whether there is an answer.
    """
    documents = state.documents
    covered = coverage.segments_queried + coverage.segments_pruned
    if not len(documents) - documents.count(0) <= covered <= len(documents):
        raise IncompleteAnswer(_PARTIAL)
    if coverage.documents != sum(documents):
        raise IncompleteAnswer(_OTHER_DATA)


def broker_of(response: Mapping[str, Any]) -> str:
    """Returns the name of the broker that answered; empty if the response does not have it, as before Pinot 1.0."""
    name = response.get("brokerId")
    return name if isinstance(name, str) else ""


def lost_a_server(response: Mapping[str, Any]) -> bool:
    """Returns whether a server was gone while a query ran, so that another replica may answer the next time."""
    exceptions = response.get("exceptions")
    codes = _codes(exceptions) if isinstance(exceptions, list) else set()
    if codes & (_TIMEOUT_CODES | _REFUSED_CODES | _TURNED_AWAY.keys()):
        return False
    queried, responded = response.get("numServersQueried"), response.get("numServersResponded")
    is_short = isinstance(queried, int) and isinstance(responded, int) and responded < queried
    return is_short or bool(codes & _LOST_SERVER_CODES)


def require_no_exceptions(response: Mapping[str, Any]) -> None:
    """Refuses a response in which Pinot itself reports that something went wrong.

    Raises:
        IncompleteAnswer, EngineUnavailable, EngineRefused: as for `judge`.
    """
    exceptions = response.get("exceptions")
    if exceptions not in (None, []):
        raise _error_for(_codes(exceptions))
    if any(response.get(flag) not in (None, False, []) for flag in PARTIAL_FLAGS):
        raise IncompleteAnswer("Pinot reached a limit and left something out")


def _codes(exceptions: object) -> set[int]:
    named = [each.get("errorCode") for each in _listed(exceptions) if isinstance(each, dict)]
    return {code for code in named if isinstance(code, int)}


def _listed(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise IncompleteAnswer("Pinot's answer is malformed")
    return value


def _error_for(codes: set[int]) -> EngineError:
    if codes & _REFUSED_CODES:
        return EngineRefused("Pinot refused the query")
    if codes & _TIMEOUT_CODES:
        return EngineUnavailable("Pinot did not answer in time")
    for code, problem in _TURNED_AWAY.items():
        if code in codes:
            return EngineUnavailable(problem)
    return IncompleteAnswer(_PARTIAL)


def _coverage(response: Mapping[str, Any]) -> Coverage:
    if _statistic(response, "numServersResponded") != _statistic(response, "numServersQueried"):
        raise IncompleteAnswer("not every server of Pinot answered")
    return Coverage(
        segments_queried=_statistic(response, "numSegmentsQueried"),
        segments_pruned=_statistic(response, "numSegmentsPrunedByBroker", default=0),
        documents=_statistic(response, "totalDocs"),
        broker=broker_of(response),
        consuming=_statistic(response, "numConsumingSegmentsQueried", default=0),
    )


def _statistic(response: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = response.get(name, default)
    if type(value) is not int or value < 0:
        raise IncompleteAnswer("Pinot did not say what its answer covers")
    return value


def _rows(response: Mapping[str, Any], query: EngineQuery, coverage: Coverage) -> list[list[Any]]:
    """Returns the rows, after names, types and their number have been checked."""
    table = response.get("resultTable")
    # Old brokers that ask no server make no table; whether none had to be asked is for `require_whole` to say.
    if table is None and coverage.is_of_no_segment:
        return []
    if not isinstance(table, dict):
        raise IncompleteAnswer("Pinot's answer has no table")
    schema, rows = table.get("dataSchema"), _listed(table.get("rows"))
    expected = [*(column.name for column in query.columns), *query.numbers]
    if not isinstance(schema, dict) or not _are_named(schema.get("columnNames"), expected, coverage):
        raise IncompleteAnswer("Pinot's answer has other columns than were asked for")
    if len(rows) > query.row_limit:
        raise IncompleteAnswer("Pinot's answer has more rows than were asked for")
    if not set(map(type, rows)) <= {list} or not set(map(len, rows)) <= {len(expected)}:
        raise IncompleteAnswer("Pinot's answer is malformed")
    # An answer without rows calls every column a string.
    if rows:
        _require_types(_listed(schema.get("columnDataTypes")), query)
    return rows


def _are_named(names: object, expected: list[str], coverage: Coverage) -> bool:
    # Pinot 1.4 forgets what columns were to be called where its broker asks no server.
    is_nameless = coverage.is_of_no_segment and isinstance(names, list) and len(names) == len(expected)
    return is_nameless or names == expected


def _require_types(types: Sequence[object], query: EngineQuery) -> None:
    numbers = [PINOT_TYPES[ColumnType.INT64]] * len(query.numbers)
    if query.bounded_copy is not None:
        numbers[0] |= _DOUBLES
    allowed = [*(PINOT_TYPES[column.type] for column in query.columns), *numbers]
    if len(types) != len(allowed) or any(
        not isinstance(kind, str) or kind not in kinds for kind, kinds in zip(types, allowed, strict=True)
    ):
        raise IncompleteAnswer("Pinot's answer has other types than the policy says")


def _distinct(elements: tuple[list[Element], ...]) -> int:
    """Returns how many different elements these columns hold; one column needs no tuples."""
    return len(set(elements[0] if len(elements) == 1 else zip(*elements, strict=True)))


def _values(rows: list[list[Any]], index: int, column: ExpectedColumn) -> list[Element]:
    values: list[Element] = [row[index] for row in rows]
    # A Boolean is an integer to Python, but not to a policy.
    if not set(map(type, values)) <= {_VALUE_TYPES.get(column.type)}:
        raise IncompleteAnswer("Pinot's answer has other types than the policy says")
    return values
