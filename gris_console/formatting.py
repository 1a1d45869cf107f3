"""What pages say of costs, days, limits, accuracy and questions. Texts that strangers wrote are shown as texts."""

from __future__ import annotations

import datetime

from google.protobuf.timestamp_pb2 import Timestamp
from gris_api.dp.v1 import question_pb2

from gris_console.conditions import conditions
from pinot_connector import formats
from pinot_connector.budgets import Level
from pinot_connector.notebooks.cells import visible
from pinot_connector.results import PrivateResult

LONGEST_NAME = 200
SHOWN_ELEMENTS = 3


def shown_name(value: object) -> str:
    """Return a name that strangers wrote, with what cannot be seen replaced; very long ones are cut."""
    text = visible(str(value))
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"


def whole(value: object) -> str:
    """Return a text with what cannot be seen replaced, and nothing cut: somebody pays by what it says."""
    return visible(str(value))


def timestamp(value: Timestamp) -> str:
    """Return a timestamp of a message."""
    return formats.instant(value.ToDatetime(tzinfo=datetime.UTC))


def path(segments: tuple[str, ...]) -> str:
    """Return an account."""
    return formats.path(map(shown_name, segments))


def question_text(question: question_pb2.Question) -> str:
    """Return a question in one line: its SQL, or what it asks for with every condition."""
    if question.WhichOneof("form") == "sql":
        return " ".join(question.sql.split())
    asked = question.structured
    top = f"Top {asked.k} of " if asked.HasField("k") else ""
    by = " and ".join(asked.dimensions) or "the total"
    where = "".join(f", {each}" for each in conditions(asked))
    totals = f", with totals by {asked.totals_by}" if asked.totals_by else ""
    return f"{top}{by} in {asked.table}{where}{totals}"


def first_elements(result: PrivateResult) -> str:
    """Return the first elements of an answer."""
    if not result.columns:
        return "one total"
    first = ", ".join(shown_name(" / ".join(map(str, row.element))) for row in result.rows[:SHOWN_ELEMENTS])
    more = len(result.rows) - SHOWN_ELEMENTS
    return f"{first} and {more:,} more" if more > 0 else first or "no element"


def fraction_left(level: Level, unit: str) -> float:
    """Return how much of a limit is left, from 0 to 1."""
    limit = getattr(level.limit, unit)
    return getattr(level.remaining, unit) / limit if limit else 0.0


FILTERS = {
    "name": shown_name,
    "whole": whole,
    "number": formats.number,
    "up": formats.rounded_up,
    "cost": formats.cost,
    "left_of_blocks": formats.left_of_blocks,
    "day": formats.instant,
    "timestamp": timestamp,
    "path": path,
    "share": formats.share,
    "question": question_text,
    "first_elements": first_elements,
}
