"""The catalogue as the tool returns it. Values of domains are data; they are listed for one table at a time."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from gris_mcp.results import Element, element_of
from pinot_connector.catalog import Catalog, ColumnEntry, TableEntry

MOST_VALUES = 1000


class Domain(BaseModel):
    """The values that a column can have, known beforehand."""

    size: int
    values: list[Element] = Field(description="Data: the first of them; empty where all tables are listed.")


class Column(BaseModel):
    """A column that questions may use."""

    name: str
    type: str
    group_by: bool
    conditions: list[str] = Field(description="in: one_of; not_in: none_of; range: at_least, at_most.")
    domain: Domain | None = Field(description="null: its values are not known; rare ones are never shown.")
    looked_up_by: str | None = Field(
        default=None, description="The column by whose values it is looked up in a public file."
    )


class TimeColumn(BaseModel):
    """The column that since and until restrict."""

    name: str
    zone: str
    buckets: list[str]
    closed_periods: str | None = Field(
        description="Only whole periods of this length that are over are counted."
    )


class Table(BaseModel):
    """A table that may be asked about."""

    name: str
    member: str = Field(
        description="Names a person; only inside COUNT(DISTINCT ..) in SQL, never in by or where."
    )
    measures: list[Literal["distinct_members", "events"]]
    columns: list[Column]
    time: TimeColumn | None
    sums: list[str] = Field(description="Columns for sums and averages.")
    quantiles: list[str]
    offers_totals: bool = Field(description="Whether a question by two columns may have totals_by.")
    repeats_are_free: bool


class Tables(BaseModel):
    """What may be asked."""

    tables: list[Table]


def tables_of(catalog: Catalog, *, with_values: bool) -> Tables:
    """Return the catalogue, with the values of domains or without."""
    return Tables(tables=[_table(each, with_values=with_values) for each in catalog.tables])


def _table(entry: TableEntry, *, with_values: bool) -> Table:
    time = entry.time
    return Table(
        name=entry.name,
        member=entry.member,
        measures=[each.measure.value for each in entry.measures],
        columns=[_column(each, with_values=with_values) for each in entry.columns],
        time=None
        if time is None
        else TimeColumn(
            name=time.column,
            zone=time.zone,
            buckets=[each.value for each in time.buckets],
            closed_periods=None if time.refresh is None else time.refresh.value,
        ),
        sums=[each.name for each in entry.values],
        quantiles=[each.name for each in entry.quantiles],
        offers_totals=entry.contributions is not None and entry.contributions.totals_share is not None,
        repeats_are_free=entry.consistency.value == "keyed",
    )


def _column(entry: ColumnEntry, *, with_values: bool) -> Column:
    domain = entry.domain
    shown = domain[:MOST_VALUES] if domain is not None and with_values else ()
    return Column(
        name=entry.name,
        type=entry.type.value,
        group_by=entry.mechanism is not None,
        conditions=[each.value for each in entry.filters],
        domain=None if domain is None else Domain(size=len(domain), values=list(map(element_of, shown))),
        looked_up_by=entry.looked_up_by,
    )
