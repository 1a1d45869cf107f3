"""The shape of a policy file, of which no key may be unknown: all of it, and the keys that files or types decide.

A key that holds as it is stated is one of the model of its block, which is the value as well: `Currency`, `TableKeys`,
`ColumnKeys`, `SummedSchema`, `TimeColumn`, `Contributions`. What one key means with another is checked in `policy`.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Discriminator, Field, Tag

from dp_service.queries.columns import ColumnKeys, Nulls
from dp_service.queries.currency import Currency
from dp_service.queries.policy_types import (
    MAXIMUM_DOMAIN_SIZE,
    Identifier,
    MaxK,
    PublishedSchema,
    Stated,
    TimestampUnit,
    Zone,
)
from dp_service.queries.tables import DEFAULT_MAX_K, TableKeys
from dp_service.queries.value_columns import ValueSchema

DOMAIN_KINDS = ("domain in the policy", "domain in a file")
"""The tags of the two kinds; they appear in no file."""


def _kind_of_domain(raw: object) -> str:
    return DOMAIN_KINDS[isinstance(raw, dict | PublishedSchema)]


_Listed = Annotated[list[object], Field(min_length=1, max_length=MAXIMUM_DOMAIN_SIZE)]
_Domain = Annotated[
    Annotated[_Listed, Tag(DOMAIN_KINDS[0])] | Annotated[PublishedSchema, Tag(DOMAIN_KINDS[1])],
    Discriminator(_kind_of_domain),
]


class LookupSchema(Stated):
    """A column whose values are looked up: by which column, in which file, and the SHA-256 of the file."""

    column: Identifier
    file: Annotated[str, Field(min_length=1, max_length=1024)]
    hash: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


class ColumnSchema(ColumnKeys):
    """One column. Values of `domain` and `null_value` are checked against the type later."""

    unit: TimestampUnit | None = None
    zone: Zone | None = None
    domain: _Domain | None = None
    nulls: Annotated[Nulls, Field(strict=False)] = Nulls.DROP
    null_value: object = None
    lookup: LookupSchema | None = None


class TableSchema(TableKeys):
    """One table."""

    columns: dict[Identifier, ColumnSchema]
    values: dict[Identifier, ValueSchema] = Field(default_factory=dict)


class OfferedTableSchema(Stated):
    """What an audience is offered of a table: columns (all, if not stated), and for some the values of its rows.

    A value is one of the column's, or `$name`, for which what serves callers gives it.
    """

    columns: list[Identifier] = Field(default_factory=list)
    where: dict[Identifier, object] = Field(default_factory=dict)


class AudienceSchema(Stated):
    """What an audience is offered; without `tables`, all of them."""

    tables: dict[Identifier, OfferedTableSchema] = Field(default_factory=dict, min_length=1)


class PolicySchema(Currency):
    """The whole file, whose header is the currency."""

    max_k: MaxK = DEFAULT_MAX_K
    tables: Annotated[dict[Identifier, TableSchema], Field(min_length=1)]
    audiences: dict[Identifier, AudienceSchema] = Field(default_factory=dict, min_length=1)
