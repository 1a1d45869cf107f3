"""Clients of PostgreSQL at a gateway: what they are answered, what is refused, and as whom they ask."""

from __future__ import annotations

import asyncio
import datetime
import os
import signal
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from psycopg import errors
from pygwire import messages
from sqlalchemy import MetaData, Table, create_engine, func, inspect, select
from sqlalchemy.engine import URL
from sqlalchemy.pool import NullPool

from gris_gateway.faces.postgres.catalogue_process import MOST_CONNECTIONS
from pinot_connector import AsyncGatewayClient, Endpoint
from tests.support.catalogues import catalogue_programs, wait_for_catalogue
from tests.support.gateways import AUDIENCE, GatewayWorld, write_configuration
from tests.support.processes import process
from tests.support.programs import found

TOP = (
    "SELECT app, COUNT(DISTINCT member_id) AS people FROM feedback GROUP BY app ORDER BY people DESC LIMIT 2"
)
has_catalogue = pytest.mark.usefixtures("programs_of_postgres", "started_catalogue")


@pytest.fixture(scope="session")
def started_catalogue(gateway: GatewayWorld) -> None:
    """Wait for the catalogue, where there is one."""
    if catalogue_programs() is not None:
        with connected(gateway, "waiting") as connection:
            wait_for_catalogue(connection)


def token_of(gateway: GatewayWorld, name: str) -> str:
    """Return the token of an analyst of acme."""
    return gateway.issuer.token(AUDIENCE, org="acme", sub=name)


def addressed(gateway: GatewayWorld, name: str, **options: Any) -> dict[str, Any]:
    """Return the parameters of a connection."""
    host, _, port = gateway.postgres_address.rpartition(":")
    trusted = {"sslmode": "verify-full", "sslrootcert": gateway.authority.ca_file, "dbname": "gris"}
    return {
        **{"host": host, "port": port, "user": f"app/acme/{name}", "password": token_of(gateway, name)},
        **trusted,
        **options,
    }


@contextmanager
def connected(gateway: GatewayWorld, name: str, **options: Any) -> Iterator[psycopg.Connection]:
    """Give a connection of psycopg's."""
    more = {"autocommit": options.pop("autocommit", True), "prepare_threshold": options.pop("prepare", 5)}
    with psycopg.connect(**addressed(gateway, name, **options), **more) as connection:
        yield connection


def test_psycopg_asks_and_spends_as_every_other_client_of_the_account(gateway: GatewayWorld) -> None:
    """The same numbers as by gRPC, for which only the first has paid; what they mean comes as notices."""
    said: list[str] = []
    with connected(gateway, "psycopg") as connection:
        connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
        cursor = connection.execute(TOP)
        rows = cursor.fetchall()
        assert cursor.description is not None
        assert [(each.name, each.type_code) for each in cursor.description] == [("app", 25), ("people", 20)]
        cost, meaning = said
        assert cost.startswith("charged: 4 information")
        assert "; left: app: " in cost
        assert "Each interval covers the number before noise" in meaning
        assert "The mechanism is" not in meaning

        async def again() -> tuple[list[tuple[object, ...]], int]:
            async with AsyncGatewayClient(Endpoint(gateway.address, gateway.analyst("psycopg"))) as client:
                result = await client.sql(TOP)
            return [(*row.element, row.noisy_count) for row in result.rows], result.charged.information

        assert asyncio.run(again()) == (rows, 0)
        for repeat in (f"/* a comment */ {TOP};", TOP.replace("FROM feedback", 'FROM public."feedback"')):
            said.clear()
            assert connection.execute(repeat).fetchall() == rows
            assert said[0].startswith("charged: 0 information and 0 calls")
        connection.execute("SET client_min_messages = warning")
        said.clear()
        connection.execute(TOP)
        assert said == []


def test_values_are_the_same_in_both_forms(gateway: GatewayWorld) -> None:
    """Days, texts, whole and other numbers; ends of intervals where they are asked for."""
    by_day = "SELECT day, COUNT(DISTINCT member_id) AS n FROM feedback GROUP BY day ORDER BY n DESC LIMIT 3"
    with connected(gateway, "forms", options="-c gris.intervals=on -c gris.confidence=0.8") as connection:
        for sql in (by_day, TOP, f"EXPLAIN {TOP}", "SELECT 1", "SHOW server_version"):
            as_text = connection.execute(sql).fetchall()
            with connection.cursor(binary=True) as cursor:
                assert cursor.execute(sql).fetchall() == as_text
        day, count, lower, upper = connection.execute(by_day).fetchall()[0]
        assert isinstance(day, datetime.date)
        assert lower <= count <= upper
        connection.execute("SET gris.intervals = off")
        assert len(connection.execute(by_day).fetchall()[0]) == 2


def test_what_is_described_costs_nothing_and_is_what_comes(gateway: GatewayWorld) -> None:
    """Columns and parameters are described before there are values; then each value is a question."""
    sql = (
        "SELECT app, COUNT(DISTINCT member_id) AS n FROM feedback "
        "WHERE app = $1 AND day >= $2 AND score > $3 GROUP BY app LIMIT $4"
    )
    said: list[str] = []
    with connected(gateway, "described") as connection:
        connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
        raw = connection.pgconn
        raw.prepare(b"question", sql.encode())
        found = raw.describe_prepared(b"question")
        assert [found.param_type(place) for place in range(found.nparams)] == [25, 1082, 20, 20]
        assert [(found.fname(place), found.ftype(place)) for place in range(2)] == [(b"app", 25), (b"n", 20)]
        assert said == []
        raw.prepare(b"bad", b" SELECT ROUND(score), COUNT(*) FROM feedback GROUP BY 1")
        assert raw.describe_prepared(b"bad").error_field(80) == b"9"
        for app in (b"WEBSITE", b"RUMORS_LINE_BOT"):
            for repeat in range(2):
                said.clear()
                answer = raw.exec_prepared(b"question", [app, b"2000-01-01", b"-5", b"3"])
                assert answer.get_value(0, 0) == app, answer.error_message
                assert said[0].startswith("charged: 0") == bool(repeat)
        connection.execute("DEALLOCATE ALL")
        assert b"26000" in (raw.exec_prepared(b"question", []).error_field(67) or b"")


def test_a_list_is_a_parameter_and_asks_what_in_asks(gateway: GatewayWorld) -> None:
    """In each form that psycopg sends, and described without values; an error has no place among values."""
    sql = "SELECT app, COUNT(DISTINCT member_id) FROM feedback WHERE {} GROUP BY app"
    in_list = sql.format("app IN ('WEBSITE', 'RUMORS_LINE_BOT') AND score IN (-1, 1)")
    said: list[str] = []
    with connected(gateway, "lists") as connection:
        expected = connection.execute(in_list).fetchall()
        connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
        as_array = sql.format("app = ANY(%s) AND score = ANY(%s)")
        values = ["WEBSITE", "RUMORS_LINE_BOT"], [-1, 1]
        for binary in (False, True):
            said.clear()
            assert connection.execute(as_array, values, binary=binary).fetchall() == expected
            assert said[0].startswith("charged: 0")
        raw = connection.pgconn
        numbered = as_array.replace("%s", "$1", 1).replace("%s", "$2")
        raw.prepare(b"lists", numbered.encode())
        found = raw.describe_prepared(b"lists")
        assert [found.param_type(place) for place in range(found.nparams)] == [1009, 1016]
        joined = sql.format("app = ANY(%s) AND app || 'a' = %s")
        with pytest.raises(errors.SyntaxError, match=r"^sql: joining texts") as refused:
            connection.execute(joined, (values[0], "b"))
        assert refused.value.diag.statement_position is None


def test_parameters_are_values_whatever_they_hold(gateway: GatewayWorld) -> None:
    """Quotes stay in the value; days and instants in every type; NULL, other types and wrong numbers are refused."""
    days = "SELECT COUNT(DISTINCT member_id) FROM feedback WHERE day >= %s AND day < %s"
    with connected(gateway, "parameters") as connection:
        ends = datetime.date(2019, 1, 1), datetime.date(2019, 7, 1)
        expected = connection.execute(
            days.replace("%s", "'2019-01-01'", 1).replace("%s", "'2019-07-01'")
        ).fetchall()
        assert connection.execute(days, ends).fetchall() == expected
        assert connection.execute(days, [str(each) for each in ends]).fetchall() == expected
        assert connection.execute(days, ends, binary=True).fetchall() == expected
        cast = days.replace("%s", "%s::DATE")
        assert connection.execute(cast, ends).fetchall() == expected
        articles = "SELECT COUNT(DISTINCT member_id) FROM feedback WHERE article_id = %s"
        for text in ("it's", "' OR 1 = 1 --", "\\'; $1 /*", "ключ", "a" * 1000):
            ((count,),) = connection.execute(articles, (text,)).fetchall()
            assert count < 50
        for value, kind in (
            (None, errors.InvalidParameterValue),
            (1.5, errors.SyntaxError),
            (float("inf"), errors.InvalidParameterValue),
            ([1, 2], errors.SyntaxError),
            ([1.5], errors.FeatureNotSupported),
            (datetime.timedelta(1), errors.FeatureNotSupported),
        ):
            with pytest.raises(kind):
                connection.execute(articles, (value,))
        assert b"08P01" == connection.pgconn.exec_params(b"SELECT 1", [b"x"]).error_field(67)


@pytest.mark.parametrize(
    ("sql", "sqlstate", "said", "position"),
    [
        ("SELECT member_id FROM feedback", "42601", "no rows are shown", 8),
        ("SELEC app", "42601", "expected SELECT", 1),
        ("SELECT 'app", "42601", "end of every quoted word", 8),
        ("SELECT app, COUNT(DISTINCT member_id) FROM nowhere GROUP BY app", "42P01", "no table", 44),
        ("SELECT nope, COUNT(DISTINCT member_id) FROM feedback GROUP BY nope", "42703", "no column", 8),
        ("SELECT app, COUNT(*) FROM feedback WHERE member_id = 'a' GROUP BY app", "42501", "member", 42),
        ("SELECT 1; \n SELECT member_id FROM feedback", "42601", "no rows are shown", 20),
        ("INSERT INTO feedback VALUES (1)", "25006", "nothing can be written", None),
        ("COPY feedback TO STDOUT", "42601", "expected SELECT", 1),
        ("DECLARE c CURSOR FOR SELECT 1", "42601", "cursors are the driver's", 1),
        ("SET gris.confidence = 2", "22023", "from 0.5 to 1", None),
        ("SET gris.other = 2", "42704", "gris.max_cost", None),
        ("SET client_encoding = latin1", "22023", "UTF8", None),
        ("SHOW nothing", "42704", "no setting", None),
        (f"SET gris.max_cost = 1; {TOP}", "22023", "at most 1", None),
        ("SELECT app FROM feedback WHERE app = $1", "42601", "no parameter $1", None),
        ("x" * 200_001, "54000", "at most 200,000 characters", None),
    ],
)
def test_what_is_refused_has_a_code_a_place_and_words(
    gateway: GatewayWorld, sql: str, sqlstate: str, said: str, position: int | None
) -> None:
    """And the connection goes on."""
    with connected(gateway, "refused") as connection:
        with pytest.raises(psycopg.Error) as raised:
            connection.execute(sql.encode())
        diagnostic = raised.value.diag
        assert (diagnostic.sqlstate, diagnostic.statement_position) == (
            sqlstate,
            None if position is None else str(position),
        ), diagnostic.message_primary
        assert said in str(diagnostic.message_primary)
        assert "'a'" not in str(diagnostic.message_primary)
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_another_user_or_database_or_no_tls_is_refused(gateway: GatewayWorld) -> None:
    """`-` and nobody are the token's own account."""
    for options, said in (
        ({"password": "nonsense"}, "the token is not valid"),
        ({"user": "gris_owner"}, "the caller's own account"),
        ({"dbname": "template1"}, "expected gris as the database"),
        ({"sslmode": "disable", "sslrootcert": ""}, "expected TLS"),
    ):
        with pytest.raises(psycopg.OperationalError, match=said):
            psycopg.connect(**addressed(gateway, "door", **options))
    for user, encoding in (("-", "'utf-8'"), ("app/acme/door", "WIN1252")):
        with connected(gateway, "door", user=user, client_encoding=encoding) as connection:
            assert connection.info.parameter_status("client_encoding") == "UTF8"
            assert connection.execute("SELECT current_user").fetchall() == [(user,)]


def test_a_session_is_that_of_a_database_that_only_answers(gateway: GatewayWorld) -> None:
    """Transactions end as they do elsewhere, settings are shown, and several statements come in one text."""
    with connected(gateway, "session", autocommit=False) as connection:
        with connection.transaction():
            assert len(connection.execute(TOP).fetchall()) == 2
        with pytest.raises(errors.SyntaxError):
            connection.execute("SELEC")
        # Nothing was written that would have to be taken back.
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
        connection.rollback()
        assert len(connection.execute(TOP).fetchall()) == 2
        connection.commit()
        connection.autocommit = True
        connection.execute("SET application_name = 'a dashboard'")
        assert connection.info.parameter_status("application_name") == "a dashboard"
        assert connection.execute("SHOW TRANSACTION ISOLATION LEVEL").fetchall() == [("read committed",)]
        assert connection.execute("SHOW TimeZone").fetchall() == [("UTC",)]
        connection.execute("SET TimeZone = 'Europe/Berlin'; RESET ALL; DISCARD ALL; UNLISTEN *; CLOSE ALL")
        assert connection.execute("SHOW timezone").fetchall() == [("UTC",)]
        cursor = connection.execute(f"BEGIN; {TOP}; COMMIT; -- and nothing more")
        assert cursor.nextset()
        assert len(cursor.fetchall()) == 2


def test_a_long_list_is_whole_and_may_be_read_in_parts(gateway: GatewayWorld) -> None:
    """Tens of thousands of elements; in parts each row comes once, and the question is paid for once."""
    sql = "SELECT element, COUNT(DISTINCT member_id) FROM wide GROUP BY element"
    with connected(gateway, "long") as connection:
        rows = connection.execute(sql).fetchall()
        assert len(rows) > 40_000
    with Raw(gateway, "long") as wire:
        wire.send(messages.Parse("", sql), messages.Bind(), messages.Describe("P", ""))
        heard, read = [b"s"], 0
        while heard[-1] == b"s":
            wire.send(messages.Execute("", 20_000), messages.Flush())
            heard = wire.until(b"s", b"C", b"E")
            read += heard.count(b"D")
        assert (heard[-1], read) == (b"C", len(rows))


def test_a_question_is_cancelled_by_who_asked_it(gateway: GatewayWorld) -> None:
    """The connection goes on; a wrong secret cancels nothing."""
    slow = "SELECT element, COUNT(DISTINCT member_id) FROM wide GROUP BY element LIMIT {}"
    with connected(gateway, "cancelling") as connection:
        cancelling = threading.Timer(0.2, connection.cancel_safe)
        cancelling.start()

        def ask() -> None:
            for limit in range(30_000, 30_040):
                connection.execute(slow.format(limit).encode())

        with pytest.raises(errors.QueryCanceled, match="stays charged"):
            ask()
        cancelling.join()
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_names_and_keys_of_another_connection_reach_nothing(gateway: GatewayWorld) -> None:
    """Neither statements and portals, also of the same caller, nor what is being answered, with another secret."""
    host, _, port = gateway.postgres_address.rpartition(":")
    slow = b"SELECT element, COUNT(DISTINCT member_id) FROM wide GROUP BY element LIMIT 30000"
    with connected(gateway, "keys") as first, Raw(gateway, "keys") as second:
        first.pgconn.prepare(b"mine", b"SELECT 1")
        for each in (messages.Bind("", "mine"), messages.Describe("S", "mine"), messages.Execute("mine")):
            second.send(each, messages.Sync())
            assert second.until(b"Z") == [b"E", b"Z"]
        with ThreadPoolExecutor() as threads:
            answered = threads.submit(first.execute, slow)
            for number in range(20):
                request = messages.CancelRequest(first.info.backend_pid, struct.pack("!I", number))
                with socket.create_connection((host, int(port)), 30) as plain:
                    plain.sendall(request.to_wire())
                    assert plain.recv(1) == b""
        assert len(answered.result().fetchall()) == 30_000


@has_catalogue
def test_tables_and_columns_are_reflected(gateway: GatewayWorld) -> None:
    """By SQLAlchemy's own dialect, which then asks by what it has found."""
    at = addressed(gateway, "reflecting")
    url = URL.create(
        "postgresql+psycopg",
        at["user"],
        at["password"],
        at["host"],
        int(at["port"]),
        "gris",
        {"sslmode": "verify-full", "sslrootcert": str(at["sslrootcert"])},
    )
    engine = create_engine(url, poolclass=NullPool)
    found = inspect(engine)
    assert {"feedback", "small"} <= set(found.get_table_names())
    assert not found.get_indexes("feedback")
    assert not found.get_view_names()
    feedback = Table("feedback", MetaData(), autoload_with=engine)
    people = func.count(feedback.c.member_id.distinct()).label("people")
    query = (
        select(feedback.c.app, people)
        .where(
            feedback.c.day >= datetime.date(2000, 1, 1), feedback.c.app.in_(["WEBSITE", "RUMORS_LINE_BOT"])
        )
        .group_by(feedback.c.app)
        .order_by(people.desc())
        .limit(2)
    )
    with engine.connect() as connection:
        assert [each.app for each in connection.execute(query)] == ["RUMORS_LINE_BOT", "WEBSITE"]
    with connected(gateway, "reflecting") as connection:
        columns = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = %s"
        assert ("day", "date") in connection.execute(columns, ("feedback",)).fetchall()
        readable = "SELECT has_table_privilege(current_user, 'feedback', 'SELECT') FROM pg_class LIMIT 1"
        assert connection.execute(readable).fetchall() == [(True,)]


@has_catalogue
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT set_config('statement_timeout', '0', false), count(*) FROM pg_class a, generate_series(1, 1000000000)",
        "SELECT set_config('temp_file_limit', '-1', false), repeat('x', 20000000)",
        "SELECT pg_sleep(1)",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT pg_ls_dir('.')",
        "SELECT lo_import('/etc/passwd')",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity",
        "SELECT pg_advisory_lock(1)",
        "SELECT query FROM pg_stat_activity WHERE query LIKE '%escaping%'",
        "SELECT * FROM feedback, pg_class",
        "SELECT query_to_xml('SELECT 1', true, true, '')",
        "WITH x AS (DELETE FROM pg_class RETURNING 1) SELECT * FROM x",
        "SELECT count(*) FROM generate_series(1, 1000000000) a, pg_class",
        "SELECT length(repeat('x', 1000000000) || repeat('x', 70000000))",
        "SELECT repeat('x', 20000000)",
        "SELECT current_setting('data_directory')",
        "SELECT rolpassword FROM pg_authid",
        "SELECT 1 INTO TEMP t FROM pg_class",
    ],
)
def test_nothing_is_reached_by_way_of_the_catalogue(gateway: GatewayWorld, sql: str) -> None:
    """No file, no lock, no session of another, no limit, no table; and it answers who asks next."""
    with connected(gateway, "escaping") as connection:
        with pytest.raises(psycopg.Error) as raised:
            connection.execute(sql.encode())
        assert raised.value.diag.sqlstate in (
            "42501",
            "53200",
            "53400",
            "54000",
            "57014",
            "25006",
            "42883",
            "0A000",
        )
        assert connection.execute("SELECT 1 + 1").fetchall() == [(2,)]


class Raw(AbstractContextManager["Raw"]):
    """A connection by its bytes."""

    def __exit__(self, *_: object) -> None:
        self._read.close()
        self.socket.close()

    def __init__(self, gateway: GatewayWorld, name: str = "", *, logged_in: bool = True) -> None:
        host, _, port = gateway.postgres_address.rpartition(":")
        plain = socket.create_connection((host, int(port)), 30)
        plain.sendall(messages.SSLRequest().to_wire())
        assert plain.recv(1) == b"S"
        context = ssl.create_default_context(cafile=str(gateway.authority.ca_file))
        self.socket = context.wrap_socket(plain, server_hostname=host)
        self._read = self.socket.makefile("rb")
        if logged_in:
            self.send(
                messages.StartupMessage({"user": "-", "database": "gris"}),
                messages.PasswordMessage(token_of(gateway, name)),
            )
            self.until(b"Z")

    def send(self, *parts: messages.PGMessage) -> None:
        """Send messages."""
        self.socket.sendall(b"".join(each.to_wire() for each in parts))

    def read(self, count: int) -> bytes:
        """Return the next bytes."""
        return self._read.read(count)

    def until(self, *ends: bytes) -> list[bytes]:
        """Return the kinds of messages, up to one of these or the end."""
        heard = []
        while kind := self._read.read(1):
            (length,) = struct.unpack("!I", self._read.read(4))
            self._read.read(length - 4)
            heard.append(kind)
            if kind in ends:
                break
        return heard


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\x00\x00\x00\x08",
        b"\x7f\xff\xff\xff\x00\x03\x00\x00",
        b"\x00\x00\x00\x04",
        struct.pack("!II", 8, 80877104) * 20,
        struct.pack("!II", 9, 196608) + b"\x00" + b"p\x7f\xff\xff\xff",
        struct.pack("!II", 9, 196608) + b"\x00" + messages.Query("SELECT 1").to_wire(),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_what_does_not_log_in_is_let_go(gateway: GatewayWorld, sent: bytes) -> None:
    """Whatever it sends, half of it or too much; nothing is answered but that a password is expected."""
    for begun in (False, True):
        host, _, port = gateway.postgres_address.rpartition(":")
        with socket.create_connection((host, int(port)), 30) as plain:
            if begun:
                plain.sendall(messages.SSLRequest().to_wire())
                assert plain.recv(1) == b"S"
            plain.sendall(sent)
            with suppress(OSError):
                plain.shutdown(socket.SHUT_WR)
                assert len(plain.recv(10_000)) < 300
    with connected(gateway, "after") as connection:
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("minor", "options", "unknown"),
    [
        (0, {}, None),
        (2, {}, []),
        (9999, {"_pq_.test_protocol_negotiation": ""}, ["_pq_.test_protocol_negotiation"]),
        (0, {"_pq_.a": "on", "gris.intervals": "on", "_pq_.b": ""}, ["_pq_.a", "_pq_.b"]),
    ],
)
def test_a_later_minor_version_is_answered_with_the_newest(
    gateway: GatewayWorld, minor: int, options: dict[str, str], unknown: list[str] | None
) -> None:
    """NegotiateProtocolVersion names 3.0 and the options that are not known; then the session begins."""
    with Raw(gateway, logged_in=False) as wire:
        wire.send(messages.StartupMessage({"user": "-", "database": "gris", **options}, 3 << 16 | minor))
        if unknown is not None:
            said = messages.NegotiateProtocolVersion(3 << 16, unknown)
            assert wire.read(len(said.to_wire())) == said.to_wire()
        assert wire.until(b"R") == [b"R"]
        wire.send(messages.PasswordMessage(token_of(gateway, "versions")))
        assert wire.until(b"Z")[-1] == b"Z"


@pytest.mark.parametrize("version", [2 << 16, 4 << 16, 1234 << 16 | 1])
@pytest.mark.parametrize("with_tls", [True, False])
def test_another_major_version_is_refused_in_words(
    gateway: GatewayWorld, version: int, *, with_tls: bool
) -> None:
    """By the error that PostgreSQL sends, before and inside of TLS."""
    host, _, port = gateway.postgres_address.rpartition(":")
    with ExitStack() as stack:
        if with_tls:
            connection: socket.socket = stack.enter_context(Raw(gateway, logged_in=False)).socket
        else:
            connection = stack.enter_context(socket.create_connection((host, int(port)), 30))
        connection.sendall(messages.StartupMessage({"user": "-"}, version).to_wire())
        said = b"".join(iter(partial(connection.recv, 1000), b""))
    assert said[:1] == b"E"
    assert b"C0A000\0" in said
    assert b"protocol %d.%d: server supports 3.0\0" % divmod(version, 1 << 16) in said


@pytest.mark.skipif(psycopg.pq.version() < 180000, reason="libpq 18: pip install 'psycopg[binary]'")
@pytest.mark.parametrize("version", ["3.0", "3.2", "latest"])
def test_libpq_asks_for_the_version_that_it_wants(gateway: GatewayWorld, version: str) -> None:
    """And goes on with that of the gateway."""
    with connected(gateway, "versions", max_protocol_version=version) as connection:
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
        assert connection.pgconn.full_protocol_version == 30000


def test_connections_that_say_nothing_keep_nobody_out(gateway: GatewayWorld) -> None:
    """Many of one address, half of them in the middle of TLS."""
    host, _, port = gateway.postgres_address.rpartition(":")
    with ExitStack() as stack:
        for number in range(400):
            silent = stack.enter_context(socket.create_connection((host, int(port)), 30))
            if number % 2:
                silent.sendall(messages.SSLRequest().to_wire())
        with connected(gateway, "among-silent") as connection:
            assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_one_account_takes_no_more_than_its_connections(gateway: GatewayWorld) -> None:
    """By whatever name it logs in; others have theirs, and what has ended is free again."""
    with ExitStack() as stack:
        held = [stack.enter_context(Raw(gateway, "crowding")) for _ in range(100)]
        for user in ("-", "app/acme/crowding"):
            with pytest.raises(psycopg.OperationalError, match="at most 100 connections"):
                psycopg.connect(**addressed(gateway, "crowding", user=user))
        with connected(gateway, "beside-a-crowd") as connection:
            assert connection.execute("SELECT 1").fetchall() == [(1,)]
        held[0].send(messages.Terminate())
        assert held[0].until() == []
        with connected(gateway, "crowding") as connection:
            assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_what_came_in_the_clear_does_not_count_inside_tls(gateway: GatewayWorld) -> None:
    """A start of a session behind the request for TLS is taken for a part of the handshake, which fails."""
    host, _, port = gateway.postgres_address.rpartition(":")
    with socket.create_connection((host, int(port)), 30) as plain:
        plain.sendall(messages.SSLRequest().to_wire() + messages.StartupMessage({"user": "-"}).to_wire())
        assert plain.recv(1) == b"S"
        context = ssl.create_default_context(cafile=str(gateway.authority.ca_file))
        with pytest.raises((ssl.SSLError, OSError)):
            context.wrap_socket(plain, server_hostname=host)


def test_a_form_that_there_is_not_is_refused_before_anything_is_asked(gateway: GatewayWorld) -> None:
    """So that nothing is charged for an answer that cannot be written."""
    with Raw(gateway, "forms-refused") as raw:
        raw.send(
            messages.Parse("", TOP),
            messages.Bind("", "", [], [], [0, 7]),
            messages.Execute(),
            messages.Sync(),
        )
        assert raw.until(b"Z") == [b"1", b"E", b"Z"]
    said: list[str] = []
    with connected(gateway, "forms-refused") as connection:
        connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
        connection.execute(TOP)
    assert said[0].startswith("charged: 4 ")


def test_a_connection_holds_little(gateway: GatewayWorld) -> None:
    """Prepared statements and portals have limits; a message that is too large ends it."""
    with Raw(gateway, "holding") as raw:
        for each in (
            [messages.Parse(f"s{number}", "SELECT 1") for number in range(600)],
            [messages.Bind(f"p{number}", "s0") for number in range(60)],
            [messages.Parse(f"l{number}", f"SELECT 1 -- {'x' * 199_000}") for number in range(9)],
        ):
            raw.send(*each, messages.Sync())
            assert b"E" in raw.until(b"Z")
        raw.socket.sendall(b"Q" + struct.pack("!I", 3 * 2**20))
        assert raw.until(b"Z") == [b"E"]
    with Raw(gateway, "holding") as raw:
        bound = [messages.Bind(f"v{number}", "", [], [b"x" * 2**20]) for number in range(3)]
        raw.send(messages.Parse("", "SELECT app FROM feedback WHERE app = $1"), *bound, messages.Sync())
        assert raw.until(b"Z") == [b"1", b"2", b"E", b"Z"]


@has_catalogue
def test_a_type_that_there_is_not_is_no_fault_of_the_gateway(gateway: GatewayWorld) -> None:
    """PostgreSQL itself takes one that a client states for an error of its own."""
    with connected(gateway, "types") as connection:
        answer = connection.pgconn.prepare(b"", b"SELECT $1::text", [2**32 - 1])
        assert answer.error_field(67) == b"0A000"


@has_catalogue
def test_what_the_catalogue_gives_up_is_free_again(gateway: GatewayWorld) -> None:
    """More long statements at once than it has connections; then it answers the next one."""
    long = "SELECT count(*) FROM pg_class a, pg_class b, pg_class c, pg_class d"
    raw = [Raw(gateway, "giving-up") for _ in range(30)]
    with ExitStack() as stack:
        for each in raw:
            stack.enter_context(each).send(messages.Query(long))
        assert all(b"E" in each.until(b"Z") for each in raw)
    with connected(gateway, "giving-up") as connection:
        assert connection.execute("SELECT 1 + 1").fetchall() == [(2,)]


@has_catalogue
def test_statements_that_look_at_no_time_out_are_ended(gateway: GatewayWorld) -> None:
    """More of them than the catalogue has connections, which they would hold for hours; then it answers again."""
    stuck = "SELECT strpos(repeat('a', 20000000), 'b' || repeat('a', 100000))"
    with ExitStack() as stack:
        raw = [stack.enter_context(Raw(gateway, "stuck")) for _ in range(MOST_CONNECTIONS + 2)]
        for each in raw:
            each.send(messages.Query(stuck))
        assert all(b"E" in each.until(b"Z") for each in raw)
    with connected(gateway, "after-stuck") as connection:
        for _ in range(20):
            with suppress(psycopg.Error):
                assert connection.execute("SELECT 1 + 1").fetchall() == [(2,)]
                assert connection.execute(
                    "SELECT count(*) FROM pg_class WHERE relname = 'feedback'"
                ).fetchall()
                break
        else:
            pytest.fail("it answers nothing")


@has_catalogue
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_ends_leaves_nothing(gateway: GatewayWorld, tmp_path: Path, number: signal.Signals) -> None:
    """An idle connection hears why, and the catalogue's PostgreSQL ends with its gateway, however that ends."""
    for name in ("wide.parquet", "small.parquet"):
        (tmp_path / name).symlink_to(gateway.folder / name)
    config = write_configuration(
        tmp_path, gateway.authority, gateway.issuer, gateway.dp, gateway.budget, catalogue=True
    )
    with process("gris_gateway", ["--config", config], tmp_path / "log") as ready:
        other = replace(gateway, postgres_address=ready["postgres_address"])
        with connected(other, "ending") as connection:
            wait_for_catalogue(connection)
            served = psutil.Process(int(ready["pid"]))
            servers = [each for each in served.children(recursive=True) if _is_postgres(each)]
            assert servers
            served.send_signal(number)
            _, alive = psutil.wait_procs(servers, timeout=20)
            assert alive == []
            with pytest.raises(psycopg.OperationalError) as raised:
                connection.execute("SELECT 1")
            assert raised.value.sqlstate == ("57P01" if number is signal.SIGTERM else None)


def _is_postgres(process: psutil.Process) -> bool:
    """PostgreSQL's own workers come and go."""
    with suppress(psutil.NoSuchProcess):
        return process.name() == "postgres"
    return False


@has_catalogue
@pytest.mark.skipif(found("psql") is None, reason="psql: deploy/test-servers")
def test_psql_shows_notices_places_and_tables(gateway: GatewayWorld) -> None:
    """The table, what it cost, and a caret under what is refused."""
    at = addressed(gateway, "psql")
    names = {"PGHOST": "host", "PGPORT": "port", "PGUSER": "user", "PGPASSWORD": "password"}
    names |= {"PGSSLMODE": "sslmode", "PGSSLROOTCERT": "sslrootcert", "PGDATABASE": "dbname"}
    environment = {**os.environ, **{name: str(at[key]) for name, key in names.items()}}
    commands = [word for each in (TOP, "SELECT nope FROM feedback", "\\d feedback") for word in ("-c", each)]
    done = subprocess.run(
        ["psql", "-X", *commands], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert "RUMORS_LINE_BOT" in done.stdout
    assert "NOTICE:  charged: " in done.stderr
    assert "        ^\n" in done.stderr
    assert 'Table "public.feedback"' in done.stdout


def test_settings_come_back_as_the_connection_began(gateway: GatewayWorld) -> None:
    """A guard of the URL outlives what pools send; a transaction that is rolled back has set nothing."""
    for options in ("-c gris.max_cost=3", "--gris.max_cost=3", "-c  gris.max_cost=3 -cgris.intervals=on"):
        with connected(gateway, "guarded", options=options) as connection:
            said = partial(_shown, connection, "gris.max_cost")
            for each in ("RESET ALL", "DISCARD ALL", "RESET gris.max_cost", "SET gris.max_cost = DEFAULT"):
                connection.execute("SET gris.max_cost = 1000 /* more */")
                assert said() == "1000"
                connection.execute(each)
                assert said() == "3"
            connection.execute("BEGIN")
            connection.execute("/* more */ SET gris.max_cost = 2000")
            connection.execute("ROLLBACK")
            assert said() == "3"
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="expected SET"):
                connection.execute("SET LOCAL gris.max_cost = 1000")
            with pytest.raises(psycopg.Error, match="may cost 4 information units, and at most 3"):
                connection.execute(TOP)
    with pytest.raises(psycopg.OperationalError, match="options: expected -c name=value"):
        psycopg.connect(**addressed(gateway, "guarded", options="gris.max_cost=3"))


def _shown(connection: psycopg.Connection, name: str) -> str:
    (row,) = connection.execute(f"SHOW {name}").fetchall()
    return str(row[0])


def test_discard_all_closes_prepared_statements(gateway: GatewayWorld) -> None:
    """Their names are free again, as pools expect."""
    with connected(gateway, "discarding") as connection:
        for _ in range(2):
            connection.execute("SELECT 1", prepare=True)
            connection.execute("DISCARD ALL")
            connection.pgconn.prepare(b"own", b"SELECT 1")
            connection.execute("DISCARD ALL")
