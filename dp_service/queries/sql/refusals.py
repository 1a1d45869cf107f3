"""How messages call a token, and the refusal of a function that no question has."""

from __future__ import annotations

from typing import NoReturn

from dp_service.queries.sql.places import refuse
from dp_service.queries.sql.tokens import Token
from dp_service.queries.sql.words import KEYWORDS, REFUSED, WITHOUT_PARENTHESES

ARITHMETIC = {
    "/": "a division inside a function or a condition is not accepted: divide the numbers themselves",
    "*": "arithmetic is not accepted, leave it out: SUM, AVG and percentiles are of value columns as the policy lists",
    "+": "arithmetic is not accepted: ask for each number apart, times by DATE_TRUNC('week', column)",
    "-": "arithmetic is not accepted: a condition compares a column with the value itself",
    "%": "arithmetic is not accepted: a condition compares a column with values, by = or IN",
    "||": "joining texts is not accepted: select both columns",
}
"""What is computed and not accepted, and what to write instead."""


def named(token: Token) -> str:
    """Return how a message calls a token: a word of SQL by itself, but no word of the author's own."""
    if token.kind == "sign":
        return token.text
    if KEYWORDS.fullmatch(token.word):
        return token.word
    return {"number": "a number", "text": "a text", "end": "the end"}.get(token.kind, "a name")


def check_word(word: Token, after: Token) -> None:
    """Refuse a word that stands for a value which no question has; before other tokens two of them may be names."""
    is_name = (word.word == "INTERVAL" and after.kind not in ("text", "number")) or (
        word.word == "ARRAY" and after.text != "["
    )
    if word.word in WITHOUT_PARENTHESES and not is_name:
        refuse(word, f"{word.word} is not accepted: {WITHOUT_PARENTHESES[word.word]}")


def refuse_function(name: Token) -> NoReturn:
    """Refuse a function by its name if it is one that SQL knows, with what is written instead."""
    if name.word in REFUSED:
        refuse(name, f"{name.word}(..) is not accepted: {REFUSED[name.word]}")
    refuse(
        name,
        "a function is not accepted: COUNT(DISTINCT member) and COUNT(*) are, SUM and AVG of value columns, DATE_TRUNC "
        "of the time column, and no other function but percentiles, MIN and MAX of columns with a grid",
    )
