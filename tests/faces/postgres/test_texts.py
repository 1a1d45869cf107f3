"""What clients of PostgreSQL send as SQL, taken apart: statements, words and parameters."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import datetime
import struct
import time
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gris_gateway.faces.postgres.errors import PostgresError, error_of
from gris_gateway.faces.postgres.parameters import parameters_of, values_of, with_values
from gris_gateway.faces.postgres.texts import MAX_PARTS, is_of_catalogue, statements_in
from gris_gateway.faces.postgres.types import Oid, read, written
from pinot_connector.catalog import Catalog, ColumnEntry, TableEntry
from pinot_connector.engines.base import ColumnType
from pinot_connector.errors import InvalidQuestion, ServiceRefused
from pinot_connector.parameters import Consistency, CountNoise

COLUMNS = (
    ColumnEntry("app", ColumnType.STRING, None, (), ("WEBSITE", "BOT"), None, None),
    ColumnEntry("free text", ColumnType.STRING, None, (), None, None, None),
    ColumnEntry("Stars", ColumnType.INT64, None, (), None, None, None),
    ColumnEntry("is_new", ColumnType.BOOL, None, (), None, None, None),
    ColumnEntry("at", ColumnType.TIMESTAMP, None, (), None, None, None),
)
TABLE = TableEntry("visits", "member", (), None, Consistency.KEYED, COLUMNS)
CATALOG = Catalog((TABLE,), Fraction(1), Fraction(0), "unit", CountNoise.LAPLACE, "policy")


@pytest.mark.parametrize(
    ("sql", "oids", "examples"),
    [
        ("app = $1 AND stars > $2", (Oid.TEXT, Oid.INT8), ("WEBSITE", 2)),
        (
            '"Stars" >= $1 AND NOT visits.app IN ($2, $3)',
            (Oid.INT8, Oid.TEXT, Oid.TEXT),
            (1, "WEBSITE", "WEBSITE"),
        ),
        ('"free text" LIKE $1 AND is_new = $2', (Oid.TEXT, Oid.BOOL), ("a", True)),
        (
            "at BETWEEN $2 AND $1::TIMESTAMP WITH TIME ZONE LIMIT $3",
            (Oid.TIMESTAMPTZ, Oid.TIMESTAMPTZ, Oid.INT8),
            (datetime.date(2000, 1, 2), datetime.date(2000, 1, 3), 3),
        ),
        (
            "EXTRACT(HOUR FROM at) = $1",
            (Oid.TIMESTAMPTZ,),
            (datetime.date(2000, 1, 2),),
        ),
        (
            "app = $1::int AND DATE_TRUNC('month', at) = $2",
            (Oid.INT8, Oid.TIMESTAMPTZ),
            ("WEBSITE", datetime.date(2000, 1, 3)),
        ),
        ("`$1` = app AND stars = $1", (Oid.INT8,), (1,)),
        (
            "app = ANY($1) AND stars <> ALL ($2) AND is_new = ANY($3::bool[]) AND app = $4",
            (Oid.TEXTS, Oid.INT8S, Oid.BOOLS, Oid.TEXT),
            (("WEBSITE",), (2,), (True,), "WEBSITE"),
        ),
        ("'$1' = \"$2\" /* $3 */ -- $4", (), ()),
    ],
)
def test_a_parameter_has_the_type_of_the_column_beside_it(
    sql: str, oids: tuple[Oid, ...], examples: tuple[object, ...]
) -> None:
    """And an example that a policy takes: a value of its domain, for a statement that is described."""
    (text,) = statements_in(f"SELECT 1 FROM visits WHERE {sql}")
    found = parameters_of(text, (), CATALOG)
    assert tuple(each.oid for each in found) == oids
    assert tuple(each.example for each in found) == examples
    stated = parameters_of(text, [Oid.INT4] * len(oids), CATALOG)
    assert {each.oid for each in stated} <= {Oid.INT4}


@given(
    st.lists(
        st.sampled_from(["'", '"', "`", ";", "--", "/*", "*/", "$1", "a", " ", "\n", "''", "é", "$", "\\"]),
        max_size=30,
    )
)
def test_a_text_is_taken_apart_without_loss(pieces: list[str]) -> None:
    """Each statement is a piece of the text, where it is said to begin; what quotes and comments hold ends none."""
    sql = "".join(pieces)
    try:
        texts = statements_in(sql)
    except PostgresError as error:
        assert sql[error.position - 1] in "'\"`"  # noqa: PT017 - a text may be refused for this alone
        return
    for text in texts:
        assert sql[text.begin :].startswith(text.sql)
        assert with_values(text, ["x"] * 9).count("'x'") >= sum(bool(each.parameter) for each in text.parts)


@pytest.mark.parametrize(
    ("value", "form", "oid", "literal"),
    [
        (b'{a,"b\'c"}', 0, Oid.TEXTS, "'{a,\"b''c\"}'"),
        (b"{1,2}", 0, Oid.INT2S, "'{1,2}'::bigint[]"),
        (b"{t}", 0, Oid.BOOLS, "'{t}'::boolean[]"),
        (struct.pack("!iiIiii2s", 1, 0, Oid.TEXT, 1, 1, 2, b"ab"), 1, Oid.TEXTS, "ARRAY['ab']"),
        (struct.pack("!iiIiiiiii", 1, 0, Oid.INT4, 2, 1, 4, 7, 4, 8), 1, Oid.INT4S, "ARRAY[7, 8]"),
        (struct.pack("!iiIiiii", 1, 0, Oid.DATE, 1, 1, 4, 0), 1, Oid.DATES, "ARRAY[DATE '2000-01-01']"),
    ],
)
def test_a_list_is_one_array(value: bytes, form: int, oid: Oid, literal: str) -> None:
    """As text it is read where all SQL is read; a number or a truth value is said to be one."""
    (text,) = statements_in("SELECT app FROM visits WHERE app = ANY($1)")
    sql = with_values(text, values_of([value], [form], [oid]))
    assert sql == f"SELECT app FROM visits WHERE app = ANY( {literal} )"


@pytest.mark.parametrize("above", [0, 1])
def test_a_place_is_that_in_what_was_sent(above: int) -> None:
    """On each line, also where a line stood above it; where values have moved it there is none."""
    sent = "  SELECT a\nFROM t WHERE a = 1\nAND c"
    (text,) = statements_in(sent)
    for line, column, word in ((1, 8, "a\n"), (2, 6, "t "), (3, 5, "c")):
        refused = InvalidQuestion("sql", f"line {line + above}, column {column}: expected another")
        error = error_of(refused, text, above)
        assert error.position == sent.index(word) + 1
        assert error.message == f"sql: line {line}, column {column}: expected another"
    assert (error_of(refused).position, error_of(refused).message) == (0, "sql: expected another")


@given(st.text(max_size=20))
def test_a_value_stays_one_literal(value: str) -> None:
    """Whatever a text holds, what stands behind it in the statement does so afterwards."""
    (text,) = statements_in("SELECT app FROM visits WHERE app = $1 AND stars = 1; ")
    try:
        (bound,) = statements_in(with_values(text, [value]))
    except PostgresError:
        assert "\0" in value or not value.isprintable()
        return
    assert [each.kind for each in bound.words][-4:] == ["word", "word", "other", "other"]
    (literal,) = [each.written for each in bound.words if each.kind == "text"]
    assert literal[1:-1].replace("''", "'") == value


@pytest.mark.parametrize(
    ("value", "oid"),
    [
        (7, Oid.INT8),
        (-0.1, Oid.FLOAT8),
        (True, Oid.BOOL),
        ("ключ 'x'", Oid.TEXT),
        (datetime.date(1969, 12, 31), Oid.DATE),
        (datetime.datetime(1999, 1, 2, 3, 4, 5, 6, datetime.UTC), Oid.TIMESTAMPTZ),
    ],
)
def test_a_value_is_the_same_as_text_and_in_binary(value: object, oid: Oid) -> None:
    """Both ways."""
    for binary in (False, True):
        sent = written(value, oid, binary=binary)
        assert sent is not None
        back = read("$1", sent, oid, binary=binary)
        assert (float(back) if isinstance(back, Decimal) else back) == value


@pytest.mark.parametrize(
    ("value", "form", "oid", "bound"),
    [
        (b"2026-01-31 +01", 0, Oid.DATE, "2026-01-31"),
        (b"2026-01-31 10:00:00+00", 0, Oid.TIMESTAMPTZ, "2026-01-31 10:00:00+00:00"),
        (b"2026-01-31", 0, Oid.TIMESTAMP, "2026-01-31"),
        (b"12.0", 0, Oid.NUMERIC, "12.0"),
        (b"t", 0, Oid.BOOL, "True"),
        (b"2025-03-01T00:00:00.000+00:00", 0, Oid.DATE, "2025-03-01"),
        (b"\x00\x02\x00\x00\x40\x00\x00\x02\x00\x0c\x09\xc4", 1, Oid.NUMERIC, "-12.2500"),
    ],
)
def test_values_are_read_as_drivers_write_them(value: bytes, form: int, oid: Oid, bound: str) -> None:
    """Days with a zone too, as JDBC sends them."""
    (found,) = values_of([value], [form], [oid])
    assert str(found).removesuffix(" 00:00:00") == bound


@pytest.mark.parametrize(
    ("value", "form", "oid"),
    [
        (None, 0, 25),
        (b"x", 0, 20),
        (b"\x00", 1, 20),
        (b"\xff", 0, 25),
        (b"{1}", 0, 1231),
        (struct.pack("!iiIiiii", 1, 1, Oid.INT4, 1, 1, -1, 0), 1, Oid.INT4S),
        (struct.pack("!iiIiiii", 2, 0, Oid.INT4, 1, 1, 1, 1), 1, Oid.INT4S),
        (b"x", 1, 1700),
        (b"\x00\x00\x00\x00\xc0\x00\x00\x00", 1, 1700),
        (b"", 0, 1082),
    ],
)
def test_values_of_no_type_here_are_refused(value: bytes | None, form: int, oid: int) -> None:
    """By the number of the parameter, without what was sent."""
    with pytest.raises(PostgresError, match=r"^\$1: expected"):
        values_of([value], [form], [oid])


@pytest.mark.parametrize(
    ("sql", "is_it"),
    [
        ("SELECT a, pg_plan FROM rides GROUP BY a, pg_plan", False),
        ("SELECT 1 FROM rides, pg_class", True),
        ("SELECT app FROM visits", False),
        ("SELECT app FROM public.visits WHERE app = 'pg_class'", False),
        ("SELECT * FROM pg_class", True),
        ('SELECT * FROM "information_schema"."tables"', True),
        ("SELECT 1 + 1", True),
        ("SELECT COUNT(*) AS pg_count FROM visits", False),
        ("SELECT a.x FROM visits a, pg_class", True),
        ("WITH a AS (SELECT app FROM visits) SELECT * FROM a", False),
    ],
)
def test_what_is_of_the_catalogue_goes_there_and_nothing_else(sql: str, is_it: bool) -> None:
    """A question about a table never does."""
    (text,) = statements_in(sql)
    assert is_of_catalogue(text) == is_it


@pytest.mark.parametrize(
    ("reason", "sqlstate"),
    [("TOKEN_REFUSED", "28000"), ("ACCOUNT_OUT_OF_REACH", "28000"), ("PLAN_UNKNOWN", "58000")],
)
def test_what_an_operator_has_to_mend_is_not_the_callers(reason: str, sqlstate: str) -> None:
    """A gateway refuses callers, and what it was not set up for."""
    assert error_of(ServiceRefused("gateway", "no", reason)).sqlstate == sqlstate


def test_a_text_of_very_many_words_or_parameters_is_refused() -> None:
    """Before it takes long."""
    (text,) = statements_in("SELECT app FROM visits WHERE app = $65536")
    with pytest.raises(PostgresError, match="at most 32,767 parameters"):
        parameters_of(text, (), CATALOG)
    with pytest.raises(PostgresError, match="words and signs"):
        statements_in("1," * (MAX_PARTS // 2 + 1))


def test_the_longest_list_is_read_by_looking_at_each_of_its_words_a_few_times() -> None:
    """The caller's own time: a look at all words before each one would be 10^9 looks, minutes for everybody else."""
    (text,) = statements_in("SELECT " + "app, " * (MAX_PARTS // 3 - 10) + "app FROM visits")
    began = time.process_time()
    assert not is_of_catalogue(text)
    assert time.process_time() - began < 20
