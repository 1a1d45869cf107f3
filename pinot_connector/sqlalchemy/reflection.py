"""The catalogue in SQLAlchemy's terms. What is not in the policy is not in the catalogue either."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sqlalchemy import types

from pinot_connector.catalog import Catalog, ColumnEntry, TableEntry
from pinot_connector.engines.base import ColumnType

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
    summed = {value.name: _aggregates(value.name) for value in table.values}
    for column in sorted(
        table.columns, key=lambda each: table.time is None or each.name != table.time.column
    ):
        # A column may be asked about in both ways.
        aggregates = summed.pop(column.name, ())
        yield _column(column.name, _TYPES[column.type](), "; ".join((*_uses(column), *aggregates)))
    for name, aggregates in summed.items():
        # Sums and averages come back as floats, of whole numbers too.
        yield _column(name, types.Float(), f"only in {' and '.join(aggregates)}")


def table_counts(table: TableEntry) -> list[str]:
    """Returns what may be counted in a table, as it is written in SQL."""
    return [each.in_sql(table.member) for each in table.measures]


def table_sums(table: TableEntry) -> list[str]:
    """Returns what may be asked beside a count of members, as it is written in SQL."""
    return [each for value in table.values for each in _aggregates(value.name)]


def table_comment(table: TableEntry) -> str:
    """Returns what may be counted in a table, in a sentence."""
    sums = table_sums(table)
    beside = f", beside COUNT(DISTINCT {table.member}) also {', '.join(sums)}" if sums else ""
    totals = "" if _share_of_totals(table) is None else "; by two columns also GROUPING SETS ((a, b), (a))"
    return f"private answers: {' and '.join(table_counts(table))}, by up to four columns{beside}{totals}"


def _share_of_totals(table: TableEntry) -> Fraction | None:
    return None if table.contributions is None else table.contributions.totals_share


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
