"""What clients send as SQL, taken apart only as far as needed: statements, their words, and parameters.

dp_service reads what is a question, and refuses whatever it does not know. It knows the same quotes and comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gris_gateway.faces.postgres.errors import SYNTAX, TOO_MUCH, PostgresError

MAX_CHARACTERS = 200_000
"""No statement that dp_service accepts is longer."""
MAX_PARTS = 100_000
# Nothing here is tried twice: each repetition keeps what it has, so that no text takes long.
_PART = re.compile(
    r"""(?P<comment>--[^\r\n]*+|/\*(?:(?!\*/).)*+(?:\*/)?)
      | (?P<text>'(?:[^']|'')*+')
      | "(?P<name>(?:[^"]|"")++)"
      | (?P<backquoted>`[^`]*+`)
      | (?P<number>\$[1-9]\d{0,4}+(?:\s*+::\s*+[a-z_]\w*+(?:\s++(?:VARYING|PRECISION|WITH(?:OUT)?\s++TIME\s++ZONE))?
          (?:\[\])?)?)
      | (?P<word>[^\W\d][\w$]*+)
      | (?P<gap>\s++)
      | (?P<open>['"`])
      | (?P<end>;)
      | (?P<other>[^\w\s'"`;$/-]++|\d++|.)""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
# What is between words and signs.
_BETWEEN = ("gap", "comment")
_PARAMETER = re.compile(r"\$(\d+)(?:\s*+::\s*+(\w++))?")


class Part(NamedTuple):
    """A piece of a statement.

    Attributes:
        kind: "text", "name" and "backquoted" are what quotes hold; "number" is a parameter's, with the cast behind it;
            "word", "other", "gap", "comment".
        written: As it was written.
    """

    kind: str
    written: str

    @property
    def said(self) -> str:
        """What it says: words in capitals, names without their quotes."""
        return self.written[1:-1].replace('""', '"') if self.kind == "name" else self.written.upper()

    @property
    def parameter(self) -> int:
        """The number of the parameter; 0: it is none."""
        found = _PARAMETER.match(self.written)
        return int(found[1]) if found else 0

    @property
    def cast(self) -> str:
        """The first word, in capitals, of the type that a parameter is cast to, [] if to an array; empty: to none."""
        found = _PARAMETER.match(self.written)
        return (found[2] or "").upper() + "[]" * self.written.endswith("[]") if found else ""


@dataclass(frozen=True)
class Text:
    """One statement. Prepared statements are held, so it keeps its characters alone.

    Attributes:
        sql: The statement as it was written, without what is around it.
        begin: Where that begins in what was sent.
    """

    sql: str
    begin: int = 0

    @property
    def parts(self) -> Iterator[Part]:
        """All of it."""
        return _parts(self.sql)

    @property
    def has_parameters(self) -> bool:
        """Whether there is a parameter in it."""
        return any(each.kind == "number" for each in self.parts)

    @property
    def without_comments(self) -> str:
        """The statement with blanks where it has comments, each as long as they are."""
        parts = (" " * len(each.written) if each.kind == "comment" else each.written for each in self.parts)
        return "".join(parts).strip()

    @property
    def words(self) -> tuple[Part, ...]:
        """Its parts without gaps and comments."""
        return tuple(each for each in self.parts if each.kind not in _BETWEEN)

    @property
    def first(self) -> str:
        """Its first word, in capitals; empty: it has none."""
        return next((each.said for each in self.parts if each.kind == "word"), "")


def statements_in(sql: str) -> list[Text]:
    """Return the statements of a text, without empty ones.

    Raises:
        PostgresError: It is too long, or a quote has no end.
    """
    if len(sql) > MAX_CHARACTERS:
        raise PostgresError(TOO_MUCH, f"expected at most {MAX_CHARACTERS:,} characters")
    found, begin, end, is_empty = list[Text](), 0, 0, True
    for part in (*_parts(sql), Part("end", ";")):
        if part.kind == "end":
            if not is_empty:
                written = sql[begin:end]
                found.append(Text(written.strip(), begin + len(written) - len(written.lstrip())))
            begin, is_empty = end + 1, True
        elif part.kind not in _BETWEEN:
            is_empty = False
        end += len(part.written)
    return found


def _parts(sql: str) -> Iterator[Part]:
    for count, found in enumerate(_PART.finditer(sql)):
        if count == MAX_PARTS:
            raise PostgresError(TOO_MUCH, f"expected at most {MAX_PARTS:,} words and signs")
        kind = found.lastgroup or "other"
        if kind == "open":
            raise PostgresError(SYNTAX, "expected an end of every quoted word", found.start() + 1)
        yield Part(kind, found.group())


_OF_CATALOGUE = frozenset(("PG_CATALOG", "INFORMATION_SCHEMA"))
_CLAUSES = frozenset(("SELECT", "FROM", "JOIN", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT"))


def is_of_catalogue(text: Text) -> bool:
    """Return whether a statement is about the catalogue, or about nothing: no question has no FROM."""
    words, clause, clauses = text.words, "", set[str]()
    for place, word in enumerate(words):
        if word.kind not in ("word", "name"):
            continue
        if _names_catalogue(words, place, clause):
            return True
        if word.kind == "word" and word.said in _CLAUSES:
            clause = word.said
            clauses.add(clause)
    return "FROM" not in clauses


def _names_catalogue(words: Sequence[Part], place: int, clause: str) -> bool:
    """Return whether a word is a schema, a table or a function of the catalogue; an alias may be called alike."""
    name = words[place].said.upper()
    before = words[place - 1].said if place else ""
    after = words[place + 1].written if place + 1 < len(words) else ""
    if name in _OF_CATALOGUE:
        return after.startswith(".")
    begins = clause if before == "," else before
    return name.startswith("PG_") and (begins in ("FROM", "JOIN") or after.startswith("("))
