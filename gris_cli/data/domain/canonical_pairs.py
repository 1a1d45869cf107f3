"""Pairs of member and element as canonical texts, as SQL that DuckDB and Spark run alike."""

# ruff: noqa: S608  (names are quoted)
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dp_service.queries.filters import MAXIMUM_TEXT_LENGTH
from dp_service.terms import ColumnType
from gris_cli.data.dialects import DataDialect, is_day
from gris_cli.data.errors import InputError

ROWS = "gris_rows"
"""The view of all rows."""


@dataclass(frozen=True)
class Source:
    """Where the pairs are.

    `data` is a Parquet or CSV file, a DuckDB database (then `table` names a table of it), or anything that
    DuckDB reads in memory, such as an Arrow table or NumPy arrays by name; for Spark, a path or `catalog:NAME`.
    `drops_nulls`: rows without member or element are left out; else they are refused.
    """

    data: object
    member: str
    column: str
    table: str = ""
    drops_nulls: bool = False

    def element_type(self, dialect: DataDialect, types: Mapping[str, str]) -> ColumnType:
        """Return the type of the elements of a table whose columns have these types.

        Raises:
            InputError: There is no such column, or it cannot be that of members or elements.
        """
        for name in (self.member, self.column):
            if name not in types:
                raise InputError(f"there is no column {name}")
        if types[self.member] not in dialect.members:
            raise InputError(f"{self.member}: expected members that are texts or integers")
        if types[self.column] not in dialect.elements:
            raise InputError(
                f"{self.column}: expected elements that are texts, integers, truth values or days"
            )
        return dialect.elements[types[self.column]]

    def missing_rows(self, dialect: DataDialect) -> str:
        """Write the query for one of the rows without member or element, which are refused; of none if dropped."""
        member, element = map(dialect.quoted, (self.member, self.column))
        is_refused = str(not self.drops_nulls)
        return f"SELECT 1 FROM {ROWS} WHERE {is_refused} AND ({member} IS NULL OR {element} IS NULL) LIMIT 1"

    def require_whole(self, missing: int) -> None:
        """Raise InputError if `missing_rows` found any."""
        if missing:
            raise InputError(
                f"expected no row without {self.member} or {self.column}, or that such rows are left out",
                remedy="drop_nulls",
            )

    def pairs(self, dialect: DataDialect, kind: ColumnType) -> str:
        """Write the query for `member` and `element` of all rows that an answer could carry, and a policy list.

        Others have longer texts, a NUL character, bytes that are no UTF-8, or days outside the years 1 to 9999.
        """
        member, element = map(dialect.quoted, (self.member, self.column))
        text = f"CAST({element} AS STRING)"
        conditions = [
            f"{member} IS NOT NULL",
            f"{element} IS NOT NULL",
            f"length({text}) <= {MAXIMUM_TEXT_LENGTH}",
            f"NOT contains({text}, chr(0))",
        ]
        if dialect.of_questions.well_formed is not None:
            conditions.append(dialect.of_questions.well_formed(text))
        if kind is ColumnType.DATE:
            conditions.append(is_day(element))
        return (
            f"SELECT CAST({member} AS STRING) AS member, {text} AS element FROM {ROWS} "
            f"WHERE {' AND '.join(conditions)}"
        )
