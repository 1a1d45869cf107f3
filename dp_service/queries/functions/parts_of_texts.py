"""SPLIT_PART(email, '@', 2), LEFT(code, 2), LOWER(city): a part of a text, or the text with other letters.

Its domain is what the column's listed values become; it is unknown where these are. A member has at most as many parts
as values of the column, none of which is too long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dp_service.noise.encoding import length_prefixed
from dp_service.queries.answer_columns import PART_OF_TEXT_COLUMN
from dp_service.queries.canonical_columns import QueryColumn, Source, query_column
from dp_service.queries.errors import QuestionError
from dp_service.queries.functions.function import Meaning, OfColumn, numbered
from dp_service.queries.text_functions import TextFunction
from dp_service.terms import ColumnType

if TYPE_CHECKING:
    from dp_service.queries.derived_columns import Context

# Four such domains fit into a query, so the column is restricted to its own, as the part's is.
_MOST_TEXTS = 10_000


@dataclass(frozen=True)
class PartOfText(OfColumn):
    """A part of the text that a column has, or the text with its letters small or large."""

    NAMES: ClassVar[tuple[str, ...]] = numbered(PART_OF_TEXT_COLUMN)
    is_restricted: ClassVar[bool] = True

    function: TextFunction

    def __str__(self) -> str:
        return f"part of {self.column}"

    @property
    def has_texts(self) -> bool:
        """Whether its values are texts."""
        return True

    def meaning(self, context: Context) -> Meaning:
        """Return the part of the column."""
        column = context.groupable(self.column)
        if column.type is not ColumnType.STRING or column.lookup is not None:
            raise QuestionError(
                "dimensions", f"{column.name}: expected a part of a column of texts of the table"
            )
        if len(column.domain or ()) > _MOST_TEXTS:
            raise QuestionError(
                "dimensions",
                f"{column.name}: expected a part of a column of at most {_MOST_TEXTS:,} listed texts",
            )
        texts = None if column.domain is None else {self.function.of(str(each)) for each in column.domain}
        values = None if texts is None else tuple(sorted(texts))
        return Meaning(QueryPartOfText(query_column(column), self.function), values, column.of_member)


@dataclass(frozen=True)
class QueryPartOfText(Source):
    """A part of the text in a column, or the text in other letters."""

    column: QueryColumn
    function: TextFunction

    def __bytes__(self) -> bytes:
        return length_prefixed(b"part of text", bytes(self.column), *self.function.as_bytes)

    @property
    def read_from(self) -> tuple[QueryColumn, ...]:
        """The column of texts."""
        return (self.column,)

    def text_read(self, column: QueryColumn) -> QueryColumn | None:
        """Return the column of texts: a part is no longer than its text."""
        del column
        return self.column

    def __str__(self) -> str:
        return f"a part of {self.column.name}"
