"""SQLAlchemy, and pandas by it, ask a gateway by a URL."""

from __future__ import annotations

import datetime
import re
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, NoSuchTableError, NotSupportedError, OperationalError, ProgrammingError

from pinot_connector import Credentials, Endpoint, GatewayClient
from pinot_connector.dbapi import BudgetExhaustedError
from pinot_connector.dbapi.urls import CREDENTIALS_DIR
from pinot_connector.sqlalchemy import GrisDialect
from tests.support.gateways import AUDIENCE, GatewayWorld, write_configuration
from tests.support.pki import email
from tests.support.processes import process

ARTICLES = (
    "SELECT article_id, COUNT(DISTINCT member_id) AS members FROM feedback "
    "GROUP BY article_id ORDER BY members DESC LIMIT 5"
)
Opened = Callable[..., sa.engine.Engine]


@pytest.fixture
def opened(gateway: GatewayWorld, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """Return a function that opens engines of SQLAlchemy, with the gateway's folder as the one for credentials."""
    monkeypatch.setenv(CREDENTIALS_DIR, str(gateway.folder))
    sa.dialects.registry.register("gris", GrisDialect.__module__, GrisDialect.__name__)
    engines: list[sa.engine.Engine] = []

    def opened(credentials: Credentials, at: str = gateway.address, **options: str) -> sa.engine.Engine:
        files = {name: Path(str(path)).name for name, path in vars(credentials).items() if path is not None}
        query = "&".join(f"{name}={value}" for name, value in (files | options).items())
        engines.append(sa.create_engine(f"gris://{at}/?{query}"))
        return engines[-1]

    yield opened
    for engine in engines:
        engine.dispose()


def engine_calls(gateway: GatewayWorld) -> float:
    """Return how often the gateway has called its engine, for whatever step of a question."""
    with urllib.request.urlopen(f"http://{gateway.metrics_address}/metrics") as answer:
        text = answer.read().decode()
    return sum(map(float, re.findall(r"^gris_engine_calls_total\{[^}]*\} (\S+)", text, re.MULTILINE)))


def spent(gateway: GatewayWorld, credentials: Credentials) -> int:
    """Return what the caller's own account has spent and reserved."""
    with GatewayClient(Endpoint(gateway.address, credentials)) as client:
        level = client.remaining()[-1]
    return level.spent.information + level.reserved.information


def test_looking_around_shows_the_policy_and_costs_nothing(gateway: GatewayWorld, opened: Opened) -> None:
    """Connecting, testing the connection, reflecting everything and asking for prices: no charge, no engine."""
    credentials = gateway.analyst()
    before = engine_calls(gateway)
    engine = opened(credentials)
    with engine.connect() as connection:
        assert 1 == connection.scalar(sa.text("SELECT 1"))
        pooled: Any = connection.connection
        assert engine.dialect.do_ping(pooled.dbapi_connection)
        rows = connection.execute(sa.text(f"EXPLAIN {ARTICLES}")).fetchall()
    price = {str(name): str(value) for name, value in rows}
    metadata = sa.MetaData()
    metadata.reflect(engine)
    assert {"feedback", "wide", "small", "growing"} <= set(metadata.tables)
    assert ("11", "1") == (price["information units, at most"], price["calls, at most"])
    assert (
        "of 3,000 that are left"
        in price[next(name for name in price if name.startswith("information of app/acme/"))]
    )
    assert 0 == spent(gateway, credentials)
    assert before == engine_calls(gateway)


def test_tables_and_columns_are_those_of_the_policy(gateway: GatewayWorld, opened: Opened) -> None:
    """The file has more columns; the member column says what it may be used for, and the time column is the next."""
    inspector = sa.inspect(opened(gateway.analyst()))
    columns = {column["name"]: column for column in inspector.get_columns("feedback", schema="default")}
    assert ["member_id", "day", "app", "article_id", "cohort", "score"] == list(columns)
    assert "only in COUNT(DISTINCT member_id)" in str(columns["member_id"]["comment"])
    assert isinstance(columns["day"]["type"], sa.Date)
    assert isinstance(columns["score"]["type"], sa.BigInteger)
    assert ["member_id", "day", "element"] == [each["name"] for each in inspector.get_columns("growing")]
    metrics = {"members": "COUNT(DISTINCT member_id)", "rows": "COUNT(*)"}
    assert {"gris_metrics": metrics} == inspector.get_table_options("feedback")
    assert ["default"] == inspector.get_schema_names()
    assert inspector.has_table("feedback")
    assert not inspector.has_table("budget")
    with pytest.raises(NoSuchTableError):
        inspector.get_columns("budget")


def test_core_asks_what_the_subset_of_sql_has(gateway: GatewayWorld, opened: Opened) -> None:
    """Conditions, order and limit of SQLAlchemy's own words are the question that SQL asks by hand."""
    credentials = gateway.analyst()
    engine = opened(credentials)
    feedback = sa.Table("feedback", sa.MetaData(), autoload_with=engine, schema="default")
    members = sa.func.count(feedback.c.member_id.distinct()).label("members")
    question = (
        sa.select(feedback.c.article_id, members)
        .where(
            feedback.c.app.in_(["RUMORS_LINE_BOT", "WEBSITE"]),
            feedback.c.score != 0,
            feedback.c.article_id.not_in(["50 % of 'it'", 'a "b"']),
            feedback.c.day > datetime.date(2018, 1, 1),
        )
        .group_by(feedback.c.article_id)
        .order_by(members.desc())
        .limit(5)
    )
    with engine.connect() as connection:
        rows = connection.execute(question).fetchall()
    by_hand = (
        "SELECT article_id, COUNT(DISTINCT member_id) FROM feedback WHERE app IN ('WEBSITE', 'RUMORS_LINE_BOT') "
        "AND score <> 0 AND article_id NOT IN ('a \"b\"', '50 % of ''it''') AND day > DATE '2018-01-01' "
        "GROUP BY article_id ORDER BY 2 DESC LIMIT 5"
    )
    with GatewayClient(Endpoint(gateway.address, credentials)) as client:
        result = client.sql(by_hand)
    assert 0 == result.charged.information
    assert [(*row.element, row.noisy_count) for row in result.rows] == [tuple(row) for row in rows]


def test_pandas_reads_intervals_where_they_are_asked_for(gateway: GatewayWorld, opened: Opened) -> None:
    """Without a warning, and for nothing the second time."""
    credentials = gateway.analyst()
    plain = pd.read_sql(ARTICLES, opened(credentials))
    frame = pd.read_sql(ARTICLES, opened(credentials, intervals="1"))
    assert ["article_id", "members"] == list(plain.columns)
    assert ["article_id", "members", "members_lower", "members_upper"] == list(frame.columns)
    assert list(plain.members) == list(frame.members)
    assert ((frame.members_lower <= frame.members) & (frame.members <= frame.members_upper)).all()


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELECT * FROM feedback WHERE app = :value", ProgrammingError),
        (
            "SELECT reason, COUNT(DISTINCT member_id) FROM feedback WHERE app = :value GROUP BY reason",
            NotSupportedError,
        ),
        ("EXPLAIN SELECT app, COUNT(*) FROM budget WHERE app = :value GROUP BY app", NotSupportedError),
    ],
)
def test_an_error_is_sqlalchemys_and_repeats_no_value(
    gateway: GatewayWorld, opened: Opened, sql: str, kind: type[DBAPIError]
) -> None:
    """The values of a question stay out of messages that programs log."""
    with opened(gateway.analyst()).connect() as connection, pytest.raises(kind) as raised:
        connection.execute(sa.text(sql), {"value": "a-secret-value"})
    assert "a-secret-value" not in str(raised.value)


def test_an_exhausted_budget_is_an_operational_error(gateway: GatewayWorld, opened: Opened) -> None:
    """The DB-API's own error says what is missing and until when."""
    poor = gateway.authority.client(email("poor@example.org"), file="poor-engine")
    with opened(poor).connect() as connection, pytest.raises(OperationalError) as raised:
        connection.execute(sa.text(ARTICLES))
    assert isinstance(raised.value.orig, BudgetExhaustedError)
    assert "the budget does not hold this question" in str(raised.value.orig)


def test_a_token_that_ends_is_renewed_without_a_new_connection(gateway: GatewayWorld, opened: Opened) -> None:
    """In the middle of a session: an error that says so, and answers again once the file has another token."""
    credentials = gateway.analyst("renewing")
    engine = opened(credentials)
    path = Path(str(credentials.token_file))
    with engine.connect() as connection:
        first = connection.execute(sa.text(ARTICLES)).fetchall()
        good = path.read_text()
        path.write_text(gateway.issuer.token(AUDIENCE, org="acme", sub="renewing", exp=1))
        with pytest.raises(OperationalError, match="the token has expired"):
            connection.execute(sa.text(ARTICLES))
        with pytest.raises(OperationalError, match="the token has expired"):
            sa.inspect(engine).get_table_names()
        path.write_text(good)
        assert first == connection.execute(sa.text(ARTICLES)).fetchall()


def test_a_gateway_that_comes_back_answers_an_open_connection(
    gateway: GatewayWorld, opened: Opened, tmp_path: Path
) -> None:
    """While it is away the error says so; nothing has to be opened anew."""
    credentials = gateway.analyst()
    for name in ("wide.parquet", "small.parquet"):
        (tmp_path / name).symlink_to(gateway.folder / name)
    config = write_configuration(tmp_path, gateway.authority, gateway.issuer, gateway.dp, gateway.budget)
    with process("gris_gateway", ["--config", config], tmp_path / "log") as ready:
        engine = opened(credentials, at=ready["address"])
        connection = engine.connect()
        first = connection.execute(sa.text(ARTICLES)).fetchall()
    for _ in range(2):
        with pytest.raises(OperationalError, match="gateway"):
            connection.execute(sa.text(ARTICLES))
    config.write_text(config.read_text().replace("listen: 127.0.0.1:0", f"listen: {ready['address']}", 1))
    with process("gris_gateway", ["--config", config], tmp_path / "log"):
        # gRPC finds it again within its time between two tries.
        for _ in range(200):
            try:
                again = connection.execute(sa.text(ARTICLES)).fetchall()
                break
            except OperationalError:
                time.sleep(0.1)
        assert first == again
        connection.close()


def test_threads_share_an_engine_and_pay_once(gateway: GatewayWorld, opened: Opened) -> None:
    """Two tabs with the same chart; connections go back to the pool although there is nothing to roll back."""
    credentials = gateway.analyst()
    engine = opened(credentials)

    def tab(_: int) -> list[tuple[object, ...]]:
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(sa.text(ARTICLES))]

    with ThreadPoolExecutor(2) as tabs:
        answers = list(tabs.map(tab, range(4)))
    assert [answers[0]] * 4 == answers
    assert spent(gateway, credentials) <= 11
