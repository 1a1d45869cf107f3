"""Reads the expressions of a statement by recursive descent: OR, AND, NOT, comparisons, values.

What has no meaning in a question is refused where it stands: arithmetic, functions, subqueries, window functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from dp_service.queries.sql import tree
from dp_service.queries.sql.arrays import is_quantified, quantified
from dp_service.queries.sql.cases import without_case
from dp_service.queries.sql.casts import cast_to, joined_texts, time_literal
from dp_service.queries.sql.forms import FORMS, over_all, scaled_bins
from dp_service.queries.sql.places import Span, refuse
from dp_service.queries.sql.refusals import ARITHMETIC, check_word, named, refuse_function
from dp_service.queries.sql.tokens import Token
from dp_service.queries.sql.tree import Expression
from dp_service.queries.sql.words import NO_NAMES, REFUSED, is_function
from dp_service.terms import Comparison

MAXIMUM_DEPTH = 32
T = TypeVar("T")

_COMPARISONS = {
    "=": Comparison.EQUAL,
    "<>": Comparison.NOT_EQUAL,
    "!=": Comparison.NOT_EQUAL,
    "<": Comparison.LESS,
    "<=": Comparison.AT_MOST,
    ">": Comparison.GREATER,
    ">=": Comparison.AT_LEAST,
}
_SUBQUERY = (
    "a subquery is not accepted: ask for its values first, and write them as a list; members are never shown: to count "
    "those who meet one condition and another, write FUNNEL_COUNT(STEPS(condition, condition), CORRELATE_BY(member))"
)


class ExpressionReader:
    """Reads tokens from the first to the last, and refuses the first that cannot follow.

    Each method reads as much as it can of what it is called by, and leaves the reader behind it.
    """

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self.place = 0
        self._depth = 0
        # Whether numbers may be multiplied and divided: where they are selected, and not in a function.
        self.multiplies = False

    @property
    def next(self) -> Token:
        """The token that is read next."""
        return self._tokens[self.place]

    @property
    def last(self) -> Token:
        """The token that was read last."""
        return self._tokens[self.place - 1]

    def ahead(self, count: int = 1) -> Token:
        """Return the token behind the next one, or one further behind."""
        return self._tokens[min(self.place + count, len(self._tokens) - 1)]

    def take(self) -> Token:
        """Read one token."""
        token = self.next
        self.place += token.kind != "end"
        return token

    def takes(self, *words: str) -> bool:
        """Read some words of SQL or signs if they come next, all of them, and return whether they did."""
        for place, word in enumerate(words):
            token = self.ahead(place)
            if word not in (token.word, token.text if token.kind == "sign" else ""):
                return False
        self.place += len(words)
        return True

    def expect(self, *words: str) -> Token:
        """Read some words of SQL or signs, and refuse anything else."""
        for word in words:
            if not self.takes(word):
                self.unexpected(word)
        return self.last

    def unexpected(self, expected: str) -> NoReturn:
        """Refuse the next token, for it is not what is expected."""
        refuse(self.next, f"expected {expected}, got {named(self.next)}")

    def condition(self) -> Expression:
        """Read a condition, or a value."""
        return self._joined(self._conjunction, "OR", tree.Any)

    def _conjunction(self) -> Expression:
        return self._joined(self._negation, "AND", tree.All)

    def _joined(
        self, part: Callable[[], Expression], word: str, node: type[tree.All | tree.Any]
    ) -> Expression:
        first = self.next
        parts = [part()]
        while self.takes(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else node(first, self.last, tuple(parts))

    def _negation(self) -> Expression:
        """Read a condition with any number of NOT before it: two of them say nothing."""
        first, negations = self.next, 0
        while self.takes("NOT"):
            negations += 1
            if negations > MAXIMUM_DEPTH:
                refuse(self.last, f"more than {MAXIMUM_DEPTH} NOT in a row are not accepted")
        found = self._comparison()
        return tree.Not(first, self.last, found) if negations % 2 else found

    def _comparison(self) -> Expression:
        first, value = self.next, self.value()
        sign = _COMPARISONS.get(self.next.text) if self.next.kind == "sign" else None
        if sign is not None:
            self.take()
            if is_quantified(self):
                found: Expression = quantified(self, first, sign, value)
            else:
                found = tree.Compared(first, self.last, sign, value, self.value())
        else:
            found = self._worded_comparison(first, value)
        if found is not value and (self.next.text in _COMPARISONS or self.next.word in ("IN", "IS", "LIKE")):
            refuse(self.next, "a comparison of a comparison is not accepted: join them by AND")
        return found

    def _worded_comparison(self, first: Token, value: Expression) -> Expression:
        """Read IN, BETWEEN, LIKE and IS behind a value, or nothing."""
        if self.takes("IS"):
            return self._is(first, value)
        negated = self.next.word == "NOT" and self.ahead().word in ("IN", "BETWEEN", "LIKE", "ILIKE")
        if negated:
            self.take()
        if self.takes("IN"):
            values = self._list()
            found: Expression = tree.Listed(first, self.last, value, values)
        elif self.takes("BETWEEN"):
            found = self._between(first, value)
        elif self.next.word in ("LIKE", "ILIKE"):
            folds = self.take().word == "ILIKE"
            pattern = self.value()
            escape = self._escape() if self.takes("ESCAPE") else "\\"
            found = tree.Like(first, self.last, value, pattern, folds, escape)
        else:
            return value
        return tree.Not(first, self.last, found) if negated else found

    def _escape(self) -> str:
        sign = self.value()
        if not isinstance(sign, tree.Text) or sign.kind or len(sign.value) > 1:
            refuse(sign, "expected a text of at most one character behind ESCAPE")
        return sign.value

    def _between(self, first: Token, value: Expression) -> Expression:
        if self.next.word in ("SYMMETRIC", "ASYMMETRIC"):
            refuse(self.next, f"BETWEEN {self.next.word} is not accepted: write the smaller end first")
        low = self.value()
        self.expect("AND")
        high = self.value()
        return tree.Between(first, self.last, value, low, high)

    def _is(self, first: Token, value: Expression) -> Expression:
        negated = self.takes("NOT")
        if self.takes("NULL"):
            found: Expression = tree.IsNull(first, self.last, value)
        elif self.next.word in ("TRUE", "FALSE"):
            truth = tree.Truth(self.next, self.next, self.take().word == "TRUE")
            found = tree.Compared(first, self.last, Comparison.EQUAL, value, truth)
        else:
            self.unexpected("IS NULL, IS NOT NULL, IS TRUE or IS FALSE")
        return tree.Not(first, self.last, found) if negated else found

    def _list(self) -> tuple[Expression, ...]:
        self.expect("(")
        if self.next.word == "SELECT":
            refuse(self.next, _SUBQUERY)
        return self.values(")")

    def values(self, closes: str) -> tuple[Expression, ...]:
        """Read the values of a list, and the sign that closes it."""
        if self.next.text == closes:
            refuse(Span(self.last.start, self.next.end), "expected 1 value or more in a list")
        found = self._expressions(self.value, closes=closes)
        self.expect(closes)
        return found

    def _expressions(self, read: Callable[[], Expression], *, closes: str = "") -> tuple[Expression, ...]:
        """Read one expression or more, with commas between them."""
        found = [read()]
        while self.takes(","):
            if closes and self.next.text == closes:
                refuse(self.last, "a comma that separates nothing is not accepted")
            found.append(read())
        return tuple(found)

    def value(self) -> Expression:
        """Read a value: a literal, a name, a function, or anything in parentheses."""
        first, found = self.next, self.casted()
        if self.next.text == "||" and isinstance(found, tree.Text):
            found = joined_texts(self, first, found)
        if self.multiplies and isinstance(found, tree.Call | tree.Number | tree.Product | tree.Sum):
            found = self.computed(first, found)
        if self.next.kind == "sign" and self.next.text in ARITHMETIC:
            refuse(self.next, ARITHMETIC[self.next.text])
        return found

    def computed(self, first: Token, left: Expression) -> Expression:
        """Read what is computed with a number, if anything."""
        return left

    def casted(self) -> Expression:
        """Read a value with casts behind it."""
        first, found = self.next, self.signed()
        while self.takes("::"):
            if isinstance(found, tree.Cast) and isinstance(found.value, tree.Cast):
                refuse(self.last, "more than 2 casts of one value are not accepted: leave them out")
            found = cast_to(self, first, found)
        return found

    def signed(self) -> Expression:
        """Read a value without casts behind it: a sign may stand before a number."""
        first, signs = self.next, 0
        while self.next.text in ("-", "+") and self.next.kind == "sign":
            signs += 1
            self.take()
        if not signs:
            return self._primary()
        found = self._primary()
        if signs > 1 or first.text == "+" or not isinstance(found, tree.Number) or found.negative:
            refuse(first, "a sign before something other than a number is not accepted")
        return tree.Number(first, self.last, found.text, negative=True)

    def _primary(self) -> Expression:
        token = self.next
        if token.kind == "number":
            self.take()
            number = tree.Number(token, token, token.text)
            is_scale = self.next.text == "*" and (self.ahead().word, self.ahead(2).text) == ("FLOOR", "(")
            return scaled_bins(self, number) if is_scale else number
        if token.kind == "text":
            return self._text(self.take())
        if token.text == "(" and token.kind == "sign":
            return self._parenthesised()
        if token.text == "*" and token.kind == "sign":
            return tree.Star(token, self.take())
        if token.kind == "quoted":
            return self._name_or_call()
        return self._word(token)

    def _text(self, token: Token) -> Expression:
        if self.next.kind == "text":
            refuse(self.next, "a quoted word beside another is not accepted")
        return tree.Text(token, token, token.value)

    def _word(self, token: Token) -> Expression:
        """Read what begins with a word: a literal, a cast, a name or a function."""
        word = token.word
        if word in ("TRUE", "FALSE"):
            return tree.Truth(token, self.take(), word == "TRUE")
        if word == "NULL":
            return tree.Null(token, self.take())
        if (literal := time_literal(self)) is not None:
            return literal
        is_call = self.ahead().text == "("
        if word == "CASE" or (word == "CAST" and is_call):
            return self._case() if word == "CASE" else self._cast()
        if is_call and word in FORMS:
            return FORMS[word](self)
        check_word(token, self.ahead())
        if not word or (
            NO_NAMES.fullmatch(word) and not (is_call and (is_function(word) or word in REFUSED))
        ):
            self.unexpected("a column, a value or a function")
        return self._name_or_call()

    def _case(self) -> Expression:
        """Read CASE; values before WHEN are compared with those behind it."""
        first = self.take()
        self._deeper(first)
        multiplies, self.multiplies = self.multiplies, False
        operand = None if self.next.word == "WHEN" else self.value()
        conditions: list[Expression] = []
        values: list[Expression] = []
        while self.takes("WHEN"):
            conditions.append(self._when(operand))
            self.expect("THEN")
            values.append(self.value())
        if not conditions:
            self.unexpected("WHEN")
        otherwise = self.value() if self.takes("ELSE") else None
        self.expect("END")
        self._depth -= 1
        self.multiplies = multiplies
        return tree.Case(first, self.last, tuple(conditions), tuple(values), otherwise)

    def _when(self, operand: Expression | None) -> Expression:
        if operand is None:
            return self.condition()
        value = self.value()
        return tree.Compared(value.first, value.last, Comparison.EQUAL, operand, value)

    def _cast(self) -> Expression:
        first = self.take()
        self._deeper(self.expect("("))
        value = self.value()
        self.expect("AS")
        found = cast_to(self, first, value)
        self.expect(")")
        self._depth -= 1
        return found

    def _parenthesised(self) -> Expression:
        opening = self.take()
        self._deeper(opening)
        if self.next.word in ("SELECT", "WITH"):
            refuse(
                self.next,
                "a subquery is not accepted here: ask for its values first, and write them as a list",
            )
        if self.next.text == ")":
            refuse(Span(opening.start, self.next.end), "empty parentheses are not accepted")
        parts = self._expressions(self.condition)
        self.expect(")")
        self._depth -= 1
        return parts[0] if len(parts) == 1 else tree.Row(opening, self.last, parts)

    def in_parentheses(self, read: Callable[[], T]) -> T:
        """Read what stands between a parenthesis and the one that closes it; no numbers are multiplied there."""
        self._deeper(self.expect("("))
        multiplies, self.multiplies = self.multiplies, False
        found = read()
        self.expect(")")
        self._depth -= 1
        self.multiplies = multiplies
        return found

    def _deeper(self, opening: Token) -> None:
        """Refuse deep nesting, which would overflow the stack."""
        self._depth += 1
        if self._depth > MAXIMUM_DEPTH:
            refuse(opening, f"more than {MAXIMUM_DEPTH} parentheses in one another are not accepted")

    def _name_or_call(self) -> Expression:
        first = self.next
        if self.ahead().text == "(" and self.ahead().kind == "sign":
            return self._call()
        parts = [self.take()]
        while self.takes("."):
            if self.next.text == "*":
                return tree.Star(first, self.take())
            parts.append(self._part())
        if self.next.text == "(":
            refuse(Span(first.start, self.next.start), "a function with a schema before it is not accepted")
        return tree.Name(first, self.last, tuple(parts))

    def _part(self) -> Token:
        if self.next.kind not in ("word", "quoted"):
            self.unexpected("a name behind the point")
        return self.take()

    def _call(self) -> Expression:
        name = self.take()
        if not is_function(name.word):
            refuse_function(name)
        opening = self.take()
        self._deeper(opening)
        distinct = self.takes("DISTINCT")
        if not distinct:
            self.takes("ALL")
        multiplies, self.multiplies = self.multiplies, False
        read = self.condition if name.word == "STEPS" else self.value
        arguments = () if self.next.text == ")" else self._expressions(read)
        self.expect(")")
        self._depth -= 1
        within = self._within() if self.takes("WITHIN") else None
        where = self._filter() if self.takes("FILTER", "(") else None
        self.multiplies = multiplies
        found = without_case(tree.Call(name, self.last, name.word, arguments, distinct, within, where))
        return over_all(self, found) if self.next.word == "OVER" else found

    def _filter(self) -> Expression:
        self.expect("WHERE")
        found = self.condition()
        self.expect(")")
        return found

    def _within(self) -> tree.Key:
        first = self.expect("GROUP", "(")
        self.expect("ORDER", "BY")
        found = self.value()
        descending = self.takes("DESC")
        if not descending:
            self.takes("ASC")
        self.expect(")")
        return tree.Key(first, self.last, found, descending)
