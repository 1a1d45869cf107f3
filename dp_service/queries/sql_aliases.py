"""The aliases of a question in SQL: of columns and of the count, for those who display them, and of the table.

An alias in double quotes may hold any visible characters. Without quotes it must not be a word that means something
after a count or a table: a parser that does not find that meaning takes the word for an alias, and the text would mean
something else to another engine.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection

from sqlglot import exp

from dp_service.queries.errors import QuestionError
from dp_service.queries.sql_keywords import KEYWORDS
from dp_service.queries.sql_nodes import identifier_name
from dp_service.queries.sql_tokens import refuse

MAXIMUM_ALIAS_LENGTH = 128


def alias_name(node: exp.Expr | None, *, also: Collection[str] = ()) -> str:
    """Return an alias as it was written.

    Args:
        node: The alias.
        also: Words of SQL that are an alias here without quotes, too.

    Raises:
        QuestionError: It has no visible characters or too many, or is a word of SQL without quotes.
    """
    name = identifier_name(node)
    if not 1 <= len(name) <= MAXIMUM_ALIAS_LENGTH or not name.strip():
        raise QuestionError("sql", f"expected an alias of 1 to {MAXIMUM_ALIAS_LENGTH} characters")
    if any(unicodedata.category(character).startswith("C") for character in name):
        refuse("an alias with control or invisible characters")
    if isinstance(node, exp.Identifier) and not node.args.get("quoted") and _is_keyword(name, also):
        refuse(f"{name.upper()} as an alias without double quotes")
    return name


def _is_keyword(name: str, also: Collection[str]) -> bool:
    return KEYWORDS.fullmatch(name) is not None and name.upper() not in also
