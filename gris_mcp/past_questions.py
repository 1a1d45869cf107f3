"""Questions that were asked, in the form that `ask` takes them."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from typing import Any

from gris_api.dp.v1 import question_pb2

from pinot_connector.days import date_of
from pinot_connector.json_values import to_json
from pinot_connector.questions import PLAIN_TEXTS

_MEASURES = {question_pb2.MEASURE_EVENTS: "events", question_pb2.MEASURE_DISTINCT_VALUES: "distinct:"}
_RANKS = {question_pb2.RANK_FUNCTION_SMALLEST: "min", question_pb2.RANK_FUNCTION_LARGEST: "max"}
_COMPARISONS = {
    question_pb2.COMPARISON_EQUAL: "=",
    question_pb2.COMPARISON_NOT_EQUAL: "<>",
    question_pb2.COMPARISON_LESS: "<",
    question_pb2.COMPARISON_AT_MOST: "<=",
    question_pb2.COMPARISON_GREATER: ">",
    question_pb2.COMPARISON_AT_LEAST: ">=",
}


def arguments_of(question: question_pb2.Question) -> dict[str, Any]:
    """Return the arguments of `ask` that ask a question."""
    if question.WhichOneof("form") == "sql":
        return {"sql": question.sql}
    return {name: value for name, value in _structured(question.structured) if value not in (None, "", [])}


def _structured(query: question_pb2.HistogramQuery) -> Iterator[tuple[str, Any]]:
    named = query.aggregates
    yield "table", query.table
    yield "by", list(query.dimensions)
    yield "k", query.k if query.HasField("k") else None
    yield "measure", _MEASURES.get(query.measure, "") + query.distinct_of
    yield "where", [_condition(each) for each in query.filters]
    yield "condition", query.condition
    for name, end, given in (("since", "start", ("from", "from_day")), ("until", "end", ("to", "to_day"))):
        if query.HasField("time_range") and (found := query.time_range.WhichOneof(end)) in given:
            yield name, _time(getattr(query.time_range, found))
    yield "counts", False if query.omit_counts else None
    yield "numbers", list(named)
    yield "order_by", named[query.ordered_by] if query.HasField("ordered_by") else None
    of_column: dict[str, list[str]] = {}
    for each in query.quantiles:
        of_column.setdefault(each.column, []).append(_RANKS.get(each.function, each.q))
    yield "quantiles", [{"column": column, "of": of} for column, of in of_column.items()]
    yield "ranked", query.ranked or None
    yield "having", [_having(each, named) for each in query.having]
    yield from ((name, getattr(query, name)) for name in PLAIN_TEXTS)


def _condition(built: question_pb2.Filter) -> dict[str, Any]:
    found: dict[str, Any] = {"column": built.column}
    match built.WhichOneof("predicate"):
        case "in":
            found["one_of"] = [_value(each) for each in getattr(built, "in").values]
        case "not_in":
            found["none_of"] = [_value(each) for each in built.not_in.values]
        case "range":
            for end, included, excluded in (
                ("lower", "at_least", "more_than"),
                ("upper", "at_most", "less_than"),
            ):
                if built.range.HasField(end):
                    bound = getattr(built.range, end)
                    found[excluded if bound.exclusive else included] = _value(bound.value)
    return found


def _value(value: question_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    held = getattr(value, kind) if kind else None
    return _time(held) if kind in ("date", "timestamp") else to_json(held)


def _time(held: Any) -> str:
    """Return a day, or a time with its zone, in ISO 8601."""
    found = date_of(held) if isinstance(held, int) else held.ToDatetime(tzinfo=datetime.UTC)
    return str(found.isoformat())


def _having(condition: question_pb2.HavingCondition, named: Sequence[str]) -> str:
    name = named[condition.aggregate] if condition.HasField("aggregate") else "count"
    return f"{name} {_COMPARISONS.get(condition.comparison)} {condition.bound}"
