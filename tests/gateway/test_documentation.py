"""What docs/applications.md shows of the gateway is what happens."""

from __future__ import annotations

import pytest

from tests.gateway.conftest import GatewayWorld
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
    assert "True" == capsys.readouterr().out.strip()
