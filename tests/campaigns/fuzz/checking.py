"""What must hold of every text, whatever it is."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from random import Random
from types import FrameType
from typing import Any

import duckdb

from dp_service.queries.canonical import canonicalise
from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.domains import restricted_values
from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.filters import In, InPart, IsNull, column_filters
from dp_service.queries.intervals import ordinal
from dp_service.queries.render import render
from dp_service.queries.render.dialects import DIALECTS
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.sql import parse_sql
from dp_service.queries.sql.tokens import Token, tokens_of
from dp_service.queries.structured import Free, HistogramQuery
from tests.campaigns.fuzz.mutating import CANARY_NUMBER, CANARY_TEXT
from tests.support.queries.policies import NOW, POLICY
from tests.support.queries.sql_reader import read
from tests.support.queries.sql_writer import spelled

# Calls of functions for each character and for each text, twice what the slowest text of the tests needs.
_CALLS_A_CHARACTER, _CALLS_A_TEXT = 200, 10_000


_PLACE = re.compile(r"^line [0-9]+, column [0-9]+: ")


def checked(text: str) -> str | None:
    """Return why a text is refused, wherever that stands, or None if it is accepted.

    AssertionError says what does not hold.

    An accepted text is nothing but its structured form: it means the same to an engine, written as SQL again it has the
    same fingerprint, and what engines are asked reads back as it. A refusal is one of two errors, names its reason, and
    repeats nothing.
    """
    try:
        query = parse_sql(text, POLICY)
        resolution = resolve(query, POLICY, now=NOW)
    except (QuestionError, RefusedByPolicyError) as error:
        _check_refusal(error)
        return _PLACE.sub("", str(error).splitlines()[0])
    if query.free is not None:
        _check_free(text, query, resolution)
        return None
    _check_meaning(text, query, resolution)
    _check_spelling(query, resolution)
    _check_engines(query, resolution)
    return None


def _check_refusal(error: QuestionError | RefusedByPolicyError) -> None:
    reported = f"{error} {getattr(error, 'field', '')} {error.args!r}"
    assert str(error), "a refusal without a reason"
    for canary in (CANARY_TEXT, CANARY_NUMBER):
        assert canary.lower() not in reported.lower(), "a refusal repeats a literal"
    foreign = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert foreign is None, "a refusal carries a foreign error, whose text can hold anything"


@cache
def _engine() -> duckdb.DuckDBPyConnection:
    """Return a DuckDB with a table in which no value is missing or equal to a null value, and bounds are met."""
    engine = duckdb.connect()
    engine.execute("""
        CREATE TABLE engagement AS SELECT
            'm' || (i % 1000) AS member_id, 'DxaX%'[1 + i % 5] AS article_id,
            ['DE', 'FR', 'AT', 'XX'][1 + i // 2 % 4] AS country, (i % 9 - 1)::BIGINT AS score, i % 2 = 0 AS active,
            'c' || (i % 4) AS cohort, 'x' AS secret, ['x', 'y', 'DE'][1 + i // 3 % 3] AS title,
            ['x', 'DE'][1 + i // 5 % 2] AS shown,
            DATE '2018-12-31' + [0, 1, 2, 3, 31, 32][1 + i // 7 % 6]::INTEGER AS day
        FROM range(1260) r(i)
    """)
    for name in ("distinctcount", "distinctcounthll"):
        # Pinot's names of it.
        engine.execute(f"CREATE MACRO {name}(x) AS count(DISTINCT x)")
    engine.execute("""CREATE MACRO width_bucket(x, low, high, n) AS CASE WHEN x < low THEN 0 WHEN x >= high THEN n + 1
        ELSE CAST(floor((x - low) * n / (high - low)::DOUBLE) AS BIGINT) + 1 END""")
    return engine


def _check_meaning(text: str, query: HistogramQuery, resolution: Resolution) -> None:
    """Run the text as it is, and what would be rendered: an engine that knows nothing of us counts the same.

    LIMIT is left away, for it says how much is shown, and so are values outside of a column's domain. Only of one
    table: `user`, the member of others, is a function to DuckDB.
    """
    # HAVING is of the numbers with noise.
    if query.table != "engagement" or query.having:
        return
    # A truth value that is missing is FALSE to every policy.
    leaves = (each for condition in query.filters for each in column_filters(condition))
    of_active = any(isinstance(each, IsNull) and each.column == "active" for each in leaves)
    # DuckDB has no arrays that are written as texts.
    if of_active or any(each.kind == "text" and each.value.strip()[:1] == "{" for each in tokens_of(text)):
        return
    try:
        as_written = _engine().execute(_without_limit(text)).fetchall()
    except duckdb.ParserException:
        # A count may be called by a word that DuckDB keeps for itself, such as TRUE; nothing else has an excuse.
        assert query.count_alias is not None, "accepted, but no engine would take it for SQL"
        return
    except duckdb.BinderException as error:
        if _is_of_two_spellings(query, error):
            return
        raise
    rendered = _engine().execute(render(resolution, "duckdb")).fetchall()
    as_written = [_in_canonical_order(row, query) for row in as_written]
    width = len(query.dimensions)
    # SQL has a group of NULL, which is in no bin.
    as_written = [row for row in as_written if None not in row[:width]]
    held = restricted_values([POLICY.table(query.table).column(name) for name in query.plain_dimensions])
    # A function makes one element of values within a column's domain and outside of it.
    listed = {each.name for each in POLICY.table(query.table).columns if each.domain is not None}
    of_function = any(not listed.isdisjoint(each.columns) for each in query.functions)
    if of_function or (resolution.parameters.domain is None and len(rendered) == resolution.row_limit):
        return
    as_written = [
        row
        for row in as_written
        if all(
            name not in held or value in held[name]
            for name, value in zip(query.dimensions, row[:width], strict=True)
            if isinstance(name, str)
        )
    ]
    expected = [row[:width] if query.omit_counts else row for row in rendered]
    assert sorted(map(_shown, as_written)) == sorted(map(_shown, expected)), (
        "an engine reads the text otherwise"
    )


def _is_of_two_spellings(query: HistogramQuery, error: duckdb.BinderException) -> bool:
    """Return whether a question has one function in two spellings, of which DuckDB takes neither for the other."""
    return query.plain_dimensions != query.dimensions and "must appear in the GROUP BY" in str(error)


def _shown(row: tuple[Any, ...]) -> str:
    """Return a row as a text, in which a number is the same in each of its types."""
    is_whole = [isinstance(each, Decimal | float) and each % 1 == 0 for each in row]
    return str([int(each) if whole else each for each, whole in zip(row, is_whole, strict=True)])


def _check_free(text: str, query: HistogramQuery, resolution: Resolution) -> None:
    """Run the text: an engine has no row where columns alone are asked for, and of the domain only listed values."""
    if query.table != "engagement":
        return
    try:
        rows = _engine().execute(text).fetchall()
    except duckdb.BinderException as error:
        if _is_of_two_spellings(query, error):
            return
        raise
    if query.free is Free.COLUMNS:
        # SQL counts nothing as one row.
        assert not rows or not query.plain_dimensions, "an engine has rows"
        return
    domains = [set(POLICY.table(query.table).column(name).domain or ()) for name in query.plain_dimensions]
    within = [row for row in rows if all(map(set.__contains__, domains, row))]
    listed = set(resolution.parameters.domain or ())
    assert {_element_of(row) for row in within} <= listed, "an engine has other values"


def _element_of(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(each if isinstance(each, str) else ordinal(each) for each in row)


def _end_of_value(tokens: Sequence[Token]) -> Token:
    """Return the last token of a value in any parentheses, perhaps cast."""
    depth = place = 0
    while (depth := depth + (tokens[place].text == "(") - (tokens[place].text == ")")) > 0:
        place += 1
    while tokens[place + 1].text == "::":
        place += 2
    return tokens[place]


def _without_limit(text: str) -> str:
    """Leave LIMIT, FETCH and TOP away with their numbers, wherever they stand."""
    tokens, kept = tokens_of(text), list(text)
    for place, token in enumerate(tokens):
        if token.word == "FETCH":
            end = next(each for each in tokens[place:] if each.word == "ONLY")
        elif token.word == "LIMIT":
            end = _end_of_value(tokens[place + 1 :])
        elif token.word == "TOP" and tokens[place + 1].kind == "number":
            end = tokens[place + 1]
        else:
            continue
        kept[token.start : end.end] = " " * (end.end - token.start)
    return "".join(kept)


def _in_canonical_order(row: tuple[object, ...], query: HistogramQuery) -> tuple[object, ...]:
    """Return a row as it is without an order of the select list: the columns, then the count."""
    return tuple(value for _, value in sorted(zip(query.shown, row, strict=True))) if query.shown else row


def _check_spelling(query: HistogramQuery, resolution: Resolution) -> None:
    """Write the structured form as SQL of our own: it is the same question, and engines are asked the same."""
    again = parse_sql(spelled(query, POLICY.table(query.table), Random(0)), POLICY)
    same = resolve(again, POLICY, now=NOW)
    assert canonical_bytes(same.query) == canonical_bytes(resolution.query), "another question"
    for dialect in DIALECTS:
        assert render(same, dialect) == render(resolution, dialect), "engines are asked something else"


def _check_engines(query: HistogramQuery, resolution: Resolution) -> None:
    """Read what engines are asked, by a parser that knows nothing of the text: it is the question, and no more."""
    leaves = (each for condition in query.every_filter for each in column_filters(condition))
    if query.plain_dimensions != query.dimensions or any(isinstance(each, InPart) for each in leaves):
        # The reader knows columns as they are; `_check_meaning` runs the text itself.
        return
    table = POLICY.table(query.table)
    known = query.plain_dimensions if resolution.parameters.domain is not None else ()
    asked_too = tuple(In(name, table.column(name).domain or ()) for name in known)
    closed_before = None if table.time is None else table.time.closed_before(NOW)
    whole = replace(query, filters=(*query.filters, *asked_too))
    expected = _fingerprint(whole, closed_before)
    for dialect in DIALECTS:
        found = read(render(resolution, dialect), table, dialect)
        assert expected == _fingerprint(found.query, None), "engines are asked something else"
        assert (found.clip, found.limit) == (resolution.query.clip, resolution.row_limit)


def _fingerprint(query: HistogramQuery, closed_before: int | None) -> bytes:
    """Return the fingerprint; empty where a filter leaves nothing of a known domain."""
    try:
        table = POLICY.table(query.table)
        return canonical_bytes(canonicalise(query, table, closed_before=closed_before))
    except QuestionError:
        return b""


def work_of(text: str) -> int:
    """Return how many functions are called until a text is accepted or refused: its cost on any machine."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        resolve(parse_sql(text, POLICY), POLICY, now=NOW)
    except (QuestionError, RefusedByPolicyError):
        pass
    finally:
        sys.setprofile(before)
    return calls


def work_allowed(text: str) -> int:
    """Return how much work a text may be: no more than in proportion to its length."""
    return _CALLS_A_TEXT + _CALLS_A_CHARACTER * len(text)
