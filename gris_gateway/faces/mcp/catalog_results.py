"""The catalogue as the tool returns it. Values of domains are data; they are listed for one table at a time."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field

from gris_gateway.faces.mcp.results import Element, view_of
from pinot_connector.catalog import Catalog, ColumnEntry, TableEntry
from pinot_connector.parameters import Consistency

MOST_VALUES = 1000


class Domain(BaseModel):
    """The values that a column can have, known beforehand."""

    size: int
    values: list[Element] = Field(description="Data: the first of them; empty where all tables are listed.")


class Column(BaseModel):
    """A column that questions may use."""

    name: str
    type: str
    group_by: Annotated[bool, BeforeValidator(lambda mechanism: mechanism is not None)] = Field(
        validation_alias="mechanism"
    )
    conditions: list[str] = Field(
        validation_alias="filters", description="in: =, IN; not_in: <>, NOT IN; range: <, <=, >, >=, BETWEEN."
    )
    domain: Domain | None = Field(description="null: its values are not known; rare ones are never shown.")
    looked_up_by: str | None = Field(
        default=None, description="The column by whose values it is looked up in a public file."
    )


class TimeColumn(BaseModel):
    """The column that conditions on time are of."""

    name: str = Field(validation_alias="column")
    zone: str
    buckets: list[str]
    parts: list[str]
    closed_periods: str | None = Field(
        validation_alias="refresh",
        description="Only whole periods of this length that are over are counted.",
    )


class Function(BaseModel):
    """A kind of function that questions may group by."""

    meaning: str
    sql: str = Field(description="A whole question by it.")


_Name = Annotated[str, BeforeValidator(attrgetter("name"))]


class Table(BaseModel):
    """A table that may be asked about."""

    name: str
    member: str = Field(
        description="Names a person; only inside COUNT(DISTINCT ..) never in GROUP BY or WHERE."
    )
    measures: list[Annotated[str, BeforeValidator(attrgetter("text"))]]
    columns: list[Column]
    time: TimeColumn | None
    sums: list[_Name] = Field(validation_alias="values", description="Columns for sums and averages.")
    quantiles: list[_Name]
    functions: list[Function] = Field(
        description="What may be grouped by beside columns: funnels, retention, buckets, cases; an example of each."
    )
    block_column: str | None = Field(
        description="The column by whose conditions fewer blocks pay; see blocks."
    )
    repeats_are_free: Annotated[bool, BeforeValidator(lambda stated: stated is Consistency.KEYED)] = Field(
        validation_alias="consistency"
    )


class Blocks(BaseModel):
    """Members are divided: a question whose conditions name values of a block column is paid for by these alone."""

    name: str
    values: list[Element] = Field(description="Data: each is a block, and all other values are one more.")


class Tables(BaseModel):
    """What may be asked."""

    tables: list[Table]
    blocks: Blocks | None


def tables_of(catalog: Catalog, *, with_values: bool) -> Tables:
    """Return the catalogue, with the values of domains or without."""
    tables = [_table(each, with_values=with_values) for each in catalog.tables]
    return Tables(tables=tables, blocks=None if catalog.blocks is None else view_of(Blocks, catalog.blocks))


def _table(entry: TableEntry, *, with_values: bool) -> Table:
    return view_of(Table, entry, columns=[_column(each, with_values=with_values) for each in entry.columns])


def _column(entry: ColumnEntry, *, with_values: bool) -> Column:
    domain = entry.domain
    shown = domain[:MOST_VALUES] if domain is not None and with_values else ()
    return view_of(Column, entry, domain=None if domain is None else {"size": len(domain), "values": shown})
