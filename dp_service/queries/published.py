"""The file of a published domain: the elements of one column that are safe to name, and the price of publishing them.

It is made by `gris domain publish` and named by a policy (`domain: {published: FILE}`).
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from dp_service.queries.filters import Value, fault_of, type_of
from dp_service.queries.published_files import Fields, PublishedFileError, Text, fields_of, file_of
from dp_service.terms import ColumnType

FORMAT = "gris/domain/v1"
LARGEST_FILE_BYTES = 256 * 2**20

_Ratio = Annotated[str, Field(pattern=r"^[0-9]{1,60}(/[1-9][0-9]{0,60})?$")]


@dataclass(frozen=True)
class DomainFile:
    """The elements of a column that were published, in element order, and the guarantee of their publication.

    The publication is `delta`-approximate `rho`-zCDP for adding or removing one member, and so (epsilon, dp_delta)-DP.
    `iterations` is how many rounds there were, `salt` the public salt of the order in which elements are kept.
    """

    table: str
    column: str
    type: ColumnType
    data_version: str
    method: str
    rho: Fraction
    delta: Fraction
    delta_0: int
    iterations: int
    epsilon: float
    dp_delta: float
    published_at: str
    elements: tuple[Value, ...]


class _Schema(Fields):
    format: Literal["gris/domain/v1"]
    type: Annotated[ColumnType, Field(strict=False)]
    method: Text
    rho: _Ratio
    delta: _Ratio
    delta_0: Annotated[int, Field(gt=0)]
    iterations: Annotated[int, Field(gt=0)]
    epsilon: Annotated[float, Field(ge=0)]
    dp_delta: Annotated[float, Field(ge=0, le=1)]
    elements: list[object]


def written(domain: DomainFile) -> bytes:
    """Return the file's content."""
    body = {
        "format": FORMAT,
        **{name: getattr(domain, name) for name in _PLAIN},
        "rho": str(domain.rho),
        "delta": str(domain.delta),
        "elements": [plain_value(value) for value in domain.elements],
    }
    return file_of(body)


def read_published(content: bytes) -> DomainFile:
    """Read the file's content.

    Raises:
        PublishedFileError: The content is malformed, truncated or edited.
    """
    schema = fields_of(content, _Schema, most_bytes=LARGEST_FILE_BYTES)
    fields = {name: getattr(schema, name) for name in _PLAIN}
    elements = tuple(_value(each, schema.type) for each in schema.elements)
    if any(one >= other for one, other in pairwise(elements)):  # type: ignore[operator]  # one type
        raise PublishedFileError("elements: expected each once, in ascending order")
    return DomainFile(**fields, rho=Fraction(schema.rho), delta=Fraction(schema.delta), elements=elements)


_PLAIN = (
    "table",
    "column",
    "type",
    "data_version",
    "method",
    "delta_0",
    "iterations",
    "epsilon",
    "dp_delta",
    "published_at",
)


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
    raise PublishedFileError(f"elements: {problem or f'expected values of type {kind}'}")


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
