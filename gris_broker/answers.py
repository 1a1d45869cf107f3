"""Answers in the shape of a broker's: a table, no exception, and everything else about a release in `gris`."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pinot_connector.dbapi.tables import EXPLANATION_DESCRIBED, Column, described, one_described, tabulated
from pinot_connector.dbapi.types import BOOLEAN, DATETIME, STRING
from pinot_connector.explanation_rows import explanation_rows
from pinot_connector.json_values import to_json
from pinot_connector.results import PrivateResult

# Clients say that a query timed out unless as many servers answered as were asked.
_SERVERS = {"numServersQueried": 1, "numServersResponded": 1}
_TYPES = {STRING: "STRING", BOOLEAN: "BOOLEAN", DATETIME: "TIMESTAMP"}


def answer_of(release: PrivateResult, *, intervals: bool) -> dict[str, Any]:
    """Return the answer to a question, or to EXPLAIN.

    Args:
        release: The result.
        intervals: Whether columns for the ends of intervals are wanted.
    """
    if release.explanation is not None:
        rows = explanation_rows(release.explanation)
        return _answer(EXPLANATION_DESCRIBED, rows, {"explanation": to_json(release.explanation)})
    said = replace(release, rows=()).to_dict()
    return _answer(
        described(release, intervals=intervals),
        tabulated(release, intervals=intervals),
        {name: value for name, value in said.items() if name != "rows"},
    )


def one_row(name: str) -> dict[str, Any]:
    """Return the answer to SELECT 1, by which clients test a connection."""
    return _answer(one_described(name), [(1,)], {})


def refusal(code: int, message: str) -> dict[str, Any]:
    """Return that there is no answer, and why."""
    return {**_answer((), [], {}), "exceptions": [{"errorCode": code, "message": message}]}


def _answer(
    columns: Sequence[Column], rows: Iterable[Sequence[Any]], about: dict[str, Any]
) -> dict[str, Any]:
    written = [[_value(each) for each in row] for row in rows]
    types = [_type(column, [row[place] for row in written]) for place, column in enumerate(columns)]
    schema = {"columnNames": [column[0] for column in columns], "columnDataTypes": types}
    return {
        "resultTable": {"dataSchema": schema, "rows": written},
        "exceptions": [],
        **_SERVERS,
        "gris": about,
    }


def _type(column: Column, values: Sequence[Any]) -> str:
    """Return Pinot's type of a column; numbers are whole unless one is not."""
    return _TYPES.get(column[1]) or ("DOUBLE" if any(isinstance(each, float) for each in values) else "LONG")


def _value(value: Any) -> Any:
    """Return a value as a broker writes it: times as texts, in UTC."""
    if not isinstance(value, datetime.date):
        return value
    if not isinstance(value, datetime.datetime):
        return f"{value.isoformat()} 00:00:00.0"
    at = value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)
    parts = f"{at.microsecond:06d}".rstrip("0") or "0"
    return f"{at.replace(microsecond=0).isoformat(sep=' ')}.{parts}"
