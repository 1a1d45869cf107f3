"""Reads a rendered query back into a question: what an engine is asked, according to a parser and not the renderer.

It knows the three dialects' literals and the policy's column types, and refuses whatever it does not expect.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.columns import Column
from dp_service.queries.elements import date_of
from dp_service.queries.filters import (
    MAXIMUM_TEXT_LENGTH,
    AllOf,
    AnyOf,
    Bound,
    Filter,
    In,
    Like,
    NotIn,
    Range,
    Value,
)
from dp_service.queries.intervals import UNIVERSES
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Table
from dp_service.terms import ColumnType

PATTERNS = (exp.RegexpFullMatch, exp.RegexpLike, exp.RegexpExtract)
"""By what the dialects ask for a pattern."""
_SIGNS: dict[type, str] = {exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<="}


@dataclass(frozen=True)
class Reading:
    """What a rendered query asks, by how much it clips, how many rows it wants, and the options before it."""

    query: HistogramQuery
    clip: int | None
    limit: int
    options: tuple[str, ...]


def parsed(sql: str, dialect: str) -> list[exp.Expr | None]:
    """Parse a query that was rendered for an engine, by the rules of that engine where they are not the usual ones."""
    return sqlglot.parse(sql, read="spark" if dialect == "spark" else None)


def read(sql: str, table: Table, dialect: str) -> Reading:
    """Read a query that was rendered for a table."""
    *options, select = parsed(sql, dialect)
    assert isinstance(select, exp.Select)
    return _Reader(table).reading(select, tuple(option.sql() for option in options if option is not None))


class _Reader:
    def __init__(self, table: Table) -> None:
        self._table = table

    def reading(self, select: exp.Select, options: tuple[str, ...]) -> Reading:
        source = select.args["from_"].this
        inner, clip = select, None
        *keys, count = select.expressions
        is_total = not keys
        assert count.alias == "gris_count"
        if isinstance(source, exp.Subquery):
            inner, clip = source.this, _clip(count.this, is_total=is_total)
            *keys, inner_count = inner.expressions
            assert inner_count.sql() == 'COUNT(*) AS "gris_member_count"'
            assert [key.sql() for key in inner.args["group"].expressions][-1] == f'"{self._table.member}"'
        names = tuple(key.alias_or_name for key in keys)
        self._check_grouping(select, inner, keys, clipped=clip is not None)
        _check_order(select, count.this)
        query = HistogramQuery(
            table=inner.args["from_"].this.name,
            dimensions=names,
            measure=Measure.EVENTS if clip is not None else self._measure(count.this),
            filters=tuple(self._filters(inner.args["where"].this)),
        )
        return Reading(query, clip, int(select.args["limit"].expression.this), options)

    def _check_grouping(
        self, select: exp.Select, inner: exp.Select, keys: list[exp.Expr], *, clipped: bool
    ) -> None:
        expressions = [key.this.sql() if isinstance(key, exp.Alias) else key.sql() for key in keys]
        grouped = _keys(inner)
        assert grouped == expressions + ([f'"{self._table.member}"'] if clipped else [])
        if clipped:
            outer = _keys(select)
            assert outer == [f'"{key.alias_or_name}"' for key in keys]
            assert [each.sql() for each in select.expressions[:-1]] == outer

    def _measure(self, count: exp.Expr) -> Measure:
        if count.sql() == "COUNT(*)":
            return Measure.EVENTS
        assert count.sql() == f'COUNT(DISTINCT "{self._table.member}")'
        return Measure.DISTINCT_MEMBERS

    def _filters(self, condition: exp.Expr) -> Iterator[Filter]:
        for each in condition.flatten() if isinstance(condition, exp.And) else [condition]:
            yield from self._filter(each)

    def _filter(self, node: exp.Expr) -> Iterator[Filter]:
        """Yield the filter that a condition is; none for what only says how rows are stored."""
        if isinstance(node, exp.Paren | exp.And):
            yield from self._filters(node.unnest())
            return
        if self._says_how_rows_are_stored(node):
            return
        if isinstance(node, exp.Or):
            yield AnyOf(tuple(AllOf(tuple(self._filters(each))) for each in node.flatten()))
            return
        negated = isinstance(node, exp.Not)
        condition = node.this if negated else node
        pattern = _pattern_of(condition)
        if pattern is not None:
            text, expression, is_none = pattern
            found = _like_of(expression)
            yield Like(self._column(text).name, *found, negated=negated is not is_none)
            return
        name = condition.this.find(exp.Column).name
        if name == self._table.member:
            # What becomes of rows without a member is no part of what is asked: the policy adds it again.
            return
        column = self._column(condition.this)
        match condition:
            case exp.Is():
                assert negated
                yield Range(name, Bound(_smallest(column)), None)
            case exp.In():
                values = tuple(self._value(each, column) for each in condition.expressions)
                yield NotIn(name, values) if negated else In(name, values)
            case exp.EQ():
                yield In(name, (self._value(condition.expression, column),))
            case exp.NEQ():
                yield NotIn(name, (self._value(condition.expression, column),))
            case _:
                yield self._bounded(condition, column)

    def _says_how_rows_are_stored(self, node: exp.Expr) -> bool:
        """Return whether a condition is none of a question: it keeps out what is no text, or is too long."""
        if isinstance(node, exp.Or) and isinstance(node.this, exp.Is):
            # Where there is a text, it has to be one.
            assert isinstance(node.expression, exp.EQ)
            assert node.this.this == node.expression.this.this
            return self._says_how_rows_are_stored(node.expression)
        if isinstance(node, exp.EQ) and isinstance(node.this, exp.Encode):
            # The text is compared with its own bytes.
            assert isinstance(node.expression, exp.Cast)
            assert node.expression.this == node.this.this
            compared = node.this.this
            is_member = compared.sql() == f'"{self._table.member}"'
            assert is_member or self._column(compared).type is ColumnType.STRING
            return True
        if isinstance(node, exp.LTE) and isinstance(node.this, exp.Length):
            assert node.expression.sql() == str(MAXIMUM_TEXT_LENGTH)
            assert self._column(node.this.this).type is ColumnType.STRING
            return True
        return False

    def _bounded(self, node: exp.Expr, column: Column) -> Range:
        sign, value = _SIGNS[type(node)], self._value(node.expression, column)
        bound = Bound(value, exclusive=len(sign) == 1)
        return Range(column.name, bound, None) if sign[0] == ">" else Range(column.name, None, bound)

    def _column(self, node: exp.Expr) -> Column:
        """Return the column of an expression, which stands alone or with what takes the place of its NULL."""
        if isinstance(node, exp.Coalesce):
            column = self._table.column(node.this.name)
            assert [self._value(each, column) for each in node.expressions] == [column.value_for_null]
            return column
        assert isinstance(node, exp.Column)
        return self._table.column(node.name)

    def _value(self, node: exp.Expr, column: Column) -> Value:
        if isinstance(node, exp.Boolean):
            return bool(node.this)
        if isinstance(node, exp.Cast):
            return datetime.date.fromisoformat(node.this.this)
        if isinstance(node, exp.Literal) and node.is_string:
            return str(node.this)
        if isinstance(node, exp.Concat):
            return "".join(str(self._value(each, column)) for each in node.expressions)
        number = -int(node.this.this) if isinstance(node, exp.Neg) else int(node.this)
        return date_of(number) if column.type is ColumnType.DATE else number


def _pattern_of(node: exp.Expr) -> tuple[exp.Expr, str, bool] | None:
    """Return the text and the expression of a condition on a pattern, and whether the condition denies it."""
    match node:
        case exp.RegexpFullMatch() | exp.Anonymous(this="regexp_full_match"):
            text, expression, options = (
                node.expressions
                if isinstance(node, exp.Anonymous)
                else (node.this, node.expression, node.args["options"])
            )
            assert options.this == "s"
            return text, expression.this, False
        case exp.RegexpLike():
            return node.this, _whole(node.expression.this), False
        case exp.EQ(this=exp.RegexpExtract() as extract) | exp.NEQ(this=exp.RegexpExtract() as extract):
            assert node.expression.sql() == "''"
            assert {name for name, given in extract.args.items() if given} <= {"this", "expression"}
            return extract.this, _whole(extract.expression.this), isinstance(node, exp.EQ)
    return None


def _whole(expression: str) -> str:
    whole = re.fullmatch(r"\(\?s(?:-i)?\)\\A\(\?:(.*)\)\\z", expression, re.DOTALL)
    assert whole is not None
    return whole[1]


_PIECE = re.compile(r"(\(\?>)?\.\*\??|\)|(\.)|\[(.)\]|\\(.)|\[([a-z])([A-Z])\]|([A-Za-z])", re.DOTALL)


def _like_of(expression: str) -> tuple[str, bool]:
    """Return the pattern of LIKE that an expression stands for, and whether its letters fold."""
    pattern, place, folds = "", 0, False
    while place < len(expression):
        piece = _PIECE.match(expression, place)
        assert piece is not None, expression
        place = piece.end()
        if piece[0].endswith((".*", ".*?")):
            pattern += "%"
        elif piece[5]:
            assert piece[5].upper() == piece[6]
            pattern, folds = pattern + piece[5], True
        elif piece[0] != ")":
            literal = piece[3] or piece[4] or piece[7]
            pattern += "_" if piece[2] else f"\\{literal}" if literal in "%_\\" else literal
    return pattern, folds


def _smallest(column: Column) -> Value:
    start = UNIVERSES[column.type].start
    return date_of(start) if column.type is ColumnType.DATE else start


def _keys(select: exp.Select) -> list[str]:
    group = select.args.get("group")
    return [] if group is None else [key.sql() for key in group.expressions]


def _clip(count: exp.Expr, *, is_total: bool) -> int:
    """Return the tau of `SUM(CASE WHEN count > tau THEN tau ELSE count END)`, with or without a cast.

    In a total, the sum of nothing has to be 0.
    """
    if is_total:
        assert isinstance(count, exp.Coalesce)
        assert [each.sql() for each in count.expressions] == ["0"]
        count = count.this
    total = count.this if isinstance(count, exp.Cast) else count
    assert isinstance(total, exp.Sum)
    case = total.this
    tau = int(case.args["ifs"][0].args["true"].this)
    assert case.sql() == (f'CASE WHEN "gris_member_count" > {tau} THEN {tau} ELSE "gris_member_count" END')
    return tau


def _check_order(select: exp.Select, count: exp.Expr) -> None:
    """Check that rows come by count descending, then by every dimension."""
    if select.args.get("group") is None:
        # There is one row.
        assert select.args.get("order") is None
        return
    first, *rest = select.args["order"].expressions
    assert first.this == count
    assert first.args["desc"]
    assert [each.this for each in rest] == select.args["group"].expressions
    assert not any(each.args.get("desc") for each in rest)
