"""A query is asked only of a table that has the columns it was written for."""

import re
from fractions import Fraction
from typing import Any

import pytest

from pinot_connector.engines.base import (
    ColumnType,
    EngineQuery,
    ReadColumn,
    TimeUnit,
)
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.engines.pinot.columns import columns_of, require_readable
from pinot_connector.errors import EngineRefused, EngineUnavailable
from tests.support.fake_pinot import FakePinot

MINIMUM = {"INT": -(2**31), "LONG": -(2**63)}


def refusal(field: dict[str, Any], read: ReadColumn, kind: str = "dimensionFieldSpecs") -> str | None:
    """Return why a query that reads a column may not be asked of a table with this one."""
    try:
        require_readable(columns_of({kind: [{"name": "c", **field}]}), [read])
    except EngineRefused as error:
        return str(error)
    return None


def in_milliseconds(kind: str) -> ReadColumn:
    """Return a column of timestamps that Pinot holds as integers of a type, with that type's value for NULL."""
    return ReadColumn("c", ColumnType.TIMESTAMP, MINIMUM[kind], time_unit=TimeUnit.MILLISECONDS)


@pytest.mark.parametrize(
    ("field", "kind", "read"),
    [
        ({"dataType": "STRING"}, "dimensionFieldSpecs", ReadColumn("c", ColumnType.STRING, "null")),
        ({"dataType": "STRING"}, "dimensionFieldSpecs", ReadColumn("c", None, "null")),
        ({"dataType": "LONG"}, "dimensionFieldSpecs", ReadColumn("c", ColumnType.INT64, MINIMUM["LONG"])),
        ({"dataType": "INT"}, "dimensionFieldSpecs", ReadColumn("c", ColumnType.INT64, MINIMUM["INT"])),
        ({"dataType": "LONG"}, "metricFieldSpecs", ReadColumn("c", ColumnType.INT64, 0)),
        ({"dataType": "BOOLEAN"}, "dimensionFieldSpecs", ReadColumn("c", ColumnType.BOOL, False)),
        ({"dataType": "INT"}, "dateTimeFieldSpecs", ReadColumn("c", ColumnType.DATE, None)),
        ({"dataType": "LONG"}, "dateTimeFieldSpecs", ReadColumn("c", ColumnType.DATE, None)),
        (
            {"dataType": "INT", "defaultNullValue": 10},
            "dateTimeFieldSpecs",
            ReadColumn("c", ColumnType.DATE, 10),
        ),
        (
            {"dataType": "INT", "defaultNullValue": "-1"},
            "metricFieldSpecs",
            ReadColumn("c", ColumnType.INT64, -1),
        ),
        (
            {"dataType": "STRING", "defaultNullValue": ""},
            "dimensionFieldSpecs",
            ReadColumn("c", ColumnType.STRING, ""),
        ),
        (
            {"dataType": "BOOLEAN", "defaultNullValue": 1},
            "dimensionFieldSpecs",
            ReadColumn("c", ColumnType.BOOL, True),
        ),
        ({"dataType": "TIMESTAMP"}, "dateTimeFieldSpecs", ReadColumn("c", ColumnType.TIMESTAMP, 0)),
        (
            {"dataType": "TIMESTAMP", "defaultNullValue": "1000", "format": "TIMESTAMP"},
            "dateTimeFieldSpecs",
            ReadColumn("c", ColumnType.TIMESTAMP, 1_000_000),
        ),
        *(
            ({"dataType": "LONG", "format": text}, "dateTimeFieldSpecs", in_milliseconds("LONG"))
            for text in ("1:MILLISECONDS:EPOCH", "EPOCH|MILLISECONDS", "EPOCH|MILLISECONDS|1")
        ),
        ({"dataType": "INT"}, "dimensionFieldSpecs", in_milliseconds("INT")),
    ],
)
def test_what_the_policy_says_is_accepted(field: dict[str, Any], kind: str, read: ReadColumn) -> None:
    """Types agree, and so does what stands for NULL: Pinot's own defaults, or the schema's."""
    assert refusal(field, read, kind) is None


@pytest.mark.parametrize(
    ("field", "read", "expected"),
    [
        (
            {"dataType": "STRING", "singleValueField": False},
            ReadColumn("c", ColumnType.STRING, "null"),
            "several",
        ),
        ({"dataType": "STRING", "singleValueField": False}, ReadColumn("c", None, "null"), "several"),
        ({"dataType": "STRING"}, ReadColumn("c", ColumnType.INT64, MINIMUM["LONG"]), "STRING.*says int64"),
        ({"dataType": "DOUBLE"}, ReadColumn("c", ColumnType.INT64, MINIMUM["LONG"]), "DOUBLE.*says int64"),
        ({"dataType": "TIMESTAMP"}, ReadColumn("c", ColumnType.DATE, None), "TIMESTAMP.*says date"),
        ({"dataType": "TIMESTAMP"}, in_milliseconds("LONG"), "TIMESTAMP.*says timestamp in milliseconds"),
        ({"dataType": "LONG"}, ReadColumn("c", ColumnType.TIMESTAMP, 0), "LONG.*says timestamp"),
        (
            {"dataType": "LONG", "format": "1:SECONDS:EPOCH"},
            in_milliseconds("LONG"),
            "1:SECONDS:EPOCH, and the policy says timestamp in milliseconds",
        ),
        ({"dataType": "LONG", "format": "10:MILLISECONDS:EPOCH"}, in_milliseconds("LONG"), "10:MILLISECONDS"),
        ({"dataType": "LONG", "format": "1:DAYS:EPOCH"}, in_milliseconds("LONG"), "1:DAYS:EPOCH"),
        (
            {"dataType": "TIMESTAMP", "defaultNullValue": "2000-01-01 00:00:00.0"},
            ReadColumn("c", ColumnType.TIMESTAMP, 0),
            "stores '2000-01-01 00:00:00.0' .*null_value is 0",
        ),
        ({"dataType": "LONG"}, ReadColumn("c", None, "null"), "LONG.*list the member column"),
        (
            {"dataType": "STRING", "defaultNullValue": ""},
            ReadColumn("c", None, "null"),
            "stores ''.*list the",
        ),
        (
            {"dataType": "INT"},
            ReadColumn("c", ColumnType.INT64, MINIMUM["LONG"]),
            "stores -2147483648 .*null_value is -9",
        ),
        (
            {"dataType": "BOOLEAN"},
            ReadColumn("c", ColumnType.BOOL, True),
            "stores false .*null_value is True",
        ),
        (
            {"dataType": "INT", "defaultNullValue": 0},
            ReadColumn("c", ColumnType.DATE, None),
            "stores 0 .*is a day",
        ),
        (
            {"dataType": "INT"},
            ReadColumn("c", ColumnType.INT64, MINIMUM["INT"], (0, 2**31)),
            "more than 32 bits",
        ),
        ({"dataType": "INT"}, ReadColumn("d", ColumnType.INT64, MINIMUM["INT"]), "no column d"),
    ],
)
def test_another_column_than_the_policy_says_is_refused_by_name(
    field: dict[str, Any], read: ReadColumn, expected: str
) -> None:
    """The message says what Pinot has and what the policy says."""
    assert re.search(expected, refusal(field, read) or "")


@pytest.mark.parametrize("format_", ["1:DAYS:EPOCH", "EPOCH|DAYS", "EPOCH|DAYS|1", "1:days:epoch"])
def test_days_since_1970_are_days(format_: str) -> None:
    """In the words of either generation of schemas."""
    day = ReadColumn("c", ColumnType.DATE, None)
    assert refusal({"dataType": "INT", "format": format_}, day, "dateTimeFieldSpecs") is None


@pytest.mark.parametrize(
    "format_",
    [
        "1:DAYS:SIMPLE_DATE_FORMAT:yyyyMMdd",
        "SIMPLE_DATE_FORMAT|yyyyMMdd",
        "1:MILLISECONDS:EPOCH",
        "EPOCH",
        "7:DAYS:EPOCH",
    ],
)
def test_days_that_are_counted_otherwise_are_refused(format_: str) -> None:
    """20240229 would be a day too late for every answer, and the question would be paid for with nothing."""
    day = ReadColumn("c", ColumnType.DATE, None)
    field = {"dataType": "INT", "format": format_}
    expected = r"column c: Pinot holds it as .*, and a date is the number of days"
    assert re.search(expected, refusal(field, day, "dateTimeFieldSpecs") or "")
    number = ReadColumn("c", ColumnType.INT64, MINIMUM["INT"])
    assert refusal(field, number, "dateTimeFieldSpecs") is None


def test_a_metric_has_another_null() -> None:
    """Zero stands for a missing metric, so that the policy's default does not say it."""
    least = ReadColumn("c", ColumnType.INT64, MINIMUM["LONG"])
    assert "column c: Pinot stores 0 " in (refusal({"dataType": "LONG"}, least, "metricFieldSpecs") or "")


def test_an_old_time_field_is_a_column() -> None:
    """Pinot reads it as it is stored, in its outgoing form."""
    incoming, outgoing = {"name": "ms", "dataType": "LONG"}, {"name": "day", "dataType": "INT"}
    one = columns_of({"timeFieldSpec": {"incomingGranularitySpec": incoming}})
    two = columns_of(
        {"timeFieldSpec": {"incomingGranularitySpec": incoming, "outgoingGranularitySpec": outgoing}}
    )
    assert [("ms", "LONG")] == [(name, column.type) for name, column in one.items()]
    assert [("day", "INT")] == [(name, column.type) for name, column in two.items()]


def test_nothing_is_asked_of_another_table() -> None:
    """The refusal comes before the query is sent; a schema that is none is not taken for one without columns."""
    read = ReadColumn("d", ColumnType.INT64, 0)
    query = EngineQuery("t", "SELECT secret", (), 3, reads=(read,))
    with FakePinot().serving() as pinot:
        engine = PinotEngine(controller=pinot.url, broker=pinot.url)
        with pytest.raises(EngineRefused, match="column d: Pinot holds STRING, and the policy says int64"):
            engine.run(query, "")
        engine.close()
        pinot.replies["/tables/t/schema"] = {"dimensionFieldSpecs": [{"name": "d"}]}
        engine = PinotEngine(controller=pinot.url, broker=pinot.url)
        with pytest.raises(EngineUnavailable):
            engine.run(query, "")
        engine.close()
    assert [] == pinot.queries


@pytest.mark.parametrize(
    ("kind", "stated", "number"),
    [
        ("FLOAT", "1e300", None),
        ("FLOAT", "-3.5e38", None),
        ("DOUBLE", "1e309", None),
        ("DOUBLE", "sNaN", None),
        ("DOUBLE", "1e300", Fraction(10**300)),
        ("FLOAT", "0.1", Fraction(13421773, 2**27)),
    ],
)
def test_a_number_that_a_column_cannot_hold_stands_for_no_number(
    kind: str, stated: str, number: Fraction | None
) -> None:
    """Pinot stores an infinity in its place, which never counts; it must not end in an error of another kind."""
    (column,) = columns_of(
        {"metricFieldSpecs": [{"name": "c", "dataType": kind, "defaultNullValue": stated}]}
    ).values()
    assert column.null_number == number
