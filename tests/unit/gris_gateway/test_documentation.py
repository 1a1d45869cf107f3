"""What docs/applications.md and docstrings show of the gateway is what happens."""

from __future__ import annotations

import pytest

from pinot_connector import AsyncGatewayClient, Endpoint, GatewayClient
from pinot_connector.questions import structured_question
from tests.support.docstring_examples import FRONT_DOOR, run_examples
from tests.support.gateways import GatewayWorld
from tests.support.pages import blocks, section
from tests.support.pki import uri


def test_a_lost_answer_is_fetched_by_its_request_id(
    gateway: GatewayWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same release again, for nothing, in a program without an event loop."""
    ana = gateway.authority.client(uri("spiffe://example.org/ana"), file="ana-applications")
    monkeypatch.setenv("GRIS_GATEWAY", f"gris://{gateway.address}")
    for name, path in (("CA", ana.ca_file), ("CERTIFICATE", ana.certificate_file), ("KEY", ana.key_file)):
        monkeypatch.setenv(f"GRIS_{name}_FILE", str(path))
    (program,) = blocks(section("applications.md", "## Through the gateway"), "python")
    program = program.replace("cofacts_feedback", "feedback")
    exec(compile(program, "docs/applications.md", "exec"), {})  # noqa: S102 - our own page
    assert "True 0" == capsys.readouterr().out.strip()


@pytest.mark.parametrize("name", FRONT_DOOR)
async def test_the_examples_of_the_sync_client_hold(gateway: GatewayWorld, name: str) -> None:
    """They run as they stand, in an account of their own."""
    with GatewayClient(Endpoint(gateway.address, gateway.analyst())) as client:
        assert await run_examples(
            getattr(GatewayClient, name), client=client, structured_question=structured_question
        )


@pytest.mark.parametrize("name", [name for name in FRONT_DOOR if name in vars(AsyncGatewayClient)])
async def test_the_examples_of_the_async_client_hold(gateway: GatewayWorld, name: str) -> None:
    """They run as they stand, with their `await`."""
    async with AsyncGatewayClient(Endpoint(gateway.address, gateway.analyst())) as client:
        assert await run_examples(
            getattr(AsyncGatewayClient, name), client=client, structured_question=structured_question
        )
