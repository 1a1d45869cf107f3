"""How messages call a token, and the refusal of a function that no question has."""

from __future__ import annotations

from typing import NoReturn

from dp_service.queries.sql.places import refuse
from dp_service.queries.sql.tokens import Token
from dp_service.queries.sql.words import KEYWORDS, REFUSED


def named(token: Token) -> str:
    """Return how a message calls a token: a word of SQL by itself, but no word of the author's own."""
    if token.kind == "sign":
        return token.text
    if KEYWORDS.fullmatch(token.word):
        return token.word
    return {"number": "a number", "text": "a text", "end": "the end"}.get(token.kind, "a name")


def refuse_function(name: Token) -> NoReturn:
    """Refuse a function by its name if it is one that SQL knows, with what is written instead."""
    if name.word in REFUSED:
        refuse(name, f"{name.word}(..) is not accepted: {REFUSED[name.word]}")
    refuse(
        name,
        "a function is not accepted: COUNT(DISTINCT member) and COUNT(*) are, SUM and AVG of value columns, DATE_TRUNC "
        "of the time column, and no other function but percentiles, MIN and MAX of columns with a grid",
    )
