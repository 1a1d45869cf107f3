"""Superset with its own database for Pinot, or for PostgreSQL, asked through its REST API as its browser asks."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tests.campaigns.clients.judging import Shown
from tests.campaigns.clients.questions import POOR, QUESTIONS, VALUE
from tests.campaigns.clients.sales import TABLE
from tests.campaigns.superset.rest import Chart, Superset
from tests.campaigns.superset.stack import Stack

MEMBERS = "COUNT(DISTINCT member_id)"
MARCH = "2025-03-01 : 2025-04-01"


@dataclass(frozen=True)
class Way:
    """A kind of database that Superset has.

    Attributes:
        name: What the table calls it.
        caller: Whose account it uses.
        url: Gives a caller's URL of SQLAlchemy.
        schema: The schema of its tables.
    """

    name: str
    caller: str
    url: Callable[[str], str]
    schema: str


def ways(stack: Stack) -> tuple[Way, ...]:
    """Return the kinds of databases as which a gateway is added."""
    return (
        Way("its own Pinot database", "superset", stack.pinot_url, "default"),
        Way("its own PostgreSQL database", "superset-postgres", _by_psycopg2(stack), "public"),
    )


def _by_psycopg2(stack: Stack) -> Callable[[str], str]:
    return lambda caller: stack.postgres_url(caller, "postgresql+psycopg2")


def charts(dataset: int) -> dict[str, Chart]:
    """Return the chart of each question."""
    of_value = {"col": "country", "op": "IN", "val": [VALUE]}
    return {
        "top": Chart("Top articles", "table", dataset, ("article",), MEMBERS, 5, (of_value,)),
        "series": Chart(
            *("Members by month", "echarts_timeseries_line", dataset, ("day",), MEMBERS, 100),
            months="2025-01-01 : 2026-01-01",
        ),
        "sum": Chart("Euros by country", "table", dataset, ("country",), "SUM(euros)", 10, label="euros"),
    }


def asked_by(superset: Superset, way: Way) -> tuple[dict[str, Shown], dict[str, Chart]]:
    """Ask everything; return what each step gave, and the charts that did."""
    url = way.url(way.caller)
    status, text = superset.tried_connection(way.caller, url)
    database = superset.add_database(way.caller, url)
    poor = superset.add_database(f"{way.caller}, poor", way.url(POOR))
    assert way.schema in (schemas := superset.schemas(database)), schemas
    dataset = superset.add_dataset(database, TABLE)
    found = {
        "connect": Shown([[1]], "") if status == 200 else Shown([], text),
        "tables": Shown([[name] for name in superset.tables(database)]),
        "columns": Shown([[name] for name in superset.columns(dataset)]),
    }
    drawn = charts(dataset)
    for step, chart in [*drawn.items(), ("again", drawn["top"])]:
        found[step] = _of_chart(*superset.data([chart]))
    found["refused"] = _of_sql(*superset.run(database, QUESTIONS["refused"]))
    found["exhausted"] = _of_sql(*superset.run(poor, QUESTIONS["top"]))
    return found, drawn


def more_charts(superset: Superset, dataset: int) -> list[Chart]:
    """Return charts that no driver has; an AssertionError says what is wrong.

    A list of values to filter by, a big number, days of a month, and a chart that is refused.
    """
    assert superset.values(dataset, "country") == ["DE", "FR", "NL"]
    total = Chart("Euros", "big_number_total", dataset, (), "SUM(euros)", 1, label="euros")
    days = replace(charts(dataset)["series"], name="Members by day", months=MARCH, grain="P1D")
    for chart, count in ((total, 1), (days, 31)):
        status, answer = superset.data([chart])
        assert status == 200, answer
        assert len(answer["result"][0]["data"]) == count, answer
    return [total, days, replace(total, name="Refused", metric="SUM(member_id)")]


def _of_chart(status: int, answer: dict[str, Any]) -> Shown:
    if status != 200:
        return Shown([], json.dumps(answer))
    (result,) = answer["result"]
    return Shown([[_plain(name, value) for name, value in row.items()] for row in result["data"]])


def _of_sql(status: int, answer: dict[str, Any]) -> Shown:
    if status != 200:
        return Shown([], json.dumps(answer))
    return Shown([list(row.values()) for row in answer["data"]])


def _plain(name: str, value: Any) -> Any:
    """Return a value; days are milliseconds here."""
    return (
        str(datetime.datetime.fromtimestamp(value / 1000, datetime.UTC).replace(tzinfo=None))
        if name == "day"
        else value
    )
