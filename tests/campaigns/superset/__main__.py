"""A real Apache Superset adds a gateway as a database, draws charts, and shows what is refused.

    python -m tests.campaigns.superset --programs build/superset/bin  # `make superset-check`; some minutes

Superset lives in an environment of its own, which `make superset-check` sets up; nothing of it is imported here. Charts
go through its REST API, as its browser does. With `--chromium` the pages are drawn too, for somebody to look at.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.campaigns.superset.rest import Chart, Superset
from tests.campaigns.superset.stack import PASSWORD, Stack, running_stack, running_superset

MEMBERS = "COUNT(DISTINCT member_id)"
TOP = "SELECT article_id, COUNT(DISTINCT member_id) AS members FROM cofacts_feedback GROUP BY article_id LIMIT 10"
PANELS, RELOADS = 12, 100


def main() -> None:
    """Run the check; an AssertionError says what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, required=True, help="bin of Superset's environment")
    parser.add_argument(
        "--chromium", type=Path, help="a Chromium that draws the pages; needs playwright there"
    )
    parser.add_argument("--pictures", type=Path, default=Path("build/superset-pictures"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            running_stack(folder / "gateway") as stack,
            running_superset(options.programs.resolve(), folder / "superset", stack.credentials) as url,
        ):
            charts = _check(Superset(url), stack)
            if options.chromium is not None:
                _draw(options, url, charts)


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
    exhausted = _exhausted(superset, stack)
    _expired(superset, stack, top)
    _impersonated(superset, stack)
    return {chart.name: superset.add_chart(chart) for chart in (top, series, by_app, exhausted)}


def _refused_connections(superset: Superset, stack: Stack) -> None:
    good = stack.url("ana")
    (stack.credentials.parent / "secret").write_text("not yours")
    for name, uri, said in (
        ("no such token", good.replace("ana.jwt", "bob.jwt"), "expected token_file to be the name of a file"),
        ("another user's file", good.replace("ana.jwt", "../secret"), "expected token_file to be the name"),
        ("nobody there", good.replace(stack.address, "127.0.0.1:1"), "gateway"),
    ):
        status, text = superset.test_connection("gris", uri)
        assert status >= 400, (name, text)
        _said(f"test connection, {name}", f"{status} {text[:300]}")
        assert said in text, text
    status, text = superset.test_connection("gris", good)
    assert status == 200, text


def _looking_around(superset: Superset, stack: Stack, database: int) -> int:
    """Read tables, columns and prices: no engine is asked."""
    before = stack.engine_queries()
    assert ["cofacts_feedback", "online_retail"] == superset.tables(database)
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


def _impersonated(superset: Superset, stack: Stack) -> None:
    """Each user pays from an account of their own, below the one of the URL."""
    uri = stack.url("team", "&account=bi/team")
    database = superset.add_database("team", uri, impersonate_user=True)
    price = json.dumps(superset.price(database, TOP))
    assert "bi/team/admin" in price, price
    _said("impersonated", price)


def _errors(answer: Any) -> str:
    found = answer.get("errors") or answer.get("message") or answer.get("result") or answer
    return json.dumps(found)[:600]


def _said(what: str, text: object) -> None:
    print(f"{what}: {text}", flush=True)


def _draw(options: argparse.Namespace, url: str, charts: dict[str, int]) -> None:
    options.pictures.mkdir(parents=True, exist_ok=True)
    drawing = Path(__file__).with_name("pictures.py")
    subprocess.run(
        [options.programs / "python", drawing, options.chromium, url, options.pictures, json.dumps(charts)],
        env={**os.environ, "SUPERSET_PASSWORD": PASSWORD},
        check=True,
    )


if __name__ == "__main__":
    main()
