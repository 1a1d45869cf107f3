"""The catalogue in SQLAlchemy's terms. What is not in the policy is not in the catalogue either."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sqlalchemy import types

from pinot_connector.catalog import Catalog, ColumnEntry, MeasureEntry, TableEntry
from pinot_connector.engines.base import ColumnType
from pinot_connector.questions import Measure

if TYPE_CHECKING:
    from sqlalchemy.types import TypeEngine

_TYPES: dict[ColumnType, type[TypeEngine[Any]]] = {
    ColumnType.STRING: types.String,
    ColumnType.INT64: types.BigInteger,
    ColumnType.BOOL: types.Boolean,
    ColumnType.DATE: types.Date,
    ColumnType.TIMESTAMP: types.DateTime,
}


def table_named(catalog: Catalog, name: str) -> TableEntry | None:
    """Returns the table of that name, None if the catalogue has none."""
    return next((table for table in catalog.tables if table.name == name), None)


def reflected_columns(table: TableEntry) -> Iterator[dict[str, Any]]:
    """Yields the columns of a table: the member column, those that questions may use, and those that may be summed.

    The policy's time column stands before the others: tools take the first column of days or times for a table's own.
    """
    # Its type is not in the catalogue, and does not matter: it stands only inside of COUNT(DISTINCT ..).
    yield _column(table.member, types.String(), f"the member: only in COUNT(DISTINCT {table.member})")
    ranked = {each.name for each in table.quantiles}
    summed = {
        name: (*_aggregates(name), *([f"MEDIAN({name})"] if name in ranked else []))
        for name in (value.name for value in table.values)
    }
    for column in sorted(
        table.columns, key=lambda each: table.time is None or each.name != table.time.column
    ):
        # A column may be asked about in both ways.
        aggregates = summed.pop(column.name, ())
        yield _column(column.name, _TYPES[column.type](), "; ".join((*_uses(column), *aggregates)))
    for name, aggregates in summed.items():
        # Sums and averages come back as floats, of whole numbers too.
        yield _column(name, types.Float(), f"only in numbers, such as {', '.join(aggregates)}")


def table_metrics(table: TableEntry) -> dict[str, str]:
    """Returns what may be asked of a table by names that tools may give it, each as it is written in SQL."""
    counts = {_name_of(each): each.in_sql(table.member) for each in table.measures}
    return counts | {f"{each[:3].lower()}_{each[4:-1]}": each for each in _sums(table)}


def _name_of(counted: MeasureEntry) -> str:
    if counted.distinct_of:
        return f"distinct_{counted.distinct_of}"
    return "rows" if counted.measure is Measure.EVENTS else "members"


def _sums(table: TableEntry) -> list[str]:
    return [each for value in table.values for each in _aggregates(value.name)]


def table_comment(table: TableEntry) -> str:
    """Returns what may be counted in a table, in a sentence."""
    counts, sums = [each.in_sql(table.member) for each in table.measures], _sums(table)
    also = f", also {', '.join(sums)}" if sums else ""
    return f"private answers: {' and '.join(counts)}, by up to four columns{also}"


def _column(name: str, kind: TypeEngine[Any], comment: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "nullable": False,
        "default": None,
        "autoincrement": False,
        "comment": comment,
    }


def _uses(column: ColumnEntry) -> tuple[str, ...]:
    grouped = () if column.mechanism is None else (f"GROUP BY ({column.mechanism.value})",)
    filtered = (f"filter: {', '.join(each.value for each in column.filters)}",) if column.filters else ()
    looked_up = () if column.looked_up_by is None else (f"looked up by {column.looked_up_by}",)
    return (*grouped, *filtered, *looked_up)


def _aggregates(column: str) -> tuple[str, ...]:
    return (f"SUM({column})", f"AVG({column})")
