"""Asks the questions of a file by drivers of Python, SQLAlchemy and pandas; prints a line of JSON for each step.

    python by_python.py DRIVER FILE

It runs in an environment of its own, which has nothing of Gris.
"""

from __future__ import annotations

import asyncio
import datetime
import importlib
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

Rows = list[list[Any]]
Ask = Callable[..., Rows]
FIRST = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)
END = FIRST.replace(year=2026)


def main(driver: str, file: str) -> None:
    """Ask everything."""
    asked = json.loads(Path(file).read_text())
    way, _, name = driver.partition(":")
    {"pinotdb": _by_pinotdb, "dbapi": _by_dbapi, "asyncpg": _by_asyncpg, "sqlalchemy": _by_sqlalchemy}[way](
        asked, name
    )


def _by_pinotdb(asked: dict[str, Any], name: str) -> None:
    del name
    pinotdb = importlib.import_module("pinotdb")

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


def _by_dbapi(asked: dict[str, Any], name: str) -> None:
    """Ask by psycopg or psycopg2."""
    connect = importlib.import_module(name).connect

    def rows(sql: str, parameters: tuple[object, ...] | None = None, who: str = "") -> Rows:
        connection = connect(asked[f"{who}postgres_dsn"])
        try:
            cursor = connection.cursor()
            cursor.execute(sql, parameters)
            return [list(row) for row in cursor.fetchall()]
        finally:
            connection.close()

    _steps(asked, rows)
    _of_catalogue(asked, rows)
    _with_parameters(asked, lambda sql, *values: rows(sql.replace("?", "%s"), values))


def _by_asyncpg(asked: dict[str, Any], name: str) -> None:
    asyncpg = importlib.import_module(name)

    async def fetched(sql: str, values: tuple[object, ...], who: str) -> Rows:
        connection = await asyncpg.connect(asked[f"{who}postgres_dsn"])
        try:
            return [list(row) for row in await connection.fetch(sql, *values)]
        finally:
            await connection.close()

    def rows(sql: str, *values: object, who: str = "") -> Rows:
        for number in range(1, len(values) + 1):
            sql = sql.replace("?", f"${number}", 1)
        return asyncio.run(fetched(sql, values, who))

    _steps(asked, rows)
    _of_catalogue(asked, rows)
    _with_parameters(asked, rows)


def _by_sqlalchemy(asked: dict[str, Any], driver: str) -> None:
    """Ask through SQLAlchemy and pandas, by a driver of PostgreSQL, or of Pinot."""
    pandas, sqlalchemy = importlib.import_module("pandas"), importlib.import_module("sqlalchemy")

    def made(who: str = "") -> Any:
        url = asked[f"{who}sqlalchemy_url"]
        return sqlalchemy.create_engine(url if driver == "pinot" else asked[f"{who}{driver}_url"])

    engine, poor = made(), made("poor_")

    def rows(sql: Any, parameters: dict[str, object] | None = None, who: str = "") -> Rows:
        text = sqlalchemy.text(sql) if isinstance(sql, str) else sql
        with (poor if who else engine).connect() as connection:
            frame = pandas.read_sql(text, connection, params=parameters)
        return [list(row) for row in frame.itertuples(index=False)]

    _steps(asked, rows)
    value = {"value": asked["value"]}
    _step("parameter", lambda: rows(asked["prepared"].replace("?", ":value"), value))
    inspector = sqlalchemy.inspect(engine)
    _step("tables", lambda: [[name] for name in inspector.get_table_names()])
    _step("columns", lambda: [[each["name"]] for each in inspector.get_columns(asked["table"])])
    if driver != "pinot":
        several = sqlalchemy.bindparam("value", expanding=True)
        in_list = asked["listed"].replace("= ANY(?)", "IN :value")
        _step("list", lambda: rows(sqlalchemy.text(in_list).bindparams(several), {"value": [asked["value"]]}))
        days = asked["between"].replace("?", ":first", 1).replace("?", ":end")
        _step("days", lambda: rows(days, {"first": FIRST, "end": END}))


def _steps(asked: dict[str, Any], rows: Ask) -> None:
    _step("connect", lambda: rows("SELECT 1"))
    for name in ("top", "series", "sum", "refused"):
        _step(name, partial(rows, asked[name]))
    _step("exhausted", lambda: rows(asked["top"], who="poor_"))
    _step("again", lambda: rows(asked["top"]))


def _of_catalogue(asked: dict[str, Any], rows: Ask) -> None:
    for name in ("tables", "columns"):
        _step(name, partial(rows, asked[f"{name}_in_sql"]))


def _with_parameters(asked: dict[str, Any], rows: Ask) -> None:
    _step("parameter", lambda: rows(asked["prepared"], asked["value"]))
    _step("list", lambda: rows(asked["listed"], [asked["value"]]))
    _step("days", lambda: rows(asked["between"], FIRST, END))


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
