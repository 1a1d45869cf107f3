"""The whole path with both services and Redis in containers, and what happens when one of them goes away."""

from __future__ import annotations

import json
import time

import docker
import pytest

from pinot_connector import PrivateClient, Timeouts
from pinot_connector.engines.base import Engine
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import BudgetExhausted, ServiceUnavailable
from tests.containers.conftest import TABLE
from tests.containers.images import build_service
from tests.containers.stack import Services

# What an attacker inside a container would look for first; each is a way to run or to fetch something.
NOT_IN_AN_IMAGE = ("sh", "bash", "busybox", "apt-get", "dpkg", "pip", "pip3", "gcc", "perl", "curl", "wget")
_LOOK = """
import importlib.util, json, os, shutil, sys
writable = [folder for folder in ("/", "/opt/gris/lib", "/etc", "/usr/lib") if os.access(folder, os.W_OK)]
found = [name for name in sys.argv[1:] if any(os.path.exists(f"{folder}/{name}") for folder in ("/bin", "/usr/bin",
    "/usr/local/bin", "/sbin", "/opt/gris/bin"))]
modules = [name for name in ("pip", "ensurepip", "setuptools", "dp_service", "budget_service", "pinot_connector",
    "gris_gateway") if importlib.util.find_spec(name)]
print(json.dumps({"user": os.getuid(), "writable": writable, "found": found, "modules": modules}))
"""
_ASK_CATALOGUE = """
import asyncio
from pygwire.messages import Bind
from gris_gateway.faces.postgres.catalogue import Catalogue
from gris_gateway.faces.postgres.catalogue_process import programs
from gris_gateway.faces.postgres.errors import PostgresError
async def listed(catalogue):
    while True:
        try:
            return await catalogue.listing(())
        except PostgresError:
            await asyncio.sleep(0.2)
async def main():
    catalogue = Catalogue(programs())
    tables = await asyncio.wait_for(listed(catalogue), 60)
    for sql in ("SHOW TIME ZONE", "SELECT 'PL/pgSQL' FROM pg_language WHERE lanname = 'plpgsql'"):
        print(*(await tables.ask(sql, [], Bind())).rows[0].columns)
    await catalogue.close()
asyncio.run(main())
"""
_OF_GATEWAY = ["pinot_connector", "gris_gateway"]


def client(services: Services, engine: Engine, analyst: str) -> PrivateClient:
    """Return a client of one analyst."""
    return PrivateClient(
        dp=services.dp.address(),
        budget=services.budget.address(),
        account=("demo", analyst),
        engine=engine,
        # What a lost reply leaves reserved lapses while the test looks on.
        timeouts=Timeouts(engine=3, reservation=5),
    )


def test_a_question_is_answered_charged_and_free_the_second_time(
    services: Services, duckdb: DuckDBEngine
) -> None:
    """Real data through two containers and Redis: ten articles, a price, and the same answer for nothing."""
    with client(services, duckdb, "ana") as ana:
        first, second = ana.top_k(TABLE, "article_id", 10), ana.top_k(TABLE, "article_id", 10)
    assert len(first.rows) == 10
    assert first.charged.information == 21
    assert (first.rows, 0, 0) == (second.rows, second.charged.information, second.charged.calls)


def test_pinot_in_a_container_gives_duckdbs_release(
    services: Services, pinot: PinotEngine, duckdb: DuckDBEngine
) -> None:
    """Everything in containers, and still one release for one histogram."""
    with client(services, pinot, "cleo") as on_pinot, client(services, duckdb, "dora") as on_duckdb:
        left, right = (each.top_k(TABLE, "article_id", 10) for each in (on_pinot, on_duckdb))
    assert left.release_id == right.release_id
    assert left.rows == right.rows


def test_an_exhausted_budget_is_refused(services: Services, duckdb: DuckDBEngine) -> None:
    """The ledger in Redis says no, and says what is left."""
    with client(services, duckdb, "small") as small:
        small.top_k(TABLE, "article_id", 10)
        small.top_k(TABLE, "article_id", 9)
        with pytest.raises(BudgetExhausted) as caught:
            small.top_k(TABLE, "article_id", 8)
    assert "information" in {shortfall.unit for shortfall in caught.value.shortfalls}


@pytest.mark.usefixtures("starts_containers")
@pytest.mark.parametrize(
    ("target", "packages"),
    [
        ("dp-service", ["dp_service"]),
        ("budget-service", ["budget_service"]),
        ("gateway", _OF_GATEWAY),
        ("gateway-catalogue", _OF_GATEWAY),
        ("tools", ["dp_service", "budget_service", *_OF_GATEWAY]),
    ],
)
def test_an_image_holds_what_it_runs_and_no_tools(target: str, packages: list[str]) -> None:
    """No shell, no package manager, no compiler; a user without a name, who can write nowhere."""
    image = build_service(target)
    run = docker.from_env().containers.run
    reported = run(
        image, ["-c", _LOOK, *NOT_IN_AN_IMAGE], entrypoint="python", remove=True, network_disabled=True
    )
    assert {"user": 10001, "writable": [], "found": [], "modules": packages} == json.loads(reported)


@pytest.mark.usefixtures("starts_containers")
@pytest.mark.parametrize("user", ["10001", "70007:0"])
def test_a_catalogue_needs_no_right_and_one_folder(user: str) -> None:
    """As in Kubernetes: nothing else can be written, no right can be had, and its user may have no name."""
    said = docker.from_env().containers.run(
        build_service("gateway-catalogue"),
        ["-c", _ASK_CATALOGUE],
        entrypoint="python",
        remove=True,
        network_disabled=True,
        user=user,
        read_only=True,
        tmpfs={"/tmp": "mode=1777,size=512m"},  # noqa: S108 - the container's own
        cap_drop=["ALL"],
        security_opt=["no-new-privileges:true"],
    )
    assert said.decode().split() == ["b'UTC'", "b'PL/pgSQL'"]


def test_a_container_can_ask_itself_whether_it_serves(services: Services) -> None:
    """Exit code 0 where the service serves, 1 where nothing listens, 2 without an address; what is wrong is said."""
    for service in (services.dp, services.budget):
        for arguments, expected in ((["localhost:50050"], 0), (["localhost:1"], 1), ([], 2)):
            code, said = service.container.exec(["python", "/opt/gris/image/probe.py", *arguments])
            assert (code, bool(said)) == (expected, expected != 0), said


def test_a_paused_store_means_no_result_and_no_lost_budget(services: Services, duckdb: DuckDBEngine) -> None:
    """While Redis does not answer there is no answer; when it is back nothing was charged and questions go on."""
    with client(services, duckdb, "ben") as ben:
        before = ben.remaining()
        store = services.redis.container.get_wrapped_container()
        store.pause()
        try:
            with pytest.raises(ServiceUnavailable):
                ben.top_k(TABLE, "article_id", 5)
        finally:
            store.unpause()
        assert before == _eventually_remaining(ben)
        assert len(ben.top_k(TABLE, "article_id", 5).rows) == 5


def _eventually_remaining(ben: PrivateClient) -> object:
    deadline = time.monotonic() + 30
    while True:
        try:
            levels = ben.remaining()
        except ServiceUnavailable:
            levels = None
        # A reservation whose reply was lost is held until it lapses or is given back.
        if levels is not None and all(level.reserved.information == 0 for level in levels):
            return levels
        assert time.monotonic() < deadline, "the store did not come back"
        time.sleep(0.2)
