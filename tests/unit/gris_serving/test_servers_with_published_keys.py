"""Gateway and services know callers by keys that an issuer publishes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import grpc
import pytest

from gris_serving.authorisation import Methods, Role, methods_of
from gris_serving.instrumentation import NOTHING
from gris_serving.security import Security, SecurityOptions
from tests.support.echo import SERVICE as ECHO
from tests.support.echo import EchoStub, add_echo
from tests.support.key_server import KeyServer, issuing, serving, until
from tests.support.pki import Authority, Issuer
from tests.support.world import COFACTS

AUDIENCE = "gris"
LIST = "/gris.app.v1.PrivateQueryService/ListReleases"


def jwt_of(server: KeyServer, authority: Authority, **more: Any) -> dict[str, Any]:
    """Return the section of a configuration; a JSON text is YAML, too."""
    stated = {"issuer": server.issuer, "audience": AUDIENCE, "algorithms": ["ES256"], "discover": True}
    return {**stated, "ca_file": str(authority.ca_file), **more}


def gateway_file(folder: Path, jwt: dict[str, Any], issuer: str) -> Path:
    """Write the configuration of a gateway whose services are nowhere."""
    rules = [{"claim": "iss", "equals": issuer, "prefix": ["app"], "append": "sub"}]
    path = folder / "gateway.yaml"
    configuration = {
        "listen": "127.0.0.1:0",
        "dp": {"address": "127.0.0.1:1"},
        "budget": {"address": "127.0.0.1:1"},
        "engine": {"duckdb": {"feedback": str(COFACTS)}},
        "identity": {"jwt": {**jwt, "accounts": rules}},
    }
    path.write_text(json.dumps(configuration))
    return path


def called(channel: grpc.Channel, token: str) -> tuple[grpc.StatusCode, str]:
    """Return how a call with a token ends."""
    call: Any = channel.unary_unary(LIST)
    try:
        call(b"", timeout=20, metadata=(("authorization", f"Bearer {token}"),))
    except grpc.RpcError as error:
        ended: Any = error
        return ended.code(), ended.details()
    return grpc.StatusCode.OK, ""


@pytest.mark.usefixtures("starts_processes")
def test_a_gateway_starts_without_its_issuer_and_lets_callers_in_once_it_is_there(tmp_path: Path) -> None:
    """Until then tokens are refused, and its metrics say so; to check a configuration, nobody is asked."""
    authority, key = Authority.new(tmp_path), Issuer(tmp_path, key_id="first")
    with issuing(authority, key) as server:
        port = server.server_port
        file = gateway_file(tmp_path, jwt_of(server, authority), server.issuer)
        command = [sys.executable, "-m", "gris_gateway", "--config", str(file)]
        assert 0 == subprocess.run([*command, "--validate"], check=False).returncode
        assert [] == server.asked
    command += ["--metrics-listen", "127.0.0.1:0"]
    token = key.token(AUDIENCE, iss=server.issuer, sub="ana")
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout is not None
        try:
            ready = json.loads(process.stdout.readline())

            def shown() -> str:
                with urllib.request.urlopen(f"http://{ready['metrics_address']}/metrics") as answer:
                    return str(answer.read().decode())

            with grpc.insecure_channel(ready["address"]) as channel:
                code, details = called(channel, token)
                assert (grpc.StatusCode.UNAUTHENTICATED, True) == (code, "keys of their issuer" in details)
                until(lambda: 'component="token_keys"} 0.0' in shown())
                with serving(authority.server(), port) as server:
                    server.publish(key)
                    # It is let in: a list of results needs no ledger.
                    until(lambda: grpc.StatusCode.OK is called(channel, token)[0], 90)
                until(lambda: 'component="token_keys"} 1.0' in shown())
        finally:
            process.terminate()
    logged = (tmp_path / "log").read_text()
    assert "event=keys.fetched" in logged
    assert token not in logged


async def test_a_service_keeps_fetched_keys_when_its_access_file_changes(tmp_path: Path) -> None:
    """Though the issuer is down then: new roles are no reason to refuse everybody. Another address is asked anew."""
    authority, key = Authority.new(tmp_path), Issuer(tmp_path, key_id="first")
    access = tmp_path / "access.yaml"
    with issuing(authority, key) as server:
        jwt = jwt_of(server, authority)
        token = key.token(AUDIENCE, iss=server.issuer, sub="ana", before=["spend"], after=["spend"])
        metadata = (("authorization", f"Bearer {token}"),)
        access.write_text(json.dumps({"jwt": {**jwt, "roles_claim": "before"}}))
        certificate, private = authority.server()
        options = SecurityOptions(tls_certificate=certificate, tls_key=private, access=access)
        security = Security(options, Methods("test", methods_of(ECHO, ["One", "Many"], Role.SPEND)))
        grpc_server = grpc.aio.server(interceptors=security.interceptors(NOTHING))
        add_echo(NOTHING.before(grpc_server))
        address = f"127.0.0.1:{security.bind(grpc_server, '127.0.0.1:0')}"
        await grpc_server.start()
        trusted = grpc.ssl_channel_credentials(authority.ca_file.read_bytes())
        try:
            async with grpc.aio.secure_channel(address, trusted) as channel:
                stub = EchoStub(channel)

                async def answered() -> bool:
                    try:
                        return "x" == await stub.one("x", metadata=metadata, timeout=20)
                    except grpc.aio.AioRpcError:
                        return False

                async def becomes_answered() -> None:
                    async with asyncio.timeout(20):
                        while not await answered():  # noqa: ASYNC110 - nobody says when
                            await asyncio.sleep(0.01)

                await becomes_answered()
                await asyncio.to_thread(server.shutdown)
                server.server_close()
                access.write_text(json.dumps({"jwt": {**jwt, "roles_claim": "after"}}))
                assert await answered()
                with issuing(authority, key) as other:
                    elsewhere = {**jwt, "discover": False, "keys_url": other.keys_url}
                    access.write_text(json.dumps({"jwt": {**elsewhere, "roles_claim": "before"}}))
                    await becomes_answered()
        finally:
            await grpc_server.stop(10)
