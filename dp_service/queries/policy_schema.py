"""The shape of a policy file: which keys there are and what each may hold. Unknown keys are refused.

What one key means together with another is checked in `policy`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationError,
)

from dp_service.queries.columns import ColumnKeys, Nulls, ValueNulls
from dp_service.queries.policy_types import (
    MAX_DAYS,
    MAXIMUM_DOMAIN_SIZE,
    MAXIMUM_STATED,
    Bound,
    GridEnd,
    Identifier,
    MaxK,
    Stated,
    TimestampUnit,
    Zone,
    exact_bound,
    exact_decimal,
)
from dp_service.queries.schema_errors import schema_error
from dp_service.queries.tables import DEFAULT_MAX_K, Currency, TableKeys
from dp_service.terms import (
    GridScale,
    MemberValue,
    ValueType,
)
from dp_service.values.cells import MAX_CELLS


class PublishedSchema(Stated):
    """A published domain: its file, relative to the policy or absolute, and the hash that the file ends with.

    The hash makes the domain a part of the policy's text: a domain that changes is another policy.
    """

    published: Annotated[str, Field(min_length=1, max_length=1024)]
    integrity: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


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
    nulls: Annotated[Nulls, Field(strict=False)] | None = None
    null_value: object = None
    lookup: LookupSchema | None = None


def _summable(kind: ValueType) -> ValueType:
    if kind is ValueType.DATE:
        raise ValueError("expected 'int64' or 'decimal': days are not summed")
    return kind


def bound_or_published(value: object) -> Fraction | PublishedSchema:
    """Return the number that a decimal text denotes, exactly, or the published bound that is named."""
    if isinstance(value, PublishedSchema):
        return value
    if not isinstance(value, dict):
        return exact_bound(value)
    try:
        return PublishedSchema.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key, fault = ".".join(map(str, first["loc"])), schema_error(first["type"], first["msg"])
    raise ValueError(
        f"expected a decimal number, or {{published: FILE, integrity: 'sha256:..'}}; {key}: {fault}"
    )


UpperBound = Annotated[Fraction | PublishedSchema, BeforeValidator(bound_or_published)]


class ValueSchema(Stated):
    """One column whose values are summed: its quantum, the bounds of a row and of a member's total, and its NULLs."""

    type: Annotated[ValueType, Field(strict=False), AfterValidator(_summable)]
    quantum: Annotated[Fraction, BeforeValidator(exact_decimal), Field(gt=0)] = Fraction(1)
    lower: Bound
    upper: UpperBound
    row_lower: Bound | None = None
    row_upper: Bound | None = None
    weight: Annotated[int, Field(gt=0, le=1000)] = 1
    nulls: Annotated[ValueNulls, Field(strict=False)] = ValueNulls.DROP
    null_value: Bound | None = None


class GridSchema(Stated):
    """A public grid: the values from one bound to another, and in how many cells; of days, how long a cell is."""

    scale: Annotated[GridScale, Field(strict=False)]
    start: Annotated[GridEnd, Field(alias="from")]
    to: GridEnd
    cells: Annotated[int, Field(ge=2, le=MAX_CELLS)] | None = None
    step: Annotated[int, Field(gt=0, le=MAX_DAYS)] | None = None


class QuantileSchema(Stated):
    """One column with quantiles: its grid, which value of a member counts, how rows are rounded, and its NULLs."""

    type: Annotated[ValueType, Field(strict=False)]
    quantum: Annotated[Fraction, BeforeValidator(exact_decimal), Field(gt=0)] = Fraction(1)
    member_value: Annotated[MemberValue, Field(strict=False)]
    grid: GridSchema
    row_lower: Bound | None = None
    row_upper: Bound | None = None
    max_rows: Annotated[int, Field(gt=0, le=MAXIMUM_STATED)] | None = None
    nulls: Annotated[Nulls, Field(strict=False)] = Nulls.DROP
    null_value: Bound | None = None


class PreparedSchema(Stated):
    """A pairs copy: the engine's name of it, and the file of its manifest, relative to the policy or absolute."""

    table: Identifier
    manifest: Annotated[str, Field(min_length=1, max_length=1024)]


class TableSchema(TableKeys):
    """One table."""

    max_k: MaxK | None = None
    columns: dict[Identifier, ColumnSchema]
    values: dict[Identifier, ValueSchema] = Field(default_factory=dict)
    prepared: PreparedSchema | None = None
    quantiles: dict[Identifier, QuantileSchema] = Field(default_factory=dict)


class PolicySchema(Currency):
    """The whole file, whose header is the currency."""

    max_k: MaxK = DEFAULT_MAX_K
    tables: Annotated[dict[Identifier, TableSchema], Field(min_length=1)]
