"""What clients put before, behind and beside SQL: options of Pinot's are left out, and own ones are read."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gris_gateway.faces.broker.credentials import sender_and_account
from gris_gateway.faces.broker.statements import Asked, asked, asked_in
from gris_serving.admitting import Sender
from pinot_connector.errors import InvalidQuestion

PLAIN = "SELECT a FROM t"


@pytest.mark.parametrize(
    ("sql", "options"),
    [
        ("SET timeoutMs=100; SELECT a FROM t", None),
        ("SET useMultistageEngine = true;\nset x='a;b' ; SELECT a FROM t", None),
        ("SELECT a FROM t OPTION(preserveType='true')", None),
        ("SELECT a FROM t option (timeoutMs = 10, x='y, z') ;", None),
        ("SELECT a FROM t OPTION(a=1) OPTION(b=2)", None),
        ("/* a tool */ SET a=1; -- more\nSET b=2; SELECT a FROM t", None),
        ("SELECT a FROM t OPTION(a=1); -- sent by a tool", None),
        ("SELECT a FROM t LIMIT 1000000", None),
        ("SET a=1;SELECT a FROM t\nlimit 2147483647 OPTION(b=2)", None),
        (PLAIN, "groupByMode=sql;responseFormat=sql"),
        (PLAIN, ";useMultistageEngine=true"),
        (PLAIN, ""),
    ],
)
def test_options_of_the_engine_are_left_out(sql: str, options: str | None) -> None:
    """So that a question with them is a repeat of the one without."""
    assert asked(sql, options).sql.split() == PLAIN.split()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t WHERE b = 'OPTION(x=1)'",
        "SELECT a FROM t WHERE b IN ('SET x=1;', 'c')",
        "SELECT a FROM t WHERE option(x=1) AND c = 2",
        'SELECT "OPTION(x=1)" FROM t',
        "SELECT a FROM t LIMIT 100000",
        "SELECT a FROM t WHERE b = ' LIMIT 1000000'",
    ],
)
def test_what_only_looks_like_an_option_stays(sql: str) -> None:
    """In texts, names and comments, and where a statement goes on behind it."""
    assert asked(sql).sql == sql


def test_own_options_are_read_wherever_they_stand() -> None:
    """Intervals, confidence, the most that a question may cost; exactness is the service's to read."""
    everywhere = (
        asked(f"SET grisIntervals = true; SET grisConfidence=0.9;set GRISMAXCOST='20';{PLAIN}"),
        asked(f"{PLAIN} OPTION(grisIntervals=true, grisConfidence=0.9, grisMaxCost=20)"),
        asked(PLAIN, "grisIntervals=TRUE;grisConfidence=0.9;grisMaxCost=20"),
    )
    assert [Asked(each.sql.strip(), True, 0.9, 20) for each in everywhere] == [
        Asked(PLAIN, True, 0.9, 20)
    ] * 3
    assert asked(f"{PLAIN}; OPTION(timeoutMs=1, max_error='10%')").sql == f"{PLAIN} OPTION(max_error=10%)"
    assert asked(f"{PLAIN} -- why", "max_error=5").sql == f"{PLAIN} OPTION(max_error=5)"
    assert asked(f"SET grisMaxCost=1000; SET grismaxcost=1000; SET GRISMAXCOST=1; {PLAIN}").max_cost == 1


@pytest.mark.parametrize(
    ("body", "field", "expected"),
    [
        (b"", "", "a JSON object with sql"),
        (b"[]", "", "a JSON object with sql"),
        (b"\xff{", "", "a JSON object with sql"),
        (b"[" * 100_000, "", "a JSON object with sql"),
        (b"{}", "sql", "expected a statement"),
        (b'{"sql": 7}', "sql", "expected a statement"),
        (b'{"sql": "' + b"x" * 200_001 + b'"}', "sql", "at most 200,000 characters"),
        (b'{"sql": " "}', "sql", "expected a statement"),
        (b'{"sql": "SELECT 1", "queryOptions": {}}', "queryOptions", "expected a text"),
        (b'{"sql": "SET grisIntervals=2; SELECT 1"}', "grisIntervals", "true or false"),
        (b'{"sql": "SET grisMaxCost=1.5; SELECT 1"}', "grisMaxCost", "a whole number"),
        (b'{"sql": "SET grisConfidence=x; SELECT 1"}', "grisConfidence", "expected a number"),
        (b'{"sql": "SET grisConfidence=1e400; SELECT 1"}', "grisConfidence", "expected a number"),
        (b'{"sql": "SET grisMaxCost=1e999999999; SELECT 1"}', "grisMaxCost", "expected a number"),
        (b'{"sql": "SET grisMaxCost=-1; SELECT 1"}', "grisMaxCost", "expected a number"),
        (
            b'{"sql": "SET grisTruth=1; SELECT 1"}',
            "gristruth",
            "grisIntervals, grisConfidence or grisMaxCost",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_name(body: bytes, field: str, expected: str) -> None:
    """Nothing of it is repeated."""
    with pytest.raises(InvalidQuestion, match=expected) as raised:
        asked_in(body)
    assert raised.value.field == field


@given(st.text(), st.none() | st.text())
@example("SET a='" * 1000, "=;=")
@example("SET a=" + " " * 190_000, None)
@example("OPTION(a=1" + " " * 190_000 + "(", None)
@example(" LIMIT" * 30_000 + " 1000000", None)
@example("--\n" * 60_000, "a=b;" * 45_000)
@example("OPTION(" * 10_000, None)
@example("SET a=1;" * 20_000, None)
@example(" OPTION(a=1)" * 15_000, None)
@example("/*" * 90_000, None)
@example("'' OPTION " * 15_000, None)
def test_no_text_is_anything_but_a_question_or_refused(sql: str, options: str | None) -> None:
    """And none takes long."""
    try:
        found = asked_in(json.dumps({"sql": sql, "queryOptions": options}).encode())
    except InvalidQuestion:
        return
    assert isinstance(found, Asked)


@given(st.lists(st.text(), max_size=2))
@example(["Basic YWNtZS9hbmE6dG9rZW4"])
@example(["Basic YWNtZS9hbmE6"])
def test_every_header_becomes_one_of_a_token_or_stays(values: list[str]) -> None:
    """Nobody is known by what is no token."""
    sender = Sender(tuple(values), b"certificate")
    found, account = sender_and_account(sender)
    assert found == sender or found.authorization == () or found.authorization[0].startswith("Bearer ")
    assert found.certificate == sender.certificate
    assert account is None or found != sender


@pytest.mark.parametrize(("name", "account"), [("acme/ana", "acme/ana"), ("-", None), ("", None)])
def test_the_user_of_basic_is_the_account_that_pays_and_the_password_the_token(
    name: str, account: str | None
) -> None:
    """Without a name, or with a dash, the caller's own account pays."""
    shown = b64encode(f"{name}:secret".encode()).decode()
    found, paying = sender_and_account(Sender((f"Basic {shown}",), b"certificate"))
    assert (found.authorization, found.certificate, paying) == (("Bearer secret",), b"certificate", account)
