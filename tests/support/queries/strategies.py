"""Random policies, questions and rows of one small table, in which values meet often."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from functools import cache

from hypothesis import strategies as st

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.dimensions import Dimension
from dp_service.queries.filters import (
    INT64_MAXIMUM,
    INT64_MINIMUM,
    AllOf,
    AnyOf,
    Bound,
    Filter,
    In,
    IsNull,
    Like,
    NotIn,
    Range,
    TimeRange,
    Value,
)
from dp_service.queries.functions.parts_of_texts import PartOfText
from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.table_contributions import InQuery
from dp_service.queries.tables import Measures
from dp_service.queries.text_functions import Piece, Prefix
from dp_service.terms import BoundedBy

from .reference import Row

# The moment at which these questions are asked: a Wednesday, the second of the three days that rows have.
NOW = 1_546_430_400

TEXTS = [
    "",
    "a",
    "A",
    "null",
    "'",
    "''",
    "\\",
    "\\'",
    '"',
    "%",
    "_",
    "' OR 1=1 --",
    "é",
    "\ufffd",
    "😀",
    "世",
    # Near to patterns: a letter that engines fold to k, and what a dot leaves out.
    "k",
    "\u212a",
    "a\nA",
]
NUMBERS = [INT64_MINIMUM, INT64_MINIMUM + 1, -1, 0, 1, 2, 3, INT64_MAXIMUM]
DAYS = [
    datetime.date(1, 1, 1),
    *(datetime.date(2019, 1, day) for day in (1, 2, 3)),
    datetime.date(9999, 12, 31),
]
VALUES: dict[str, list[Value]] = {
    "text": list(TEXTS),
    "number": list(NUMBERS),
    "flag": [False, True],
    "day": list(DAYS),
}
TYPES = {"text": "string", "number": "int64", "flag": "bool", "day": "date"}

# All strategies are made once: Hypothesis checks each new one before it draws from it, which takes longer than drawing.
EITHER = st.booleans()
_VALUE_OF = {name: st.sampled_from(values) for name, values in VALUES.items()}
_DOMAIN_OF = {name: st.lists(each, unique=True, min_size=1, max_size=5) for name, each in _VALUE_OF.items()}
_LIST_OF = {name: st.lists(each, min_size=1, max_size=4) for name, each in _VALUE_OF.items()}


@cache
def rows() -> st.SearchStrategy[list[Row]]:
    """Return tables of up to thirty rows in which values meet often and any may be missing."""
    row = st.builds(
        Row,
        st.none() | st.sampled_from(["m1", "m2", "m3", "null"]),
        *(st.none() | st.sampled_from(VALUES[name]) for name in TYPES),
    )
    return st.lists(row, max_size=30)


@cache
@st.composite
def column(draw: st.DrawFn, name: str) -> dict[str, object]:
    """Draw what a policy says of one column."""
    said: dict[str, object] = {"type": TYPES[name], "group_by": True, "filter": ["in", "not_in"]}
    if name in ("number", "day"):
        said["filter"] = ["in", "not_in", "range"]
    if name == "flag" or draw(EITHER):
        said |= {"nulls": "keep", "null_value": plain(draw(_VALUE_OF[name]))}
    elif draw(EITHER):
        said |= {"null_value": plain(VALUES[name][0])}
    if draw(EITHER):
        droppable = {VALUES[name][0], "null", INT64_MINIMUM}
        domain = draw(_DOMAIN_OF[name])
        kept = [value for value in domain if said.get("nulls") == "keep" or value not in droppable]
        said |= {"domain": [plain(value) for value in kept]} if kept else {}
    if draw(EITHER):
        said["delta"] = 1
    return said


def plain(value: Value) -> str | int | bool:
    """Return a value as JSON, which is YAML, writes it."""
    return value.isoformat() if isinstance(value, datetime.date) else value


@cache
def events() -> st.SearchStrategy[dict[str, object]]:
    """Return what a policy says of counting events."""
    clipped = st.builds(lambda tau: {"tau": tau, "tau_is": "clipped"}, st.integers(1, 3))
    return st.just({"tau": 9, "tau_is": "assumed"}) | clipped


@cache
def times(*, keeps_rows_without_time: bool) -> st.SearchStrategy[dict[str, object]]:
    """Return what a policy says of its time column; closed periods need one without NULL."""
    time: dict[str, object] = {"column": "day", "type": "date"}
    if keeps_rows_without_time:
        return st.just(time)
    return st.just(time) | st.sampled_from(["day", "week", "month"]).map(
        lambda each: time | {"refresh": each}
    )


_MAX_K = st.sampled_from([1, 5, 100])


@cache
@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Draw a policy for the small table."""
    columns: dict[str, dict[str, object]] = {name: draw(column(name)) for name in TYPES}
    if draw(EITHER):
        columns["member"] = {"type": "string"}
    table = {
        "member": "member",
        "time": draw(times(keeps_rows_without_time=columns["day"].get("nulls") == "keep")),
        "measures": {"distinct_members": True, "events": draw(events())},
        "d_bar": 10,
        "columns": columns,
    }
    text = {"epsilon_per": "0.15", "delta": "1e-10", "max_k": draw(_MAX_K), "tables": {"t": table}}
    return parse_policy(json.dumps(text, ensure_ascii=False))


_NAMES = st.sampled_from(sorted(TYPES))


@cache
def _ends(name: str) -> st.SearchStrategy[tuple[Bound | None, Bound | None]]:
    end = st.none() | st.builds(Bound, _VALUE_OF[name], EITHER)
    return st.tuples(end, end).filter(any)


_LITERALS = [text.replace("\\", "\\\\") for text in TEXTS]
_WILDCARDS = ["%", "%", "%", "_", "_", "\\%", "\\_"]
_PIECES = st.sampled_from([*_LITERALS, *_WILDCARDS, ".", "[", "]", "^", "a-", "(?i)", "*+", "&&~~", "$|{}#"])
# No piece has two %, so that there are never too many.
_PATTERNS = st.lists(_PIECES, max_size=4).map("".join)


@cache
@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> Filter:
    """Draw a condition that the policies allow: about every third consists of others, over all columns."""
    if depth and draw(st.integers(0, 2)) == 2:
        parts = tuple(draw(_some_conditions(depth - 1)))
        return AllOf(parts) if draw(EITHER) else AnyOf(parts)
    name = draw(_NAMES)
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return IsNull(name, negated=draw(EITHER))
    if name in ("number", "day") and kind < 5:
        return Range(name, *draw(_ends(name)))
    if name == "text" and kind < 5:
        return Like(name, draw(_PATTERNS), folds=draw(EITHER), negated=draw(EITHER))
    values = tuple(draw(_LIST_OF[name]))
    return In(name, values) if draw(EITHER) else NotIn(name, values)


@cache
def _some_conditions(depth: int) -> st.SearchStrategy[list[Filter]]:
    return st.lists(conditions(depth), min_size=1, max_size=3)


@cache
def alternatives() -> st.SearchStrategy[Filter]:
    """Return conditions of which one has to hold: most rows meet them."""
    return st.lists(conditions(1), min_size=2, max_size=3).map(lambda parts: AnyOf(tuple(parts)))


PARTS_OF_TEXTS = st.sampled_from(
    [PartOfText("text", each) for each in (Prefix(1), Prefix(3), Piece("a", 1), Piece(" ", 2))]
)


@cache
def dimensions() -> st.SearchStrategy[tuple[Dimension, ...]]:
    """Return what to group by: columns, and in about a quarter of them a function of a row in some place."""
    names = st.lists(_NAMES, min_size=1, max_size=3, unique=True)
    return st.tuples(names, st.integers(0, 11), PARTS_OF_TEXTS).map(lambda drawn: _with_function(*drawn))


def _with_function(names: list[str], place: int, function: PartOfText) -> tuple[Dimension, ...]:
    found: list[Dimension] = [*names]
    if place < len(found):
        found[place] = function
    return tuple(found)


@cache
def questions_and_totals() -> st.SearchStrategy[HistogramQuery]:
    """Return questions about the small table; about one in six counts a total."""
    total = questions().map(lambda query: replace(query, dimensions=()))
    return st.integers(0, 5).flatmap(lambda each: total if each == 5 else questions())


@cache
def questions() -> st.SearchStrategy[HistogramQuery]:
    """Return questions about the small table that group by columns."""
    first, last = datetime.datetime(2018, 12, 31), datetime.datetime(2019, 1, 4)
    times = st.datetimes(first, last, timezones=st.just(datetime.UTC))
    ends = st.none() | times | st.dates(first.date(), last.date())
    return st.builds(
        HistogramQuery,
        st.just("t"),
        dimensions(),
        st.sampled_from(Measure),
        st.lists(conditions(), max_size=3).map(tuple),
        st.none() | st.builds(TimeRange, ends, ends).filter(lambda each: each != TimeRange(None, None)),
        st.just(1),
    )


def offering(policy: Policy, column: str, most: int, typical: int, min_count: int = 1) -> Policy:
    """Return a policy whose table offers the distinct values of a column."""
    block = {"bound": BoundedBy.IN_QUERY, "units": 1, "min_count": min_count}
    stated = InQuery.model_validate(block)
    update = {"measures": Measures(distinct={column: most}), "contributions": stated}
    tables = []
    for table in policy.tables:
        columns = tuple(
            each.model_copy(update={"typical": typical}) if each.group_by else each for each in table.columns
        )
        tables.append(table.model_copy(update={**update, "columns": columns}))
    return replace(policy, tables=tuple(tables))
