"""Splits a text of SQL into tokens, each with its place; comments and spaces are left out.

What a lenient lexer would guess is refused by name: prefixed and dollar-quoted texts, numbers that are written in
another way, and every character that is no part of a question.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from dp_service.queries.sql.places import Span, refuse

# Thrice what the longest list of values takes; it bounds the time that any text can take.
MAXIMUM_TOKENS = 65_536

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n\f]+|--[^\r\n]*)
      | (?P<comment>/\*)
      | (?P<text>'(?:[^']|'')*+')
      | (?P<quoted>"(?:[^"]|"")++"|`(?:[^`]|``)++`)
      | (?P<number>(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*+)
      | (?P<sign><>|!=|<=|>=|::|\|\||[(),.;=<>*+/%-]
          |(?<=[Aa][Rr][Rr][Aa][Yy])\[|(?<=\w)\[(?=\])|\])""",
    re.VERBOSE,
)
_COMMENT_SIGN = re.compile(r"/\*|\*/")
_REFUSED = {
    "$": "the sign $ of a dollar-quoted text or a parameter is not accepted: texts are in single quotes",
    "&": "a prefixed text is not accepted: texts are in plain single quotes",
    "?": "? is not accepted: a parameter needs a value",
    ":": ": is not accepted: a parameter needs a value",
    "@": "a variable is not accepted",
    "[": "[ is not accepted: names with other characters are in double quotes, lists in parentheses",
    "{": "{ of a template is not accepted: fill it in before it is sent",
    "#": "a comment that begins with # is not accepted: comments begin with -- or /*",
    "'": "a text that does not end is not accepted: a quote in a text is written twice",
    '"': "a name in double quotes that is empty or does not end is not accepted",
    "`": "a name in backquotes that is empty or does not end is not accepted",
    "~": "~ and regular expressions are not accepted: LIKE compares with % and _",
}
_INSTEAD = {"\u2265": ": write >=", "\u2264": ": write <=", "\u2260": ": write <>", "\u2212": ": write -"}
_SINGLE_QUOTES = frozenset("\u2018\u2019\u201a\u201b\u2032\uff07\u00b4")
_DOUBLE_QUOTES = frozenset("\u201c\u201d\u201e\u201f\u2033\uff02\u00ab\u00bb")


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its kind (`word`, `quoted`, `text`, `number`, `sign` or `end`), as it is written, and where.

    `word` is the text in capitals of what is not in quotes, and empty for all else: what keywords are compared with.
    """

    kind: str
    text: str
    start: int
    end: int
    word: str = ""

    @property
    def value(self) -> str:
        """What a name or a text says without its quotes."""
        if self.kind not in ("text", "quoted"):
            return self.text
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a text; the last one is its end.

    Raises:
        RefusedHereError: The text has too many tokens, or holds something that is no token.
    """
    tokens = list(islice(_tokens(text), MAXIMUM_TOKENS + 1))
    if len(tokens) > MAXIMUM_TOKENS:
        refuse(tokens[-1], f"more than {MAXIMUM_TOKENS:,} words and signs are not accepted")
    return [*tokens, Token("end", "", len(text), len(text))]


def _tokens(text: str) -> Iterator[Token]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            refuse(Span(position, position + 1), _refusal_of(text[position]))
        kind, position = str(match.lastgroup), match.end()
        if kind == "comment":
            position = _end_of_comment(text, match.start())
        elif kind != "space":
            token = Token(kind, match[0], match.start(), position, match[0].upper() if kind == "word" else "")
            _check_what_follows(token, text[position : position + 1])
            yield token


def _end_of_comment(text: str, start: int) -> int:
    end = _COMMENT_SIGN.search(text, start + 2)
    if end is None:
        refuse(Span(start, start + 2), "a comment that does not end is not accepted")
    if end[0] == "/*":
        # Engines differ in where the outer one ends.
        refuse(Span(end.start(), end.end()), "a comment /* inside a comment is not accepted")
    return end.end()


def _check_what_follows(token: Token, character: str) -> None:
    """Refuse tokens that touch one another and have a meaning of their own, such as 0x1F, 1_000 and E'..'."""
    if token.kind == "number" and (character.isalnum() or character == "_"):
        refuse(token, "a number other than a decimal one is not accepted")
    if token.kind == "word" and character == "'" and token.word not in ("DATE", "TIMESTAMP"):
        refuse(token, "a prefixed text is not accepted: texts are in plain single quotes")


def _refusal_of(character: str) -> str:
    if character in _REFUSED:
        return _REFUSED[character]
    if character.isascii() and character.isprintable():
        return f"the character {character} is no part of a question"
    named = f"U+{ord(character):04X} ({unicodedata.name(character, 'without a name')})"
    if character in _SINGLE_QUOTES or character in _DOUBLE_QUOTES:
        plain = "'" if character in _SINGLE_QUOTES else '"'
        where = "texts are in single quotes" if plain == "'" else "aliases are in double quotes"
        return f"the typographic quote {named} is not accepted: write {plain}, {where}"
    if character.isspace() or unicodedata.category(character) == "Cf":
        return f"the character {named} is not accepted: write a plain space, or nothing"
    if character.isalnum():
        return (
            f"the letter {named} is no part of a name: texts are in single quotes, aliases in double quotes"
        )
    instead = _INSTEAD.get(character, "")
    return f"the character {named} is no part of a question{instead}"
