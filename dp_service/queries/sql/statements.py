"""Reads a statement by recursive descent: WITH, SELECT and its clauses, each once and in their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from typing import TypeVar

from dp_service.queries.sql import tree
from dp_service.queries.sql.expressions import ExpressionReader
from dp_service.queries.sql.numbers import is_number
from dp_service.queries.sql.options import max_error_of
from dp_service.queries.sql.places import Span, refuse
from dp_service.queries.sql.refusals import named
from dp_service.queries.sql.tokens import Token
from dp_service.queries.sql.tree import Expression, Select
from dp_service.queries.sql.words import KEYWORDS, NO_NAMES, TOTALS

_ONE_INSIDE = (
    "more than one statement inside of another is not accepted: one in parentheses behind FROM, or one behind WITH; "
    "make a view of the others in Pinot or DuckDB"
)
_CLAUSES = "expected each clause once, in the order SELECT, FROM, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT"
_JOINS = frozenset(
    ["JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "ASOF", "ANTI", "SEMI", "LATERAL"]
)
_UNIONS = frozenset(["UNION", "INTERSECT", "EXCEPT", "MINUS"])
_JOINED = (
    "a join, or a second table, is not accepted: ask each table apart, and join what comes back; a look-up file that "
    "the policy names gives a column of another table"
)
_INSTEAD = {
    "QUALIFY": ": LIMIT shows the first of a list",
    "SIMILAR": ": write LIKE with % and _",
    "RLIKE": ": write LIKE with % and _",
    "REGEXP": ": write LIKE with % and _",
    "TABLESAMPLE": ": leave it out, all rows count",
    "SAMPLE": ": leave it out, all rows count",
}
_CLAUSE_WORDS = {
    "FROM": "FROM",
    "WHERE": "WHERE",
    "GROUP": "GROUP BY",
    "HAVING": "HAVING",
    "ORDER": "ORDER BY",
    "LIMIT": "LIMIT",
}
_STATEMENTS = frozenset(
    ["DELETE", "INSERT", "UPDATE", "DROP", "TRUNCATE", "MERGE", "ALTER", "COPY", "USE", "BEGIN"]
)
# A bucket is most often called by its length.
_LENGTHS = frozenset(["DAY", "HOUR", "MINUTE", "MONTH", "SECOND", "YEAR"])
# More than the most quantiles of a question, with its columns.
_MAXIMUM_PARTS = 1_024
T = TypeVar("T")


def _statement_named(token: Token) -> str:
    if token.word in ("DESCRIBE", "SHOW"):
        return f"{token.word}: columns are in the catalogue, a price is free by EXPLAIN SELECT"
    return token.word if token.word in _STATEMENTS else named(token)


class StatementReader(ExpressionReader):
    """Reads one statement that is a SELECT, perhaps with named statements before it.

    Attributes:
        explains: Whether its price alone is asked for, by EXPLAIN before it.
        max_error: How exact counts have to be, by OPTION behind it; empty: it says nothing of that.
    """

    def __init__(self, tokens: list[Token]) -> None:
        super().__init__(tokens)
        self.explains = False
        self.max_error = ""
        self._named: dict[str, Select] = {}
        self._unread: dict[str, Token] = {}
        self._is_nested = False

    def statement(self) -> Select:
        """Read the whole text."""
        if self.takes("EXPLAIN"):
            self._read_explain()
        if self.takes("WITH"):
            self._read_named()
        if self.next.word != "SELECT":
            refuse(
                self.next, f"expected a statement that begins with SELECT, got {_statement_named(self.next)}"
            )
        found = self._select()
        if self.takes("OPTION"):
            self.max_error = max_error_of(self)
        if self.takes(";") and self.next.kind != "end":
            refuse(self.next, "several statements are not accepted")
        if self.next.kind != "end":
            self._refuse_rest()
        for name in self._unread.values():
            refuse(
                name,
                "a statement behind WITH that nothing reads is not accepted: leave it out, or name it behind FROM",
            )
        return found

    def whole_condition(self) -> Expression:
        """Read a whole text that is a condition, with or without WHERE before it."""
        self.takes("WHERE")
        found = self.condition()
        self.takes(";")
        if self.next.kind != "end":
            self._refuse_rest()
        return found

    def whole_item(self) -> tree.Item:
        """Read a whole text that is one selected expression, perhaps with its alias."""
        found = self._item()
        if self.next.kind != "end":
            self._refuse_rest()
        return found

    def _read_explain(self) -> None:
        self.explains = True
        # Pinot says EXPLAIN PLAN FOR, everybody else EXPLAIN.
        self.takes("PLAN", "FOR")
        if self.next.word not in ("SELECT", "WITH"):
            refuse(
                self.next,
                f"EXPLAIN with {named(self.next)} is not accepted: EXPLAIN SELECT .. says the price, and asks nothing",
            )

    def _read_named(self) -> None:
        if self.next.word == "RECURSIVE":
            refuse(self.next, "WITH RECURSIVE is not accepted")
        name = self._name_of("a name behind WITH")
        self.expect("AS", "(")
        # Engines ignore case here: a name in another case must not mean the table that it hides.
        self._named[name.value.casefold()] = self._nested()
        self._unread[name.value.casefold()] = name
        self.expect(")")
        if self.next.text == ",":
            refuse(self.next, _ONE_INSIDE)

    def _nested(self) -> Select:
        if self._is_nested or self._named:
            refuse(self.next, _ONE_INSIDE)
        self._is_nested = True
        if self.next.word != "SELECT":
            self.unexpected("SELECT")
        found = self._select()
        self._is_nested = False
        return found

    def _select(self) -> Select:
        first = self.expect("SELECT")
        distinct = self.take() if self.next.word == "DISTINCT" else None
        if distinct is not None and self.next.word == "ON":
            refuse(self.next, "DISTINCT ON is not accepted")
        if distinct is None:
            self.takes("ALL")
        top = self._top() if self.next.word == "TOP" else None
        items = self._items()
        source = self._source() if self.takes("FROM") else None
        where = self.condition() if self.takes("WHERE") else None
        group = self._group() if self.takes("GROUP") else None
        self.multiplies = True
        having = self.condition() if self.takes("HAVING") else None
        order = self._order() if self.takes("ORDER") else ()
        self.multiplies = False
        limit = self._limit(top)
        return Select(first, self.last, items, distinct, source, where, group, having, order, limit)

    def _top(self) -> tree.Number:
        self.take()
        parenthesised = self.takes("(")
        found = self._count("TOP")
        if parenthesised:
            self.expect(")")
        if self.next.word in ("PERCENT", "WITH"):
            refuse(self.next, "a word after the number of TOP is not accepted")
        return found

    def _items(self) -> tuple[tree.Item, ...]:
        if self.next.word == "FROM" or self.next.kind == "end":
            refuse(self.next, "expected SELECT with columns and the count")
        return self._few(self._item)

    def _few(self, read: Callable[[], T]) -> tuple[T, ...]:
        """Read one part or more, with commas between them."""
        found = [read()]
        while self.takes(","):
            found.append(read())
            if len(found) > _MAXIMUM_PARTS:
                refuse(self.last, f"more than {_MAXIMUM_PARTS:,} parts of a clause are not accepted")
        return tuple(found)

    def _item(self) -> tree.Item:
        self._check_comma()
        self.multiplies = True
        value = self.condition()
        self.multiplies = False
        return tree.Item(value, self._alias())

    def _product(self, first: Token, left: Expression) -> Expression:
        parts, divides = [left], [False]
        while self.next.kind == "sign" and self.next.text in ("*", "/"):
            divides.append(self.take().text == "/")
            parts.append(self._not_zero() if self.takes("NULLIF", "(") else self.casted())
        return left if len(parts) == 1 else tree.Product(first, self.last, tuple(parts), tuple(divides))

    def computed(self, first: Token, left: Expression) -> Expression:
        """Read what a number is multiplied with and divided by, then what is added and taken away, if anything."""
        left = self._product(first, left)
        if not is_number(left) and not isinstance(left, tree.Number):
            return left
        parts, adds = [left], [True]
        while self.next.kind == "sign" and self.next.text in ("+", "-"):
            adds.append(self.take().text == "+")
            start = self.next
            parts.append(self._product(start, self.casted()))
        return left if len(parts) == 1 else tree.Sum(first, self.last, tuple(parts), tuple(adds))

    def _not_zero(self) -> Expression:
        found = self.value()
        self.expect(",")
        if self.next.text != "0":
            self.unexpected("0")
        self.take()
        self.expect(")")
        return found

    def _check_comma(self) -> None:
        if self.next.text == "," or self.next.word == "FROM":
            refuse(self.next, "a comma that separates nothing is not accepted")

    def _alias(self) -> Token | None:
        """Read an alias: without AS only one that no engine could take for something else."""
        if self.takes("AS"):
            if self.next.kind not in ("word", "quoted"):
                self.unexpected("an alias, in double quotes if it is not one word")
            if not (self.next.word in _LENGTHS or self._is_plain(self.next)):
                refuse(self.next, f"{self.next.word} as an alias without double quotes is not accepted")
            return self.take()
        return self.take() if self._is_plain(self.next) else None

    def _is_plain(self, token: Token) -> bool:
        """Return whether a token can only be a name: in double quotes, or no word of SQL."""
        return token.kind == "quoted" or (token.kind == "word" and KEYWORDS.fullmatch(token.word) is None)

    def _name_of(self, what: str) -> Token:
        # A table called orders is often misspelt.
        is_name = self.next.word in ("ORDER", "GROUP") and self.ahead().word != "BY"
        if self.next.kind not in ("word", "quoted") or (NO_NAMES.fullmatch(self.next.word) and not is_name):
            self.unexpected(what)
        return self.take()

    def _source(self) -> tree.Derived | tree.TableName:
        first = self.next
        if self.takes("("):
            select = self._nested()
            self.expect(")")
            found: tree.Derived | tree.TableName = tree.Derived(first, self.last, select, self._table_alias())
        else:
            found = self._table()
        if self.next.text == "," or self.next.word in _JOINS:
            refuse(self.next, _JOINED)
        return found

    def _table(self) -> tree.Derived | tree.TableName:
        first = self.next
        parts = [self._name_of("a table")]
        while self.takes("."):
            parts.append(self._part())
        if self.next.text == "(":
            refuse(Span(first.start, self.next.start), "a function in the place of a table is not accepted")
        last = self.last
        alias = self._table_alias()
        select = self._named.get(parts[0].value.casefold()) if len(parts) == 1 else None
        if select is not None:
            self._unread.pop(parts[0].value.casefold(), None)
            return tree.Derived(first, last, select, alias or parts[0])
        return tree.TableName(first, last, tuple(parts), alias)

    def _table_alias(self) -> Token | None:
        found = self._alias()
        if found is not None and self.next.text == "(":
            refuse(self.next, "a list of columns after a table's alias is not accepted")
        return found

    def _group(self) -> tree.Grouping:
        first = self.expect("BY")
        if self.next.word == "DISTINCT":
            refuse(self.next, "DISTINCT in GROUP BY is not accepted")
        if self.next.word == "ALL" and self.ahead().text not in (",", "("):
            return tree.Grouping(first, self.take(), all_selected=True)
        if self.next.word == "GROUPING":
            refuse(self.next, f"GROUPING SETS is not accepted: {TOTALS}")
        keys = self._few(self._key)
        if self.next.word == "WITH":
            refuse(self.next, f"WITH in GROUP BY is not accepted: {TOTALS}")
        return tree.Grouping(first, self.last, keys)

    def _key(self) -> Expression:
        if self.next.text == "," or self.next.kind == "end" or self.next.word in ("ORDER", "LIMIT", "HAVING"):
            refuse(self.next, "a comma that separates nothing is not accepted")
        return self.condition()

    def _order(self) -> tuple[tree.Key, ...]:
        self.expect("BY")
        return self._few(self._order_key)

    def _order_key(self) -> tree.Key:
        first, value = self.next, self._key()
        descending = self.takes("DESC")
        if not descending:
            self.takes("ASC")
        # Elements are never NULL, so the position of NULLs makes no difference.
        if self.takes("NULLS") and not (self.takes("FIRST") or self.takes("LAST")):
            self.unexpected("FIRST or LAST")
        return tree.Key(first, self.last, value, descending)

    def _limit(self, top: tree.Number | None) -> tree.Number | None:
        """Read LIMIT, OFFSET 0 and FETCH FIRST, which may stand in either order."""
        limits = [] if top is None else [top]
        while True:
            if self.takes("LIMIT"):
                limits.append(self._count("LIMIT"))
                if self.next.text == "," and self.ahead().kind == "number":
                    refuse(self.next, "OFFSET is not accepted: a list is shown from its first element on")
            elif self.takes("OFFSET"):
                self._offset()
            elif self.next.word == "FETCH":
                limits.append(self._fetch())
            else:
                break
        if len(limits) > 1:
            refuse(limits[1], "expected LIMIT, FETCH FIRST or TOP once")
        return limits[0] if limits else None

    def _offset(self) -> None:
        number = self._count("OFFSET")
        if number.text.strip("0"):
            refuse(number, "OFFSET is not accepted: a list is shown from its first element on")
        if not self.takes("ROWS"):
            self.takes("ROW")

    def _fetch(self) -> tree.Number:
        first = self.take()
        if not (self.takes("FIRST") or self.takes("NEXT")):
            self.unexpected("FIRST or NEXT")
        row = self.next.word in ("ROW", "ROWS")
        found = tree.Number(first, first, "1") if row else self._count("FETCH FIRST")
        if not (self.takes("ROWS") or self.takes("ROW")):
            self.unexpected("ROWS ONLY")
        if self.next.word == "WITH":
            refuse(self.next, "WITH TIES is not accepted: write ROWS ONLY")
        self.expect("ONLY")
        return replace(found, last=self.last)

    def _count(self, clause: str) -> tree.Number:
        # Drivers write it as a text that is cast, in parentheses.
        is_value = self.next.kind == "number" or self.next.text == "(" or self.ahead().text == "::"
        first, found = self.next, self.casted() if is_value else None
        if not isinstance(found, tree.Number) or not found.text.isdigit() or found.negative:
            refuse(first, f"expected {clause} with a whole number, how many elements to show")
        return found

    def _refuse_rest(self) -> None:
        word = self.next.word
        if self.next.text == ";":
            refuse(self.next, "several statements are not accepted")
        if word in _UNIONS:
            refuse(
                self.next, "a statement other than one plain SELECT is not accepted: ask each question apart"
            )
        if word in ("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT"):
            refuse(self.next, _CLAUSES)
        if word in _JOINS:
            refuse(self.next, _JOINED)
        if self.next.text == ",":
            refuse(self.next, "a comma that separates nothing is not accepted")
        if self.next.text == ")":
            refuse(self.next, "a parenthesis that closes nothing is not accepted")
        refuse(self.next, f"{named(self.next)} after {named(self.last)} is not accepted{self._instead()}")

    def _instead(self) -> str:
        """Return what may be meant by a token that cannot follow."""
        if self.next.word in _INSTEAD:
            return _INSTEAD[self.next.word]
        for token in (self.next, self.last):
            close = get_close_matches(token.word, _CLAUSE_WORDS, n=1)
            if close and token.word not in _CLAUSE_WORDS:
                return f": did you mean {_CLAUSE_WORDS[close[0]]}?"
        if named(self.last) == "a name" and (named(self.next) == "a name" or self.next.text == "("):
            return ": a comma or AS is missing between them"
        return ""
