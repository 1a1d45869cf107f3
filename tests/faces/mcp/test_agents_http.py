"""What the gateway's MCP server refuses before it reads a request, and what it shares with other callers."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest

from gris_gateway.configuration import GatewayConfiguration
from gris_gateway.face_admission import FaceAdmission
from gris_gateway.face_settings import McpSettings
from gris_gateway.faces.mcp.http import McpApplication
from gris_gateway.http_faces import HttpServer, application_of
from gris_gateway.limits import DEFAULT_LIMITS
from gris_serving.admitting import Sender
from gris_serving.documents import read_document
from gris_serving.http_requests import HttpRules
from gris_serving.reloading_files import SecurityError
from pinot_connector import AsyncGatewayClient, Endpoint
from pinot_connector.gateway_calls import GatewayCalls
from tests.support.agents import MODERN, over_http, trusting
from tests.support.gateways import AUDIENCE, GatewayWorld, write_configuration
from tests.support.pki import Authority, Issuer
from tests.support.processes import process
from tests.support.world import World

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPTED = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.fixture
async def http(gateway: GatewayWorld) -> AsyncIterator[httpx2.AsyncClient]:
    """Return a client of the MCP server that trusts it."""
    verify = trusting(gateway.authority.ca_file)
    async with httpx2.AsyncClient(
        base_url=f"https://{gateway.mcp_address}", verify=verify, headers=ACCEPTED
    ) as client:
        yield client


def bearer(gateway: GatewayWorld, audience: str = AUDIENCE, **claims: Any) -> dict[str, str]:
    """Return the header of a token."""
    return {"Authorization": f"Bearer {gateway.issuer.token(audience, **claims)}"}


async def test_only_tokens_of_this_audience_are_answered(
    gateway: GatewayWorld, http: httpx2.AsyncClient
) -> None:
    """No token, another audience, an expired one, two of them, one of nobody's: refused by their status and by name."""
    good = bearer(gateway, org="acme", sub="door")
    assert 200 == (await http.post("/mcp", json=LIST, headers=good)).status_code
    for headers, status, reason in (
        ({}, 401, "token"),
        ({"Authorization": "Basic YTpi"}, 401, "Bearer"),
        ({"Authorization": "Bearer nonsense"}, 401, "not valid"),
        (bearer(gateway, "another", org="acme", sub="door"), 401, "audience"),
        (bearer(gateway, org="acme", sub="door", exp=1), 401, "expired"),
        (bearer(gateway, org="nowhere", sub="door"), 403, "account"),
    ):
        answer = await http.post("/mcp", json=LIST, headers=headers)
        assert status == answer.status_code, headers
        assert reason in answer.json()["error"]
        assert ("Bearer" == answer.headers.get("www-authenticate")) == (status == 401)
    twice = [*good.items(), *bearer(gateway, org="acme", sub="other").items()]
    assert 401 == (await http.post("/mcp", json=LIST, headers=[*ACCEPTED.items(), *twice])).status_code


async def test_a_request_that_takes_longer_than_its_token_is_refused(
    gateway: GatewayWorld, http: httpx2.AsyncClient
) -> None:
    """At both ports of HTTP, though the token was good when the body began, and what was asked is cheap."""
    # Clocks may differ by half a minute.
    ends = int(time.time()) + 3
    good = bearer(gateway, org="acme", sub="door", exp=ends - 30)

    async def slow(content: bytes) -> AsyncIterator[bytes]:
        yield content[:5]
        await asyncio.sleep(ends - time.time() + 0.1)
        yield content[5:]

    in_time, late, of_broker = await asyncio.gather(
        http.post("/mcp", json=LIST, headers=good),
        http.post("/mcp", content=slow(json.dumps(LIST).encode()), headers=good),
        http.post(
            f"http://{gateway.broker_address}/query/sql", content=slow(b'{"sql": "SELECT 1"}'), headers=good
        ),
    )
    assert (200, 401, 200) == (in_time.status_code, late.status_code, of_broker.status_code)
    assert "expired" in late.json()["error"]
    assert ["the token has expired"] == [each["message"] for each in of_broker.json()["exceptions"]]


async def test_pages_of_strangers_cannot_use_a_browser_as_an_agent(
    gateway: GatewayWorld, http: httpx2.AsyncClient
) -> None:
    """Another Host, as after DNS rebinding, and another Origin are refused with the best of tokens."""
    good = bearer(gateway, org="acme", sub="door")
    for headers, status in (
        ({"Host": "attacker.example.org"}, 421),
        ({"Host": "127.0.0.1.attacker.example.org:80"}, 421),
        ({"Origin": "https://attacker.example.org"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://pages.example.org"}, 200),
        ({"Host": "localhost:1"}, 200),
    ):
        answer = await http.post("/mcp", json=LIST, headers=good | headers)
        assert status == answer.status_code, headers


async def test_what_is_no_request_is_refused(gateway: GatewayWorld, http: httpx2.AsyncClient) -> None:
    """Other methods and paths, requests beyond the limit, and what is no JSON; none is an error of the server."""
    good = bearer(gateway, org="acme", sub="door")
    assert 405 == (await http.get("/mcp", headers=good)).status_code
    assert 405 == (await http.delete("/mcp", headers=good)).status_code
    assert 404 == (await http.post("/", json=LIST, headers=good)).status_code
    assert 413 == (await http.post("/mcp", content=b" " * (2 * 2**20 + 1), headers=good)).status_code

    async def unstated() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b" " * 2**20

    assert 413 == (await http.post("/mcp", content=unstated(), headers=good)).status_code
    for content in (b"", b"{", b"[]", b"7", b"\xff\xfe", b"[" * 100_000, b'{"jsonrpc": "2.0", "id": NaN}'):
        refused = await http.post("/mcp", content=content, headers=good)
        assert 400 == refused.status_code, content[:30]
    assert 200 == (await http.post("/mcp", json=LIST, headers=good)).status_code


async def test_numbers_that_json_does_not_have_are_no_numbers(
    gateway: GatewayWorld, http: httpx2.AsyncClient
) -> None:
    """NaN and Infinity, which Python's own parser takes, name the field that they were meant for."""
    good = bearer(gateway, org="acme", sub="door")
    for number in ("NaN", "Infinity", "1e400"):
        arguments = f'{{"sql": "SELECT 1", "max_cost": {number}}}'
        params = f'{{"name": "ask", "arguments": {arguments}}}'
        content = f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {params}}}'
        answer = await http.post("/mcp", content=content, headers=good)
        assert '\\"field\\":\\"max_cost\\"' in answer.text, (number, answer.text)


@pytest.mark.slow
async def test_a_connection_that_sends_no_whole_request_is_closed() -> None:
    """One that sends nothing, half a header, or half a second request: after the time for a handshake, and no other."""
    limits = replace(DEFAULT_LIMITS, handshake_seconds=0.5, grace_seconds=1)
    settings = McpSettings(listen="127.0.0.1:0")
    face = application_of(settings, cast(FaceAdmission, Waiting()), limits)
    server = HttpServer("mcp", settings.listen, None, face, limits)
    refused = b"POST /mcp HTTP/1.1\r\nHost: elsewhere\r\nContent-Length: 0\r\n\r\n"
    async with server.serving() as address:
        port = int(address.rpartition(":")[2])
        for sent, status in ((b"", b""), (b"POST /mcp HT", b""), (refused + b"POST /mc", b"421")):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            answer = await asyncio.wait_for(reader.read(), 20)
            assert status in answer, (sent, answer)
            writer.close()


async def test_agents_share_the_limits_of_their_account(world: World, tmp_path: Path) -> None:
    """Calls by gRPC count against what the same caller may call by MCP, and those of others do not."""
    authority, issuer = Authority.new(tmp_path), Issuer(tmp_path)
    (tmp_path / "small.parquet").symlink_to(world.tables["small"])
    (tmp_path / "wide.parquet").symlink_to(world.tables["wide"])
    path = write_configuration(tmp_path, authority, issuer, world.dp, world.budget)
    limits = "limits: {per_second: 0.001, burst: 3, concurrent: 4, waiting: 0}"
    text = path.read_text().replace("limits: {per_second: 200, burst: 400, concurrent: 64}", limits)
    path.write_text(text)
    known = authority.client(file="known")
    token = issuer.token_file(AUDIENCE, "limited", org="acme", sub="limited")
    with process("gris_gateway", ["--config", path], tmp_path / "gateway.log") as ready:
        credentials = type(known)(known.ca_file, known.certificate_file, known.key_file, token)
        async with AsyncGatewayClient(Endpoint(ready["address"], credentials)) as client:
            for _ in range(3):
                await client.remaining()
        for name, refused in (("limited", True), ("other", False)):
            shown = issuer.token(AUDIENCE, org="acme", sub=name)
            async with over_http(ready["mcp_address"], shown, authority.ca_file, MODERN) as agent:
                if refused:
                    failure = await agent.failure("budget")
                    assert ("unavailable", True) == (failure["error"], "too many calls" in failure["message"])
                else:
                    assert (await agent.call("budget"))["budget"]
    assert shown not in (tmp_path / "gateway.log").read_text()


class Waiting:
    """RPCs that are never answered, and record that they were cancelled."""

    def __init__(self) -> None:
        self.began, self.cancelled = asyncio.Event(), asyncio.Event()

    async def GetRemaining(self, *_: Any, **__: Any) -> Any:  # noqa: N802
        """Wait for ever."""
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()

    @asynccontextmanager
    async def admitted(self, sender: Sender, account: str | None = None) -> AsyncIterator[AsyncGatewayClient]:
        """Admit everybody."""
        del sender, account
        yield AsyncGatewayClient(cast(GatewayCalls, self))

    def require_known(self, sender: Sender) -> None:
        """Know everybody."""


@pytest.mark.parametrize("version", ["2025-06-18", MODERN])
async def test_a_question_is_cancelled_when_its_agent_leaves(version: str) -> None:
    """In both eras of the protocol, the call to the gateway ends when the connection does."""
    waiting = Waiting()
    application = McpApplication(waiting, HttpRules())
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "budget", "arguments": {}} | ({"_meta": meta} if version == MODERN else {})
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = {
        **ACCEPTED,
        "Host": "localhost",
        "MCP-Protocol-Version": version,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "budget",
    }
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }
    messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    messages.put_nowait({"type": "http.request", "body": body, "more_body": False})
    async with application.running():
        answering = asyncio.create_task(application(scope, messages.get, send))
        await asyncio.wait_for(waiting.began.wait(), 20)
        messages.put_nowait({"type": "http.disconnect"})
        await asyncio.wait_for(waiting.cancelled.wait(), 20)
        await asyncio.wait_for(answering, 20)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("  jwt:", "  xjwt:"), "identity"),
        (("mcp: {listen: 127.0.0.1:0,", "mcp: {listen: 0.0.0.0:0,"), "mcp.hosts"),
        (("origins: [", "origins: ['*', "), "mcp.origins"),
        (("origins: [", "hosts: ['Not A Host'], origins: ["), "mcp.hosts"),
        (("mcp: {", "mcp: {token_file: x, "), "mcp.token_file"),
    ],
)
def test_a_configuration_that_would_open_the_server_is_refused(
    tmp_path: Path, change: tuple[str, str], problem: str
) -> None:
    """Beyond this machine it needs the names that it is called by; no origin is a wildcard."""
    path = write_configuration(
        tmp_path, Authority.new(tmp_path), Issuer(tmp_path), "127.0.0.1:1", "127.0.0.1:2"
    )
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(SecurityError, match=problem):
        read_document(path, GatewayConfiguration).require_protected()


def test_agents_without_tokens_or_tls_are_refused(tmp_path: Path) -> None:
    """By certificates alone nobody is known over HTTP, and in plain text nobody is served beyond this machine."""
    path = write_configuration(
        tmp_path, Authority.new(tmp_path), Issuer(tmp_path), "127.0.0.1:1", "127.0.0.1:2"
    )
    configuration = read_document(path, GatewayConfiguration)
    mcp = configuration.mcp
    assert mcp is not None
    by_certificates = configuration.identity.model_copy(update={"jwt": None})
    with pytest.raises(SecurityError, match=r"mcp: expected identity\.jwt"):
        configuration.model_copy(update={"identity": by_certificates}).require_protected()
    away = mcp.model_copy(update={"listen": "0.0.0.0:0", "tls": None, "hosts": ["a.example.org"]})
    by_tokens = configuration.identity.model_copy(update={"certificates": {}})
    with pytest.raises(SecurityError, match=r"mcp\.listen"):
        configuration.model_copy(update={"mcp": away, "tls": None, "identity": by_tokens}).require_protected()
