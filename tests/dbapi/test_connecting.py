"""How connections are opened and what they leave behind."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest

from pinot_connector import Audience, dbapi
from pinot_connector.dbapi import connect, connect_embedded
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import ServiceUnavailable
from tests.support.fake_pinot import ANSWER, FakePinot, refusing_server, renamed
from tests.support.relay import relayed
from tests.support.world import BUDGET, COFACTS, POLICY, World, new_account

from .questions import ARTICLES, COHORTS, connected

HEAD = {"dp": "127.0.0.1:1", "budget": "127.0.0.1:1", "account": "t/nobody"}


async def test_nothing_is_asked_before_execute(world: World, engine: DuckDBEngine) -> None:
    """Opening a connection and a cursor costs no call; an execute is one question, charged once."""
    async with relayed(world) as relay:
        connection = await asyncio.to_thread(connected, world, engine, dp=relay.address, budget=relay.address)
        cursor = connection.cursor()
        assert [] == relay.methods
        await asyncio.to_thread(cursor.execute, COHORTS)
        cursor.fetchall()
        await asyncio.to_thread(connection.close)
        assert ["ReserveBudget", "AddNoiseUnary", "UpdateBudget"] == relay.methods[-3:]
        assert {"TranslateQuery"} == set(relay.methods[:-3])


@pytest.mark.parametrize(
    ("arguments", "expected", "field"),
    [
        ({}, dbapi.InterfaceError, "host"),
        ({"host": "h", "engine": object()}, dbapi.InterfaceError, "host"),
        ({"host": "h"}, dbapi.InterfaceError, "controller"),
        ({"host": "h", "controller": "http://c", "path": "/query"}, dbapi.InterfaceError, "path"),
        ({"host": "h", "controller": "http://c", "username": "u"}, dbapi.InterfaceError, "username"),
        ({"host": "h", "controller": "http://c", "password": "p"}, dbapi.InterfaceError, "username"),
        ({"host": "h", "controller": "https://c"}, dbapi.InterfaceError, "scheme, host, controller"),
        ({"host": "h", "controller": "ftp://c", "scheme": "ftp"}, dbapi.InterfaceError, "scheme"),
        ({"host": "", "controller": "http://c"}, dbapi.InterfaceError, "scheme, host, controller"),
        (
            {"host": "h", "controller": "http://c", "settle_seconds": -1},
            dbapi.InterfaceError,
            "settle_seconds",
        ),
        (
            {"host": "h", "controller": "http://c", "server_admin_port": 1},
            dbapi.InterfaceError,
            "server_admin_port",
        ),
        ({"engine": object(), "account": 5}, dbapi.ProgrammingError, "account"),
        ({"engine": object(), "confidence": 95}, dbapi.ProgrammingError, "confidence"),
        ({"engine": object(), "max_cost": -1}, dbapi.ProgrammingError, "max_cost"),
    ],
)
def test_wrong_arguments_are_named(
    arguments: dict[str, Any], expected: type[dbapi.Error], field: str
) -> None:
    """Each error begins with the argument that it is about."""
    with pytest.raises(expected, match=f"^{field}: expected|^{field}: controller and broker must"):
        connect(**(HEAD | arguments))


def test_confidence_and_account_reach_the_services(world: World, engine: DuckDBEngine) -> None:
    """Wider intervals for more confidence, and the account named is the one that pays."""
    widths = []
    for confidence in (0.6, 0.99):
        account = new_account()
        with connected(world, engine, account=account.split("/"), confidence=confidence) as cursor:
            rows = cursor.execute(COHORTS).fetchall()
            assert cursor.release is not None
            assert tuple(account.split("/")) == cursor.release.remaining[-1].path
            widths.append(sum(upper - lower for *_, lower, upper in rows))
    assert widths[0] < widths[1]


def test_a_connection_pays_no_more_for_a_question_than_it_may(world: World, engine: DuckDBEngine) -> None:
    """The error names the price, as EXPLAIN does, which is free."""
    with connected(world, engine, account=new_account().split("/"), max_cost=0) as cursor:
        assert cursor.execute(f"EXPLAIN {COHORTS}").fetchall()
        with pytest.raises(dbapi.ProgrammingError, match="max_cost: the question may cost"):
            cursor.execute(COHORTS)


@pytest.fixture
def fake_pinot() -> Iterator[FakePinot]:
    """A broker and a controller that know a table `feedback` and write down what they are sent."""
    fake = FakePinot()
    answer = json.loads(json.dumps(ANSWER).replace('"d0"', '"cohort"').replace("element", "2019-01"))
    fake.replies = renamed(fake.replies, "feedback")
    fake.replies["/behind/a/proxy/query/sql"] = answer
    fake.replies["/tables/feedback"] = {"OFFLINE": {"tableName": "feedback_OFFLINE"}}
    texts = [{"name": name, "dataType": "STRING"} for name in ("cohort", "member_id")]
    fake.replies["/tables/feedback/schema"] = {"dimensionFieldSpecs": texts}
    with fake.serving():
        yield fake


def test_path_and_credentials_reach_pinot(world: World, fake_pinot: FakePinot) -> None:
    """A broker behind a prefix is asked there, and both of Pinot's parts see the same credentials."""
    connection = connect(
        "127.0.0.1",
        urlsplit(fake_pinot.url).port or 0,
        path="/behind/a/proxy/query/sql",
        controller=fake_pinot.url,
        username="ana",
        password="a pass:word",
        timeout=5,
        dp=world.dp,
        budget=world.budget,
        account=new_account(),
    )
    with connection as cursor:
        cursor.execute(COHORTS)
    assert 1 == len(fake_pinot.queries)
    assert {"Basic " + base64.b64encode(b"ana:a pass:word").decode()} == set(fake_pinot.headers)


def test_the_servers_of_pinot_are_asked_what_they_have_loaded(world: World, fake_pinot: FakePinot) -> None:
    """Where the connection says so, the servers themselves are asked; a question fails if one of them refuses."""
    with refusing_server(fake_pinot) as port:
        connection = connect(
            "127.0.0.1",
            urlsplit(fake_pinot.url).port or 0,
            path="/behind/a/proxy/query/sql",
            controller=fake_pinot.url,
            server_admin=True,
            server_admin_port=port,
            dp=world.dp,
            budget=world.budget,
            account=new_account(),
        )
        with (
            connection as cursor,
            pytest.raises(dbapi.OperationalError, match="does not accept our credentials"),
        ):
            cursor.execute(COHORTS)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    """What an embedded connection needs, in a directory of its own."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "budget.yaml").write_text(BUDGET)
    return {
        "policy": tmp_path / "policy.yaml",
        "budget_config": tmp_path / "budget.yaml",
        "directory": tmp_path / "state",
        "account": "t/ana",
    }


def listening(directory: Path) -> list[bool]:
    """Tells of both services of a directory whether they answer where they said they would."""
    return [_listens(directory / f"{name}.ready") for name in ("dp_service", "budget_service")]


def _listens(announced: Path) -> bool:
    with grpc.insecure_channel(json.loads(announced.read_text())["address"]) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=1)
        except grpc.FutureTimeoutError:
            return False
    return True


@pytest.mark.usefixtures("starts_processes")
def test_everything_can_run_beside_the_program(files: dict[str, Any]) -> None:
    """Services run as long as the connection; key and ledger outlive it, so a repeat is the same and free."""
    releases = []
    for _ in range(2):
        connection = connect_embedded({"feedback": COFACTS}, **files)
        with closing(connection):
            assert [True, True] == listening(files["directory"])
            releases.append(connection.execute(ARTICLES).release)
        assert [False, False] == listening(files["directory"])
    first, again = releases
    assert first is not None
    assert again is not None
    assert first.rows == again.rows
    assert (11, 0) == (first.charged.information, again.charged.information)


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize(
    ("broken", "cause"),
    [("policy", ServiceUnavailable), ("budget_config", ServiceUnavailable), ("account", None)],
)
def test_what_cannot_be_opened_leaves_nothing_behind(
    files: dict[str, Any], broken: str, cause: type[Exception] | None
) -> None:
    """Whichever part fails, no service goes on; the error is PEP 249's."""
    if cause is None:
        files["account"] = 5
    else:
        files[broken].write_text("nonsense: 1\n")
    with pytest.raises(dbapi.DatabaseError) as raised:
        connect_embedded({"feedback": COFACTS}, **files)
    if cause is None:
        assert [False, False] == listening(files["directory"])
    else:
        assert isinstance(raised.value.__cause__, cause)
        other = "budget_service" if broken == "policy" else "dp_service"
        announced = files["directory"] / f"{other}.ready"
        assert not announced.read_text() or not _listens(announced)


@pytest.mark.usefixtures("starts_processes")
def test_a_policy_with_audiences_is_asked_as_one(files: dict[str, Any]) -> None:
    """By either way to connect, of its rows and columns alone; without one the error names the argument."""
    offered = "{tables: {feedback: {columns: [cohort, app], where: {app: $app}}}}"
    with files["policy"].open("a") as policy:
        policy.write(f"audiences: {{of: {offered}}}\n")
    website = Audience("of", {"app": "WEBSITE"})
    with closing(connect_embedded({"feedback": COFACTS}, **files, audience=website)) as connection:
        assert ["app", "cohort", "day"] == [each.name for each in connection.catalog().tables[0].columns]
        found = connection.execute(COHORTS).fetchall()
        address = json.loads((files["directory"] / "dp_service.ready").read_text())["address"]
        budget = json.loads((files["directory"] / "budget_service.ready").read_text())["address"]
        beside = {"dp": address, "budget": budget, "account": "t/ana"}
        with closing(DuckDBEngine({"feedback": COFACTS})) as engine:
            again = connect(engine=engine, **beside, audience=website)
            assert found == again.execute(COHORTS).fetchall() != []
            bots = connect(engine=engine, **beside, audience=Audience("of", {"app": "RUMORS_LINE_BOT"}))
            assert found != bots.execute(COHORTS).fetchall()
            for refused in (None, Audience("of"), Audience("staff")):
                cursor = connect(engine=engine, **beside, audience=refused).cursor()
                with pytest.raises(dbapi.NotSupportedError, match="the argument audience of connect"):
                    cursor.execute(COHORTS)
                cursor.connection.close()
            again.close()
            bots.close()


@pytest.mark.usefixtures("starts_processes")
def test_a_missing_data_file_is_an_operational_error(files: dict[str, Any], tmp_path: Path) -> None:
    """It is found before any service starts."""
    with pytest.raises(dbapi.OperationalError, match="data file"):
        connect_embedded({"feedback": tmp_path / "nothing.parquet"}, **files)
    assert not files["directory"].exists()


FORGETFUL = """
import json, sys, threading, time
from pinot_connector.dbapi import connect_embedded

def work(connection):
    print(connection.execute(sys.argv[2]).rowcount, flush=True)
    asked.set()
    time.sleep(600)

files, asked = json.loads(sys.argv[1]), threading.Event()
opened = connect_embedded({"feedback": files.pop("data")}, **files)
threading.Thread(target=work, args=(opened,), daemon=True).start()
asked.wait()
"""


@pytest.mark.usefixtures("starts_processes")
def test_a_program_that_forgets_to_close_leaves_no_service(files: dict[str, Any], tmp_path: Path) -> None:
    """The services end with the program, even where a thread still holds the connection."""
    program = tmp_path / "forgetful.py"
    program.write_text(FORGETFUL)
    arguments = json.dumps({name: str(value) for name, value in files.items()} | {"data": str(COFACTS)})
    done = subprocess.run(
        [sys.executable, str(program), arguments, ARTICLES],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "5\n" == done.stdout
    assert [False, False] == listening(files["directory"])


WITHOUT_EXTRAS = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"duckdb", "httpcore", "httpx", "pinotdb", "numpy", "sqlglot", "yaml"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
from pinot_connector import dbapi

head = {"dp": "127.0.0.1:1", "budget": "127.0.0.1:1", "account": "a"}
dbapi.connect(engine=object(), **head).close()
for opening in (
    lambda: dbapi.connect("h", controller="http://c", **head),
    lambda: dbapi.connect_embedded({}, policy="p", budget_config="b", directory="d", account="a"),
):
    try:
        opening()
    except dbapi.InterfaceError as error:
        print(error)
"""


@pytest.mark.usefixtures("starts_processes")
def test_the_connectors_own_dependencies_are_enough() -> None:
    """Only a connection that needs an extra asks for it, by name."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS], capture_output=True, text=True, timeout=60, check=True
    )
    assert [
        "this connection needs pip install 'gris-dp[pinot]'",
        "this connection needs pip install 'gris-dp[duckdb]'",
    ] == done.stdout.splitlines()
