"""A table of the catalogue in SQLAlchemy's terms."""

from __future__ import annotations

from fractions import Fraction

import sqlalchemy as sa

from pinot_connector.catalog import CatalogValue, ColumnEntry, FilterOperator, MeasureEntry, TableEntry
from pinot_connector.engines.base import ColumnType
from pinot_connector.parameters import Consistency, Mechanism
from pinot_connector.questions import Measure
from pinot_connector.sqlalchemy.reflection import reflected_columns, table_comment, table_metrics
from pinot_connector.value_parameters import GridScale, QuantileColumn


def value(name: str) -> CatalogValue:
    """Return a column that may be summed."""
    return CatalogValue(name, Fraction(1, 100), Fraction(0), Fraction(5000), Fraction(0), Fraction(100))


TABLE = TableEntry(
    name="invoices",
    member="customer",
    measures=(
        MeasureEntry(Measure.DISTINCT_MEMBERS, 1, clipped=False),
        MeasureEntry(Measure.EVENTS, 5, clipped=True),
        *(
            MeasureEntry(Measure.DISTINCT_VALUES, 8, clipped=True, distinct_of=each)
            for each in ("country", "item")
        ),
    ),
    time=None,
    consistency=Consistency.KEYED,
    columns=(
        ColumnEntry("country", ColumnType.STRING, Mechanism.BOUND_GAUSS, (), None, None, None),
        ColumnEntry("pieces", ColumnType.INT64, None, (FilterOperator.RANGE,), None, None, None),
    ),
    values=(value("amount"), value("pieces")),
    quantiles=(
        QuantileColumn("amount", Fraction(1, 100), GridScale.LINEAR, Fraction(0), Fraction(5000), 50),
    ),
)


def test_columns_that_may_be_summed_are_listed_once() -> None:
    """Also one that questions filter by as well: it keeps its own type and says both."""
    columns = {each["name"]: each for each in reflected_columns(TABLE)}
    assert ["customer", "country", "pieces", "amount"] == list(columns)
    assert "only in numbers, such as SUM(amount), AVG(amount), MEDIAN(amount)" == columns["amount"]["comment"]
    assert isinstance(columns["amount"]["type"], sa.Float)
    assert "filter: range; SUM(pieces); AVG(pieces)" == columns["pieces"]["comment"]
    assert isinstance(columns["pieces"]["type"], sa.BigInteger)
    assert "COUNT(DISTINCT item), by up to four columns, also SUM(amount)" in table_comment(TABLE)


def test_each_metric_has_a_name_of_its_own() -> None:
    """Tools keep one metric of a name, and fail at a second one."""
    assert {
        "members": "COUNT(DISTINCT customer)",
        "rows": "COUNT(*)",
        "distinct_country": "COUNT(DISTINCT country)",
        "distinct_item": "COUNT(DISTINCT item)",
        "sum_amount": "SUM(amount)",
        "avg_amount": "AVG(amount)",
        "sum_pieces": "SUM(pieces)",
        "avg_pieces": "AVG(pieces)",
    } == table_metrics(TABLE)
