"""A real Apache Superset adds a gateway as a database, draws charts, and shows what is refused.

    python -m tests.campaigns superset  # some minutes

Superset lives in an environment of its own, build/superset, which is set up first; nothing of it is imported here.
Charts go through its REST API, as its browser does. Where Chromium is, the pages are drawn too, into
build/superset-pictures.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.campaigns.superset.rest import Chart, Superset
from tests.campaigns.superset.stack import USER, Stack, draw, running_stack, running_superset
from tests.campaigns.superset.tables import STRANGERS, write_tables

MEMBERS = "COUNT(DISTINCT member_id)"
TOP = "SELECT article_id, COUNT(DISTINCT member_id) AS members FROM cofacts_feedback GROUP BY article_id LIMIT 10"
PANELS, RELOADS = 12, 100
BUILD = Path(__file__).parents[3] / "build"
INSTALL = Path(__file__).parents[1] / "clients" / "install.sh"


def main() -> None:
    """Run the check; an AssertionError says what is wrong."""
    argparse.ArgumentParser("python -m tests.campaigns superset", description=__doc__).parse_args()
    subprocess.run((INSTALL, "superset"), check=True)
    programs, chromium = BUILD / "superset/bin", shutil.which("chromium")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            running_stack(folder / "gateway", write_tables) as stack,
            running_superset(programs, folder / "superset", stack) as url,
        ):
            charts = _check(Superset(url), stack)
            if chromium is not None:
                draw(programs, Path(chromium), BUILD / "superset-pictures", url, charts)


def _check(superset: Superset, stack: Stack) -> dict[str, int]:
    """Try what people do, and return the charts to look at."""
    _refused_connections(superset, stack)
    database = superset.add_database("gris", stack.url("ana"))
    dataset = _looking_around(superset, stack, database)
    top = Chart("Top articles", "table", dataset, ("article_id",), MEMBERS, 10)
    series = Chart("New members by month", "echarts_timeseries_line", dataset, ("cohort",), MEMBERS, 100)
    by_app = Chart("Members by app", "echarts_timeseries_bar", dataset, ("app",), MEMBERS, 10)
    for chart in (top, series, by_app):
        _said(chart.name, _rows(superset, chart))
    _filters(superset, dataset)
    _dashboard(superset, stack, dataset)
    _native_filters(superset, stack, dataset)
    exhausted = _exhausted(superset, stack)
    _expired(superset, stack, top)
    strangers = _strangers(superset, database)
    # Superset's own default, for somebody to see what it does.
    rendered = replace(strangers, name="Strangers as HTML", renders_html=True)
    _impersonated(superset, stack)
    _virtual(superset, database, dataset)
    charts = (top, series, by_app, exhausted, strangers, rendered)
    return {chart.name: superset.add_chart(chart) for chart in charts}


def _refused_connections(superset: Superset, stack: Stack) -> None:
    good = stack.url("ana")
    (stack.credentials.parent / "secret").write_text("not yours")
    for name, uri, said in (
        ("no such token", good.replace("ana.jwt", "bob.jwt"), "expected token_file to be the name of a file"),
        ("another user's file", good.replace("ana.jwt", "../secret"), "expected token_file to be the name"),
        ("another gateway", good.replace(stack.address, "127.0.0.1:1"), "GRIS_GATEWAYS"),
        ("a local socket", good.replace(stack.address, "unix:1"), "gris://HOST:PORT/"),
    ):
        status, text = superset.tried_connection("gris", uri)
        assert status >= 400, (name, text)
        _said(f"test connection, {name}", f"{status} {text[:300]}")
        assert said in text, text
    status, text = superset.tried_connection("gris", good)
    assert status == 200, text


def _looking_around(superset: Superset, stack: Stack, database: int) -> int:
    """Read tables, columns and prices: no engine is asked."""
    before = stack.engine_queries()
    assert ["cofacts_feedback", "online_retail", "strangers"] == superset.tables(database)
    dataset = superset.add_dataset(database, "cofacts_feedback")
    _said("columns", superset.columns(dataset))
    assert {"members": MEMBERS} == superset.metrics(dataset)
    _said("price", superset.price(database, TOP))
    status, answer = superset.run(database, "SELECT * FROM cofacts_feedback")
    assert status >= 400, answer
    _said("preview of a table", _errors(answer))
    assert stack.engine_queries() == before
    return dataset


def _rows(superset: Superset, chart: Chart) -> list[dict[str, Any]]:
    status, answer = superset.data([chart])
    assert status == 200, json.dumps(answer)[:2000]
    rows: list[dict[str, Any]] = answer["result"][0]["data"]
    assert rows, answer
    return rows


def _filters(superset: Superset, dataset: int) -> None:
    filters = (
        {"col": "app", "op": "IN", "val": ["WEBSITE", "RUMORS_LINE_BOT"]},
        {"col": "score", "op": "!=", "val": 0},
        {"col": "article_id", "op": "NOT IN", "val": ["100 %% of 'it'"]},
        {"col": "day", "op": "TEMPORAL_RANGE", "val": "2018-01-01 : 2019-01-01"},
    )
    chart = Chart("filtered", "table", dataset, ("article_id",), MEMBERS, 5, filters)
    _said("filtered", _rows(superset, chart))


def _dashboard(superset: Superset, stack: Stack, dataset: int) -> None:
    """Reload a dashboard again and again, each time past Superset's own cache."""
    panels = [
        Chart(f"panel {each}", "table", dataset, ("app",), MEMBERS, each + 1, _without(each))
        for each in range(PANELS)
    ]
    before = stack.engine_queries()
    for _ in range(RELOADS):
        status, answer = superset.data(panels)
        assert status == 200, answer
        assert len(answer["result"]) == PANELS
        assert all(panel["data"] and not panel["is_cached"] for panel in answer["result"])
    queries = stack.engine_queries() - before
    _said(f"{PANELS} panels reloaded {RELOADS} times", f"{queries} queries of the engine")
    assert queries <= PANELS


def _native_filters(superset: Superset, stack: Stack, dataset: int) -> None:
    """Offer the values of a listed domain, for which no engine is asked."""
    before = stack.engine_queries()
    offered = superset.values(dataset, "app")
    _said("values of a filter", offered)
    assert offered == sorted(offered)
    assert len(offered) > 1
    assert stack.engine_queries() == before


def _virtual(superset: Superset, database: int, dataset: int) -> None:
    """Hold a question in a virtual dataset, and filter the rows of a table in another one."""
    found = superset.add_virtual_dataset(database, "top", TOP)
    _said("columns of a question", superset.columns(found))
    superset.edit_sql(
        dataset, "SELECT member_id, article_id AS article FROM cofacts_feedback WHERE app <> 'WEBSITE'"
    )
    sql_column = {"label": "article", "sqlExpression": "article", "expressionType": "SQL"}
    _said("rows of a table", _rows(superset, Chart("virtual", "table", dataset, (sql_column,), MEMBERS, 5)))
    superset.edit_sql(dataset, "")


def _without(panel: int) -> tuple[dict[str, Any], ...]:
    return ({"col": "article_id", "op": "NOT IN", "val": [f"panel {panel}"]},)


def _exhausted(superset: Superset, stack: Stack) -> Chart:
    database = superset.add_database("poor", stack.url("poor"))
    # Superset's metadata in SQLite take each name of a table once.
    dataset = superset.add_dataset(database, "online_retail")
    chart = Chart("Exhausted", "table", dataset, ("stock_code",), MEMBERS, 10)
    status, answer = superset.data([chart])
    assert "the budget does not hold this question" in json.dumps(answer), answer
    _said("exhausted budget", f"{status} {_errors(answer)}")
    return chart


def _expired(superset: Superset, stack: Stack, chart: Chart) -> None:
    before = _rows(superset, chart)
    stack.write_token("ana", expires_at=1)
    status, answer = superset.data([chart])
    assert "the token has expired" in json.dumps(answer), answer
    _said("expired token", f"{status} {_errors(answer)}")
    stack.write_token("ana")
    assert before == _rows(superset, chart)


def _strangers(superset: Superset, database: int) -> Chart:
    """Show names that strangers wrote: unchanged in data, and no formula in what is exported."""
    dataset = superset.add_dataset(database, "strangers")
    chart = Chart("Strangers", "table", dataset, ("name",), MEMBERS, 20)
    assert set(STRANGERS) == {row["name"] for row in _rows(superset, chart)}
    exported = [row[0] for row in csv.reader(io.StringIO(superset.exported(chart))) if row]
    _said("exported", exported)
    assert len(STRANGERS) + 1 == len(exported)
    assert not [cell for cell in exported if cell.startswith(("=", "+", "-", "@"))]
    return chart


def _impersonated(superset: Superset, stack: Stack) -> None:
    """Each user pays from an account of their own, below the one of the URL, for the same chart too."""
    uri = stack.url("team", "&account=bi/team")
    database = superset.add_database("team", uri, impersonate_user=True)
    sessions = {"admin": superset, USER: Superset(superset.url, USER)}
    for user, session in sessions.items():
        price = json.dumps(session.price(database, TOP))
        assert f"bi/team/{user}" in price, price
        _said(f"impersonated {user}", price)
        status, answer = session.run(database, TOP)
        assert status == 200, answer
    for user, session in sessions.items():
        price = json.dumps(session.price(database, TOP))
        _said(f"left of {user}, once both have paid", price)
        assert f'calls of bi/team/{user}": "1 of 4 that are left' in price, price


def _errors(answer: Any) -> str:
    found = answer.get("errors") or answer.get("message") or answer.get("result") or answer
    return json.dumps(found)[:600]


def _said(what: str, text: object) -> None:
    print(f"{what}: {text}", flush=True)


if __name__ == "__main__":
    main()
