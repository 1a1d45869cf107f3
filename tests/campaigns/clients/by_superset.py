"""Superset with its own database for Pinot, asked through its REST API as its browser asks."""

from __future__ import annotations

import datetime
import json
from typing import Any

from tests.campaigns.clients.judging import Shown
from tests.campaigns.clients.questions import POOR, QUESTIONS, VALUE
from tests.campaigns.clients.sales import TABLE
from tests.campaigns.superset.rest import Chart, Superset
from tests.campaigns.superset.stack import Stack

CALLER = "superset"
MEMBERS = "COUNT(DISTINCT member_id)"


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


def asked_by(superset: Superset, stack: Stack) -> tuple[dict[str, Shown], dict[str, Chart]]:
    """Ask everything; return what each step gave, and the charts that did."""
    url = stack.pinot_url(CALLER)
    status, text = superset.test_connection("sales", url)
    database, poor = superset.add_database("sales", url), superset.add_database("poor", stack.pinot_url(POOR))
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
