"""Asks the questions of a file by pinotdb, alone or through SQLAlchemy and pandas; prints a line of JSON for each step.

It runs in an environment of its own, which has nothing of Gris.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pinotdb
from sqlalchemy import create_engine, inspect, text

Rows = list[list[Any]]


def main(way: str, file: str) -> None:
    """Ask everything."""
    asked = json.loads(Path(file).read_text())
    (_by_dbapi if way == "dbapi" else _by_sqlalchemy)(asked)


def _by_dbapi(asked: dict[str, Any]) -> None:
    def rows(sql: str, parameters: dict[str, str] | None = None, who: str = "") -> Rows:
        host, _, port = asked["place"].rpartition(":")
        account = {"username": asked[f"{who}account"], "password": asked[f"{who}token"]}
        connection = pinotdb.connect(host, int(port), path="/query/sql", scheme=asked["scheme"], **account)
        cursor = connection.cursor()
        cursor.execute(sql, parameters)
        return [list(row) for row in cursor.fetchall()]

    _steps(asked, rows)
    value = {"value": asked["value"]}
    _step("parameter", lambda: rows(asked["prepared"].replace("?", "%(value)s"), value))


def _by_sqlalchemy(asked: dict[str, Any]) -> None:
    engine, poor = create_engine(asked["sqlalchemy_url"]), create_engine(asked["poor_sqlalchemy_url"])

    def rows(sql: str, parameters: dict[str, str] | None = None, who: str = "") -> Rows:
        with (poor if who else engine).connect() as connection:
            frame = pd.read_sql(text(sql), connection, params=parameters)
        return [list(row) for row in frame.itertuples(index=False)]

    _steps(asked, rows)
    value = {"value": asked["value"]}
    _step("parameter", lambda: rows(asked["prepared"].replace("?", ":value"), value))
    _step("tables", lambda: [[name] for name in inspect(engine).get_table_names()])
    _step("columns", lambda: [[each["name"]] for each in inspect(engine).get_columns(asked["table"])])


def _steps(asked: dict[str, Any], rows: Callable[..., Rows]) -> None:
    _step("connect", lambda: rows("SELECT 1"))
    for name in ("top", "series", "sum", "refused"):
        _step(name, partial(rows, asked[name]))
    _step("exhausted", lambda: rows(asked["top"], who="poor_"))
    _step("again", lambda: rows(asked["top"]))


def _step(name: str, rows: Callable[[], Rows]) -> None:
    try:
        said: dict[str, Any] = {"rows": rows()}
    except Exception as error:
        said = {"error": str(error)}
    print(json.dumps({"step": name, **said}, default=_plain), flush=True)


def _plain(value: Any) -> Any:
    """Return what pandas makes of a value as JSON has it."""
    return value.item() if hasattr(value, "item") else str(value)


if __name__ == "__main__":
    main(*sys.argv[1:])
