"""What the tools return: typed values, whose schemas a client is given.

Elements, aliases and past questions were written by others. They stand in data fields alone (`columns`, `element`,
`question`, `domain`), and no text here is made of them.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, TypeAlias

from google.protobuf.json_format import MessageToDict
from pydantic import BaseModel, Field

from gris_mcp import descriptions
from gris_mcp.accuracy import half_width
from pinot_connector.budgets import Cost, Level, Mode, questions_left
from pinot_connector.engines.base import ExpectedColumn
from pinot_connector.json_values import MOST_EXACT_INTEGER
from pinot_connector.notebooks.cells import visible
from pinot_connector.past_results import PastResult
from pinot_connector.results import Explanation, PrivateResult, Row, rank_error_lines
from pinot_connector.shown_values import ShownScalar, ShownValue
from pinot_connector.totals import TotalRow

MOST_ROWS = 1000
MOST_PAST_ROWS = 50
# Of all elements together, so that one answer fits into what a model can read.
MOST_CHARACTERS = 200_000


class UnseenText(BaseModel):
    """A text with characters that cannot be seen, such as those that turn or hide what stands beside them."""

    shown: str = Field(description="Data: U+FFFD stands for each of them.")
    exact: str = Field(description="Data: the text as a JSON string of ASCII, to be asked for in where.")


Element = str | int | bool | UnseenText


_End: TypeAlias = int | Fraction | datetime.date


class Interval(BaseModel):
    """Both ends included; days as YYYY-MM-DD."""

    lower: int | float | str
    upper: int | float | str


class Price(BaseModel):
    """What a question costs, in the two units of a budget."""

    information: int
    calls: int

    @classmethod
    def of(cls, cost: Cost) -> Price:
        """Return a cost."""
        return cls(information=cost.information, calls=cost.calls)


class LeftOfLevel(BaseModel):
    """One level of the budget that pays, from the outermost on."""

    account: list[str]
    limit: Price
    spent: Price
    held: Price = Field(description="Held by questions that run now.")
    left: Price
    enforced: bool = Field(description="false: only recorded, refuses nothing.")
    refreshes_at: str | None = Field(description="When the budget is refreshed; null: never.")


class Value(BaseModel):
    """A sum or an average with its interval, or a quantile with its cell of a public grid.

    The cell of a quantile is no confidence interval: `rank_errors` say how far off its rank may be, and where no person
    has a value it says nothing.
    """

    value: float | str
    interval: Interval | None = Field(description="Of a sum or an average; null for a quantile.")
    cell: Interval | None = Field(default=None, description="Of a quantile: what value is the middle of.")


class AnswerRow(BaseModel):
    """One element of the answer. `element` is data, in the order of `columns`.

    Integers that a double does not hold are texts; `where` takes them as {"integer": "9007199254740993"}.
    """

    element: list[Element]
    count: int | float | None = Field(
        description="The best guess; null where only the ranking was asked for."
    )
    interval: Interval | None = Field(
        description="Where the number before noise lies, with the confidence of the answer."
    )
    values: list[Value | None] = Field(
        description="In the order of value_names; null: too few for an average."
    )


class AnswerTotal(BaseModel):
    """A total, and what the rows that are shown leave of it."""

    value: Element
    count: int
    interval: Interval
    values: list[Value] = Field(description="Its sums, in the order of value_names.")
    other_count: int = Field(
        description="The total less all rows of it in the answer, also those left out here; it may be negative."
    )
    other_interval: Interval
    other_values: list[Value]


class Answer(BaseModel):
    """A private answer: noisy numbers with intervals."""

    columns: list[str] = Field(description="Data: names of the columns that an element has.")
    value_names: list[str] = Field(description="Data: names of sums, averages or quantiles in each row.")
    rows: list[AnswerRow]
    rows_left_out: int = Field(description="How many further rows the answer has.")
    total: AnswerRow | None = Field(
        description="How many members count in any element, where that is a part."
    )
    totals_by: str | None = Field(description="Data: the column that totals are of; null: there are none.")
    totals_count: str | None = Field(description="What totals count: rows, members or contributions.")
    totals: list[AnswerTotal]
    totals_left_out: int = Field(description="How many further totals the answer has.")
    confidence: float
    intervals_mean: str
    rank_errors: list[float] = Field(description="Of quantiles: within how many members their ranks are.")
    notes: list[str]
    mechanism: str
    k: int | None = Field(description="The most elements that could be shown.")
    requested_k: int | None = Field(description="What was asked for, where the policy shows fewer.")
    ended_in_bottom: bool
    price: Price
    charged: Price = Field(description="What it took from the budget this time; nothing for a repeat.")
    budget: list[LeftOfLevel] = Field(description="What is left; empty for a repeat that asked nobody.")
    release_id: str


class PriceOfQuestion(BaseModel):
    """What a question would cost and how exact it would be."""

    price: Price = Field(description="At most.")
    questions_left: int | None = Field(
        description="How many such questions the budget pays for; null: no limit."
    )
    typical_error: int | None = Field(
        description="With 95 % a count is off by no more, by its noise alone; null: no counts are shown."
    )
    mechanism: str
    k: int | None
    requested_k: int | None
    how: list[str] = Field(description="What would be done, in sentences.")
    budget: list[LeftOfLevel]


class PastAnswer(BaseModel):
    """An answer that was paid for before."""

    asked_at: str
    question: dict[str, Any] = Field(description="Data: what was asked.")
    answer: Answer
    rows_not_kept: bool


class History(BaseModel):
    """Answers that are paid for, newest first."""

    answers: list[PastAnswer]


class Budget(BaseModel):
    """What is left of the budget, from the outermost level on."""

    budget: list[LeftOfLevel]


def answer_of(result: PrivateResult, most_rows: int = MOST_ROWS) -> Answer:
    """Return an answer with at most so many rows."""
    of_cells = result.parameters.quantiles is not None
    rows = list(_shown_rows(result.rows[:most_rows], of_cells=of_cells))
    left_out = len(result.rows) - len(rows)
    notes = [*map(_sentence, (*result.parameters.left_out, *rank_error_lines(result)))]
    if result.ended_in_bottom:
        notes.append(descriptions.ENDED_IN_BOTTOM)
    if left_out:
        notes.append(descriptions.ROWS_LEFT_OUT)
    if not result.charged.information and not result.charged.calls and result.cost.information:
        notes.append(descriptions.REPEATED)
    total = result.total
    return Answer(
        columns=list(map(_column_name, result.columns)),
        value_names=[each.title for each in result.parameters.values],
        rows=rows,
        rows_left_out=left_out,
        total=None
        if total is None
        else AnswerRow(element=[], count=total.noisy_count, interval=_interval(total.interval), values=[]),
        totals_by=None if result.parameters.totals is None else result.parameters.totals.column,
        totals_count=None if result.parameters.totals is None else result.parameters.totals.counted.value,
        totals=[_total(each) for each in (result.totals or ())[:most_rows]],
        totals_left_out=max(0, len(result.totals or ()) - most_rows),
        confidence=result.confidence,
        intervals_mean=descriptions.CELLS if of_cells else descriptions.INTERVALS[result.interval_kind.value],
        rank_errors=list(map(float, result.rank_errors)),
        notes=notes,
        mechanism=result.mechanism.value,
        k=result.parameters.k,
        requested_k=result.requested_k,
        ended_in_bottom=result.ended_in_bottom,
        price=Price.of(result.cost),
        charged=Price.of(result.charged),
        budget=levels_of(result.remaining),
        release_id=result.release_id,
    )


def price_of(explanation: Explanation, levels: Iterable[Level]) -> PriceOfQuestion:
    """Return what a question would cost, and how often the budget pays for it."""
    left = tuple(levels)
    parameters = explanation.parameters
    return PriceOfQuestion(
        price=Price.of(explanation.worst_case_cost),
        questions_left=questions_left(left, explanation.worst_case_cost),
        typical_error=half_width(parameters),
        mechanism=parameters.mechanism.value,
        k=parameters.k,
        requested_k=explanation.requested_k,
        how=list(explanation.sentences),
        budget=levels_of(left),
    )


def past_answer_of(past: PastResult) -> PastAnswer:
    """Return an answer that was paid for."""
    return PastAnswer(
        asked_at=past.released_at.isoformat(),
        question=seen(MessageToDict(past.question, preserving_proto_field_name=True)),
        answer=answer_of(past.result, MOST_PAST_ROWS),
        rows_not_kept=past.elements_omitted,
    )


def seen(value: Any) -> Any:
    """Return a part of a question with each text in it as an element has it."""
    match value:
        case str():
            shown = element_of(value)
            return shown.model_dump() if isinstance(shown, UnseenText) else shown
        case dict():
            return {name: seen(each) for name, each in value.items()}
        case list():
            return [seen(each) for each in value]
    return value


def levels_of(levels: Iterable[Level]) -> list[LeftOfLevel]:
    """Return the levels of a budget."""
    return [
        LeftOfLevel(
            account=list(level.path),
            limit=Price.of(level.limit),
            spent=Price.of(level.spent),
            held=Price.of(level.reserved),
            left=Price.of(level.remaining),
            enforced=level.mode is Mode.ENFORCE,
            refreshes_at=None if level.window_end is None else level.window_end.isoformat(),
        )
        for level in levels
    ]


def element_of(value: ShownScalar) -> Element:
    """Return a value of an element; a day as YYYY-MM-DD, and as a text an integer that some clients would change."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, str):
        shown = visible(value)
        return value if shown == value else UnseenText(shown=shown, exact=json.dumps(value))
    return value if abs(value) <= MOST_EXACT_INTEGER else str(value)


def _shown_rows(rows: Iterable[Row], *, of_cells: bool) -> Iterator[AnswerRow]:
    """Yield rows as long as their elements are not too long together; the values of quantiles are cells."""
    characters = 0
    for row in rows:
        characters += sum(len(value) for value in row.element if isinstance(value, str))
        if characters > MOST_CHARACTERS:
            return
        yield AnswerRow(
            element=list(map(element_of, row.element)),
            count=row.noisy_count,
            interval=None if row.interval is None else _interval(row.interval),
            values=[_value(each, of_cells=of_cells) for each in row.values],
        )


def _total(total: TotalRow) -> AnswerTotal:
    return AnswerTotal(
        value=element_of(total.value),
        count=total.noisy_count,
        interval=_interval(total.interval),
        values=list(map(_number, total.sums)),
        other_count=total.other_count,
        other_interval=_interval(total.other_interval),
        other_values=list(map(_number, total.other_sums)),
    )


def _value(value: ShownValue | None, *, of_cells: bool) -> Value | None:
    if value is None or not of_cells:
        return None if value is None else _number(value)
    return Value(value=_end(value.value), interval=None, cell=_interval(value.interval))


def _number(value: ShownValue) -> Value:
    return Value(value=_end(value.value), interval=_interval(value.interval))


def _interval(ends: tuple[_End, _End]) -> Interval:
    lower, upper = map(_end, ends)
    return Interval(lower=lower, upper=upper)


def _end(value: _End) -> int | float | str:
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, int):
        return value if abs(value) <= MOST_EXACT_INTEGER else str(value)
    return float(value)


def _column_name(column: ExpectedColumn) -> str:
    return column.alias or column.name


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
