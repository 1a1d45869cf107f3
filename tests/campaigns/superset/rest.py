"""Superset's REST API, as far as the check needs it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from tests.campaigns.superset.stack import PASSWORD


@dataclass(frozen=True)
class Chart:
    """What a chart asks: columns, a metric in SQL, and how many rows; by month, if it has a range of time.

    `grain` is another length of time, as Superset names it: P1D is a day.
    """

    name: str
    kind: str
    dataset: int
    columns: tuple[str | dict[str, str], ...]
    metric: str
    row_limit: int
    filters: tuple[dict[str, Any], ...] = ()
    renders_html: bool = False
    label: str = "members"
    months: str = ""
    grain: str = "P1M"

    def query(self) -> dict[str, Any]:
        """Return the query as Superset's charts send it."""
        metric = {"expressionType": "SQL", "sqlExpression": self.metric, "label": self.label}
        return {
            "columns": [self._by_month()] if self.months else list(self.columns),
            "metrics": [metric],
            "orderby": [[metric, False]],
            "row_limit": self.row_limit,
            "filters": [*self.filters, *self._in_range()],
            "extras": {},
        }

    def _by_month(self) -> dict[str, Any]:
        (column,) = self.columns
        base = {"label": column, "sqlExpression": column, "expressionType": "SQL"}
        return base | {"columnType": "BASE_AXIS", "timeGrain": self.grain}

    def _in_range(self) -> list[dict[str, Any]]:
        return [{"col": self.columns[0], "op": "TEMPORAL_RANGE", "val": self.months}] if self.months else []

    def form(self) -> dict[str, Any]:
        """Return the form that Explore shows."""
        metric = self.query()["metrics"][0]
        shared = {
            "datasource": f"{self.dataset}__table",
            "viz_type": self.kind,
            "row_limit": self.row_limit,
            "adhoc_filters": [
                {"subject": each["col"], "operator": each["op"], "comparator": each["val"]}
                | {"clause": "WHERE", "expressionType": "SIMPLE"}
                for each in self.query()["filters"]
            ],
        }
        if self.kind == "table":
            table = {"query_mode": "aggregate", "groupby": list(self.columns), "metrics": [metric]}
            ranked = {"order_desc": True, "timeseries_limit_metric": metric}
            return shared | table | ranked | {"allow_render_html": self.renders_html}
        if self.kind == "big_number_total":
            return shared | {"metric": metric}
        return shared | {
            "x_axis": self.columns[0],
            "metrics": [metric],
            "groupby": [],
            **({"time_grain_sqla": self.grain} if self.months else {}),
            "x_axis_sort": self.columns[0],
            "x_axis_sort_asc": True,
            "order_desc": True,
            "y_axis_format": "SMART_NUMBER",
        }


class Superset:
    """A session of one user."""

    def __init__(self, url: str, user: str = "admin", schema: str = "default") -> None:
        self.url = url
        self._schema = schema
        self._http = httpx.Client(base_url=url, timeout=120)
        login = {"username": user, "password": PASSWORD, "provider": "db", "refresh": False}
        token = (
            self._http.post("/api/v1/security/login", json=login).raise_for_status().json()["access_token"]
        )
        self._http.headers["Authorization"] = f"Bearer {token}"

    def tried_connection(self, name: str, uri: str) -> tuple[int, str]:
        """Press "Test connection"; return the status, and what is said."""
        answer = self._http.post(
            "/api/v1/database/test_connection/", json={"database_name": name, "sqlalchemy_uri": uri}
        )
        return answer.status_code, answer.text

    def add_database(self, name: str, uri: str, *, impersonate_user: bool = False) -> int:
        """Add a database; return its id."""
        database = {
            "database_name": name,
            "sqlalchemy_uri": uri,
            "expose_in_sqllab": True,
            "impersonate_user": impersonate_user,
        }
        return self._made("/api/v1/database/", database)

    def tables(self, database: int) -> list[str]:
        """Return the tables that Superset offers."""
        answer = self._http.get(
            f"/api/v1/database/{database}/tables/?q=(force:!t,schema_name:{self._schema})"
        )
        return sorted(each["value"] for each in answer.raise_for_status().json()["result"])

    def schemas(self, database: int) -> list[str]:
        """Return the schemas that Superset offers."""
        answer = self._http.get(f"/api/v1/database/{database}/schemas/?q=(force:!t)").raise_for_status()
        return sorted(answer.json()["result"])

    def add_dataset(self, database: int, table: str) -> int:
        """Make a dataset of a table; return its id."""
        return self._made(
            "/api/v1/dataset/", {"database": database, "schema": self._schema, "table_name": table}
        )

    def remove_dataset(self, dataset: int) -> None:
        """Remove a dataset; its charts stay, and show nothing."""
        self._http.delete(f"/api/v1/dataset/{dataset}").raise_for_status()

    def add_virtual_dataset(self, database: int, name: str, sql: str) -> int:
        """Make a virtual dataset; return its id."""
        values = {"database": database, "schema": self._schema, "table_name": name, "sql": sql}
        return self._made("/api/v1/dataset/", values)

    def edit_sql(self, dataset: int, sql: str) -> None:
        """Make a dataset of a table a virtual one."""
        self._http.put(f"/api/v1/dataset/{dataset}", json={"sql": sql}).raise_for_status()

    def values(self, dataset: int, column: str) -> list[Any]:
        """Open a value filter of a dashboard, which sorts what it offers; return what it offers."""
        query = {
            "columns": [column],
            "metrics": [],
            "orderby": [[column, True]],
            "row_limit": 1000,
            "filters": [],
        }
        asked = {"datasource": {"id": dataset, "type": "table"}, "force": True, "queries": [query]}
        answer = self._http.post("/api/v1/chart/data", json=asked).raise_for_status().json()
        return [row[column] for row in answer["result"][0]["data"]]

    def columns(self, dataset: int) -> dict[str, str]:
        """Return names and types of a dataset's columns."""
        answer = self._http.get(f"/api/v1/dataset/{dataset}").raise_for_status().json()
        return {each["column_name"]: each["type"] for each in answer["result"]["columns"]}

    def metrics(self, dataset: int) -> dict[str, str]:
        """Return names and expressions of a dataset's own metrics."""
        answer = self._http.get(f"/api/v1/dataset/{dataset}").raise_for_status().json()
        return {each["metric_name"]: each["expression"] for each in answer["result"]["metrics"]}

    def add_chart(self, chart: Chart) -> int:
        """Save a chart; return its id."""
        saved = {
            "slice_name": chart.name,
            "viz_type": chart.kind,
            "datasource_id": chart.dataset,
            "datasource_type": "table",
            "params": json.dumps(chart.form()),
        }
        return self._made("/api/v1/chart/", saved)

    def data(self, charts: Sequence[Chart], *, force: bool = True) -> tuple[int, Any]:
        """Ask for the data of charts on one dataset; return the status, and the answer."""
        asked = {
            "datasource": {"id": charts[0].dataset, "type": "table"},
            "force": force,
            "queries": [chart.query() for chart in charts],
            "result_format": "json",
            "result_type": "full",
        }
        answer = self._http.post("/api/v1/chart/data", json=asked)
        return answer.status_code, answer.json()

    def exported(self, chart: Chart) -> str:
        """Return the data of a chart as Superset exports them."""
        asked = {
            "datasource": {"id": chart.dataset, "type": "table"},
            "queries": [chart.query()],
            "result_format": "csv",
            "result_type": "full",
        }
        return self._http.post("/api/v1/chart/data", json=asked).raise_for_status().text

    def price(self, database: int, sql: str) -> Any:
        """Press "Estimate cost" in SQL Lab."""
        asked = {"database_id": database, "sql": sql, "schema": self._schema}
        return self._http.post("/api/v1/sqllab/estimate/", json=asked).raise_for_status().json()["result"]

    def run(self, database: int, sql: str) -> tuple[int, Any]:
        """Run SQL in SQL Lab; return the status, and the answer."""
        asked = {"database_id": database, "sql": sql, "schema": self._schema, "queryLimit": 100}
        answer = self._http.post("/api/v1/sqllab/execute/", json=asked)
        return answer.status_code, answer.json()

    def _made(self, path: str, values: dict[str, Any]) -> int:
        answer = self._http.post(path, json=values)
        if answer.is_error:
            raise AssertionError(f"{path}: {answer.text}")
        made: int = answer.json()["id"]
        return made
