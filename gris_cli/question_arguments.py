"""Questions from the flags of a command line."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer
from gris_api.dp.v1 import question_pb2

from gris_cli.examples import locations_of
from gris_cli.flags import QuestionFlags
from gris_cli.inputs import shown
from pinot_connector.errors import InvalidQuestion
from pinot_connector.liveness import is_liveness_check
from pinot_connector.questions import (
    TimeBound,
    sql_question,
    structured_question,
)

# The flags that state the fields of a question, and what goes with it.
_FLAGS = {
    "table": "--table",
    "dimensions": "--by",
    "measure": "--count",
    "condition": "--where",
    "filters": "--where",
    "k": "--k",
}
_BESIDE_SQL = {"max_cost": "--max-cost", "confidence": "--confidence"}
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
        where=" AND ".join(f"({each})" for each in flags.where),
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
            error.args = (f"{flag}{f' {column}' if column else ''}: {error.problem}",)
        raise


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
