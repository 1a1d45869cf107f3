"""What the tools return, in terms of JSON: views of the connector's values, which a model reads.

Elements, aliases and past questions were written by others. They stand in data fields alone (`columns`, `value_names`,
`element`, `question`, `values`), and no text here is made of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from google.protobuf.json_format import MessageToDict

from gris_gateway.faces.mcp import descriptions
from pinot_connector.budgets import Cost, Level, Mode, questions_left
from pinot_connector.catalog import Catalog
from pinot_connector.coverage import AnyEnds
from pinot_connector.json_values import to_json
from pinot_connector.notebooks.cells import visible
from pinot_connector.past_results import PastResult
from pinot_connector.results import Explanation, PrivateResult, Row
from pinot_connector.shown_values import ShownScalar, ShownValue

MOST_ROWS = 1000
MOST_PAST_ROWS = 50
# Of all elements together, so that one answer fits into what a model can read.
MOST_CHARACTERS = 200_000
# Of a domain.
MOST_VALUES = 1000


def element_of(value: ShownScalar) -> Any:
    """Return a value of an element; a text with letters that nobody sees as one without them, and as exact JSON."""
    if isinstance(value, str) and (shown := visible(value)) != value:
        return {"shown": shown, "exact": json.dumps(value)}
    return to_json(value)


def tables_of(catalog: Catalog, *, with_values: bool) -> dict[str, Any]:
    """Return the catalogue, with the values of domains or without."""
    found: dict[str, Any] = seen(catalog.to_dict())
    for column in (each for table in found["tables"] for each in table["columns"]):
        if (values := column["domain"]) is not None:
            column["domain"] = {"size": len(values), "values": values[:MOST_VALUES] if with_values else []}
    return found


def answer_of(result: PrivateResult, most_rows: int = MOST_ROWS) -> dict[str, Any]:
    """Return an answer with at most so many rows."""
    rows = list(_shown_rows(result.rows[:most_rows]))
    left_out = len(result.rows) - len(rows)
    notes = [to_json(each) for each in result.statements if not each.is_method]
    if left_out:
        notes.append({"code": "tool.rows_left_out", "text": descriptions.ROWS_LEFT_OUT})
    if not result.charged.information and not result.charged.calls and result.cost.information:
        notes.append({"code": "tool.repeated", "text": descriptions.REPEATED})
    total = result.total
    return {
        "columns": [each.alias or each.name for each in result.columns],
        "value_names": [each.title for each in result.parameters.values],
        "rows": rows,
        "rows_left_out": left_out,
        "total": None if total is None else _row(Row((), total.noisy_count, total.interval)),
        "confidence": result.confidence,
        "rank_errors": list(map(float, result.rank_errors)),
        "notes": notes,
        "mechanism": result.parameters.mechanism.value,
        "k": result.parameters.k,
        "requested_k": result.requested_k,
        "ended_in_bottom": result.ended_in_bottom,
        "price": _price(result.cost),
        "charged": _price(result.charged),
        "budget": levels_of(result.remaining),
        "release_id": result.release_id,
    }


def price_of(explanation: Explanation, levels: Iterable[Level]) -> dict[str, Any]:
    """Return what a question would cost, and how often the budget pays for it."""
    left, price, accuracy = tuple(levels), explanation.worst_case_cost, explanation.accuracy
    return {
        "price": _price(price),
        "questions_left": to_json(questions_left(left, price)),
        "typical_error": None if accuracy is None else accuracy.half_width,
        "mechanism": explanation.parameters.mechanism.value,
        "k": explanation.parameters.k,
        "requested_k": explanation.requested_k,
        "how": to_json(explanation.statements),
        "budget": levels_of(left),
    }


def past_answer_of(past: PastResult) -> dict[str, Any]:
    """Return an answer that was paid for."""
    asked = past.question
    is_sql = asked.WhichOneof("form") == "sql"
    return {
        "asked_at": to_json(past.released_at),
        "question": seen({"sql": asked.sql} if is_sql else MessageToDict(asked.structured)),
        # What was left then would be read as what is left now.
        "answer": answer_of(replace(past.result, remaining=()), MOST_PAST_ROWS),
        "rows_not_kept": past.elements_omitted,
        "not_offered": past.not_offered,
    }


def levels_of(levels: Iterable[Level]) -> list[dict[str, Any]]:
    """Return what is left on each level of a budget."""
    return [
        {
            "account": list(each.path),
            "limit": _price(each.limit),
            "spent": _price(each.spent),
            "held": _price(each.reserved),
            "left": _price(each.remaining),
            "left_of_blocks": [
                {"blocks": list(block.blocks), **_price(block)} for block in each.remaining_of_blocks
            ],
            "enforced": each.mode is Mode.ENFORCE,
            "refreshes_at": to_json(each.window_end),
        }
        for each in levels
    ]


def _price(cost: Cost) -> dict[str, Any]:
    return {"information": to_json(cost.information), "calls": to_json(cost.calls)}


def _shown_rows(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Yield rows as long as their elements are not too long together."""
    characters = 0
    for row in rows:
        characters += sum(len(value) for value in row.element if isinstance(value, str))
        if characters > MOST_CHARACTERS:
            return
        yield _row(row)


def _row(row: Row) -> dict[str, Any]:
    return {
        "element": list(map(element_of, row.element)),
        "count": to_json(row.noisy_count),
        "interval": None if row.interval is None else _ends(row.interval),
        "values": list(map(_value, row.values)),
    }


def _value(shown: ShownValue | None) -> dict[str, Any] | None:
    return None if shown is None else {"value": _number(shown.value), "interval": _ends(shown.interval)}


def _ends(ends: AnyEnds) -> dict[str, Any]:
    return {name: _number(each) for name, each in ends._asdict().items()}


def _number(value: object) -> Any:
    return float(value) if isinstance(value, Fraction) else to_json(value)


def seen(value: Any, text_of: Callable[[str], Any] = element_of) -> Any:
    """Return a value with each text in it as an element has it."""
    match value:
        case str():
            return text_of(value)
        case dict():
            return {name: seen(each, text_of) for name, each in value.items()}
        case list():
            return [seen(each, text_of) for each in value]
    return value


def only_seen(value: Any) -> Any:
    """Return a result with U+FFFD for each letter that cannot be seen, in whatever text somebody wrote it."""
    return seen(value, visible)
