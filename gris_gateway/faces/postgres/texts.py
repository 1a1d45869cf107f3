"""What clients send as SQL, taken apart only as far as needed: statements, their words, and parameters.

dp_service reads what is a question, and refuses whatever it does not know. It knows the same quotes and comments.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
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
_KINDS = ("comment", "text", "name", "backquoted", "number", "word", "gap", "other")
_NUMBER = _KINDS.index("number")
# What is between words and signs.
_BETWEEN = bytes(map(_KINDS.index, ("gap", "comment")))
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
    """One statement. Prepared statements are held, so it takes little more memory than its characters.

    Attributes:
        written: All of it.
        ends: Where each of its parts ends.
        kinds: The kinds of its parts, by their places in `_KINDS`.
        begin: Where `sql` begins in what was sent.
    """

    written: str
    ends: array[int]
    kinds: bytes
    begin: int = 0

    @classmethod
    def of(cls, parts: Sequence[Part], begin: int = 0) -> Text:
        """Return the statement of these parts."""
        ends = array("I", accumulate(len(each.written) for each in parts))
        kinds = bytes(_KINDS.index(each.kind) for each in parts)
        return cls("".join(each.written for each in parts), ends, kinds, begin)

    @property
    def parts(self) -> tuple[Part, ...]:
        """All of it."""
        begins = (0, *self.ends)
        return tuple(
            Part(_KINDS[kind], self.written[begin:end])
            for kind, begin, end in zip(self.kinds, begins, self.ends, strict=False)
        )

    @property
    def has_parameters(self) -> bool:
        """Whether there is a parameter in it."""
        return _NUMBER in self.kinds

    @property
    def sql(self) -> str:
        """The statement as it was written, without what is around it."""
        return self.written.strip()

    @property
    def without_comments(self) -> str:
        """The statement with blanks where it has comments, each as long as they are."""
        parts = (" " * len(each.written) if each.kind == "comment" else each.written for each in self.parts)
        return "".join(parts).strip()

    @property
    def words(self) -> tuple[Part, ...]:
        """Its parts without gaps and comments."""
        return tuple(each for each in self.parts if each.kind not in ("gap", "comment"))

    @property
    def first(self) -> str:
        """Its first word, in capitals; empty: it has none."""
        place = self.kinds.find(_KINDS.index("word"))
        begin = self.ends[place - 1] if place > 0 else 0
        return "" if place < 0 else self.written[begin : self.ends[place]].upper()


@dataclass(frozen=True)
class Asked:
    """A question as it is asked, and where its parts stand in what its client has sent.

    Attributes:
        sql: As it is asked.
        sent: As its client has written it.
        begin: Where that begins in what was sent.
        moved: For each part that was written anew, where it ends in `sql` and in `sent`, and how long it is there.
    """

    sql: str
    sent: str
    begin: int
    moved: tuple[tuple[int, int, int], ...] = ()

    def place(self, line: int, column: int) -> int | None:
        """Return where a line and a column of `sql` are in `sent`, from 0; None: nowhere."""
        before = self.sql.split("\n")[: line - 1]
        if len(before) < line - 1:
            return None
        place, ends = sum(len(each) + 1 for each in before) + column - 1, (0, 0)
        for end, end_sent, length in self.moved:
            if place < end:
                # Within a value, or before it.
                return min(place - ends[0] + ends[1], end_sent - length)
            ends = end, end_sent
        return place - ends[0] + ends[1]


def statements_in(sql: str) -> list[Text]:
    """Return the statements of a text, without empty ones.

    Raises:
        PostgresError: It is too long, or a quote has no end.
    """
    if len(sql) > MAX_CHARACTERS:
        raise PostgresError(TOO_MUCH, f"expected at most {MAX_CHARACTERS:,} characters")
    found, parts, begin, end = [], [], 0, 0
    for part in (*_parts(sql), Part("end", ";")):
        end += len(part.written)
        if part.kind != "end":
            parts.append(part)
            continue
        blanks = len(parts[0].written) if parts and parts[0].kind == "gap" else 0
        found.append(Text.of(parts, begin + blanks))
        parts, begin = [], end
    return [each for each in found if each.kinds.strip(_BETWEEN)]


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
