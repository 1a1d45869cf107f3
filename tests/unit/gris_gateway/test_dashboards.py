"""What a dashboard does to a gateway with the limits that it has by default: many panels at once, again and again."""

from __future__ import annotations

import asyncio
import re
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from gris_gateway.configuration import GatewayConfiguration, TimeoutSettings
from gris_gateway.limits import GatewayLimits
from gris_serving.documents import read_document
from pinot_connector import AsyncGatewayClient, Credentials, Endpoint, Timeouts
from pinot_connector.errors import BudgetExhausted
from tests.support.gateways import GatewayWorld, write_configuration
from tests.support.pki import Authority, Issuer, email
from tests.support.processes import process
from tests.support.rings import needs

PANELS = 12
# What connections begin with that come to nothing.
BEGINNINGS = (b"", b"\x16\x03\x01", b"PRI * HTTP/2.0\r\n")
TEXT = (
    "SELECT article_id, COUNT(DISTINCT member_id) FROM feedback WHERE article_id <> 'panel {}' "
    "GROUP BY article_id ORDER BY 2 DESC LIMIT 1000"
)


@dataclass(frozen=True)
class Plain:
    """A gateway whose configuration says nothing of limits and time-outs but what a test adds."""

    world: GatewayWorld
    metrics_address: str

    def asked_by(self, credentials: Credentials) -> AsyncGatewayClient:
        """Return a client of the gateway."""
        return AsyncGatewayClient(Endpoint(self.world.address, credentials))

    def queries(self) -> int:
        """Return how many queries the engine has run."""
        with urllib.request.urlopen(f"http://{self.metrics_address}/metrics") as answer:
            text = answer.read().decode()
        counted = re.findall(r'gris_engine_calls_total\{[^}]*step="run"[^}]*\} (\d+)', text)
        return sum(int(each) for each in counted)


@pytest.fixture(scope="module")
@needs("process")
def plain(gateway: GatewayWorld, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plain]:
    """Run a gateway on the tables of another, with the default limits and a shorter handshake."""
    folder = tmp_path_factory.mktemp("plain")
    for name in ("wide.parquet", "small.parquet"):
        (folder / name).symlink_to(gateway.folder / name)
    authority, issuer = Authority.new(folder), Issuer(folder)
    config = write_configuration(folder, authority, issuer, gateway.dp, gateway.budget)
    text = config.read_text()
    timeouts = "timeouts: {handshake: 4, budget_silence: 10, budget_attempt: 6}\n"
    config.write_text(text[: text.index("limits:")] + timeouts)
    options = ["--config", config, "--metrics-listen", "127.0.0.1:0"]
    with process("gris_gateway", options, folder / "log") as ready:
        world = GatewayWorld(ready["address"], authority, issuer, folder, gateway.services)
        yield Plain(world, ready["metrics_address"])


async def test_twelve_panels_at_once_are_answered_and_so_is_every_reload(plain: Plain) -> None:
    """Each has LIMIT 1000; the account of 3000 units pays for all of them once, and none is refused by a limit."""
    async with plain.asked_by(plain.world.analyst()) as client:
        for reload in range(10):
            answers = await asyncio.gather(*(client.sql(TEXT.format(each)) for each in range(PANELS)))
            charged = sum(answer.charged.information for answer in answers)
            assert (charged > 0) == (reload == 0)


async def test_a_question_that_the_budget_refuses_costs_the_engine_nothing(plain: Plain) -> None:
    """The gateway reserves first, whatever the policy of the table says."""
    poor = plain.world.authority.client(email("poor@example.org"), file="poor")
    before = plain.queries()
    async with plain.asked_by(poor) as client:
        for each in range(20):
            with pytest.raises(BudgetExhausted):
                await client.sql(TEXT.format(each))
    assert before == plain.queries()


def test_a_connection_that_begins_nothing_is_closed(plain: Plain) -> None:
    """Neither who says nothing nor who begins a handshake keeps a connection for longer than the time-out."""
    host, _, port = plain.world.address.rpartition(":")
    began = time.monotonic()
    with ExitStack() as connections:
        idle = [
            connections.enter_context(socket.create_connection((host, int(port)), timeout=20))
            for _ in BEGINNINGS
        ]
        for connection, sent in zip(idle, BEGINNINGS, strict=True):
            connection.sendall(sent)
        for connection in idle:
            while connection.recv(4096):
                pass
    assert time.monotonic() - began < 18


def test_every_time_out_of_the_configuration_reaches_its_place(tmp_path: Path) -> None:
    """Those of a question are the connector's, the others the gateway's; what is not stated stays."""
    stated = {name: 7.5 + number for number, name in enumerate(TimeoutSettings.model_fields)}
    stated |= {"budget_attempt": 1.5, "reservation": 99}
    file = tmp_path / "gateway.yaml"
    lines = "".join(f"  {name}: {value}\n" for name, value in stated.items())
    file.write_text(
        "dp: {address: 'a:1'}\nbudget: {address: 'b:1'}\nengine: {duckdb: {t: t.parquet}}\n"
        f"identity: {{certificates: {{'dns:a': [a]}}}}\ntimeouts:\n{lines}"
    )
    timeouts = read_document(file, GatewayConfiguration).timeouts
    question = Timeouts(
        dp=stated["dp"],
        engine=stated["engine"],
        budget_attempt=1.5,
        budget=stated["budget"],
        budget_silence=stated["budget_silence"],
        budget_held=stated["budget_held"],
        reservation=99,
        data_version=stated["data_version"],
        account_open=stated["account_open"],
    )
    assert question == timeouts.of_a_question()
    base = GatewayLimits(caller_timeout_seconds=3, page_size=9)
    applied = GatewayLimits(
        caller_timeout_seconds=stated["caller"],
        handshake_seconds=stated["handshake"],
        slowest_call_seconds=stated["unfinished"],
        grace_seconds=stated["grace"],
        health_interval_seconds=stated["health_interval"],
        health_timeout_seconds=stated["health"],
        page_size=9,
    )
    assert applied == timeouts.applied_to(base)
    assert base == TimeoutSettings().applied_to(base)
    # What a client says nothing about: every client of these tests gives its ledger more time.
    assert Timeouts(budget_silence=0.2, budget_attempt=2.0) == TimeoutSettings().of_a_question()
