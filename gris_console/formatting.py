"""What pages say of costs, days, limits, accuracy and questions. Texts that strangers wrote are shown as texts."""

from __future__ import annotations

import datetime
from decimal import ROUND_CEILING, Context
from fractions import Fraction

from google.protobuf.timestamp_pb2 import Timestamp
from gris_api.dp.v1 import question_pb2

from gris_console.conditions import conditions
from pinot_connector.budgets import Cost, Level, Mode, Share
from pinot_connector.notebooks.cells import visible
from pinot_connector.results import PrivateResult

# What a float adds beyond its twelfth digit is its own rounding.
_TWELVE_DIGITS = Context(prec=12)
LONGEST_NAME = 200
SHOWN_ELEMENTS = 3


def shown_name(value: object) -> str:
    """Return a name that strangers wrote, with what cannot be seen replaced; very long ones are cut."""
    text = visible(str(value))
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"


def whole(value: object) -> str:
    """Return a text with what cannot be seen replaced, and nothing cut: somebody pays by what it says."""
    return visible(str(value))


def number(value: float) -> str:
    """Return a number with its thousands apart."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def rounded_up(value: float, digits: int = 6) -> str:
    """Return an epsilon or a delta with fewer digits, never less than it is."""
    context = Context(prec=digits, rounding=ROUND_CEILING)
    rounded = context.create_decimal(_TWELVE_DIGITS.create_decimal_from_float(value))
    return f"{rounded.normalize():,f}" if value >= 0.001 or not value else f"{float(rounded):.{digits}g}"


def cost(value: Cost) -> str:
    """Return a cost."""
    units = "information unit" if value.information == 1 else "information units"
    calls = "call" if value.calls == 1 else "calls"
    return f"{value.information:,} {units} and {value.calls:,} {calls}"


def day(value: datetime.datetime | None) -> str:
    """Return a day, in UTC as the ledger counts."""
    return "never" if value is None else f"{value:%Y-%m-%d %H:%M} UTC"


def timestamp(value: Timestamp) -> str:
    """Return a timestamp of a message."""
    return day(value.ToDatetime(tzinfo=datetime.UTC))


def path(segments: tuple[str, ...]) -> str:
    """Return an account."""
    return "/".join(map(shown_name, segments))


def percent(part: Fraction | None) -> str:
    """Return a part of a whole."""
    return "" if part is None else f"{float(100 * part):.3g} %"


def share(value: Share) -> str:
    """Return what part of a limit a question takes."""
    part = "" if value.of_limit is None else f" ({percent(value.of_limit)} of the limit of {value.limit:,})"
    tracked = "; this limit is recorded and refuses nothing" if value.mode is Mode.TRACK else ""
    return f"{value.cost:,} of {value.remaining:,} that are left{part}{tracked}"


def question_text(question: question_pb2.Question) -> str:
    """Return a question in one line: its SQL, or what it asks for with every condition."""
    more = question.sharpening.units
    sharper = f", sharpened with {', '.join(map(str, more))} units" if more else ""
    if question.WhichOneof("form") == "sql":
        return f"{' '.join(question.sql.split())}{sharper}"
    asked = question.structured
    top = f"Top {asked.k} of " if asked.HasField("k") else ""
    by = " and ".join(asked.dimensions) or "the total"
    where = "".join(f", {each}" for each in conditions(asked))
    totals = f", with totals by {asked.totals_by}" if asked.totals_by else ""
    return f"{top}{by} in {asked.table}{where}{totals}{sharper}"


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
    "number": number,
    "up": rounded_up,
    "cost": cost,
    "day": day,
    "timestamp": timestamp,
    "path": path,
    "share": share,
    "question": question_text,
    "first_elements": first_elements,
}
