"""Answers in the shape of a broker's: a table, no exception, and everything else about a release in `gris`."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pinot_connector.dbapi.tables import kinds, tabulated
from pinot_connector.dbapi.types import Kind
from pinot_connector.explanation_rows import explanation_rows
from pinot_connector.json_values import to_json
from pinot_connector.results import PrivateResult

# Clients say that a query timed out unless as many servers answered as were asked.
_SERVERS = {"numServersQueried": 1, "numServersResponded": 1}
_TYPES = {
    Kind.TEXT: "STRING",
    Kind.TRUTH: "BOOLEAN",
    Kind.WHOLE: "LONG",
    Kind.REAL: "DOUBLE",
    Kind.DAY: "TIMESTAMP",
    Kind.INSTANT: "TIMESTAMP",
}
_EXPLAINED = (("property", Kind.TEXT), ("value", Kind.TEXT))


def answer_of(release: PrivateResult, *, intervals: bool) -> dict[str, Any]:
    """Return the answer to a question, or to EXPLAIN.

    Args:
        release: The result.
        intervals: Whether columns for the ends of intervals are wanted.
    """
    if release.explanation is not None:
        rows = explanation_rows(release.explanation)
        return _answer(_EXPLAINED, rows, {"explanation": to_json(release.explanation)})
    said = replace(release, rows=()).to_dict()
    return _answer(
        kinds(release, intervals=intervals),
        tabulated(release, intervals=intervals),
        {name: value for name, value in said.items() if name != "rows"},
    )


def one_row(name: str) -> dict[str, Any]:
    """Return the answer to SELECT 1, by which clients test a connection."""
    return _answer([(name, Kind.WHOLE)], [(1,)], {})


def refusal(code: int, message: str) -> dict[str, Any]:
    """Return that there is no answer, and why."""
    return {**_answer((), [], {}), "exceptions": [{"errorCode": code, "message": message}]}


def _answer(
    columns: Sequence[tuple[str, Kind]], rows: Iterable[Sequence[Any]], about: dict[str, Any]
) -> dict[str, Any]:
    schema = {
        "columnNames": [name for name, _ in columns],
        "columnDataTypes": [_TYPES[kind] for _, kind in columns],
    }
    return {
        "resultTable": {"dataSchema": schema, "rows": [[_value(each) for each in row] for row in rows]},
        "exceptions": [],
        **_SERVERS,
        "gris": about,
    }


def _value(value: Any) -> Any:
    """Return a value as a broker writes it: times as texts, in UTC."""
    if not isinstance(value, datetime.date):
        return value
    if not isinstance(value, datetime.datetime):
        return f"{value.isoformat()} 00:00:00.0"
    at = value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)
    parts = f"{at.microsecond:06d}".rstrip("0") or "0"
    return f"{at.replace(microsecond=0).isoformat(sep=' ')}.{parts}"
