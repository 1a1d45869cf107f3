"""The shape of a policy file: which keys there are and what each may hold. Unknown keys are refused.

What one key means together with another is checked in `policy`.
"""

from __future__ import annotations

import datetime
import re
from fractions import Fraction
from functools import cache
from typing import Annotated, Literal
from zoneinfo import available_timezones

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
)

from dp_service.queries.bucket_lengths import BucketLength
from dp_service.queries.columns import Nulls, Operator, ValueNulls
from dp_service.queries.schema_errors import schema_error
from dp_service.queries.tables import DEFAULT_MAX_K, TauIs
from dp_service.queries.times import CompleteBy, Refresh
from dp_service.terms import (
    Answering,
    BoundedBy,
    ColumnType,
    Consistency,
    CountNoise,
    GridScale,
    MemberValue,
    ValueType,
)
from dp_service.values.cells import MAX_CELLS

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# At most three digits of exponent: "1e-999999999" would be a number of a billion digits.
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
MAX_DAYS = 3_652_059
"""The years 1 to 9999 have no more days."""
_DECIMAL = re.compile(r"[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?")
# At most six digits each, as in 7/20.
_RATIO = re.compile(r"[0-9]{1,6}/[1-9][0-9]{0,5}")

COUNT_COLUMN = "gris_count"
BUCKET_COLUMN = "gris_bucket"
FIRST_COUNT_COLUMN = "gris_first_count"
MEMBER_COUNT_COLUMN = "gris_member_count"
CELL_COLUMN = "gris_cell"
LOOKUP_COLUMNS = ("gris_key", "gris_text")
"""What a query calls the keys of a lookup, and their texts."""
MAXIMUM_EPSILON_PER = 10
MAXIMUM_DOMAIN_SIZE = 100_000
DEFAULT_DELAY_MINUTES = 5
OFFLINE_SUFFIX = "_OFFLINE"
"""How Pinot's name of the offline part of a table ends."""
REALTIME_SUFFIX = "_REALTIME"
MAXIMUM_PERIODS = 100_000
MAXIMUM_NAMES = 500
"""How many elements of one column the first of two looks names at most.

The queries of all engines for so many names, each of the greatest length, fit into one message, so no name is one too
many.
"""
MAXIMUM_DELAY_MINUTES = 7 * 24 * 60
MAXIMUM_STATED = 10**15
"""The largest numbers of members and rows that a policy can state."""
DEFAULT_SHARE = Fraction(1, 2)
"""The part of the units that counts take beside sums."""
DEFAULT_TOTALS_SHARE = Fraction(1, 4)
"""The part of the units that totals take, where a question asks for them."""


def _identifier(name: str) -> str:
    """Return a name if every engine can take it in quotes."""
    if not _IDENTIFIER.fullmatch(name):
        raise ValueError(
            "expected a name of ASCII letters, digits and underscores that does not start with a digit"
        )
    if name.casefold() in (COUNT_COLUMN, MEMBER_COUNT_COLUMN):
        raise ValueError("expected another name: this one is reserved for the counts of an answer")
    return name


def exact_decimal(value: object) -> Fraction:
    """Return the number that a decimal text denotes, exactly, without a float in between."""
    text = str(value) if type(value) is int else value
    if not isinstance(text, str) or not _DECIMAL.fullmatch(text):
        raise ValueError("expected a decimal number such as 0.15 or 1e-10")
    return Fraction(text)


def exact_bound(value: object) -> Fraction:
    """Return the number that a decimal text denotes, exactly; it may be negative."""
    text = str(value) if type(value) is int else value
    if isinstance(text, str) and text.startswith("-"):
        return -exact_decimal(text[1:])
    return exact_decimal(text)


def grid_end(value: object) -> Fraction | datetime.date:
    """Return the day that a text denotes, or the number, exactly."""
    if not isinstance(value, str) or not _DAY.fullmatch(value):
        return exact_bound(value)
    try:
        return datetime.date.fromisoformat(value)
    except ValueError:
        raise ValueError("expected a day of the calendar as YYYY-MM-DD") from None


def exact_share(value: object) -> Fraction:
    """Return the number that a decimal text or a fraction such as 7/20 denotes, exactly."""
    if isinstance(value, str) and _RATIO.fullmatch(value):
        return Fraction(value)
    try:
        return exact_decimal(value)
    except ValueError:
        raise ValueError("expected a fraction such as 1/4, or a decimal number such as 0.15") from None


@cache
def _zones() -> frozenset[str]:
    """Return the names of all IANA time zones, without those that mean the machine's own."""
    return frozenset(available_timezones()) - {"localtime", "Factory"}


def _zone(name: str) -> str:
    # `ZoneInfo` also opens files that are no zones, such as `right/...`, which count leap seconds.
    if name not in _zones():
        raise ValueError("expected the name of an IANA time zone, such as Europe/Berlin")
    return name


Identifier = Annotated[str, Field(max_length=128), AfterValidator(_identifier)]
Exact = Annotated[Fraction, BeforeValidator(exact_decimal)]
Bound = Annotated[Fraction, BeforeValidator(exact_bound)]
GridEnd = Annotated[Fraction | datetime.date, BeforeValidator(grid_end)]
MaxK = Annotated[int, Field(gt=0, le=MAXIMUM_DOMAIN_SIZE)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class PublishedSchema(_Strict):
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


class LookupSchema(_Strict):
    """A column whose values are looked up: by which column, in which file, and the SHA-256 of the file."""

    column: Identifier
    file: Annotated[str, Field(min_length=1, max_length=1024)]
    hash: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


TimestampUnit = Literal["seconds", "milliseconds", "microseconds"]
"""The units that integers may count since 1970-01-01 in a column of timestamps."""


class ColumnSchema(_Strict):
    """One column. Values of `domain` and `null_value` are checked against the type later."""

    type: Annotated[ColumnType, Field(strict=False)]
    unit: TimestampUnit | None = None
    zone: Annotated[str, AfterValidator(_zone)] | None = None
    group_by: bool = False
    filter_operators: Annotated[list[Annotated[Operator, Field(strict=False)]], Field(alias="filter")] = []
    domain: _Domain | None = None
    delta: Annotated[int, Field(gt=0, le=MAXIMUM_DOMAIN_SIZE)] | None = None
    nulls: Annotated[Nulls, Field(strict=False)] | None = None
    null_value: object = None
    attribute: bool = False
    lookup: LookupSchema | None = None


class TimeSchema(_Strict):
    """The time column, which holds days, timestamps, or integers since 1970-01-01, and which periods are closed."""

    column: Identifier
    type: Literal["date", "int64", "timestamp"]
    unit: Literal["days"] | TimestampUnit | None = None
    zone: Annotated[str, AfterValidator(_zone)] = "UTC"
    refresh: Annotated[Refresh, Field(strict=False)] | None = None
    delay_minutes: Annotated[int, Field(ge=0, le=MAXIMUM_DELAY_MINUTES)] | None = None
    complete_by: Annotated[CompleteBy, Field(strict=False)] | None = None
    replaced_rows: Literal["until_closed"] | None = None
    replaced_by: Literal["same_member"] | None = None
    offline_part: Literal["whole_days"] | None = None
    buckets: Annotated[list[Annotated[BucketLength, Field(strict=False)]], Field(max_length=5)] = []


class EventsSchema(_Strict):
    """Counting events: the file has to state whether tau is its author's promise or enforced by the query."""

    tau: Annotated[int, Field(gt=0, le=1_000_000)]
    tau_is: Annotated[TauIs, Field(strict=False)]


class MeasuresSchema(_Strict):
    """What may be counted."""

    distinct_members: bool = False
    events: EventsSchema | None = None


class NamesSchema(_Strict):
    """The first of two looks: its bound, its part of the units, and how many elements it names at most."""

    delta_1: Annotated[int, Field(gt=0, le=MAXIMUM_DOMAIN_SIZE)] | None = None
    share: Annotated[Fraction, BeforeValidator(exact_share), Field(gt=0, lt=1)]
    max_names: Annotated[int, Field(gt=0, le=MAXIMUM_NAMES)]


class ExpectedCountSchema(_Strict):
    """What is expected of the element at one rank."""

    rank: Annotated[int, Field(gt=0, le=1_000_000)]
    count: Annotated[int, Field(ge=0, le=2**53)]


_Part = Annotated[Fraction, BeforeValidator(exact_share), Field(gt=0, le=1)]


class ChooseSchema(_Strict):
    """Between which ways of answering the service chooses, and what its author expects of counts."""

    among: Annotated[list[Annotated[Answering, Field(strict=False)]], Field(min_length=2, max_length=3)]
    units: (
        Annotated[list[Annotated[int, Field(gt=0, le=1_000_000)]], Field(min_length=1, max_length=20)] | None
    ) = None
    kept: _Part
    kept_names: _Part | None = None
    expected: Annotated[
        dict[Identifier, Annotated[list[ExpectedCountSchema], Field(min_length=1, max_length=100)]],
        Field(max_length=100),
    ] = {}


class SumsSchema(_Strict):
    """Sums beside counts: the largest numbers of members and rows, and which part of the units the counts take."""

    max_members: Annotated[int, Field(gt=0, le=MAXIMUM_STATED)]
    max_rows: Annotated[int, Field(gt=0, le=MAXIMUM_STATED)]
    share: Annotated[Fraction, BeforeValidator(exact_share), Field(gt=0, lt=1)] = DEFAULT_SHARE


class TotalsSchema(_Strict):
    """Totals beside a list by two columns: their part of the units, and of which columns a member has one value."""

    share: Annotated[Fraction, BeforeValidator(exact_share), Field(gt=0, lt=1)] = DEFAULT_TOTALS_SHARE
    one_value: list[Identifier] = []


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


class ValueSchema(_Strict):
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


class GridSchema(_Strict):
    """A public grid: the values from one bound to another, and in how many cells; of days, how long a cell is."""

    scale: Annotated[GridScale, Field(strict=False)]
    start: Annotated[GridEnd, Field(alias="from")]
    to: GridEnd
    cells: Annotated[int, Field(ge=2, le=MAX_CELLS)] | None = None
    step: Annotated[int, Field(gt=0, le=MAX_DAYS)] | None = None


class QuantileSchema(_Strict):
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


class ContributionsSchema(_Strict):
    """How many elements of a member count: the file has to state why there are no more of them."""

    bound: Annotated[BoundedBy, Field(strict=False)]
    delta_0: Annotated[int, Field(gt=0, le=MAXIMUM_DOMAIN_SIZE)]
    units: Annotated[int, Field(gt=0, le=1_000_000)]
    min_count: Annotated[int, Field(gt=0, le=1_000_000_000)] = 1
    elements: Annotated[list[Identifier], Field(min_length=1, max_length=4)] | None = None
    period: Identifier | None = None
    periods: Annotated[int, Field(gt=0, le=MAXIMUM_PERIODS)] | None = None
    calendar: Annotated[Refresh, Field(strict=False)] | None = None
    names: NamesSchema | None = None
    shift: bool = False
    sharpening: Annotated[int, Field(gt=0, le=1_000_000)] | None = None
    choose: ChooseSchema | None = None
    sums: SumsSchema | None = None
    buckets: Annotated[int, Field(gt=0, le=MAXIMUM_DOMAIN_SIZE)] | None = None
    totals: TotalsSchema | None = None


class PreparedSchema(_Strict):
    """A pairs copy: the engine's name of it, and the file of its manifest, relative to the policy or absolute."""

    table: Identifier
    manifest: Annotated[str, Field(min_length=1, max_length=1024)]


class TableSchema(_Strict):
    """One table."""

    member: Identifier
    time: TimeSchema | None = None
    data_version: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    consistency: Annotated[Consistency, Field(strict=False)] = Consistency.KEYED
    d_bar: Annotated[int, Field(ge=10, le=100_000)] | None = None
    max_k: MaxK | None = None
    reserve_first: bool = False
    contributions: ContributionsSchema | None = None
    measures: MeasuresSchema
    columns: dict[Identifier, ColumnSchema]
    values: dict[Identifier, ValueSchema] = {}
    prepared: PreparedSchema | None = None
    quantiles: dict[Identifier, QuantileSchema] = {}


class PolicySchema(_Strict):
    """The whole file."""

    epsilon_per: Annotated[Exact, Field(gt=0, le=MAXIMUM_EPSILON_PER)]
    delta: Annotated[Exact, Field(gt=0, lt=1)]
    count_noise: Annotated[CountNoise, Field(strict=False)] = CountNoise.LAPLACE
    max_k: MaxK = DEFAULT_MAX_K
    tables: Annotated[dict[Identifier, TableSchema], Field(min_length=1)]
