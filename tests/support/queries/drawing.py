"""Random policies, questions and rows of one small table, in which values meet often."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace

from hypothesis import strategies as st

from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.structured import (
    INT64_MAXIMUM,
    INT64_MINIMUM,
    Bound,
    Filter,
    HistogramQuery,
    In,
    Measure,
    NotIn,
    Range,
    TimeRange,
    Value,
)

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


def rows() -> st.SearchStrategy[list[Row]]:
    """Return tables of up to thirty rows in which values meet often and any may be missing."""
    row = st.builds(
        Row,
        st.none() | st.sampled_from(["m1", "m2", "m3", "null"]),
        *(st.none() | st.sampled_from(VALUES[name]) for name in TYPES),
    )
    return st.lists(row, max_size=30)


@st.composite
def column(draw: st.DrawFn, name: str) -> dict[str, object]:
    """Draw what a policy says of one column."""
    said: dict[str, object] = {"type": TYPES[name], "group_by": True, "filter": ["in", "not_in"]}
    if name in ("number", "day"):
        said["filter"] = ["in", "not_in", "range"]
    if name == "flag" or draw(st.booleans()):
        said |= {"nulls": "keep", "null_value": plain(draw(st.sampled_from(VALUES[name])))}
    elif draw(st.booleans()):
        said |= {"null_value": plain(VALUES[name][0])}
    if draw(st.booleans()):
        droppable = {VALUES[name][0], "null", INT64_MINIMUM}
        domain = draw(st.lists(st.sampled_from(VALUES[name]), unique=True, min_size=1, max_size=5))
        kept = [value for value in domain if said.get("nulls") == "keep" or value not in droppable]
        said |= {"domain": [plain(value) for value in kept]} if kept else {}
    if draw(st.booleans()):
        said["delta"] = 1
    return said


def plain(value: Value) -> str | int | bool:
    """Return a value as JSON, which is YAML, writes it."""
    return value.isoformat() if isinstance(value, datetime.date) else value


def events() -> st.SearchStrategy[dict[str, object]]:
    """Return what a policy says of counting events."""
    clipped = st.builds(lambda tau: {"tau": tau, "tau_is": "clipped"}, st.integers(1, 3))
    return st.just({"tau": 9, "tau_is": "assumed"}) | clipped


def times(*, keeps_rows_without_time: bool) -> st.SearchStrategy[dict[str, object]]:
    """Return what a policy says of its time column; closed periods need one without NULL."""
    time: dict[str, object] = {"column": "day", "type": "date"}
    if keeps_rows_without_time:
        return st.just(time)
    return st.just(time) | st.sampled_from(["day", "week", "month"]).map(
        lambda each: time | {"refresh": each}
    )


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Draw a policy for the small table."""
    columns: dict[str, dict[str, object]] = {name: draw(column(name)) for name in TYPES}
    if draw(st.booleans()):
        columns["member"] = {"type": "string"}
    table = {
        "member": "member",
        "time": draw(times(keeps_rows_without_time=columns["day"].get("nulls") == "keep")),
        "measures": {"distinct_members": True, "events": draw(events())},
        "d_bar": 10,
        "max_k": draw(st.sampled_from([1, 5, 100])),
        "columns": columns,
    }
    text = {"epsilon_per": "0.15", "delta": "1e-10", "tables": {"t": table}}
    return parse_policy(json.dumps(text, ensure_ascii=False))


@st.composite
def conditions(draw: st.DrawFn) -> Filter:
    """Draw a condition that the policies allow."""
    name = draw(st.sampled_from(sorted(TYPES)))
    value = st.sampled_from(VALUES[name])
    if name in ("number", "day") and draw(st.booleans()):
        ends = st.none() | st.builds(Bound, value, st.booleans())
        return Range(name, *draw(st.tuples(ends, ends).filter(any)))
    values = tuple(draw(st.lists(value, min_size=1, max_size=4)))
    return In(name, values) if draw(st.booleans()) else NotIn(name, values)


def questions_and_totals() -> st.SearchStrategy[HistogramQuery]:
    """Return questions about the small table; about one in six counts a total."""
    total = questions().map(lambda query: replace(query, dimensions=()))
    return st.integers(0, 5).flatmap(lambda each: total if each == 5 else questions())


def questions() -> st.SearchStrategy[HistogramQuery]:
    """Return questions about the small table that group by columns."""
    timestamps = st.none() | st.datetimes(
        datetime.datetime(2018, 12, 31), datetime.datetime(2019, 1, 4), timezones=st.just(datetime.UTC)
    )
    return st.builds(
        HistogramQuery,
        st.just("t"),
        st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=3, unique=True).map(tuple),
        st.sampled_from(Measure),
        st.lists(conditions(), max_size=3).map(tuple),
        st.none()
        | st.builds(TimeRange, timestamps, timestamps).filter(lambda each: each != TimeRange(None, None)),
        st.just(1),
    )
