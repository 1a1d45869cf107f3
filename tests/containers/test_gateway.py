"""The gateway in its container, before both services and Pinot in theirs."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import pytest
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

from pinot_connector import AsyncGatewayClient, Credentials, Endpoint
from pinot_connector.errors import GrisError, ServiceRefused
from pinot_connector.questions import structured_question
from tests.containers.conftest import TABLE
from tests.containers.images import build_service
from tests.containers.outages import take_away, ways
from tests.containers.stack import IMAGE_USER, PORT, Placed, Services, placed
from tests.support.pki import Authority, uri
from tests.support.release_stores import key_file

GATEWAY_PORT = 50054
CONFIGURATION = f"""
listen: 0.0.0.0:{GATEWAY_PORT}
tls: {{certificate: /etc/gris/server.pem, key: /etc/gris/server.key, client_ca: /etc/gris/ca.pem}}
dp: {{address: "dp:{PORT}"}}
budget: {{address: "budget:{PORT}"}}
engine: {{pinot: {{broker: "http://pinot:8000", controller: "http://pinot:9000"}}}}
identity:
  certificates:
    "uri:spiffe://example.org/gina": [demo, gina]
releases: {{file: /var/lib/gris/releases.sqlite, key_file: /etc/gris/releases.key}}
limits: {{per_second: 100, burst: 100}}
"""
BACK_SECONDS = 60.0

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Reached:
    """The gateway's container, and how it is reached by Gina, who has an account, and by a stranger."""

    placed: Placed
    gina: Credentials
    stranger: Credentials

    def asking(self, shown: Credentials) -> AsyncGatewayClient:
        """Return a client."""
        return AsyncGatewayClient(Endpoint(self.placed.address(GATEWAY_PORT), shown))


@pytest.fixture(scope="module")
def gateway(
    services: Services, pinot_container: Placed, network: Network, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Reached]:
    """Start the gateway; what is paid for is kept on this machine."""
    folder, releases = tmp_path_factory.mktemp("gateway"), tmp_path_factory.mktemp("releases")
    authority = Authority.new(folder)
    authority.server()
    gina, stranger = (
        authority.client(uri(f"spiffe://example.org/{name}"), file=name) for name in ("gina", "eve")
    )
    (folder / "gateway.yaml").write_text(CONFIGURATION)
    key_file(folder)
    user = os.getuid() or IMAGE_USER
    for each in (folder, releases, *folder.iterdir()):
        os.chown(each, user, user if os.getuid() == 0 else os.getgid())
    container = DockerContainer(build_service("gateway")).with_command("--config /etc/gris/gateway.yaml")
    container.with_kwargs(
        user=str(user), read_only=True, cap_drop=["ALL"], security_opt=["no-new-privileges:true"]
    )
    container.with_volume_mapping(str(folder), "/etc/gris", "ro")
    container.with_volume_mapping(str(releases), "/var/lib/gris", "rw")
    container.waiting_for(LogMessageWaitStrategy('"address"'))
    with placed(container, network, "gateway", GATEWAY_PORT) as made:
        yield Reached(made, gina, stranger)


async def test_an_analyst_asks_and_is_told_her_history(gateway: Reached) -> None:
    """Her certificate says who pays; the gateway lists what she was shown, and the second time is free."""
    question = structured_question(TABLE, "article_id", k=8)
    async with gateway.asking(gateway.gina) as gina:
        first, second = await gina.ask(question), await gina.ask(question)
        history = [each.result.shown.release_id async for each in gina.releases()]
    assert (first.charged.information, second.charged.information) == (17, 0)
    assert first.rows == second.rows
    assert history == [first.release_id]


async def test_a_stranger_is_refused(gateway: Reached) -> None:
    """A certificate that no rule knows, whatever is asked for."""
    async with gateway.asking(gateway.stranger) as eve:
        for asked in (eve.remaining(), eve.catalog(), eve.ask(structured_question(TABLE, "article_id", k=8))):
            with pytest.raises(ServiceRefused):
                await asked


@ways
async def test_a_paid_answer_is_fetched_when_the_gateway_is_back(gateway: Reached, *, killed: bool) -> None:
    """Asked again under its id until it is answered, a question is paid for once: its result was kept."""
    question, name = structured_question(TABLE, "article_id", k=7 if killed else 6), uuid.uuid4().hex
    async with gateway.asking(gateway.gina) as gina:
        reported, before = await gina.ask(question, request_id=name), await gina.remaining()
    await take_away(gateway.placed, killed=killed)
    again = await _answered(gateway, lambda gina: gina.ask(question, request_id=name))
    # The result was kept here; for the budget the gateway has to have found the services again.
    after = await _answered(gateway, lambda gina: gina.remaining())
    assert again.rows == reported.rows
    assert [level.spent for level in after] == [level.spent for level in before]


async def _answered(gateway: Reached, ask: Callable[[AsyncGatewayClient], Awaitable[Answer]]) -> Answer:
    async with asyncio.timeout(BACK_SECONDS):
        while True:
            try:
                async with gateway.asking(gateway.gina) as gina:
                    return await ask(gina)
            except GrisError:
                await asyncio.sleep(0.2)
