"""Programs that fork: what docs/sqlalchemy.md advises, and calls that no connection is left for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.support.gateways import AUDIENCE, GatewayWorld, write_configuration
from tests.support.pages import blocks, section
from tests.support.pki import Authority, Issuer
from tests.support.proc import require_proc
from tests.support.world import COFACTS, World, write_small

URL = "gris://gateway.example.org:8443/?ca_file=ca.pem&token_file=ana.jwt"
IN_A_FORK = """
import os

def in_a_fork(call, error):
    pid = os.fork()
    if pid == 0:
        try:
            call()
        except error as refused:
            assert "forked" in str(refused), refused
            os._exit(0)
        finally:
            os._exit(1)
    ended = os.waitpid(pid, 0)[1]
    assert ended == 0, ended

"""
ASYNC_CLIENT = (
    IN_A_FORK
    + """
import asyncio
from pinot_connector import AsyncGatewayClient

async def main():
    client = AsyncGatewayClient("127.0.0.1:1")
    in_a_fork(lambda: client.remaining().send(None), RuntimeError)
    in_a_fork(lambda: AsyncGatewayClient("127.0.0.1:1"), RuntimeError)
    await client.close()

asyncio.run(main())
"""
)
# The gateway is a port that accepts and is silent.
RUNNING = (
    IN_A_FORK
    + """
import socket, threading
from pinot_connector import dbapi

with socket.create_server(("127.0.0.1", 0)) as silent:
    connection = dbapi.connect(f"gris://127.0.0.1:{silent.getsockname()[1]}")
    asking = threading.Thread(target=connection.remaining, daemon=True)
    asking.start()
    accepted, _ = silent.accept()
    in_a_fork(connection.remaining, dbapi.InterfaceError)
    in_a_fork(lambda: (connection.close(), os._exit(0)), ())
    in_a_fork(lambda: (in_a_fork(connection.remaining, dbapi.InterfaceError), os._exit(0)), ())
    os._exit(0)
"""
)
# As where Python has no vfork.
FORKING = """
import runpy, subprocess, sys
subprocess._USE_VFORK = False
sys.argv = sys.argv[1:]
runpy.run_module("gris_gateway", run_name="__main__", alter_sys=True)
"""


def ended(program: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program of its own: that of the tests has other channels open."""
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env=os.environ | (environment or {}),
    )


def test_workers_that_are_forked_ask_by_an_engine_that_was_used_before(
    gateway: GatewayWorld, tmp_path: Path
) -> None:
    """As the page has it: the parent asks, two workers ask, and the parent asks again."""
    ana = gateway.by_token(org="acme", sub="forking")
    certified = {"certificate_file": ana.certificate_file, "key_file": ana.key_file}
    files = {"ca.pem": ana.ca_file, "ana.jwt": ana.token_file, **certified}
    for name, file in files.items():
        assert file is not None
        (tmp_path / name).write_bytes(Path(file).read_bytes())
    (program,) = blocks(section("sqlalchemy.md", "## Forked workers"), "python")
    assert URL in program
    # This gateway wants a certificate as well.
    url = "&".join([URL, *(f"{each}={each}" for each in certified)])
    program = program.replace(URL, url.replace("gateway.example.org:8443", gateway.address))
    done = ended(program, {"GRIS_CREDENTIALS_DIR": str(tmp_path)})
    assert (0, "[4, 4]\n4\n") == (done.returncode, done.stdout), done.stderr


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize("program", [ASYNC_CLIENT, RUNNING], ids=["an asynchronous client", "a running call"])
def test_a_connection_open_at_a_fork_is_refused_in_the_child(program: str) -> None:
    """At once, with an error that names the fork; nothing hangs, not even `close`."""
    done = ended(program)
    assert 0 == done.returncode, done.stderr


@pytest.mark.usefixtures("starts_processes", "programs_of_postgres")
def test_grpc_has_no_part_in_forks_of_a_gateway(world: World, tmp_path: Path) -> None:
    """It says so when its handlers are called, whose child would go on with connections of callers."""
    require_proc()
    authority, issuer = Authority.new(tmp_path), Issuer(tmp_path)
    config = write_configuration(tmp_path, authority, issuer, world.dp, world.budget, catalogue=True)
    write_small(tmp_path / "small.parquet", 1000)
    (tmp_path / "wide.parquet").symlink_to(COFACTS)
    command = [sys.executable, "-P", "-c", FORKING, "gris_gateway", "--config", str(config)]
    log = tmp_path / "log"
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, env=os.environ | {"GRPC_VERBOSITY": "info"}
        ) as gateway,
    ):
        try:
            assert gateway.stdout is not None
            host, _, port = json.loads(gateway.stdout.readline())["postgres_address"].partition(":")
            token = issuer.token(AUDIENCE, org="acme", sub="forking")
            with psycopg.connect(
                host=host, port=port, user="-", password=token, dbname="gris", sslmode="require"
            ) as asking:
                # Its first statement starts the catalogue.
                assert asking.execute("SELECT relname FROM pg_class").fetchone()
            assert Path(f"/proc/{gateway.pid}/task/{gateway.pid}/children").read_text()
        finally:
            gateway.terminate()
    assert "fork" not in log.read_text()
