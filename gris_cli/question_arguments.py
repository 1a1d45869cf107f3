"""Questions from the flags of a command line."""

from __future__ import annotations

import datetime
import json
from typing import Any

import typer
from gris_api.dp.v1 import question_pb2

from gris_cli.flags import MeasureName, QuestionFlags
from pinot_connector.questions import Condition, In, NotIn, TimeBound, sql_question, structured_question

_ISO_DAY_LENGTH = 10


def question_of(flags: QuestionFlags) -> question_pb2.Question:
    """Return the question that the flags ask.

    Raises:
        typer.BadParameter: Flags that ask nothing, or that SQL says already.
        InvalidQuestion: A value that no question can hold.
    """
    if flags.sql:
        _refuse_beside_sql(flags)
        return sql_question(flags.sql)
    if not flags.table or not flags.by:
        raise typer.BadParameter("a question needs --table and --by, or --sql")
    return structured_question(
        flags.table,
        flags.by,
        k=flags.k,
        measure=(flags.measure or MeasureName.DISTINCT_MEMBERS).value,
        where=_conditions(flags.where),
        time_range=(_time_bound("--from", flags.since), _time_bound("--to", flags.until))
        if flags.since or flags.until
        else None,
        counts=not flags.no_counts,
    )


def _refuse_beside_sql(flags: QuestionFlags) -> None:
    given = {
        "--table": flags.table,
        "--by": flags.by,
        "--k": flags.k is not None,
        "--where": flags.where,
        "--from": flags.since,
        "--to": flags.until,
        "--measure": flags.measure,
        "--no-counts": flags.no_counts,
    }
    others = [name for name, value in given.items() if value]
    if others:
        raise typer.BadParameter(f"--sql is the whole question; {', '.join(others)} cannot be given with it")


def _conditions(texts: list[str]) -> dict[str, Condition]:
    conditions: dict[str, Condition] = {}
    for text in texts:
        column, equals, value = text.partition("=")
        negated = column.endswith("!")
        column = column.removesuffix("!").strip()
        if not equals or not column:
            raise typer.BadParameter("--where expects COLUMN=VALUE or COLUMN!=VALUE")
        if column in conditions:
            raise typer.BadParameter(f"--where names the column {column} twice")
        conditions[column] = (NotIn if negated else In)(_values(value))
    return conditions


def _values(text: str) -> list[Any]:
    """Return the values of a condition: JSON; or, where it is none, a day or the text itself."""
    try:
        value = json.loads(text)
    except ValueError:
        return [_day_or_text(text)]
    return value if isinstance(value, list) else [value]


def _day_or_text(text: str) -> datetime.date | str:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return text


def _time_bound(flag: str, text: str) -> TimeBound:
    if not text:
        return None
    try:
        if len(text) == _ISO_DAY_LENGTH:
            return datetime.date.fromisoformat(text)
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{flag} expects a day such as 2019-04-01, or a time with its zone"
        ) from None
