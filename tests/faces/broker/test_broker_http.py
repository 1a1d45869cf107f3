"""Clients of Apache Pinot, unchanged, at a gateway: what they are answered, what is refused, and as whom they ask."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pinotdb
import pytest
from pinotdb.exceptions import DatabaseError
from sqlalchemy import MetaData, Table, create_engine, func, inspect, select
from sqlalchemy.engine import URL
from sqlalchemy.pool import NullPool

from pinot_connector import AsyncGatewayClient, Endpoint
from tests.support.gateways import AUDIENCE, GatewayWorld

TOP = (
    "SELECT app, COUNT(DISTINCT member_id) AS people FROM feedback GROUP BY app ORDER BY people DESC LIMIT 2"
)


def token_of(gateway: GatewayWorld, name: str) -> str:
    """Return the token of an analyst of acme."""
    return gateway.issuer.token(AUDIENCE, org="acme", sub=name)


@contextmanager
def cursor(gateway: GatewayWorld, name: str, account: str = "", **options: Any) -> Iterator[Any]:
    """Give a cursor of pinotdb's own."""
    host, _, port = gateway.broker_address.rpartition(":")
    password = options.pop("password", "") or token_of(gateway, name)
    connection = pinotdb.connect(
        host, int(port), username=account or f"app/acme/{name}", password=password, **options
    )
    try:
        yield connection.cursor()
    finally:
        connection.close()


def posted(gateway: GatewayWorld, sql: str, headers: dict[str, str], **more: Any) -> httpx.Response:
    """Send a question as curl does."""
    return httpx.post(
        f"http://{gateway.broker_address}/query/sql", json={"sql": sql, **more}, headers=headers, timeout=60
    )


def bearer(gateway: GatewayWorld, name: str) -> dict[str, str]:
    """Return the header of a token."""
    return {"Authorization": f"Bearer {token_of(gateway, name)}"}


def test_pinotdb_asks_and_spends_as_every_other_client_of_the_account(gateway: GatewayWorld) -> None:
    """The same numbers as by gRPC, for which only the first has paid; a release's own words are beside them."""
    with cursor(gateway, "pinotdb") as asking:
        asking.execute(TOP)
        rows, about = asking.fetchall(), asking.raw_query_response["response"]["gris"]
        assert [each[0] for each in asking.description] == ["app", "people"]
        assert about["charged"] == about["cost"]

        async def again() -> tuple[list[list[object]], int]:
            credentials = gateway.analyst("pinotdb")
            async with AsyncGatewayClient(Endpoint(gateway.address, credentials)) as client:
                result = await client.sql(TOP)
            return [[*row.element, row.noisy_count] for row in result.rows], result.charged.information

        assert asyncio.run(again()) == (rows, 0)
        for repeat in (
            f"SET timeoutMs=5000;{TOP}",
            f"{TOP} OPTION(preserveType='true')",
            TOP.replace("app,", "feedback.app,", 1),
        ):
            asking.execute(repeat, queryOptions="useMultistageEngine=true")
            assert asking.fetchall() == rows
            assert asking.raw_query_response["response"]["gris"]["charged"]["information"] == 0


def test_answers_are_of_a_brokers_shape_and_have_nothing_of_an_engine(gateway: GatewayWorld) -> None:
    """Always a table and a list of exceptions; days as timestamps, truth and texts as they are; a statistic nowhere."""
    answer = posted(gateway, f"{TOP}", bearer(gateway, "shape")).json()
    assert list(answer) == [
        *("resultTable", "exceptions", "numServersQueried", "numServersResponded", "gris")
    ]
    assert answer["resultTable"]["dataSchema"]["columnDataTypes"] == ["STRING", "LONG"]
    by_day = "SELECT day, COUNT(DISTINCT member_id) FROM feedback GROUP BY day ORDER BY 2 DESC LIMIT 2"
    with cursor(gateway, "shape") as asking:
        asking.execute(by_day)
        for day, count in asking.fetchall():
            assert isinstance(day, datetime.datetime)
            assert isinstance(count, int)
        asking.execute(f"SET grisIntervals=true; SET grisConfidence=0.8; {TOP}")
        assert [each[0] for each in asking.description] == ["app", "people", "people_lower", "people_upper"]
        assert asking.raw_query_response["response"]["gris"]["confidence"] == 0.8
        asking.execute(f"EXPLAIN {TOP}")
        assert ["information units, at most", "4"] in asking.fetchall()
        for one in ("SELECT 1", "SELECT 1 LIMIT 1000000", "select 1;"):
            asking.execute(one)
            assert asking.fetchall() == [[1]]


@pytest.mark.parametrize(
    ("sql", "code", "said"),
    [
        ("SELECT member_id FROM feedback", 150, "no rows are shown"),
        ("", 150, "expected a statement"),
        ("SELECT app, COUNT(DISTINCT member_id) FROM employees GROUP BY app", 190, "no table with that name"),
        (
            "SELECT nope, COUNT(DISTINCT member_id) FROM feedback GROUP BY nope",
            710,
            "no column with that name",
        ),
        (
            "SELECT app, COUNT(*) FROM feedback WHERE member_id = 'a' GROUP BY app",
            700,
            "member",
        ),
        # As JDBC sends a question without a limit, whose price would grow with one.
        (
            "SELECT article_id, COUNT(DISTINCT member_id) FROM feedback GROUP BY article_id LIMIT 1000000",
            150,
            "expected how many elements",
        ),
        (f"SET grisMaxCost = 1; {TOP}", 700, "at most 1"),
        (f"SET grisMaxCost = -1; {TOP}", 700, "grisMaxCost"),
        (f"SET grisConfidence = 2; {TOP}", 700, "confidence"),
    ],
)
def test_a_question_that_is_refused_is_an_exception_of_an_answer(
    gateway: GatewayWorld, sql: str, code: int, said: str
) -> None:
    """With HTTP 200 and a broker's code, so that clients show its text; literals are not in it."""
    response = posted(gateway, sql, bearer(gateway, "refused"))
    (exception,) = response.json()["exceptions"]
    assert (response.status_code, exception["errorCode"]) == (200, code), exception
    assert said in exception["message"]
    assert response.json()["resultTable"]["rows"] == []
    assert response.json()["gris"] == {}


def test_two_tokens_or_another_scheme_are_refused(gateway: GatewayWorld) -> None:
    """Before anything is read, as an answer; a token without its padding is one."""
    good = token_of(gateway, "door")
    for headers in (
        {"Authorization": "Basic !!!"},
        [("Authorization", f"Bearer {good}"), ("Authorization", f"Bearer {good}")],
    ):
        response = httpx.post(
            f"http://{gateway.broker_address}/query/sql", content=b"\xff" * 10, headers=headers
        )
        (exception,) = response.json()["exceptions"]
        assert (response.status_code, exception["errorCode"]) == (200, 180), headers
    with (
        cursor(gateway, "door", account="app/acme/somebody") as asking,
        pytest.raises(DatabaseError) as raised,
    ):
        asking.execute("SELECT 1")
    assert "expected the caller's own account" in str(raised.value)
    with cursor(gateway, "door", account="app/acme/door", password=good.rstrip("=")) as asking:
        asking.execute(TOP)


def test_what_is_no_question_has_the_statuses_of_http(gateway: GatewayWorld) -> None:
    """Another host, a page, an unknown path or method, a body without end; monitors need no token."""
    at, good = f"http://{gateway.broker_address}", bearer(gateway, "paths")
    assert httpx.get(f"{at}/health").text == "OK"
    for method, path, headers, status in (
        ("POST", "/query/sql", {"Host": "elsewhere"}, 421),
        ("GET", "/v2/brokers/tenants", {"Host": f"localhost:{'1' * 5000}", "Authorization": ""}, 421),
        ("GET", "/tables", {"Origin": "https://pages.example.org"}, 403),
        ("GET", "/tables", {"Authorization": ""}, 401),
        ("GET", "/nowhere", {}, 404),
        ("POST", "/tables", {}, 405),
        ("OPTIONS", "/query/sql", {}, 405),
        ("OPTIONS", "/query/sql", {"Origin": "https://pages.example.org"}, 403),
        ("GET", "/tables/employees/schema", {}, 404),
        ("GET", "/tables/%2e%2e/schema", {}, 404),
    ):
        response = httpx.request(method, f"{at}{path}", headers={**good, **headers})
        assert response.status_code == status, (path, response.text)
        assert response.json()["code"] == status
    large = httpx.post(f"{at}/query/sql", content=b"x" * (2 * 2**20 + 1), headers=good)
    assert large.json()["exceptions"][0]["errorCode"] == 150


def test_clients_find_the_broker_and_the_tables_where_a_controller_has_them(gateway: GatewayWorld) -> None:
    """At the address by which they asked."""
    at, good = f"http://{gateway.broker_address}", bearer(gateway, "finding")

    def read(path: str) -> Any:
        return httpx.get(f"{at}{path}", headers=good).json()

    host, _, port = gateway.broker_address.rpartition(":")
    broker = {"host": host, "port": int(port), "instanceName": f"Broker_{host}_{port}"}
    assert read("/v2/brokers/tenants/DefaultTenant?state=ONLINE") == [broker]
    assert read("/tables/livebrokers")["feedback"] == read("/v2/brokers/tables")["feedback"] == [broker]
    assert {"feedback", "wide", "small"} <= set(read("/tables")["tables"])
    schema = read("/tables/feedback/schema")
    assert schema == read("/schemas/feedback")
    kinds = {each["name"]: each["dataType"] for each in schema["dimensionFieldSpecs"]}
    assert kinds["member_id"] == kinds["app"] == "STRING"
    assert [each["name"] for each in schema["dateTimeFieldSpecs"]] == ["day"]


def test_pinots_own_dialect_of_sqlalchemy_reflects_and_asks(gateway: GatewayWorld) -> None:
    """As in Superset's built-in database for Pinot: the controller is the same address."""
    host, _, port = gateway.broker_address.rpartition(":")
    url = URL.create(
        "pinot",
        "app/acme/dialect",
        token_of(gateway, "dialect"),
        host,
        int(port),
        "query/sql",
        {"controller": f"http://{gateway.broker_address}"},
    )
    engine = create_engine(url, poolclass=NullPool)
    assert {"feedback", "small"} <= set(inspect(engine).get_table_names())
    feedback = Table("feedback", MetaData(), autoload_with=engine)
    people = func.count(feedback.c.member_id.distinct())
    query = (
        select(feedback.c.app, people.label("people"))
        .group_by(feedback.c.app)
        .order_by(people.desc())
        .limit(2)
    )
    with engine.connect() as connection:
        rows = connection.execute(query).fetchall()
    asked = posted(gateway, TOP, bearer(gateway, "dialect")).json()
    assert [list(row) for row in rows] == asked["resultTable"]["rows"]
    assert asked["gris"]["charged"]["information"] == 0


def test_a_long_list_is_whole(gateway: GatewayWorld) -> None:
    """Tens of thousands of elements, as a broker's rows."""
    sql = "SELECT element, COUNT(DISTINCT member_id) FROM wide GROUP BY element"
    answer = posted(gateway, sql, bearer(gateway, "long")).json()
    rows = answer["resultTable"]["rows"]
    assert len(rows) > 40_000, answer["exceptions"]
    assert rows[0][0].startswith("an element that has quite a long name")


def test_an_address_may_hold_the_question(gateway: GatewayWorld) -> None:
    """As `GET /query/sql?sql=..`, for curl."""
    at = f"http://{gateway.broker_address}/query/sql"
    found = httpx.get(
        at, params={"sql": TOP, "queryOptions": "grisIntervals=true"}, headers=bearer(gateway, "get")
    )
    assert len(found.json()["resultTable"]["dataSchema"]["columnNames"]) == 4
    assert httpx.get(at, headers=bearer(gateway, "get")).json()["exceptions"][0]["errorCode"] == 150
