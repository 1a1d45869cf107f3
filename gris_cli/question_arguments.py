"""Questions from the flags of a command line."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from gris_api.dp.v1 import question_pb2

from gris_cli.examples import locations_of
from gris_cli.flags import QuestionFlags
from gris_cli.inputs import shown
from pinot_connector.errors import InvalidQuestion
from pinot_connector.liveness import is_liveness_check
from pinot_connector.questions import (
    Condition,
    In,
    NotIn,
    TimeBound,
    sql_question,
    structured_question,
)

# The flags that state the fields of a question, and what goes with it.
_FLAGS = {"table": "--table", "dimensions": "--by", "measure": "--count", "filters": "--where", "k": "--k"}
_BESIDE_SQL = {"max_cost": "--max-cost", "confidence": "--confidence"}
_OPENS_JSON = ("[", "{", '"')
_DAYS = re.compile(r"\[\s*\d{4}-\d\d-\d\d(\s*,\s*\d{4}-\d\d-\d\d)*\s*\]", re.ASCII)
_IN_QUOTES_OF_SQL = re.compile(r"\s*'.*'\s*", re.DOTALL)
_ISO_DAY_LENGTH = 10
# Commas of a function of a row stand behind a bracket or a quote.
_SEVERAL_NAMES = re.compile(r"\s*\w+(\s*,\s*\w+)+\s*")


def is_only_a_check(flags: QuestionFlags) -> bool:
    """Return whether the flags only test the connection, by `SELECT 1`.

    Raises:
        typer.BadParameter: Other flags ask something beside it.
    """
    if not is_liveness_check(flags.sql):
        return False
    _refuse_beside_sql(flags)
    return True


def question_of(flags: QuestionFlags) -> question_pb2.Question:
    """Return the question that the flags ask.

    Raises:
        typer.BadParameter: Flags that ask nothing, or that SQL says already.
        InvalidQuestion: A value that no question can hold.
    """
    if flags.sql:
        _refuse_beside_sql(flags)
        return sql_question(flags.sql)
    if not flags.table:
        raise typer.BadParameter("a question needs --table, and --by for a count of each element; or --sql")
    if several := next((each for each in flags.by if _SEVERAL_NAMES.fullmatch(each)), ""):
        columns = " ".join(f"--by {each.strip()}" for each in several.split(","))
        raise typer.BadParameter(f"--by names one column; for several columns it is repeated: {columns}")
    if not flags.by and flags.k is not None:
        raise typer.BadParameter("--k needs --by: without it the question is one total")
    return structured_question(
        flags.table,
        flags.by,
        k=flags.k,
        measure=flags.count or "distinct_members",
        where=_conditions(flags.where),
        time_range=(_time_bound("--from", flags.since), _time_bound("--to", flags.until))
        if flags.since or flags.until
        else None,
    )


def require_data_of(table: str, data: Sequence[str]) -> None:
    """Refuse a question about a table whose data no flag names.

    Args:
        table: The table of the question; empty if SQL says it.
        data: What `--data` was given; empty if the data are elsewhere.

    Raises:
        typer.BadParameter: `--data` names other tables.
    """
    named = locations_of(data)
    if table and named and table not in named:
        raise typer.BadParameter(f"--data names {', '.join(named)}, and the question is about {table}")


@contextmanager
def flags_named(flags: QuestionFlags) -> Iterator[None]:
    """Let errors of a question that the flags ask name the flag, instead of the field of the message that is sent."""
    try:
        yield
    except InvalidQuestion as error:
        field_name, _, column = error.field.partition(".")
        flag = _flag_of(field_name, flags) if not flags.sql or field_name in _BESIDE_SQL else ""
        if flag:
            error.args = (f"{flag}{f' {column}' if column else ''}: {_in_flags(error.problem)}",)
        raise


def _in_flags(problem: str) -> str:
    """Return what is wrong with a value, without how it would be written in SQL or in Python."""
    for elsewhere, here in _WRITTEN:
        problem = problem.replace(elsewhere, here)
    return problem


_WRITTEN = (
    (
        "texts (in SQL in single quotes)",
        "texts; one that looks like a number, a truth value or a day is in double quotes: --where 'COLUMN=\"12\"'",
    ),
    ("integers (in SQL without quotes)", "integers"),
    ("truth values (in SQL TRUE or FALSE)", "true or false"),
    ("days (in SQL as 'YYYY-MM-DD')", "days as YYYY-MM-DD"),
    ("a datetime with a time zone", "a time with its zone, such as 2019-04-01T12:00:00+00:00"),
)


def _flag_of(field_name: str, flags: QuestionFlags) -> str:
    """Return the flags that were typed for a field of a structured question; empty if there is none."""
    times = ", ".join(name for name, value in (("--from", flags.since), ("--to", flags.until)) if value)
    if field_name == "time_range":
        return times or "--from, --to"
    # A time range is a condition like any other.
    if field_name == "filters" and not flags.where:
        return times
    return (_FLAGS | _BESIDE_SQL).get(field_name, "")


def _refuse_beside_sql(flags: QuestionFlags) -> None:
    stated = {
        "--table": flags.table,
        "--by": flags.by,
        "--count": flags.count,
        "--where": flags.where,
        "--k": flags.k,
        "--from": flags.since,
        "--to": flags.until,
    }
    others = [name for name, value in stated.items() if value not in ("", [], None)]
    if others:
        raise typer.BadParameter(f"--sql is the whole question; {', '.join(others)} cannot be given with it")


def _conditions(texts: list[str]) -> dict[str, Condition]:
    conditions: dict[str, Condition] = {}
    for text in texts:
        column, equals, value = text.partition("=")
        negated = column.endswith("!")
        column = column.removesuffix("!").strip()
        if not equals or not column:
            raise typer.BadParameter(
                "--where expects COLUMN=VALUE or COLUMN!=VALUE; --sql takes every other condition"
            )
        if column in conditions:
            raise typer.BadParameter(f"--where names the column {column} twice")
        conditions[column] = (NotIn if negated else In)(_values(column, value))
    return conditions


def _values(column: str, text: str) -> list[Any]:
    """Return the values of a condition: JSON, a list of days, or, where it is neither, a day or the text itself."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except ValueError:
        if _DAYS.fullmatch(text):
            return [_day_or_text(each.strip()) for each in text[1:-1].split(",")]
        # As a text it would be another question, which is charged.
        if text.lstrip()[:1] in _OPENS_JSON:
            raise typer.BadParameter(
                f"--where {column} begins as JSON and is none: expected a text in double quotes, or a list such as "
                '["a", "b"], [1, 2] or [2019-04-01, 2019-04-02]'
            ) from None
        if _IN_QUOTES_OF_SQL.fullmatch(text):
            raise typer.BadParameter(
                f"--where {column}: a text is written without quotes, as {column}={text.strip()[1:-1]}; one that has "
                f"quotes itself is in double quotes, as {column}={json.dumps(text)}"
            ) from None
        return [_day_or_text(text)]
    return value if isinstance(value, list) else [value]


def _no_constant(name: str) -> None:
    """Refuse what JSON does not have: NaN and Infinity are texts."""
    raise ValueError(name)


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
            f"{flag} expects a day such as 2019-04-01, or a time with its zone, got {shown(text)}"
        ) from None
