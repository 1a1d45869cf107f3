"""The arguments of the tools, with their schemas, and the questions that they ask.

No tool takes an account: whose budget pays follows from the token alone.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Annotated, Literal

from gris_api.dp.v1 import question_pb2
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from pinot_connector.errors import InvalidQuestion
from pinot_connector.json_values import MOST_EXACT_INTEGER
from pinot_connector.questions import (
    Between,
    Condition,
    In,
    NotIn,
    TimeBound,
    Value,
    sql_question,
    structured_question,
)

MAX_SQL_CHARACTERS = 200_000
MAX_NAME_CHARACTERS = 1000
MAX_VALUES = 10_000
MAX_LISTED = 64
MOST_RELEASES = 20
_DAY_LENGTH = 10
_INTEGER = re.compile(r"-?[0-9]{1,19}")

Name = Annotated[str, Field(max_length=MAX_NAME_CHARACTERS)]


class Arguments(BaseModel):
    """Arguments of a tool: others are refused, and so are values of another type."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Nothing(Arguments):
    """A tool without arguments."""


class CatalogArguments(Arguments):
    """What to list."""

    table: Name = Field(
        "", description="The only table to describe, with the values of its domains; empty: all."
    )


class HistoryArguments(Arguments):
    """How much to list."""

    most: int = Field(5, ge=1, le=MOST_RELEASES, description="How many answers, newest first.")


class Day(Arguments):
    """A day, for columns of days."""

    day: Name = Field(description="YYYY-MM-DD")


class Time(Arguments):
    """A point in time, for columns of timestamps."""

    time: Name = Field(description="ISO 8601 with a time zone, such as 2019-04-01T12:00:00+00:00")


class Integer(Arguments):
    """An integer as a text: clients that read every number as a double change those beyond 9007199254740991."""

    integer: Name = Field(description='Decimal digits, such as "9007199254740993".')


class Text(Arguments):
    """A text; a plain JSON string means the same."""

    text: Annotated[str, Field(max_length=MAX_SQL_CHARACTERS)]


Literal_ = StrictBool | StrictInt | StrictStr | Day | Time | Integer | Text
Values = Annotated[list[Literal_], Field(min_length=1, max_length=MAX_VALUES)]


class ColumnCondition(Arguments):
    """A condition on one column: `one_of`, or `none_of`, or a range by `at_least` and `at_most`, both included."""

    column: Name
    one_of: Values | None = Field(
        None, description='Such as ["de", "fr"], [1, 2] or [{"day": "2019-04-01"}].'
    )
    none_of: Values | None = None
    at_least: Literal_ | None = None
    at_most: Literal_ | None = None

    def condition(self) -> Condition:
        """Return the condition.

        Raises:
            InvalidQuestion: It is none, or more than one.
        """
        is_range = self.at_least is not None or self.at_most is not None
        if (self.one_of is not None) + (self.none_of is not None) + is_range != 1:
            raise InvalidQuestion("where", "expected one of one_of, none_of, or a range, for each column")
        if self.one_of is not None:
            return In(_values(self.one_of))
        if self.none_of is not None:
            return NotIn(_values(self.none_of))
        return Between(_value_or_none(self.at_least), _value_or_none(self.at_most))


class ColumnQuantiles(Arguments):
    """The quantiles of one column."""

    column: Name
    of: list[Name] = Field(
        min_length=1,
        max_length=MAX_LISTED,
        description='Decimal numbers between 0 and 1 as texts, "min" or "max": ["0.25", "0.5", "max"].',
    )


class Question(Arguments):
    """A question: SQL, or a table with what to count in it."""

    sql: Annotated[str, Field(max_length=MAX_SQL_CHARACTERS)] | None = Field(
        None,
        description="The question in SQL, such as SELECT app, COUNT(DISTINCT member_id) FROM feedback GROUP BY app.",
    )
    table: Name | None = Field(None, description="A table of the catalogue; not with sql.")
    by: list[Name] = Field(
        default_factory=list,
        max_length=MAX_LISTED,
        description="Up to four columns to group by; none: one total.",
    )
    k: int | None = Field(
        None,
        ge=1,
        lt=2**63,
        description="The most elements to show, the largest first. It decides what is paid at most.",
    )
    measure: Literal["distinct_members", "events"] | None = Field(
        None, description="Count distinct members (default), or events, that is rows."
    )
    where: list[ColumnCondition] = Field(
        default_factory=list,
        max_length=MAX_LISTED,
        description="Conditions, all of which must hold; one for each column.",
    )
    since: Name | None = Field(None, description="From this day (YYYY-MM-DD) or time (with its zone) on.")
    until: Name | None = Field(None, description="Before this day or time.")
    counts: bool | None = Field(None, description="false: only the ranking, which costs less. Default true.")
    sums: list[Name] = Field(default_factory=list, max_length=MAX_LISTED, description="Value columns to sum.")
    averages: list[Name] = Field(
        default_factory=list, max_length=MAX_LISTED, description="Value columns to average."
    )
    order_by: Name | None = Field(
        None, description="sum:COLUMN or avg:COLUMN that is asked for; default: in the order of counts."
    )
    quantiles: list[ColumnQuantiles] = Field(
        default_factory=list, max_length=MAX_LISTED, description="Quantiles to show instead of counts."
    )
    bucket: Name | None = Field(
        None, description="Buckets of time, LENGTH:COLUMN with day, week, month, quarter or year: month:day."
    )
    ranked: bool | None = Field(
        None, description="With bucket: in the order of counts instead of time. Default false."
    )

    having: list[Name] = Field(
        default_factory=list,
        max_length=MAX_LISTED,
        description='Leave out elements by what is released, for free: "count >= 100", "sum:COLUMN < 25".',
    )

    totals_by: Name | None = Field(
        None, description="One of exactly two columns of by: totals by it, and what the rows leave of each."
    )

    def message(self) -> question_pb2.Question:
        """Return the question as it is sent.

        Raises:
            InvalidQuestion: Fields do not belong together, or a value is none that a question can hold.
        """
        if self.sql is not None:
            others = sorted(self.model_fields_set & set(Question.model_fields) - {"sql"})
            if others:
                raise InvalidQuestion("sql", f"expected nothing beside it, and not {', '.join(others)}")
            return sql_question(self.sql)
        if self.table is None:
            raise InvalidQuestion("table", "expected a table of the catalogue, or a question in sql")
        return structured_question(
            self.table,
            self.by,
            k=self.k,
            measure=self.measure or "distinct_members",
            where=self._conditions(),
            time_range=_time_range(self.since, self.until),
            counts=self.counts is not False,
            sums=self.sums,
            averages=self.averages,
            order_by=self.order_by,
            quantiles={each.column: each.of for each in self.quantiles},
            bucket=self.bucket,
            ranked=self.ranked is True,
            having=self.having,
            totals_by=self.totals_by,
        )

    def _conditions(self) -> dict[str, Condition]:
        conditions = {each.column: each.condition() for each in self.where}
        if len(conditions) < len(self.where):
            raise InvalidQuestion("where", "expected one condition for each column")
        return conditions


class Asked(Question):
    """A question that is paid for."""

    confidence: float | None = Field(
        None,
        gt=0.5,
        lt=1,
        description="Of each interval; null: the gateway's own. Of an answer that is paid for another one is free.",
    )


def _values(given: Sequence[Literal_]) -> list[Value]:
    return [_value(each) for each in given]


def _value_or_none(given: Literal_ | None) -> Value | None:
    return None if given is None else _value(given)


def _value(given: Literal_) -> Value:
    match given:
        case Day(day=text):
            return _day("where", text)
        case Time(time=text):
            return _time("where", text)
        case Integer(integer=text):
            return _integer(text)
        case Text(text=text):
            return text
        case int() if abs(given) > MOST_EXACT_INTEGER:
            raise InvalidQuestion(
                "where",
                f"expected integers beyond {MOST_EXACT_INTEGER} as objects with a text, such as "
                '{"integer": "9007199254740993"}: as numbers some clients change them',
            )
        case _:
            return given


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise InvalidQuestion("where", "expected an integer as decimal digits, such as 9007199254740993")
    return int(text)


def _time_range(since: str | None, until: str | None) -> tuple[TimeBound, TimeBound] | None:
    if since is None and until is None:
        return None
    return _time_bound("since", since), _time_bound("until", until)


def _time_bound(field: str, text: str | None) -> TimeBound:
    if text is None:
        return None
    return _day(field, text) if len(text) == _DAY_LENGTH else _time(field, text)


def _day(field: str, text: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise InvalidQuestion(field, "expected a day as YYYY-MM-DD") from None


def _time(field: str, text: str) -> datetime.datetime:
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise InvalidQuestion(field, "expected a day, or a time with its zone, in ISO 8601") from None
    if found.tzinfo is None:
        raise InvalidQuestion(field, "expected a time with its zone, such as 2019-04-01T12:00:00+00:00")
    return found
