"""The catalogue: what may be asked, as dp_service shows it of the policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Any

from gris_api.dp.v1 import dp_pb2

from pinot_connector.engines.base import ColumnType, ExpectedColumn, TimeUnit
from pinot_connector.errors import IntegrityError
from pinot_connector.guarantees import PublishedDomain
from pinot_connector.json_values import to_json
from pinot_connector.parameter_messages import (
    COLUMN_TYPES,
    CONSISTENCIES,
    COUNT_NOISES,
    MECHANISMS,
    TIME_UNITS,
    contributions_of,
    exact,
    known,
    published_of,
    quantile_column_of,
    summed_column_of,
)
from pinot_connector.parameters import (
    Consistency,
    Contributions,
    CountNoise,
    Mechanism,
    QuantileColumn,
    SummedColumn,
)
from pinot_connector.questions import BUCKET_LENGTHS, MEASURES, BucketLength, Measure
from pinot_connector.releases import column_values
from pinot_connector.shown_values import Shown, shown_values


class Refresh(Enum):
    """How long the periods are that are answered once they are closed."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class FilterOperator(Enum):
    """A kind of condition on a column."""

    IN = "in"
    NOT_IN = "not_in"
    RANGE = "range"


@dataclass(frozen=True)
class MeasureEntry:
    """Something that may be counted, and by how much (`tau`) one member changes a count.

    `clipped`: the query counts no more than tau events of a member in one element.
    """

    measure: Measure
    tau: int
    clipped: bool


@dataclass(frozen=True)
class TimeEntry:
    """The column that time ranges restrict, and the zone in which days begin.

    `refresh` None: rows count as they arrive. `closed_before` is the first value that no question sees now. `buckets`
    are those into which questions may divide it; `member_buckets` is in how many of them a member counts at most in
    questions by them alone, None: as in other elements, or in all where contributions are not bounded.
    """

    column: str
    unit: TimeUnit
    zone: str
    refresh: Refresh | None
    closed_before: int | None
    buckets: tuple[BucketLength, ...] = ()
    member_buckets: int | None = None


class Answering(Enum):
    """A way of answering a question of a table whose contributions are bounded.

    UNBOUNDED is a mechanism that needs no bound, whose price grows with k; two looks only count a known domain.
    """

    UNBOUNDED = "unbounded"
    ONE_LOOK = "one_look"
    TWO_LOOKS = "two_looks"


@dataclass(frozen=True)
class ChoiceEntry:
    """Between what the service chooses: the cheapest way that is expected to find all elements of a question.

    `among` are the ways, the first of which is taken of equal prices; `units` how many information units a question of
    bounded contributions may cost. Where no way is expected to find them, the table's `contributions` say how it is
    answered.
    """

    among: tuple[Answering, ...]
    units: tuple[int, ...]


@dataclass(frozen=True)
class ColumnEntry:
    """A column that questions may use.

    `mechanism` answers where questions group by this column alone; None: they may not. The service may choose
    `other_mechanism` instead; None: there is none. `domain` None: its values are
    not known beforehand. `delta` is the most of its values that one member has, None: any number. `null_value` stands
    for rows without a value, None: they are left out. `published` is what finding the domain in the data cost everyone
    who may see it, None: it was not found there. `looked_up_by` is the column by whose values this one's are looked up,
    in a public file that the policy names; None: the table has the column itself.
    """

    name: str
    type: ColumnType
    mechanism: Mechanism | None
    filters: tuple[FilterOperator, ...]
    domain: tuple[Shown, ...] | None
    delta: int | None
    null_value: Shown | None
    published: PublishedDomain | None = None
    other_mechanism: Mechanism | None = None
    looked_up_by: str | None = None


@dataclass(frozen=True)
class TableEntry:
    """A table that may be asked about; `member` names the column that identifies a member.

    `contributions` is how the contributions of members are bounded; None: they are not. `choice` is between what the
    service chooses for each question; None: it does not. `values` are the columns that may be summed beside counts of
    distinct members, and `quantiles` those whose quantiles may be asked for.
    """

    name: str
    member: str
    measures: tuple[MeasureEntry, ...]
    time: TimeEntry | None
    consistency: Consistency
    columns: tuple[ColumnEntry, ...]
    contributions: Contributions | None = None
    choice: ChoiceEntry | None = None
    values: tuple[SummedColumn, ...] = ()
    quantiles: tuple[QuantileColumn, ...] = ()


@dataclass(frozen=True)
class Catalog:
    """All that may be asked, and the currency that it is paid in; `policy_id` names the content of the policy file."""

    tables: tuple[TableEntry, ...]
    epsilon_per: Fraction
    delta: Fraction
    unit_id: str
    count_noise: CountNoise
    policy_id: str

    def to_dict(self) -> dict[str, Any]:
        """Returns the catalogue in terms of JSON: days as ISO 8601, exact numbers as "p/q"."""
        values: dict[str, Any] = to_json(self)
        return values


_MEASURES = {number: measure for measure, number in MEASURES.items()}
_REFRESHES = {
    dp_pb2.REFRESH_PERIOD_UNSPECIFIED: None,
    dp_pb2.REFRESH_PERIOD_DAY: Refresh.DAY,
    dp_pb2.REFRESH_PERIOD_WEEK: Refresh.WEEK,
    dp_pb2.REFRESH_PERIOD_MONTH: Refresh.MONTH,
}
_BUCKET_LENGTHS = {number: length for length, number in BUCKET_LENGTHS.items()}
_ANSWERINGS = {
    dp_pb2.ANSWERING_UNBOUNDED: Answering.UNBOUNDED,
    dp_pb2.ANSWERING_ONE_LOOK: Answering.ONE_LOOK,
    dp_pb2.ANSWERING_TWO_LOOKS: Answering.TWO_LOOKS,
}
_OPERATORS = {
    dp_pb2.FILTER_OPERATOR_IN: FilterOperator.IN,
    dp_pb2.FILTER_OPERATOR_NOT_IN: FilterOperator.NOT_IN,
    dp_pb2.FILTER_OPERATOR_RANGE: FilterOperator.RANGE,
}


def catalog_of(pages: Sequence[dp_pb2.GetCatalogResponse]) -> Catalog:
    """Assembles the catalogue from all its pages, of which there is at least one.

    Raises:
        IntegrityError: the pages do not belong together, or say something that this version does not know.
    """
    tables: dict[str, TableEntry] = {}
    sizes: dict[tuple[str, str], int] = {}
    for message in (table for page in pages for table in page.tables):
        tables[message.name] = _continued(tables.get(message.name), _table(message))
        sizes |= {(message.name, column.name): column.domain_size for column in message.columns}
    for table in tables.values():
        if any(len(column.domain or ()) != sizes[table.name, column.name] for column in table.columns):
            raise IntegrityError("dp_service sent a part of a domain")
    header = pages[0]
    return Catalog(
        tables=tuple(tables.values()),
        epsilon_per=exact(header.epsilon_per),
        delta=exact(header.delta),
        unit_id=header.unit_id,
        count_noise=known(COUNT_NOISES, header.count_noise),
        policy_id=header.policy_id,
    )


def _continued(begun: TableEntry | None, more: TableEntry) -> TableEntry:
    """Returns a table with what a further page adds to it."""
    if begun is None:
        return more
    columns = {column.name: column for column in begun.columns}
    for column in more.columns:
        first = columns.get(column.name)
        if first is not None and first.domain is not None:
            columns[column.name] = replace(first, domain=first.domain + (column.domain or ()))
        else:
            columns[column.name] = column
    return replace(begun, columns=tuple(columns.values()))


def _table(message: dp_pb2.CatalogTable) -> TableEntry:
    return TableEntry(
        name=message.name,
        member=message.member,
        measures=tuple(
            MeasureEntry(known(_MEASURES, each.measure), each.tau, each.clipped) for each in message.measures
        ),
        time=_time(message.time) if message.HasField("time") else None,
        consistency=known(CONSISTENCIES, message.consistency),
        columns=tuple(_column(column) for column in message.columns),
        contributions=contributions_of(message.contributions) if message.HasField("contributions") else None,
        choice=_choice(message.choice) if message.HasField("choice") else None,
        values=tuple(map(summed_column_of, message.values)),
        quantiles=tuple(map(quantile_column_of, message.quantiles)),
    )


def _choice(message: dp_pb2.CatalogChoice) -> ChoiceEntry:
    return ChoiceEntry(
        among=tuple(known(_ANSWERINGS, each) for each in message.among), units=tuple(message.units)
    )


def _time(message: dp_pb2.CatalogTime) -> TimeEntry:
    return TimeEntry(
        column=message.column,
        unit=known(TIME_UNITS, message.unit),
        zone=message.zone,
        refresh=known(_REFRESHES, message.refresh),
        closed_before=message.closed_before if message.HasField("closed_before") else None,
        buckets=tuple(known(_BUCKET_LENGTHS, each) for each in message.buckets),
        member_buckets=message.member_buckets or None,
    )


def _column(message: dp_pb2.CatalogColumn) -> ColumnEntry:
    kind = known(COLUMN_TYPES, message.type)
    return ColumnEntry(
        name=message.name,
        type=kind,
        mechanism=_mechanism(message.mechanism),
        filters=tuple(known(_OPERATORS, each) for each in message.filters),
        domain=_domain(message, kind) if message.domain_size else None,
        delta=message.delta or None,
        null_value=_null_value(message, kind),
        published=published_of(message.published) if message.HasField("published") else None,
        other_mechanism=_mechanism(message.other_mechanism),
        looked_up_by=message.looked_up_by or None,
    )


def _mechanism(number: dp_pb2.Mechanism) -> Mechanism | None:
    return known(MECHANISMS, number) if number else None


def _domain(message: dp_pb2.CatalogColumn, kind: ColumnType) -> tuple[Shown, ...]:
    if not message.HasField("domain"):
        return ()
    return tuple(shown_values(kind, column_values(ExpectedColumn(message.name, kind), message.domain)))


def _null_value(message: dp_pb2.CatalogColumn, kind: ColumnType) -> Shown | None:
    given = message.null_value.WhichOneof("kind")
    if given is None:
        return None
    if given != kind.value:
        raise IntegrityError("dp_service sent a value of another type than the column's")
    return shown_values(kind, [getattr(message.null_value, given)])[0]
