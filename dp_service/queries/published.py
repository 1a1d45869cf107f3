"""The file of a published domain: the elements of one column that are safe to name, and the price of publishing them.

It is made by `gris domain publish` and named by a policy (`domain: {published: FILE}`).
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

from pydantic import Field, ValidationInfo, field_serializer, field_validator

from dp_service.queries.filters import Value, fault_of, type_of
from dp_service.queries.published_files import PublishedFile, Text
from dp_service.terms import ColumnType


class DomainFile(PublishedFile):
    """The elements of a column that were published, in element order, and the guarantee of their publication.

    It is (epsilon, dp_delta)-DP as well. `iterations` is how many rounds there were.
    """

    FORMAT = "gris/domain/v1"
    MOST_BYTES = 256 * 2**20

    type: Annotated[ColumnType, Field(strict=False)]
    method: Text
    typical: Annotated[int, Field(gt=0)]
    iterations: Annotated[int, Field(gt=0)]
    epsilon: Annotated[float, Field(ge=0)]
    dp_delta: Annotated[float, Field(ge=0, le=1)]
    elements: tuple[Value, ...]

    @field_validator("elements", mode="plain")
    @classmethod
    def _of_type(cls, raw: object, info: ValidationInfo) -> tuple[Value, ...]:
        if not isinstance(raw, list | tuple):
            raise ValueError("expected a list")
        if "type" not in info.data:
            return ()
        elements = tuple(_value(each, info.data["type"]) for each in raw)
        if any(one >= other for one, other in pairwise(elements)):  # type: ignore[operator]  # one type
            raise ValueError("expected each once, in ascending order")
        return elements

    @field_serializer("elements")
    def _plain(self, elements: tuple[Value, ...]) -> list[str | int | bool]:
        return [plain_value(value) for value in elements]


def in_order(texts: Sequence[str], kind: ColumnType) -> tuple[Value, ...]:
    """Return the values that canonical texts denote, in element order."""
    return tuple(sorted(_from_text(text, kind) for text in texts))


def _value(raw: object, kind: ColumnType) -> Value:
    """Return an element of the file as a value of the column's type."""
    value: object = raw
    if kind is ColumnType.DATE and isinstance(raw, str):
        value = _day(raw)
    problem = fault_of(value)
    if problem is None and isinstance(value, Value) and type_of(value) is kind:
        return value
    raise ValueError(problem or f"expected values of type {kind}")


def _from_text(text: str, kind: ColumnType) -> Value:
    match kind:
        case ColumnType.STRING:
            return text
        case ColumnType.INT64:
            return int(text)
        case ColumnType.BOOL:
            return text == "true"
        case ColumnType.DATE:
            return datetime.date.fromisoformat(text)
        case ColumnType.TIMESTAMP:
            # The caller has refused such a column: timestamps are not grouped by.
            raise AssertionError("timestamps have no published domain")


def _day(text: str) -> object:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return None


def plain_value(value: Value) -> str | int | bool:
    """Return an element as a value of JSON."""
    return value.isoformat() if isinstance(value, datetime.date) else value
