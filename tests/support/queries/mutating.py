"""SQL texts with words added, left out, doubled or moved: nearly SQL, and often none."""

from __future__ import annotations

import re
from random import Random

_TOKEN = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\w+|<>|<=|>=|!=|\S")
_WORDS = re.findall(
    r"\w+",
    """
    SELECT FROM WHERE GROUP BY ORDER LIMIT AND OR NOT IN BETWEEN AS ASC DESC NULLS FIRST LAST COUNT
    DISTINCT DATE TRUE FALSE ONLY ROWS PERCENT WITH TIES FILTER OVER WITHIN IGNORE RESPECT USING FINAL
    SAMPLE TOP ALL OFFSET FETCH HAVING WINDOW QUALIFY EXCEPT LATERAL UNNEST CASE END IS NULL LIKE ESCAPE
    SYMMETRIC COLLATE INTERVAL text number flag day t e n member DISTINCTCOUNT FORMAT SETTINGS XOR DIV
    MOD ISNULL NOTNULL VALUES TABLE STRAIGHT_JOIN FORCE KEEP ANY SOME EXISTS TIMESTAMP CURRENT_DATE CAST
    """,
)
_SIGNS = [
    ",",
    ",",
    "(",
    ")",
    ".",
    "*",
    "-",
    "=",
    "<",
    ">",
    "<>",
    ";",
    "1",
    "2",
    "3",
    "0",
    "'a'",
    '"n"',
    "'2019-01-02'",
]


def mutated(text: str, random: Random) -> str:
    """Return a text with one to three changes."""
    tokens = _TOKEN.findall(text)
    for _ in range(random.randint(1, 3)):
        place = random.randrange(len(tokens) + 1)
        match random.randrange(5):
            case 0 | 1:
                tokens.insert(place, random.choice(_WORDS + _SIGNS * 2))
            case 2:
                del tokens[place : place + 1]
            case 3:
                tokens[place:place] = tokens[place : place + 1]
            case _:
                other = random.randrange(len(tokens))
                here = min(place, len(tokens) - 1)
                tokens[here], tokens[other] = tokens[other], tokens[here]
        tokens = tokens or ["SELECT"]
    return " ".join(tokens)
