"""Texts that no port answers as a question, with a mark in their literals, and bytes that are no text."""

# ruff: noqa: S608  (the SQL is the tests' own)
from __future__ import annotations

from random import Random

from tests.campaigns.fuzz.mutating import CANARY_TEXT as MARK

NO_QUESTIONS = (
    f"SELECT nope, COUNT(DISTINCT member_id) FROM engagement WHERE country = '{MARK}' GROUP BY nope",
    f"SELECT country, COUNT(*) FROM engagement WHERE member_id = '{MARK}' GROUP BY country",
    f"SELECT member_id FROM engagement WHERE article_id = '{MARK}'",
    f"SELECT article_id FROM nowhere WHERE article_id = '{MARK}' LIMIT 5",
    f"SELECT nope FROM engagement WHERE article_id = $1 AND score = $2 -- {MARK}",
    f"SELECT '{MARK}",
    f"INSERT INTO engagement VALUES ('{MARK}')",
    f"EXPLAIN SELECT nope, COUNT(*) FROM engagement WHERE country = '{MARK}' GROUP BY 1",
    "SELECT 1",
    "SELECT version()",
    "SHOW server_version",
    f"SET application_name = '{MARK}'",
    "SET gris.max_cost = 99999999999999999999",
    "SET gris.confidence = nan",
    "BEGIN",
    "ROLLBACK",
    "COMMIT; SELECT 1;; SELECT 2",
    "DEALLOCATE ALL",
    f"FETCH 1 FROM {MARK}",
    "",
    ";",
    "/* nothing */",
)
OF_CATALOGUE = (
    f"SELECT relname FROM pg_catalog.pg_class WHERE relname = '{MARK}'",
    f"SELECT '{MARK}'::int",
    "SELECT count(*) FROM information_schema.columns WHERE table_name = $1",
    "SELECT $1::text",
)
_ODD = (
    b"\0",
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xe2\x80\xa8",
    "\u202e".encode(),
    b"\r\n",
    b"\r\n\r\n",
)


def no_question(random: Random) -> str:
    """Return a text that costs nothing; one in a hundred is as long as a text may be, or longer."""
    if random.random() < 0.01:
        sign = random.choice(("x", ",", "SELECT 1;", "'", "((", "--", "$1 ", "\u00e9", "\U0001f600"))
        return "SELECT " + sign * (random.choice((1_000, 60_000, 199_000, 200_001)) // len(sign))
    # The catalogue's own process is slow, and is not what is tried.
    return random.choice(OF_CATALOGUE if random.random() < 0.03 else NO_QUESTIONS)


def bent(content: bytes, random: Random) -> bytes:
    """Return bytes of which some are changed, left out, doubled or put in."""
    changed = bytearray(content)
    for _ in range(random.randint(1, 3)):
        at = random.randint(0, len(changed))
        match random.randrange(5):
            case 0:
                changed[at : at + 1] = bytes([random.randrange(256)])
            case 1:
                del changed[at : at + random.randint(1, 9)]
            case 2:
                changed[at:at] = changed[at : at + random.randint(1, 30)] * random.randint(1, 3)
            case 3:
                changed[at:at] = random.choice(_ODD)
            case _:
                del changed[at:]
    return bytes(changed)


def in_parts(content: bytes, random: Random) -> list[bytes]:
    """Return bytes in parts as they may come: whole, mostly; else each part alone."""
    if random.random() < 0.8 or len(content) < 2:
        return [content]
    ends = sorted(random.randint(0, len(content)) for _ in range(random.randint(1, 5)))
    return [content[begin:end] for begin, end in zip([0, *ends], [*ends, len(content)], strict=True)]
