"""SQL texts that were accepted or refused, changed at random: by characters, by words, and by what attacks use."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from tests.support.queries.accepted import ACCEPTED
from tests.support.queries.meanings import MEANINGS
from tests.support.queries.refused import BY_POLICY, MALFORMED

# No message may ever hold one of these; they stand in literals and names of every text.
CANARY_TEXT, CANARY_NUMBER = "Kanarienvogel", "918273645"

_MAX_SEED_LENGTH = 2000
SOUND: tuple[str, ...] = (
    *(case.sql for case in ACCEPTED.values()),
    *(text for row in MEANINGS for text in row),
)
UNSOUND: tuple[str, ...] = tuple(
    text for text, _ in (*MALFORMED.values(), *BY_POLICY.values()) if 0 < len(text) <= _MAX_SEED_LENGTH
)

_WORD = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\w+|\s+|[<>!]=|<>|.", re.DOTALL)
_ASCII_SIGNS = list("'\"\\`;:,.()[]{}<>=!*%+-/|&^~#@?$_ \t\n\r\0")
_OTHER_SIGNS = [
    *("\u00a0", "\u2018", "\u2019", "\uff07", "\u037e", "\u0430", "\u017f", "\u212a", "\u200b", "\ufeff"),
    *("\ud800", "\u2028", "\x85", "\x1a", "\U0001f600"),
]
_NAMES = (
    "article_id",
    "country",
    "score",
    "active",
    "cohort",
    "title",
    "shown",
    "day",
    "member_id",
    "secret",
    "at",
)
_LITERALS = (
    "'DE'",
    "'x'",
    "''",
    "'2019-01-03'",
    "DATE '2019-01-03'",
    "0",
    "-1",
    "3",
    "TRUE",
    "FALSE",
    "('DE')",
    "(2)",
)
_PIECES = (
    *(
        "SELECT",
        "FROM",
        "WHERE",
        "GROUP BY",
        "ORDER BY",
        "LIMIT",
        "AND",
        "OR",
        "NOT",
        "IN",
        "BETWEEN",
        "IS",
        "NULL",
    ),
    *(
        "COUNT(*)",
        "COUNT(DISTINCT member_id)",
        "DESC",
        "ASC",
        "AS",
        "DISTINCT",
        "HAVING",
        "SORT",
        "CLUSTER",
        "DISTRIBUTE",
        "UNION ALL",
        "JOIN",
    ),
    *(
        "member_id",
        "article_id",
        "country",
        "score",
        "day",
        "title",
        "engagement",
        "clicks",
        "orders",
        '"day"',
    ),
    *(
        "''",
        "'x'",
        "'it''s'",
        "1",
        "-1",
        "0",
        "9223372036854775807",
        "9223372036854775808",
        "1.5",
        "0x1F",
        "1e9",
    ),
    *("TRUE", "FALSE", "DATE '2019-01-01'", "'2019-02-30'", "U&'\\0041'", "E'x'", "X'41'", "$$x$$", "{{x}}"),
    *(
        "--",
        "/*",
        "*/",
        "//",
        "#",
        "; DROP TABLE engagement",
        "SET useMultistageEngine=true;",
        "OPTION(timeoutMs=1)",
    ),
    *(
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "CASE WHEN score > 1 THEN 'x' ELSE 'y' END",
        "THEN NULL",
        "ELSE NULL",
    ),
    *(
        "EXTRACT(MONTH FROM day)",
        "EXTRACT(ISODOW FROM day)",
        "EXTRACT(",
        "QUARTER(day)",
        "DATE_PART('month', day)",
    ),
    *(
        "FUNNEL_COUNT(STEPS(active, country = 'DE'), CORRELATE_BY(member_id))",
        "STEPS(score > 1, ",
        "DATE_TRUNC('month', MIN(day))",
        "DATE_DIFF('month', MIN(day), day)",
        "MIN(day)",
        "(SELECT member_id, DATE_TRUNC('week', MIN(day)) AS f FROM engagement GROUP BY 1)",
    ),
    *("LIKE '%x_'", "NOT LIKE 'D%'", "ILIKE 'd_'", "ILIKE '\u212a'", "IS NULL", "IS NOT NULL", "NOT ("),
    *("OR score > 1000000", "OR country = 'DE'", "OR NOT active", "AND (score = 1 OR day > '2019-01-01')"),
    *(
        "IN_SUBQUERY(article_id, 'q') = 1",
        "LOOKUP('t', 'c', 'k', article_id)",
        "json_path(article_id, '$.a')",
    ),
    *(
        "regexp_like(article_id, 'x')",
        "d_i_v(1, 2)",
        "CAST(score AS STRING)",
        "score::text",
        "(SELECT 1)",
        "ANY(1)",
    ),
    *(
        "= ANY(ARRAY['DE', 'x'])",
        "<> ALL(ARRAY[1, 2]::int[])",
        "= ANY('{1,x}')",
        "ARRAY[",
        "]",
        "::int[]",
        "ANY(",
    ),
    *("|| '%'", "'x' || 'y'", "::bigint", "CAST(COUNT(*) AS BIGINT)", "::numeric"),
    *(
        "COUNT(*) OVER ()",
        "FILTER (WHERE TRUE)",
        "/ COUNT(*)",
        "- SUM(score)",
        "TABLESAMPLE (1)",
        "LATERAL",
        "WITH x AS (SELECT 1)",
        "FETCH FIRST",
    ),
    *(
        "INTO OUTFILE",
        "FOR UPDATE",
        "OFFSET 1",
        "LIMIT 5, 10",
        "(((",
        ")))",
        "ILIKE '%'",
        "RLIKE 'x'",
        "@x",
        ":x",
        "?",
    ),
)


def mutated(random: Random) -> str:
    """Return a text with canaries in it: a seed after one to three changes, more of them gentle than not."""
    text = _with_canaries(random.choice(SOUND if random.random() < 0.8 else UNSOUND), random)
    for _ in range(random.randint(1, 3)):
        text = random.choice(_GENTLE if random.random() < 0.6 else _HARSH)(text, random)
    return text


def _with_canaries(text: str, random: Random) -> str:
    """Put canaries in the place of some literals."""
    words = _WORD.findall(text)
    for i, word in enumerate(words):
        if word.startswith("'") and random.random() < 0.6:
            words[i] = f"'{CANARY_TEXT}{random.choice(['', ' ', '%', chr(92), ';', '--'])}'"
        elif word.isdigit() and random.random() < 0.3:
            words[i] = CANARY_NUMBER
        elif word.isidentifier() and random.random() < 0.03:
            words[i] = CANARY_TEXT
    return "".join(words)


def _place(sequence: Sequence[str] | str, random: Random) -> int:
    return random.randint(0, len(sequence))


def _sign(random: Random) -> str:
    return random.choice(_ASCII_SIGNS if random.random() < 0.8 else _OTHER_SIGNS)


def _insert_sign(text: str, random: Random) -> str:
    i = _place(text, random)
    return text[:i] + _sign(random) + text[i:]


def _replace_sign(text: str, random: Random) -> str:
    i = _place(text, random)
    return text[:i] + _sign(random) + text[i + 1 :]


def _delete_part(text: str, random: Random) -> str:
    i = _place(text, random)
    return text[:i] + text[i + random.randint(1, 8) :]


def _repeat_part(text: str, random: Random) -> str:
    i = _place(text, random)
    return text[:i] + text[i : i + random.randint(1, 30)] * random.randint(2, 4) + text[i:]


def _insert_piece(text: str, random: Random) -> str:
    words = _WORD.findall(text)
    words.insert(_place(words, random), f" {random.choice(_PIECES)} ")
    return "".join(words)


def _replace_word(text: str, random: Random) -> str:
    words = _WORD.findall(text)
    if words:
        words[random.randrange(len(words))] = random.choice(_PIECES)
    return "".join(words)


def _swap_words(text: str, random: Random) -> str:
    words = _WORD.findall(text)
    if words:
        i, j = random.randrange(len(words)), random.randrange(len(words))
        words[i], words[j] = words[j], words[i]
    return "".join(words)


def _change_case(text: str, random: Random) -> str:
    words = _WORD.findall(text)
    if words:
        i = random.randrange(len(words))
        words[i] = random.choice([str.upper, str.lower, str.title, str.swapcase])(words[i])
    return "".join(words)


def _quote_word(text: str, random: Random) -> str:
    words = _WORD.findall(text)
    if words:
        i = random.randrange(len(words))
        words[i] = random.choice(['"{}"', "'{}'", "({})", "`{}`", "[{}]", "-{}", "{}()"]).format(words[i])
    return "".join(words)


def _replaced(text: str, pattern: str, choices: Sequence[str], random: Random) -> str:
    """Put one of the choices in the place of a word that matches."""
    words = _WORD.findall(text)
    places = [i for i, word in enumerate(words) if re.fullmatch(pattern, word)]
    if places:
        words[random.choice(places)] = random.choice(choices)
    return "".join(words)


def _change_space(text: str, random: Random) -> str:
    return _replaced(text, r"\s+", [" ", "  ", "\n", "\t", "\r\n"], random)


def _change_name(text: str, random: Random) -> str:
    return _replaced(text, "|".join(_NAMES), [*_NAMES, *(f'"{name}"' for name in _NAMES)], random)


def _change_literal(text: str, random: Random) -> str:
    return _replaced(text, r"'(?:[^']|'')*'|\d+", [*_LITERALS, f"'{CANARY_TEXT}'", CANARY_NUMBER], random)


def _change_comparison(text: str, random: Random) -> str:
    return _replaced(text, "[<>!]=|<>|[=<>]", ["=", "<", ">", "<=", ">=", "<>", "!="], random)


def _add_condition(text: str, random: Random) -> str:
    sign = random.choice(["=", "<>", "<", ">=", "IN ", "NOT IN ", "LIKE", "NOT ILIKE"])
    literal, word = random.choice(_LITERALS), random.choice(["AND", "AND", "OR"])
    condition = f" WHERE {random.choice(_NAMES)} {sign} {literal} {word} "
    return re.sub(r"\swhere\s", lambda _: condition, text, count=1, flags=re.IGNORECASE)


def _splice(text: str, random: Random) -> str:
    other = random.choice(SOUND)
    return text[: _place(text, random)] + other[_place(other, random) :]


_Change = Callable[[str, Random], str]
_GENTLE: tuple[_Change, ...] = (
    _change_case,
    _change_space,
    _change_name,
    _change_literal,
    _change_comparison,
    _add_condition,
)
_HARSH: tuple[_Change, ...] = (
    _insert_sign,
    _replace_sign,
    _delete_part,
    _repeat_part,
    _insert_piece,
    _replace_word,
    _swap_words,
    _quote_word,
    _splice,
)
