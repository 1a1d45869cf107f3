"""What the tools return: typed values, whose schemas a client is given.

They are views of the connector's values: a field has the attribute of its name, or of its alias (`view_of`).

Elements, aliases and past questions were written by others. They stand in data fields alone (`columns`, `element`,
`question`, `domain`), and no text here is made of them.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from operator import attrgetter, methodcaller
from types import SimpleNamespace
from typing import Annotated, Any, Literal, TypeVar

from google.protobuf.json_format import MessageToDict
from pydantic import AliasPath, BaseModel, BeforeValidator, Field, ValidationError

from gris_gateway.faces.mcp import descriptions
from pinot_connector.budgets import Level, Mode, questions_left
from pinot_connector.catalog import BlocksEntry
from pinot_connector.errors import IntegrityError
from pinot_connector.json_values import to_json
from pinot_connector.notebooks.cells import visible
from pinot_connector.past_results import PastResult
from pinot_connector.results import Explanation, PrivateResult, Row
from pinot_connector.shown_values import ShownScalar

MOST_ROWS = 1000
MOST_PAST_ROWS = 50
# Of all elements together, so that one answer fits into what a model can read.
MOST_CHARACTERS = 200_000


class UnseenText(BaseModel):
    """A text with characters that cannot be seen, such as those that turn or hide what stands beside them."""

    shown: str = Field(description="Data: U+FFFD stands for each of them.")
    exact: str = Field(description="Data: the text as a JSON string of ASCII.")


def element_of(value: ShownScalar) -> Element:
    """Return a value of an element; a day as YYYY-MM-DD, and as a text an integer that some clients would change."""
    if isinstance(value, str):
        shown = visible(value)
        return value if shown == value else UnseenText(shown=shown, exact=json.dumps(value))
    return _plain(value)


def _plain(value: int | datetime.date) -> int | str:
    plain: int | str = to_json(value)
    return plain


def _end(value: int | Fraction | datetime.date) -> int | float | str:
    return float(value) if isinstance(value, Fraction) else _plain(value)


Element = Annotated[str | int | bool | UnseenText, BeforeValidator(element_of)]
End = Annotated[int | float | str, BeforeValidator(_end)]
Whole = Annotated[int | str, BeforeValidator(to_json)]
Instant = Annotated[str, BeforeValidator(datetime.datetime.isoformat)]


# By what they say of the number in the table.
Ends = Annotated[dict[str, End], BeforeValidator(methodcaller("_asdict"))]


class Price(BaseModel):
    """What a question costs, in the two units of a budget."""

    information: Whole
    calls: Whole


class LeftOfBlock(Price):
    """What is left for questions about one block of members alone."""

    block: Element | None = Field(
        description="Data: one of the catalogue's values of blocks; null: see others."
    )
    others: Literal["", "all other values", "each block not listed"] = ""


class LeftOfLevel(BaseModel):
    """One level of the budget that pays, from the outermost on."""

    account: list[str] = Field(validation_alias="path")
    limit: Price
    spent: Price
    held: Price = Field(validation_alias="reserved", description="Held by questions that run now.")
    left: Price = Field(validation_alias="remaining")
    left_of_blocks: list[LeftOfBlock] = Field(
        description="What is left for questions about one block of members alone, where blocks differ."
    )
    enforced: Annotated[bool, BeforeValidator(lambda mode: mode is Mode.ENFORCE)] = Field(
        validation_alias="mode", description="false: only recorded, refuses nothing."
    )
    refreshes_at: Instant | None = Field(
        validation_alias="window_end", description="When the budget is refreshed; null: never."
    )


class Said(BaseModel):
    """A sentence that is true of this answer, or of this question; `code` says what it is of."""

    code: str
    text: str
    column: str = Field(default="", description="Data: the column that it is of; empty: of no single one.")
    values: list[str] = Field(default=[], description="The numbers in it.")


class Value(BaseModel):
    """A sum, an average or a quantile with the ends beside it; `notes` say what these mean."""

    value: Annotated[float | str, BeforeValidator(_end)]
    interval: Ends = Field(description=descriptions.ENDS)


class AnswerRow(BaseModel):
    """One element of the answer. `element` is data, in the order of `columns`.

    Integers that a double does not hold are texts, and `where` takes them as such.
    """

    element: list[Element]
    count: Annotated[int | float | str | None, BeforeValidator(to_json)] = Field(
        validation_alias="noisy_count",
        description="Noisy; null where no counts were asked for.",
    )
    interval: Ends | None = Field(description=f"Of the count. {descriptions.ENDS}")
    values: list[Value | None] = Field(
        description="In the order of value_names; null: an average that is not shown."
    )


class Answer(BaseModel):
    """A private answer: noisy numbers, and in `notes` what they mean."""

    columns: list[Annotated[str, BeforeValidator(lambda column: column.alias or column.name)]] = Field(
        description="Data: names of the columns that an element has."
    )
    value_names: list[Annotated[str, BeforeValidator(attrgetter("title"))]] = Field(
        validation_alias=AliasPath("parameters", "values"),
        description="Data: names of sums, averages or quantiles in each row.",
    )
    rows: list[AnswerRow]
    rows_left_out: int = Field(description="How many further rows the answer has.")
    total: AnswerRow | None = Field(
        description="How many members count in any element, where that is a part."
    )
    confidence: float
    rank_errors: list[float] = Field(
        description="Of quantiles, in their order: the numbers in the notes quantiles.rank."
    )
    notes: list[Said] = Field(description="What the numbers are of, and what their intervals cover.")
    mechanism: str = Field(validation_alias=AliasPath("parameters", "mechanism"))
    k: int | None = Field(
        validation_alias=AliasPath("parameters", "k"), description="The most elements that could be shown."
    )
    requested_k: int | None = Field(description="What was asked for, where the policy shows fewer.")
    ended_in_bottom: bool
    price: Price = Field(validation_alias="cost")
    charged: Price = Field(description="What it took from the budget this time; nothing for a repeat.")
    budget: list[LeftOfLevel] = Field(
        validation_alias="remaining",
        description="What is left; empty in the history, and for a repeat that asked nobody.",
    )
    release_id: str
    explanation: PriceOfQuestion | None = Field(
        default=None,
        exclude_if=lambda price: price is None,
        description="The price, where sql begins with EXPLAIN: nothing else was asked. Else left out.",
    )


class PriceOfQuestion(BaseModel):
    """What a question would cost and how exact it would be."""

    price: Price = Field(validation_alias="worst_case_cost", description="At most.")
    questions_left: Whole | None = Field(
        description="How many such questions the budget pays for; null: no limit."
    )
    typical_error: int | None = Field(
        description="Half the width of a 95 % interval of plain noise, of which how says more; null: no counts."
    )
    mechanism: str = Field(validation_alias=AliasPath("parameters", "mechanism"))
    k: int | None = Field(validation_alias=AliasPath("parameters", "k"))
    requested_k: int | None
    how: list[Said] = Field(
        validation_alias="statements",
        description="What would be done, what its numbers would mean, and how exact they would be.",
    )
    budget: list[LeftOfLevel]


class PastAnswer(BaseModel):
    """An answer that was paid for before."""

    asked_at: Instant = Field(validation_alias="released_at")
    question: dict[str, Any] = Field(
        description="Data: what was asked: its sql, or the message of another client."
    )
    answer: Answer
    rows_not_kept: bool = Field(validation_alias="elements_omitted")
    not_offered: bool = Field(
        default=False,
        exclude_if=lambda value: not value,
        description="Whether the account is not offered the question any more: then neither rows nor costs are shown.",
    )


class History(BaseModel):
    """Answers that are paid for, newest first."""

    answers: list[PastAnswer]


class Budget(BaseModel):
    """What is left of the budget, from the outermost level on."""

    budget: list[LeftOfLevel]


_Model = TypeVar("_Model", bound=BaseModel)


def view_of(model: type[_Model], value: object, **given: object) -> _Model:
    """Return the view of a value, which has what is given instead of its own.

    Raises:
        IntegrityError: it is of another type than a model is shown. That is no fault of the caller's arguments.
    """
    try:
        return model.model_validate(SimpleNamespace(**(vars(value) | given)), from_attributes=True)
    except ValidationError:
        # Its text repeats values.
        raise IntegrityError("the gateway sent a value of another type than expected") from None


def answer_of(
    result: PrivateResult,
    most_rows: int = MOST_ROWS,
    blocks: BlocksEntry | None = None,
    *,
    explanation: PriceOfQuestion | None = None,
) -> Answer:
    """Return an answer with at most so many rows, or with the price that was asked for alone; `blocks` have names."""
    rows = list(_shown_rows(result.rows[:most_rows]))
    left_out = len(result.rows) - len(rows)
    notes = [view_of(Said, each) for each in result.statements if not each.is_method]
    if left_out:
        notes.append(Said(code="tool.rows_left_out", text=descriptions.ROWS_LEFT_OUT))
    if not result.charged.information and not result.charged.calls and result.cost.information:
        notes.append(Said(code="tool.repeated", text=descriptions.REPEATED))
    return view_of(
        Answer,
        result,
        rows=rows,
        rows_left_out=left_out,
        total=result.total and view_of(AnswerRow, result.total, element=(), values=()),
        notes=notes,
        remaining=_levels(result.remaining, blocks),
        explanation=explanation,
    )


def price_of(
    explanation: Explanation, levels: Iterable[Level], blocks: BlocksEntry | None = None
) -> PriceOfQuestion:
    """Return what a question would cost, and how often the budget pays for it."""
    left = tuple(levels)
    return view_of(
        PriceOfQuestion,
        explanation,
        questions_left=questions_left(left, explanation.worst_case_cost),
        typical_error=explanation.accuracy and explanation.accuracy.half_width,
        budget=_levels(left, blocks),
    )


def past_answer_of(past: PastResult) -> PastAnswer:
    """Return an answer that was paid for."""
    asked = past.question
    is_sql = asked.WhichOneof("form") == "sql"
    question = seen({"sql": asked.sql} if is_sql else MessageToDict(asked.structured))
    # What was left then would be read as what is left now.
    answer = answer_of(replace(past.result, remaining=()), MOST_PAST_ROWS)
    return view_of(PastAnswer, past, question=question, answer=answer)


def budget_of(levels: Iterable[Level], blocks: BlocksEntry | None = None) -> Budget:
    """Return what is left of a budget."""
    return view_of(Budget, SimpleNamespace(budget=_levels(levels, blocks)))


def _levels(levels: Iterable[Level], blocks: BlocksEntry | None) -> list[LeftOfLevel]:
    return [view_of(LeftOfLevel, each, left_of_blocks=list(_of_blocks(each, blocks))) for each in levels]


def _of_blocks(level: Level, blocks: BlocksEntry | None) -> Iterator[LeftOfBlock]:
    """Yield what is left of each block; nothing where nobody says what they are called."""
    if blocks is None:
        return
    values = dict(zip(blocks.ids, blocks.values, strict=True))
    for each in level.left_of_each(blocks.every):
        (id_,) = each.blocks or ("",)
        others = "" if id_ in values else "all other values" if id_ else "each block not listed"
        yield view_of(LeftOfBlock, each, block=values.get(id_), others=others)


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


def only_seen(value: Any) -> Any:
    """Return a result with U+FFFD for each letter that cannot be seen, in whatever text somebody wrote it."""
    match value:
        case str():
            return visible(value)
        case dict():
            return {name: only_seen(each) for name, each in value.items()}
        case list():
            return [only_seen(each) for each in value]
    return value


def _shown_rows(rows: Iterable[Row]) -> Iterator[AnswerRow]:
    """Yield rows as long as their elements are not too long together."""
    characters = 0
    for row in rows:
        characters += sum(len(value) for value in row.element if isinstance(value, str))
        if characters > MOST_CHARACTERS:
            return
        yield view_of(AnswerRow, row)
