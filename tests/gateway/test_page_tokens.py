"""The programs on the pages of the gateway's RPCs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from gris_api.app.v1 import app_pb2

from tests.gateway.conftest import GatewayWorld
from tests.support.pki import uri

EXAMPLES = Path(__file__).parents[2] / "examples" / "rpc" / "gateway"
RPCS = [method.name for method in app_pb2.DESCRIPTOR.services_by_name["PrivateQueryService"].methods]


def program(rpc: str) -> Path:
    """Return the program of an RPC's page."""
    return EXAMPLES / f"{re.sub(r'(?<!^)(?=[A-Z])', '_', rpc).lower()}.py"


def test_every_rpc_has_a_program_and_every_program_an_rpc() -> None:
    """No page is without its program, and no program is left over."""
    assert {program(each) for each in RPCS} == set(EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("rpc", RPCS)
def test_the_program_of_a_page_runs(
    rpc: str, gateway: GatewayWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A reader who copies the program gets an answer, with a certificate that the gateway knows."""
    ana = gateway.authority.client(uri("spiffe://example.org/ana"), file="ana-pages")
    monkeypatch.setenv("GRIS_GATEWAY", gateway.address)
    for name, path in (("CA", ana.ca_file), ("CERTIFICATE", ana.certificate_file), ("KEY", ana.key_file)):
        monkeypatch.setenv(f"GRIS_{name}_FILE", str(path))
    called: dict[str, object] = {}
    # The programs ask the gateway of docs/gateway.md, whose table has another name than that of these tests.
    source = program(rpc).read_text().replace("cofacts_feedback", "feedback")
    exec(compile(source, program(rpc).name, "exec"), called)  # noqa: S102 - our own page
    assert capsys.readouterr().out.strip()
    assert hasattr(called["service"], rpc)
