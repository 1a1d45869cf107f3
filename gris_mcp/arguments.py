"""The arguments of the tools, with their schemas, and the questions that they ask.

No tool takes an account: whose budget pays follows from the token alone. `lenient` brings arguments into the form of
the schemas first.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any

from gris_api.dp.v1 import question_pb2
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from gris_mcp import lenient
from pinot_connector.catalog import TableEntry
from pinot_connector.engines.base import ColumnType
from pinot_connector.errors import InvalidQuestion
from pinot_connector.questions import (
    PLAIN_TEXTS,
    Between,
    In,
    NotIn,
    TimeBound,
    Value,
    column_filter,
    sql_question,
    structured_question,
)

MAX_SQL_CHARACTERS = 262_144
MAX_NAME_CHARACTERS = 1000
MAX_VALUES = 10_000
MAX_LISTED = 64
MOST_RELEASES = 20
DEFAULT_RELEASES = 5
_INTEGER = re.compile(r"-?[0-9]{1,19}")
# Texts that may stand for values of another type than texts.
_AMBIGUOUS = re.compile(r"-?[0-9]|(true|false)$", re.IGNORECASE)
_TRUTHS = {"true": True, "false": False}
_MIDNIGHT = datetime.time()
_EXPECTED_TIME = (
    "expected a day such as 2019-04-01, or a time with its zone such as 2019-04-01T12:00:00+00:00"
)


class UnseenText(BaseModel):
    """A text with characters that cannot be seen, as answers show it."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": False})

    shown: str
    exact: str


_Short = Annotated[str, Field(max_length=MAX_NAME_CHARACTERS)]
_Long = Annotated[str, Field(max_length=MAX_SQL_CHARACTERS)]
Name = Annotated[_Short, BeforeValidator(lenient.exact)]
# What may hold words of strangers, as the history shows it.
Words = Annotated[_Short, BeforeValidator(lenient.exact, json_schema_input_type=_Short | UnseenText)]
Text = Annotated[Name | None, BeforeValidator(lenient.text)]
Truth = Annotated[bool | None, BeforeValidator(lenient.truth)]
Number = Annotated[int | None, BeforeValidator(lenient.number)]
By = Annotated[list[Words], Field(max_length=MAX_LISTED), BeforeValidator(lenient.names)]
Numbers = Annotated[list[Words], Field(max_length=MAX_LISTED), BeforeValidator(lenient.texts)]
_Listed = Annotated[list[Name], Field(max_length=MAX_LISTED)]
Sums = Annotated[_Listed, BeforeValidator(partial(lenient.columns, "sum"))]
Averages = Annotated[_Listed, BeforeValidator(partial(lenient.columns, "avg"))]
Literal_ = Annotated[
    bool | int | str,
    BeforeValidator(lenient.scalar, json_schema_input_type=bool | int | str | UnseenText),
]
Values = Annotated[
    list[Literal_], Field(min_length=1, max_length=MAX_VALUES), BeforeValidator(lenient.values)
]


class Arguments(BaseModel):
    """Arguments of a tool: others are refused, and so are values of another type."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Nothing(Arguments):
    """A tool without arguments."""

    # Some clients send some all the same.
    model_config = ConfigDict(extra="ignore", json_schema_extra={"additionalProperties": False})


class CatalogArguments(Arguments):
    """What to list."""

    table: Annotated[Name, BeforeValidator(lenient.name)] = Field(
        "", description="The only table to describe, with the values of its domains; empty: all."
    )


class HistoryArguments(Arguments):
    """How much to list."""

    most: Number = Field(
        DEFAULT_RELEASES, ge=1, le=MOST_RELEASES, description="How many answers, newest first."
    )


class ColumnCondition(Arguments):
    """Conditions on one column, all of which must hold."""

    column: Name
    one_of: Values | None = Field(
        None,
        description='Such as ["de", "fr"] or [1, 2]; days as "2019-04-01", times in ISO 8601 with their zone, integers '
        "beyond 9007199254740991 as texts.",
    )
    none_of: Values | None = None
    at_least: Literal_ | None = None
    at_most: Literal_ | None = None
    more_than: Literal_ | None = None
    less_than: Literal_ | None = None

    def values(self) -> Iterator[tuple[str, Value]]:
        """Yield every value, with the name of its field."""
        for name in CONDITIONS:
            given = getattr(self, name)
            if isinstance(given, list):
                yield from ((f"{name}[{place}]", each) for place, each in enumerate(given))
            elif given is not None:
                yield name, given

    def filters(self, where: str, kind: ColumnType | None) -> Iterator[question_pb2.Filter]:
        """Yield the conditions.

        Args:
            where: What errors call them.
            kind: The type of the column; None: texts are texts.

        Raises:
            InvalidQuestion: There is none, or a value is none of the column's type.
        """
        given = {name: _typed(f"{where}.{name}", value, kind) for name, value in self.values()}
        if not given:
            raise InvalidQuestion(where, f"expected one of {', '.join(CONDITIONS)} beside column")
        for name, made in (("one_of", In), ("none_of", NotIn)):
            if of := [value for each, value in given.items() if each.startswith(name)]:
                yield column_filter(self.column, made(of))
        lower, upper = (given.get(name) for name in ("at_least", "at_most"))
        if lower is not None or upper is not None:
            yield column_filter(self.column, Between(lower, upper))
        lower, upper = (given.get(name) for name in ("more_than", "less_than"))
        if lower is not None or upper is not None:
            built = column_filter(self.column, Between(lower, upper))
            for end in ("lower", "upper"):
                if built.range.HasField(end):
                    getattr(built.range, end).exclusive = True
            yield built


CONDITIONS = tuple(ColumnCondition.model_fields)[1:]


class ColumnQuantiles(Arguments):
    """The quantiles of one column."""

    column: Name
    of: Annotated[list[Name], Field(min_length=1, max_length=MAX_LISTED), BeforeValidator(lenient.ranks)] = (
        Field(
            description='Decimal numbers between 0 and 1 as texts, "min" or "max": ["0.25", "0.5", "max"].',
        )
    )


class Question(Arguments):
    """A question: SQL, or a table with what to count in it."""

    sql: Annotated[
        _Long | None, BeforeValidator(lenient.sql, json_schema_input_type=_Long | UnseenText | None)
    ] = Field(
        None,
        description="The question in SQL; the catalogue has questions of each table.",
    )
    table: Text = Field(None, description="A table of the catalogue; not with sql.")
    by: By = Field(
        default_factory=list,
        description="Up to four columns to group by, or functions as in SQL: funnels, retention, first times, hours, "
        "cases, bins. The catalogue has an example of each for a table. None: one total.",
    )
    k: Number = Field(
        None,
        ge=1,
        lt=2**63,
        description="The most elements to show, the largest first.",
    )
    measure: Annotated[Name | None, BeforeValidator(lenient.measure)] = Field(
        None,
        description="Count distinct_members (default), events, that is rows, or distinct:COLUMN, values of a column.",
    )
    where: Annotated[
        list[ColumnCondition], Field(max_length=MAX_LISTED), BeforeValidator(lenient.conditions)
    ] = Field(default_factory=list, description="Conditions, all of which must hold.")
    condition: Annotated[
        _Long | None, BeforeValidator(lenient.text, json_schema_input_type=_Long | UnseenText | None)
    ] = Field(
        None,
        description="One more condition, in SQL: a = 'x' OR NOT (b LIKE '%y%' AND c IS NULL).",
    )
    since: Text = Field(None, description="From this day (YYYY-MM-DD) or time (with its zone) on.")
    until: Text = Field(None, description="Before this day or time.")
    counts: Truth = Field(None, description="false: only the ranking, which may cost less. Default true.")
    sums: Sums = Field(default_factory=list, description="Value columns to sum.")
    averages: Averages = Field(default_factory=list, description="Value columns to average.")
    numbers: Numbers = Field(
        default_factory=list,
        description="In SQL: COUNT(*) FILTER (WHERE c > 3), SUM(a) / SUM(b), a - b; or members where c > 3",
    )
    order_by: Text = Field(
        None,
        description="The largest first: count, sum:COLUMN, avg:COLUMN or one of numbers. Default: the count, but with "
        "bucket in the order of time.",
    )
    quantiles: Annotated[
        list[ColumnQuantiles], Field(max_length=MAX_LISTED), BeforeValidator(lenient.quantiles)
    ] = Field(default_factory=list, description="Quantiles to show instead of counts.")
    bucket: Annotated[Name | None, BeforeValidator(lenient.bucket)] = Field(
        None,
        description="Buckets of time, LENGTH:COLUMN with day, week, month, quarter or year; or LENGTH alone.",
    )
    ranked: Truth = Field(
        None, description="With bucket: in the order of counts instead of time. Default false."
    )
    having: Numbers = Field(
        default_factory=list,
        description='Leave out elements by what is released, for free: "count >= 100", "sum:COLUMN < 25".',
    )
    totals_by: Text = Field(None, description="One of two columns of by: totals by it, and what rows leave.")
    max_error: Annotated[Name | None, BeforeValidator(lenient.number_text)] = Field(
        None,
        description="Mean error of counts: 16, or 10% of what public numbers expect; sets the price.",
    )
    max_cost: Number = Field(
        None,
        ge=0,
        lt=2**63,
        description="Refuse the question, before anything is asked, if it may cost more information units.",
    )

    @model_validator(mode="before")
    @classmethod
    def _with_condition(cls, given: Any) -> Any:
        return lenient.with_condition(given)

    @property
    def needs_types(self) -> bool:
        """Whether only the catalogue says what is meant: of texts that may be other values, or of the time column."""
        if self.sql is not None or not self.table:
            return False
        given = (value for each in self.where for _, value in each.values())
        is_ambiguous = any(isinstance(each, str) and _AMBIGUOUS.match(each) for each in given)
        return is_ambiguous or (self.bucket is not None and ":" not in self.bucket)

    def message(self, table: TableEntry | None = None) -> question_pb2.Question:
        """Return the question as it is sent.

        Args:
            table: What the catalogue says of the table; None: texts are texts.

        Raises:
            InvalidQuestion: Fields do not belong together, or a value is none that a question can hold.
        """
        if self.sql is not None:
            others = [each for each in _STRUCTURED if getattr(self, each) not in (None, [])]
            if others:
                raise InvalidQuestion("sql", f"expected it alone, without {', '.join(others)}")
            return sql_question(self.sql)
        if not self.table:
            raise InvalidQuestion("table", "expected a table of the catalogue, or a question in sql")
        counted = self.measure or "distinct_members"
        numbers = lenient.Numbers(counted, self.sums, self.averages)
        order = numbers.order(self.order_by)
        if order == lenient.COUNT and self.ranked is False:
            raise InvalidQuestion("ranked", "expected true, or nothing, beside order_by the count")
        built = structured_question(
            self.table,
            self.by,
            k=self.k,
            measure=counted,
            condition=self.condition or "",
            time_range=_time_range(self.since, self.until),
            counts=self.counts is not False,
            sums=self.sums,
            averages=self.averages,
            numbers=self.numbers,
            order_by=None if order == lenient.COUNT else order,
            quantiles={each.column: each.of for each in self.quantiles},
            bucket=_bucket(self.bucket, table),
            ranked=self.ranked is True or order == lenient.COUNT,
            having=list(map(numbers.having, self.having)),
            **{name: getattr(self, name) for name in PLAIN_TEXTS},
        )
        for place, each in enumerate(self.where):
            built.structured.filters.extend(each.filters(f"where[{place}]", _type_of(each.column, table)))
        return built


_STRUCTURED = [each for each in Question.model_fields if each not in ("sql", "max_cost")]


class Asked(Question):
    """A question that is paid for."""

    confidence: Annotated[float | None, BeforeValidator(lenient.fraction)] = Field(
        None,
        gt=0.5,
        lt=1,
        description="Of each interval; null: the gateway's own. Of an answer that is paid for another one is free.",
    )


def _type_of(column: str, table: TableEntry | None) -> ColumnType | None:
    if table is None:
        return None
    if table.time is not None and table.time.column == column:
        return next((each.type for each in table.columns if each.name == column), ColumnType.TIMESTAMP)
    return next((each.type for each in table.columns if each.name == column), None)


def _typed(field: str, value: Value, kind: ColumnType | None) -> Value:
    """Return a value of a column's type for a text that stands for one."""
    if not isinstance(value, str):
        return value
    match kind:
        case ColumnType.INT64:
            if not _INTEGER.fullmatch(value):
                raise InvalidQuestion(field, "expected an integer, as the column has them, got another text")
            return int(value)
        case ColumnType.BOOL:
            return _TRUTHS.get(value.lower(), value)
        case ColumnType.DATE | ColumnType.TIMESTAMP:
            found = _time(field, value)
            if kind is ColumnType.DATE and isinstance(found, datetime.datetime) and found.time() == _MIDNIGHT:
                return found.date()
            return found
    return value


def _bucket(stated: str | None, table: TableEntry | None) -> str | None:
    """Return a bucket with its column: a length alone means the one time column that the table has."""
    if stated is None or ":" in stated or table is None or table.time is None:
        return stated
    return f"{stated}:{table.time.column}"


def _time_range(since: str | None, until: str | None) -> tuple[TimeBound, TimeBound] | None:
    if since is None and until is None:
        return None
    first, end = (text and _time(field, text) for field, text in (("since", since), ("until", until)))
    if type(first) is type(end) is datetime.date and first >= end:
        raise InvalidQuestion(
            "until", "expected a later day than since: until itself is no part of the range"
        )
    return first or None, end or None


def _time(field: str, text: str) -> datetime.date:
    """Return a day, or a point in time; midnight without a zone is the day that begins then."""
    try:
        found = datetime.datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidQuestion(field, f"{_EXPECTED_TIME}, got another text") from None
    if found.tzinfo is not None:
        return found
    if found.time() == _MIDNIGHT:
        return found.date()
    raise InvalidQuestion(field, f"{_EXPECTED_TIME}, got a time without a zone")
