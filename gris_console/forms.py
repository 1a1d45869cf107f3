"""Forms: what a page has sent, and the question that it describes. The gateway checks what a question may be."""

from __future__ import annotations

import asyncio
import base64
import binascii
import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from google.protobuf.message import DecodeError
from gris_api.dp.v1 import question_pb2
from starlette.requests import ClientDisconnect, Request

from pinot_connector.catalog import ColumnEntry, TableEntry
from pinot_connector.engines.base import ColumnType
from pinot_connector.errors import InvalidQuestion
from pinot_connector.questions import (
    PLAIN_TEXTS,
    Between,
    Condition,
    In,
    NotIn,
    TimeBound,
    Value,
    sql_question,
    structured_question,
)

MAX_BYTES = 512 * 1024
LARGEST = 2**63 - 1
# Of who has no log-in and had none: room for a token.
STRANGER_BYTES = 32 * 1024
MAX_FIELDS = 2000
READ_SECONDS = 30.0
_TRUTH = {"true": True, "false": False}


class FormError(Exception):
    """A form that cannot be read; the message says why."""


@dataclass(frozen=True)
class Form:
    """The fields of a form, in their order; a field may be there more than once."""

    pairs: tuple[tuple[str, str], ...] = ()

    def get(self, name: str, default: str = "") -> str:
        """Return the first value of a field, without blanks around it."""
        return next((value.strip() for key, value in self.pairs if key == name), default)

    def all(self, name: str) -> list[str]:
        """Return every value of a field that is not empty."""
        return [value.strip() for key, value in self.pairs if key == name and value.strip()]

    def has(self, name: str, value: str) -> bool:
        """Return whether a field has a value, as a box that is ticked."""
        return (name, value) in self.pairs

    def below(self, prefix: str) -> Form:
        """Return the fields whose names begin so, without the prefix."""
        return Form(tuple((key[len(prefix) :], value) for key, value in self.pairs if key.startswith(prefix)))

    def without(self, *names: str) -> Form:
        """Return the other fields."""
        return Form(tuple((key, value) for key, value in self.pairs if key not in names))

    @property
    def is_empty(self) -> bool:
        """Whether there is no field."""
        return not self.pairs


async def read_form(request: Request, *, max_bytes: int) -> Form:
    """Return the form of a request.

    Args:
        request: The request.
        max_bytes: How large the form may be: what arrives beyond it is not kept in memory.

    Raises:
        FormError: It is too large, too slow, or no form.
    """
    if (
        request.headers.get("content-type", "").partition(";")[0].strip()
        != "application/x-www-form-urlencoded"
    ):
        raise FormError("expected a form")
    body = bytearray()
    try:
        async with asyncio.timeout(READ_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > max_bytes:
                    raise FormError(f"expected at most {max_bytes // 1024} KiB")
    except (TimeoutError, ClientDisconnect):
        raise FormError("the form did not arrive in time") from None
    try:
        pairs = parse_qsl(
            bytes(body).decode("ascii"), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict"
        )
    except ValueError:
        raise FormError(f"expected at most {MAX_FIELDS} fields, in UTF-8") from None
    return Form(tuple(pairs))


def encoded_question(question: question_pb2.Question) -> str:
    """Return a question as the text of a hidden field."""
    return base64.urlsafe_b64encode(question.SerializeToString(deterministic=True)).decode()


def decoded_question(text: str) -> question_pb2.Question:
    """Return the question of a hidden field.

    Raises:
        InvalidQuestion: It holds none.
    """
    try:
        return question_pb2.Question.FromString(base64.urlsafe_b64decode(text.encode("ascii")))
    except (ValueError, binascii.Error, DecodeError):
        raise InvalidQuestion("question", "expected the field as the page had it") from None


def question_of(form: Form, table: TableEntry | None) -> question_pb2.Question:
    """Return the question that a form describes: in SQL, or of a table of the catalogue.

    Raises:
        InvalidQuestion: A field is wrong; `field` says which.
    """
    if table is None:
        return sql_question(form.get("sql"))
    bucket = form.get("bucket")
    if bucket and table.time is None:
        raise InvalidQuestion("bucket", "expected a table with a time column")
    texts: dict[str, Any] = {name: form.get(name) or None for name in PLAIN_TEXTS}
    # Half a funnel, or half of who comes back, says nothing.
    is_whole = bool(form.get("steps") or form.get("since"))
    return structured_question(
        table.name,
        [*form.all("by"), *_functions(form, table)],
        k=None if is_whole else _number("k", form.get("k")),
        measure=form.get("measure") or "distinct_members",
        where=dict(_conditions(form, table.columns)),
        condition=form.get("condition"),
        time_range=_time_range(form),
        counts=not form.has("counts", "no"),
        sums=form.all("sum"),
        averages=form.all("avg"),
        numbers=form.all("number"),
        quantiles={column: wanted for column, wanted in _quantiles(form, table) if wanted},
        bucket=f"{bucket}:{table.time.column}" if bucket and table.time is not None else None,
        ranked=form.has("ranked", "yes") and bool(bucket),
        **texts,
    )


def _functions(form: Form, table: TableEntry) -> Iterator[str]:
    """Yield what the fields for a funnel, first times and groups say, as a question has it: functions in SQL."""
    if steps := _lines(form, "steps"):
        yield f"FUNNEL_COUNT(STEPS({', '.join(steps)}))"
    function, _, length = form.get("since").partition(" ")
    if function:
        if table.time is None:
            raise InvalidQuestion("since", "expected a table with a time column")
        time = table.time.column
        is_first = function == "first"
        yield f"DATE_TRUNC('{length}', MIN({time}))" if is_first else f"RETENTION('{length}', {time})"
    if cases := _lines(form, "cases"):
        others = form.get("others")
        rest = f" ELSE {_text(others)}" if others else ""
        yield f"CASE {' '.join(map(_case, cases))}{rest} END"


def _case(line: str) -> str:
    name, colon, condition = line.partition(":")
    if not colon or not name.strip() or not condition.strip():
        raise InvalidQuestion("groups", "expected a name, a colon and a condition on each line")
    return f"WHEN {condition.strip()} THEN {_text(name.strip())}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _lines(form: Form, field: str) -> list[str]:
    return [line.strip() for line in form.get(field).splitlines() if line.strip()]


def _quantiles(form: Form, table: TableEntry) -> Iterator[tuple[str, list[str]]]:
    for column in table.quantiles:
        text = form.get(f"quantiles.{column.name}")
        yield column.name, [part.strip() for part in text.replace(";", ",").split(",") if part.strip()]


def _conditions(form: Form, columns: Sequence[ColumnEntry]) -> Iterator[tuple[str, Condition]]:
    for column in columns:
        if (condition := _condition(form, column)) is not None:
            yield column.name, condition


def _condition(form: Form, column: ColumnEntry) -> Condition | None:
    kind = form.get(f"filter.{column.name}")
    if kind in ("in", "not_in"):
        texts = _lines(form, f"values.{column.name}")
        if not texts:
            raise InvalidQuestion(f"values of {column.name}", "expected one value on each line")
        values = [_value(column, text) for text in texts]
        return In(values) if kind == "in" else NotIn(values)
    if kind == "range":
        ends = (form.get(f"lower.{column.name}"), form.get(f"upper.{column.name}"))
        if not any(ends):
            raise InvalidQuestion(f"range of {column.name}", "expected a first value, a last value, or both")
        lower, upper = (_value(column, text) if text else None for text in ends)
        return Between(lower, upper)
    return None


def _value(column: ColumnEntry, text: str) -> Value:
    """Return a value of a column's type."""
    field = f"values of {column.name}"
    match column.type:
        case ColumnType.INT64:
            found = _number(field, text)
            return 0 if found is None else found
        case ColumnType.BOOL:
            if text.lower() not in _TRUTH:
                raise InvalidQuestion(field, "expected true or false")
            return _TRUTH[text.lower()]
        case ColumnType.DATE:
            return _day(field, text)
        case _:
            return text


def _number(field: str, text: str) -> int | None:
    if not text:
        return None
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 19):
        raise InvalidQuestion(field, "expected a whole number")
    return int(text)


def _day(field: str, text: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise InvalidQuestion(field, "expected a day such as 2026-01-31") from None


def _time_range(form: Form) -> tuple[TimeBound, TimeBound] | None:
    since, until = form.get("from"), form.get("to")
    if not since and not until:
        return None
    return (
        _day("the first day", since) if since else None,
        _day("the day after the last", until) if until else None,
    )


def whole(name: str, text: str, largest: int = LARGEST) -> int:
    """Return the whole number that a field holds. Raises InvalidQuestion."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 19 and int(text) <= largest):
        raise InvalidQuestion(name, f"expected a whole number from 0 to {largest}")
    return int(text)


def day(name: str, text: str) -> datetime.date:
    """Return the day that a field holds. Raises InvalidQuestion."""
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise InvalidQuestion(name, "expected a day such as 2026-01-31") from None
