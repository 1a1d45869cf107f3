"""The catalogue: what may be asked, as dp_service shows it of the policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from typing import Any

from gris_api.common.v1 import histogram_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector.engines.base import ColumnType, ExpectedColumn, TimeUnit
from pinot_connector.errors import IntegrityError
from pinot_connector.guarantees import PublishedDomain
from pinot_connector.json_values import ONLY_SAID, to_json
from pinot_connector.parameters import BoundedBy, Consistency, CountNoise, Mechanism
from pinot_connector.questions import Measure, measure_text
from pinot_connector.releases import column_values
from pinot_connector.shown_values import ShownScalar, shown_values
from pinot_connector.value_parameters import QuantileColumn
from pinot_connector.views import known, meanings, read_by, view


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

    `clipped`: the query counts no more than tau events, or values, of a member in one element. `distinct_of` is the
    column whose distinct values are counted; empty: something else is.
    """

    measure: Measure
    tau: int
    clipped: bool
    distinct_of: str = ""

    @property
    def text(self) -> str:
        """What questions call it."""
        return measure_text(self.measure, self.distinct_of)

    def in_sql(self, member: str) -> str:
        """Returns it as SQL has it; `member` is the table's member column."""
        if self.measure is Measure.EVENTS:
            return "COUNT(*)"
        return f"COUNT(DISTINCT {self.distinct_of or member})"


@dataclass(frozen=True)
class TimeEntry:
    """The column that time ranges restrict, and the zone in which days begin.

    `refresh` None: rows count as they arrive. `closed_before` is the first value that no question sees now. `buckets`
    are those into which questions may divide it. `parts` are what questions may group by of its times, such as
    `EXTRACT(HOUR FROM viewed_at)`.
    """

    column: str
    unit: TimeUnit
    zone: str
    refresh: Refresh | None
    closed_before: int | None
    buckets: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


def _domain(message: dp_pb2.CatalogColumn) -> tuple[ShownScalar, ...] | None:
    if not message.domain_size:
        return None
    if not message.HasField("domain"):
        return ()
    kind = known(_TYPES, message.type)
    return tuple(shown_values(kind, column_values(ExpectedColumn(message.name, kind), message.domain)))


def _block_values(message: dp_pb2.Blocks) -> tuple[ShownScalar, ...]:
    kind = ColumnType.INT64 if message.values.HasField("int64s") else ColumnType.STRING
    return tuple(shown_values(kind, column_values(ExpectedColumn(message.values.name, kind), message.values)))


def _block_messages(values: tuple[ShownScalar, ...]) -> histogram_pb2.ElementColumn:
    if any(isinstance(each, int) for each in values):
        return histogram_pb2.ElementColumn(int64s=histogram_pb2.Int64Values(values=values))  # type: ignore[arg-type]
    return histogram_pb2.ElementColumn(strings=histogram_pb2.StringValues(values=map(str, values)))


def _null_value(message: dp_pb2.CatalogColumn) -> ShownScalar | None:
    given, kind = message.null_value.WhichOneof("kind"), known(_TYPES, message.type)
    if given is None:
        return None
    if given != kind.value:
        raise IntegrityError("expected a value of the column's type")
    return shown_values(kind, [getattr(message.null_value, given)])[0]


_TYPES = meanings(ColumnType, histogram_pb2.ColumnType.DESCRIPTOR)


@dataclass(frozen=True)
class ColumnEntry:
    """A column that questions may use.

    `mechanism` answers where questions group by this column alone; None: they may not. `domain` None: its values are
    not known beforehand. `delta` is the most of its values that one member has, None: any number. `typical` is how many
    a member typically has where the query bounds members, None: the policy says no such number. `null_value` stands
    for rows without a value, None: they are left out. `published` is what finding the domain in the data cost everyone
    who may see it, None: it was not found there. `looked_up_by` is the column by whose values this one's are looked up,
    in a public file that the policy names; None: the table has the column itself.
    """

    name: str
    type: ColumnType
    mechanism: Mechanism | None
    filters: tuple[FilterOperator, ...]
    domain: tuple[ShownScalar, ...] | None = field(metadata=read_by(_domain))
    delta: int | None
    null_value: ShownScalar | None = field(metadata=read_by(_null_value))
    typical: int | None = None
    published: PublishedDomain | None = None
    looked_up_by: str | None = None


@dataclass(frozen=True)
class CatalogContributions:
    """How the contributions of a table's members are bounded, whatever is asked.

    A member counts in at most `delta` elements in each of so many `periods`, None: the question's range decides how
    many; `delta` None: its columns say how many elements count in full (`ColumnEntry.typical`). A question costs
    `units` information units, and one that says how exact it has to be `least_units` to `most_units`. `min_count` is
    the smallest count that is considered over an unknown domain, of which the first of two looks names at most
    `longest_list` elements, None: there is one look. `largest_cut` is the largest part of a number that bounds cut, as
    the owner states it; None: nothing is known of it.
    """

    bounded_by: BoundedBy
    delta: int | None
    periods: int | None
    units: int
    least_units: int
    most_units: int
    min_count: int
    longest_list: int | None = None
    largest_cut: Fraction | None = None


@dataclass(frozen=True)
class CatalogValue:
    """A column that may be summed; all numbers are exact.

    A row counts between `row_lower` and `row_upper`, in steps of `quantum`, and a member's total in an element between
    `lower` and `upper`.
    """

    name: str
    quantum: Fraction
    lower: Fraction
    upper: Fraction
    row_lower: Fraction
    row_upper: Fraction


@dataclass(frozen=True)
class FunctionEntry:
    """A kind of function by which a table may be grouped: a funnel, retention, bins.

    `text` is an example as `by` takes it, `meaning` says what it groups by, and `sql` is a whole question by it, which
    is answered as it is. `code` names the kind for programs.
    """

    code: str
    text: str
    meaning: str
    sql: str


@dataclass(frozen=True)
class TableEntry:
    """A table that may be asked about; `member` names the column that identifies a member.

    `contributions` is how the contributions of members are bounded; None: they are not. `values` are the columns that
    may be summed beside counts of distinct members, and `quantiles` those whose quantiles may be asked for.
    `block_column` says which block of members a row is of; None: every question reads all.
    """

    name: str
    member: str
    measures: tuple[MeasureEntry, ...]
    time: TimeEntry | None
    consistency: Consistency
    columns: tuple[ColumnEntry, ...]
    contributions: CatalogContributions | None = None
    values: tuple[CatalogValue, ...] = ()
    quantiles: tuple[QuantileColumn, ...] = ()
    functions: tuple[FunctionEntry, ...] = ()
    block_column: str | None = None


@dataclass(frozen=True)
class BlocksEntry:
    """How members are divided, by `name`: each of `values` is a block, and all others together are one more.

    `ids` name the blocks of the values in costs, and `rest` that of the others; empty: it is not offered. A member may
    move into `moves` more blocks within a window. `all_may_pay`: all blocks may have to pay for what may be asked.
    """

    name: str
    values: tuple[ShownScalar, ...] = field(metadata=read_by(_block_values, _block_messages))
    ids: tuple[str, ...]
    rest: str
    moves: int
    all_may_pay: bool = field(default=False, metadata=ONLY_SAID)

    @property
    def every(self) -> tuple[str, ...]:
        """The ids of all blocks that are offered."""
        return (*self.ids, self.rest) if self.rest else self.ids

    def named(self, id_: str) -> str:
        """Returns what a block is called; a block of another division by its id."""
        known = dict(zip(self.ids, map(str, self.values), strict=True)) | {self.rest: "all others"}
        return f"{self.name} {known.get(id_, id_)}"


@dataclass(frozen=True)
class Catalog:
    """All that may be asked, and the currency that it is paid in; `policy_id` names the content of the policy file."""

    tables: tuple[TableEntry, ...]
    epsilon_per: Fraction
    delta: Fraction
    unit_id: str
    count_noise: CountNoise
    policy_id: str
    blocks: BlocksEntry | None = None

    def to_dict(self) -> dict[str, Any]:
        """Returns the catalogue in terms of JSON: days as ISO 8601, exact numbers as "p/q"."""
        values: dict[str, Any] = to_json(self)
        return values


def catalog_of(pages: Sequence[dp_pb2.GetCatalogResponse]) -> Catalog:
    """Assembles the catalogue from all its pages, of which there is at least one.

    Raises:
        IntegrityError: the pages do not belong together, or say something that this version does not know.
    """
    tables: dict[str, TableEntry] = {}
    sizes: dict[tuple[str, str], int] = {}
    for message in (table for page in pages for table in page.tables):
        tables[message.name] = _continued(tables.get(message.name), view(TableEntry, message))
        sizes |= {(message.name, column.name): column.domain_size for column in message.columns}
    for table in tables.values():
        if any(len(column.domain or ()) != sizes[table.name, column.name] for column in table.columns):
            raise IntegrityError("dp_service sent a part of a domain")
    return view(Catalog, pages[0], tables=tuple(tables.values()))


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
