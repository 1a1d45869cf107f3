"""The process of the gateway: ready, gracefully gone, and clear about a wrong configuration or a dead service."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from gris_cli.app import run
from gris_gateway.process import main
from pinot_connector import AsyncGatewayClient, Endpoint
from pinot_connector.errors import ServiceRefused, ServiceUnavailable
from pinot_connector.questions import structured_question
from tests.support.gateways import GatewayWorld, write_configuration
from tests.support.pki import Authority, Issuer, uri
from tests.support.ports import free_port
from tests.support.processes import process
from tests.support.release_stores import key_file
from tests.support.world import write_small


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return the authority that signs certificates."""
    return Authority.new(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Path:
    """Write data, keys and a configuration of services at SERVICE; nobody writes to their folder."""
    folder = tmp_path_factory.mktemp("files")
    write_small(folder / "small.parquet", 10)
    write_small(folder / "wide.parquet", 10)
    write_configuration(folder, authority, Issuer(folder), "SERVICE", "SERVICE")
    return folder


@pytest.fixture
def configuration(tmp_path: Path, files: Path) -> Path:
    """Write a configuration whose services are nowhere."""
    text = (files / "gateway.yaml").read_text().replace("SERVICE", f"127.0.0.1:{free_port()}")
    path = tmp_path / "gateway.yaml"
    path.write_text(text)
    return path


def test_validation_reads_every_file_and_serves_nothing(
    configuration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 0 and no line."""
    assert 0 == main(["--config", str(configuration), "--validate"])
    assert "" == capsys.readouterr().out


def replaced(old: str, new: str) -> Callable[[str], str]:
    """Return a change of a text."""
    return lambda text: text.replace(old, new)


def with_port(service: str, port: str) -> Callable[[str], str]:
    """Return a change of the port of a service."""
    return lambda text: re.sub(rf'(?m)^({service}: .*:)\d+"', rf'\g<1>{port}"', text)


def with_timeout(key: str, value: str) -> Callable[[str], str]:
    """Return a change of a time-out."""
    return lambda text: f"{text[: text.index('timeouts:')]}timeouts: {{{key}: {value}}}\n"


def with_limit(key: str, value: str) -> Callable[[str], str]:
    """Return a change of a limit of each caller."""
    return lambda text: f"{text[: text.index('limits:')]}limits: {{{key}: {value}}}\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (replaced("listen:", "listens:"), "listens"),
        (replaced("listen: 127.0.0.1:0", "listen: nowhere"), "listen"),
        (
            replaced("listen: 127.0.0.1:0", "listen: 127.0.0.1:70000"),
            "listen: expected HOST:PORT",
        ),
        (replaced("listen: 127.0.0.1:0", "listen: ':5'"), "listen"),
        (replaced("listen: 127.0.0.1:0", "listen: '127.0.0.1:\u0665'"), "listen"),
        (with_port("dp", "70000"), "dp.address: expected a port from 0 to 65535"),
        (with_port("budget", "65536"), "budget.address: expected a port"),
        (with_port("dp", "-1"), "dp.address: expected a port"),
        (with_port("dp", "1,127.0.0.1:70000"), "dp.address: expected HOST:PORT"),
        (replaced("client_ca:", "authority:"), "tls.authority"),
        (lambda text: text[: text.index(", client_ca")] + "}" + text[text.index("\ndp:") :], "client_ca"),
        (replaced("algorithms: [ES256]", "algorithms: [HS256]"), "identity.jwt.algorithms.0"),
        (replaced("algorithms: [ES256]", "algorithms: []"), "identity.jwt.algorithms"),
        (
            replaced("algorithms: [ES256]", "algorithms: [RS256, EdDSA]"),
            "its keys are for ES256; algorithms names only RS256, EdDSA",
        ),
        (replaced("prefix: [app, acme]", "prefix: []"), "prefix"),
        (replaced("prefix: [app, acme]", "prefix: [app, '..']"), "prefix"),
        (replaced("prefix: [app, acme]", "prefix: [a, b, c, d]"), "at most 4 segments"),
        (replaced("uri:spiffe://example.org/ana", "ana"), "identity.certificates"),
        (replaced("issuer.pem", "absent.pem"), "absent.pem"),
        (replaced("server.key", "ca.pem"), "private key"),
        (replaced("per_second: 200", "per_second: .nan"), "limits.per_second"),
        (replaced("per_second: 200", "per_second: '200'"), "limits.per_second"),
        (with_limit("waiting", "-1"), "limits.waiting: expected a number greater than or equal to 0"),
        (with_limit("concurrent", "0"), "limits.concurrent: expected a number greater than or equal to 1"),
        (with_timeout("budget_silence", "0"), "timeouts.budget_silence: expected a number"),
        (with_timeout("budget_silence", ".nan"), "timeouts.budget_silence: expected a"),
        (with_timeout("budget_silence", "'0.2'"), "timeouts.budget_silence: expected a number"),
        (with_timeout("budget_silence", "61"), "timeouts.budget_silence: expected a number"),
        (with_timeout("engine", ".inf"), "timeouts.engine: expected a"),
        (with_timeout("engine", "60"), "timeouts: reservation: expected longer than engine"),
        (with_timeout("reservation", "60.5"), "timeouts.reservation: expected a whole number"),
        (with_timeout("budget_attempt", "9"), "timeouts: budget_attempt: expected at most budget"),
        (with_timeout("caller", "0.5"), "timeouts.caller: expected a number"),
        (with_timeout("handshake", "121"), "timeouts.handshake: expected a number"),
        (replaced("history: {", "history: {file: history.sqlite, "), "history.file: there is no such key"),
        (with_timeout("patience", "1"), "timeouts.patience: there is no such key"),
        (lambda text: text + "reserve_first: 1\n", "reserve_first: expected true or false"),
        (replaced("small.parquet", "absent.parquet"), "engine.duckdb: the data file"),
        (replaced("duckdb:", "pinot:"), "engine"),
        (
            replaced("  duckdb:", "  pinot: {broker: 'http://b', controller: 'https://c'}\n  duckdb:"),
            "one of",
        ),
        (replaced('dp: {address: "', 'dp: {ca_file: absent.pem, address: "'), "dp.ca_file: expected a file"),
        (replaced('dp: {address: "', 'dp: {ca_file: /dev/null, address: "'), "dp: /dev/null: expected PEM"),
        (lambda _: "- a list", "expected keys and their values"),
        (lambda _: "a: b: c", "line 1"),
        (lambda _: "dp: 1\ndp: 2", "is repeated"),
        (lambda _: "dp: " + "[" * 10_000, "expected less nesting"),
        (lambda _: 'dp: "\\U00110000"', "line 1: expected escapes of characters that exist"),
        (lambda _: 'dp: "\\UFFFFFFFF"', "line 1: expected escapes of characters that exist"),
    ],
)
def test_a_wrong_configuration_is_named_in_one_line(
    configuration: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[str], str],
    complaint: str,
) -> None:
    """Exit code 2, and the key that is wrong."""
    before = configuration.read_text()
    configuration.write_text(change(before))
    assert before != configuration.read_text()
    assert 2 == main(["--config", str(configuration), "--validate"])
    said = capsys.readouterr().err
    assert complaint in said
    assert 1 == said.count("\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pinot", "code", "complaint"),
    [
        ("broker: 'http://b:1', controller: 'http://c:1'", 0, ""),
        ("broker: 'http://b:1', controller: 'https://c:1'", 2, "engine.pinot: controller and broker"),
        ("broker: 'https://b:1', controller: 'https://c:1', ca_file: absent", 2, "engine.pinot"),
        (
            "broker: 'https://b:1', controller: 'https://c:1', authorization_file: absent",
            2,
            "authorization_file",
        ),
        ("broker: 'http://b:1'", 2, "engine.pinot.controller"),
        (
            "broker: 'http://b:1', controller: 'http://c:1', server_admin: true, server_admin_port: 7443",
            0,
            "",
        ),
        ("broker: 'http://b:1', controller: 'http://c:1', server_admin_port: 7443", 2, "server_admin_port"),
        (
            "broker: 'http://b:1', controller: 'http://c:1', server_admin: true, server_admin_port: 0",
            2,
            "engine.pinot.server_admin_port",
        ),
        ("broker: 'http://b:1', controller: 'http://c:1', settle_seconds: 0", 0, ""),
        (
            "broker: 'http://b:1', controller: 'http://c:1', settle_seconds: -1",
            2,
            "engine.pinot.settle_seconds",
        ),
        ("broker: 'http://b:70000', controller: 'http://c:1'", 2, "engine.pinot.broker"),
        ("broker: 'http://b:1', controller: 'http://c:65536'", 2, "engine.pinot.controller"),
    ],
)
def test_a_pinot_is_named_as_the_engine(
    configuration: Path, capsys: pytest.CaptureFixture[str], pinot: str, code: int, complaint: str
) -> None:
    """Its URLs and files are checked; it is asked nothing yet."""
    text = configuration.read_text()
    engine = f"engine: {{pinot: {{{pinot}}}}}\n"
    configuration.write_text(text[: text.index("engine:")] + engine + text[text.index("identity:") :])
    assert code == main(["--config", str(configuration), "--validate"])
    assert complaint in capsys.readouterr().err


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0"])
def test_plain_text_beyond_this_machine_must_be_asked_for(
    configuration: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, listen: str
) -> None:
    """Tokens and results would be read by others; `insecure: true` says that something else ends TLS, and is logged."""
    text = configuration.read_text()
    plain = text[: text.index("tls:")] + text[text.index("dp:") :]
    plain = plain.replace("127.0.0.1:0", f'"{listen}"', 1)
    # Certificates need TLS in any case.
    plain = plain[: plain.index("  certificates:")] + plain[plain.index("  jwt:") :]
    configuration.write_text(plain)
    assert 2 == main(["--config", str(configuration), "--validate"])
    assert "insecure: true" in capsys.readouterr().err
    configuration.write_text("insecure: true\n" + plain)
    assert 0 == main(["--config", str(configuration), "--validate"])
    with process("gris_gateway", ["--config", configuration], tmp_path / "log"):
        assert "event=protection.missing" in (tmp_path / "log").read_text()


@pytest.mark.usefixtures("starts_processes")
async def test_dead_services_are_told_without_their_names(
    configuration: Path, authority: Authority, tmp_path: Path
) -> None:
    """UNAVAILABLE in the gateway's words; the log says which part it was."""
    log = tmp_path / "log"
    ana = authority.client(uri("spiffe://example.org/ana"), file="ana")
    with process("gris_gateway", ["--config", configuration], log) as ready:
        async with AsyncGatewayClient(Endpoint(ready["address"], ana)) as client:
            with pytest.raises(ServiceUnavailable) as refused:
                await client.ask(structured_question("small", "element", k=3))
    assert "gateway: the question cannot be answered now; nothing was charged" == str(refused.value)
    assert "dp_service" in log.read_text()


def test_a_command_that_does_not_trust_the_gateway_says_so_alone(gateway: GatewayWorld) -> None:
    """gRPC's own lines about the handshake do not stand before its error."""
    command = [sys.executable, "-m", "gris_cli", "remaining", "--gateway", f"gris://{gateway.address}"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (5, 1) == (ended.returncode, len(ended.stderr.splitlines())), ended.stderr
    assert "ca_file" in ended.stderr


async def test_a_question_that_has_begun_is_answered_before_the_gateway_ends(
    gateway: GatewayWorld, authority: Authority, tmp_path: Path
) -> None:
    """SIGTERM comes in the middle of a large question: its result arrives whole, and is in the history."""
    for name in ("wide.parquet", "small.parquet"):
        (tmp_path / name).symlink_to(gateway.folder / name)
    config = write_configuration(tmp_path, authority, Issuer(tmp_path), gateway.dp, gateway.budget)
    with config.open("a") as file:
        file.write(f"releases: {{file: {tmp_path}/releases.sqlite, key_file: {key_file(tmp_path)}}}\n")
    ana = authority.client(uri("spiffe://example.org/acme"), file="acme")
    running = process("gris_gateway", ["--config", config], tmp_path / "log")
    ready = running.__enter__()
    async with AsyncGatewayClient(Endpoint(ready["address"], ana), account="app/acme/drained") as client:
        await client.remaining()
        asking = asyncio.create_task(client.ask(structured_question("wide", "element", k=None)))
        await asyncio.sleep(0.1)
        assert not asking.done()
        await asyncio.to_thread(running.__exit__, None, None, None)
        result = await asking
    assert len(result.rows) > 40_000
    with closing(sqlite3.connect(tmp_path / "releases.sqlite")) as db:
        assert [(1,)] == db.execute("SELECT count(*) FROM gris_release_receipts").fetchall()


async def test_a_refusal_of_a_service_is_the_operators(gateway: GatewayWorld) -> None:
    """A table that the policy lists and this engine has not is no fault of the analyst's."""
    async with AsyncGatewayClient(Endpoint(gateway.address, gateway.analyst())) as client:
        with pytest.raises((ServiceRefused, ServiceUnavailable)) as refused:
            await client.ask(structured_question("orders", "element", k=3, measure="events"))
    assert "orders" not in str(refused.value)


def test_the_command_line_asks_by_the_gateway(
    gateway: GatewayWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ask, explain and catalog, with a certificate; an account that is not the caller's has an exit code."""
    ana = gateway.authority.client(uri("spiffe://example.org/ana"), file="ana-cli")
    line = ["--ca-file", str(ana.ca_file), "--certificate-file", str(ana.certificate_file)]
    line += ["--key-file", str(ana.key_file)]
    to = ["--gateway", f"gris://{gateway.address}", "--json"]
    assert 0 == run([*line, "ask", "--table", "feedback", "--by", "app", *to])
    assert "app/acme/ana" in capsys.readouterr().out.replace('", "', "/")
    assert 0 == run([*line, "explain", "--table", "feedback", "--by", "app", *to])
    assert 0 == run([*line, "catalog", *to])
    capsys.readouterr()
    assert 0 == run([*line, "remaining", *to])
    assert ["app", "acme", "ana"] == json.loads(capsys.readouterr().out)["remaining"][-1]["path"]
    assert 0 == run([*line, "history", *to, "--most", "1"])
    (past,) = json.loads(capsys.readouterr().out)["releases"]
    assert {"table": "feedback", "dimensions": ["app"]}.items() <= past["question"]["structured"].items()
    assert 4 == len(past["result"]["rows"])
    assert 0 == run([*line, "history", *to[:2]])
    assert "app of feedback" in capsys.readouterr().out
    assert 0 == run([*line, "remaining", *to[:2]])
    assert "app/acme/ana: " in capsys.readouterr().out
    assert 2 == run([*line, "history"])
    assert "--gateway or GRIS_GATEWAY" in capsys.readouterr().err
    assert 1 == run([*line, "ask", "--account", "app/acme/bob", "--table", "feedback", "--by", "app", *to])
    assert "ACCOUNT_OUT_OF_REACH" in capsys.readouterr().out
    assert 2 == run([*line, "ask", "--embedded", "--table", "feedback", "--by", "app", *to])
    assert 2 == run([*line, "ask", "--table", "feedback", "--by", "app", "--gateway", "localhost:1"])
