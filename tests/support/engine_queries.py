"""The query that an engine gets for a question, as the connector makes it of dp_service's translation."""

from __future__ import annotations

from dp_service.queries.read_columns import ReadValue, bins_read, quantiles_read, values_read
from dp_service.queries.render import Feature, render, required_features
from dp_service.queries.resolution import Resolution
from dp_service.server.messages import closed_stream, read_column
from pinot_connector.engine_queries import read_column_of
from pinot_connector.engines import base
from pinot_connector.views import view


def engine_query(resolution: Resolution, dialect: str) -> base.EngineQuery:
    """Return the query for the engine of a dialect, with all that it has to check."""
    features = required_features(resolution, dialect)
    copy = resolution.copy
    quantiles = next(map(_read_value, quantiles_read(resolution.query)), None)
    stream = closed_stream(resolution.stream)
    return base.EngineQuery(
        table=resolution.query.table,
        sql=render(resolution, dialect),
        columns=(
            *(base.ExpectedColumn(name, base.ColumnType[kind.name]) for name, kind in resolution.columns),
            *(
                (base.CellColumn(base.CELL_COLUMN, base.ColumnType.INT64),)
                if resolution.parameters.counts_cells
                else ()
            ),
        ),
        row_limit=resolution.row_limit,
        requires=frozenset(base.Feature[each.name] for each in features if each is not Feature.FIRST_COUNTS),
        reads=tuple(read_column_of(read_column(each)) for each in resolution.reads),
        bounded_copy=None
        if copy is None
        else base.BoundedCopy(copy.table, copy.member, copy.elements, copy.typical, copy.period),
        first_counts=Feature.FIRST_COUNTS in features,
        sums=tuple(map(_read_value, values_read(resolution.query))),
        bins=tuple(map(_read_value, bins_read(resolution.query))),
        quantiles=quantiles,
        own_counts=len(resolution.query.own_counts),
        stream=None if stream is None else view(base.ClosedStream, stream),
    )


def _read_value(value: ReadValue) -> base.ReadValue:
    return base.ReadValue(value.name, base.ValueType(value.type.value), value.null_value)


def of_each_element(sql: str, element: str) -> str:
    """Return DuckDB's query with a wrong form of weights: each follows from one element of a member alone."""
    by_member, by_element = '"gris_member"', f'"gris_member", "{element}"'
    for before, after in (("(SELECT ", ","), ("GROUP BY ", ")"), ("USING (", ")")):
        sql = sql.replace(f"{before}{by_member}{after}", f"{before}{by_element}{after}")
    return sql
