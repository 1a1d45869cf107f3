"""Random policies of the small table with a looked-up column, `topic`, and questions that use it."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.filters import AnyOf, Filter, In, IsNull, Like, NotIn, Value
from dp_service.queries.lookups import hash_of
from dp_service.queries.policy import Policy, read_policy
from dp_service.queries.render.member_bounds import weights_of
from dp_service.queries.resolution import resolve
from dp_service.queries.structured import HistogramQuery

from .reference import Row, answer, bounded_answer, relative_answer
from .strategies import EITHER, NOW, VALUES, column, questions

TOPICS = ["null", "a", "b'", "other", "😀\\", 'x","y']
FILE = "topics.csv"
# Made once, as in `strategies`.
_KEY = st.sampled_from(["text", "number", "flag", "day"])
_KEYS_OF = {
    name: st.lists(st.sampled_from(values), unique=True, min_size=1, max_size=8)
    for name, values in VALUES.items()
}
_TOPIC, _OTHER_TOPIC = st.sampled_from(TOPICS), st.sampled_from(TOPICS[1:])
_LISTED_TOPICS = st.lists(_TOPIC, min_size=1, max_size=3)
_AT_MOST_ONE, _ONE_OF_FOUR = st.integers(0, 1), st.integers(0, 3)


def content(key: str, entries: Sequence[tuple[Value | str, str]], topic: str = "topic") -> bytes:
    """Return the file of a lookup."""
    written = io.StringIO()
    lines = csv.writer(written, lineterminator="\n")
    lines.writerow([key, topic])
    lines.writerows(
        (str(value).lower() if isinstance(value, bool) else value, text) for value, text in entries
    )
    return written.getvalue().encode()


def said(key: str, file: bytes, **more: Any) -> dict[str, Any]:
    """Return what a policy says of a looked-up column."""
    lookup = {"column": key, "file": FILE, "hash": hash_of(file)}
    return {"type": "string", "group_by": True, "filter": ["in", "not_in"], "lookup": lookup, **more}


def policy_of(text: dict[str, Any], file: bytes) -> Policy:
    """Return a policy beside the file of its lookup."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / FILE).write_bytes(file)
        source = str(Path(folder) / "policy.yaml")
        return read_policy(json.dumps(text, ensure_ascii=False).encode(), source).policy


@cache
@st.composite
def lookups(draw: st.DrawFn, *, kept: bool | None = None) -> tuple[bytes, dict[str, Any]]:
    """Draw the file of `topic`, by any of the columns, and what the policy says of it."""
    key = draw(_KEY)
    keys = draw(_KEYS_OF[key])
    keeps = draw(EITHER) if kept is None else kept
    # A dropped null value stands for keys without a text, so no text may be it.
    topics = _TOPIC if keeps else _OTHER_TOPIC
    file = content(key, [(each, draw(topics)) for each in keys])
    nulls = {"nulls": "keep", "null_value": draw(_TOPIC)} if keeps else {}
    return file, said(key, file, **nulls)


@cache
@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Draw a policy for the small table, whose columns have NULLs of all kinds."""
    file, topic = draw(lookups())
    columns: dict[str, Any] = {name: draw(column(name)) for name in VALUES}
    table = {
        "member": "member",
        "measures": {"distinct_members": True, "events": {"tau": 2, "tau_is": "clipped"}},
        "d_bar": 10,
        "time": {"column": "day", "type": "date"},
        "columns": {**columns, "topic": topic},
    }
    return policy_of({"epsilon_per": "0.15", "delta": "1e-10", "tables": {"t": table}}, file)


@cache
def _orders(*names: str) -> st.SearchStrategy[list[str]]:
    return st.permutations(names)


@cache
@st.composite
def asked(draw: st.DrawFn) -> HistogramQuery:
    """Draw a question that groups by what is looked up, or has a condition on it."""
    question = draw(questions())
    # Where few rows meet the conditions, nothing is found of what is looked up.
    question = replace(question, filters=question.filters[: draw(_AT_MOST_ONE)], time_range=None)
    condition = draw(_conditions())
    if draw(EITHER):
        dimensions = tuple(draw(_orders("topic", *question.dimensions[: draw(_AT_MOST_ONE)])))
        filters = (*question.filters, condition) if draw(_ONE_OF_FOUR) == 0 else question.filters
        return replace(question, dimensions=dimensions, filters=filters)
    if draw(EITHER):
        return replace(question, filters=(AnyOf((*question.filters, condition)),))
    return replace(question, filters=(*question.filters, condition))


@cache
@st.composite
def _conditions(draw: st.DrawFn) -> Filter:
    """Draw a condition on the topic."""
    values, negated = tuple(draw(_LISTED_TOPICS)), draw(EITHER)
    match draw(_ONE_OF_FOUR):
        case 0:
            return Like("topic", f"%{values[0][:1].upper()}%", folds=draw(EITHER), negated=negated)
        case 1:
            return IsNull("topic", negated=negated)
    return NotIn("topic", values) if negated else In("topic", values)


KEYS_AND_TOPICS = [
    ("a", "short"),
    ("A", "a much longer text"),
    ("'", "it's"),
    ("''", "two ''"),
    ("\\", "back\\slash"),
    ("$", "😀"),
]
"""Keys and texts that engines write in other ways, and texts of several lengths."""


def nasty(*, kept: bool, bounded: bool) -> tuple[Policy, list[Row], list[HistogramQuery]]:
    """Return a policy with a topic for nasty texts, rows that have them, and questions of all forms of a query.

    Args:
        kept: Whether other keys count as one element.
        bounded: Whether the query bounds members.
    """
    file = content("text", KEYS_AND_TOPICS)
    nulls = {"nulls": "keep", "null_value": "none of them"} if kept else {}
    block = {"contributions": {"bound": "in_query", "units": 10}} if bounded else {}
    typical = {"typical": 2} if bounded else {}
    counted = {"rows": 4} if bounded else {"events": {"tau": 2, "tau_is": "clipped"}}
    columns = {
        "member": {"type": "string"},
        "text": {"type": "string", "group_by": True, "filter": ["in"], **typical},
        "topic": {**said("text", file, **nulls), **typical},
    }
    table = {
        "member": "member",
        "measures": {"distinct_members": True, **counted},
        "columns": columns,
        **block,
    }
    noise = {"count_noise": "gaussian"} if bounded else {}
    policy = policy_of({"epsilon_per": "0.15", "delta": "1e-10", **noise, "tables": {"t": table}}, file)
    texts = [*(key for key, _ in KEYS_AND_TOPICS), "b", "c", "null"]
    rows = [Row(f"m{i % 7}", texts[(i * i + i // 5) % len(texts)], None, None, None) for i in range(120)]
    questions = [
        replace(HistogramQuery("t", dimensions, measure, k=5), filters=filters)
        for measure in Measure
        for dimensions in (("topic",), ("text", "topic"))
        for filters in (
            (),
            (NotIn("topic", ("it's", "short")),),
            (AnyOf((Like("topic", "%'%"), In("text", ("b",)))),),
            (AnyOf((NotIn("topic", ("it's",)), In("text", ("'",)))),),
        )
    ]
    return policy, rows, questions


def expected(query: HistogramQuery, policy: Policy, rows: list[Row]) -> list[tuple[Any, ...]]:
    """Return what an engine has to answer such a question with."""
    resolution = resolve(query, policy, now=NOW)
    if resolution.parameters.counts_first_elements:
        return relative_answer(query, policy, rows, now=NOW)
    bound = weights_of(resolution)
    if bound is None:
        return answer(query, policy, rows, now=NOW)
    return bounded_answer(query, policy, rows, bound, now=NOW)
