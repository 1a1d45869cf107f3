"""The trace of a question that an outsider asks: one from the gateway on, and none of the outsider's choosing."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from gris_api.app.v1 import app_pb2

from pinot_connector.channels import open_channel
from pinot_connector.endpoints import Endpoint
from tests.support.collector import ENDPOINT, collecting
from tests.support.gateways import stub_of, write_configuration
from tests.support.pki import Authority, Issuer, uri
from tests.support.processes import budget_command, dp_command, process
from tests.support.world import write_small

THEIRS = "0af7651916cd43dd8448eb211c80319c"


async def asked(address: str, authority: Authority) -> None:
    """Ask as an outsider who names a trace, and state and baggage with it."""
    ana = authority.client(uri("spiffe://example.org/ana"), file="ana")
    said = (("traceparent", f"00-{THEIRS}-b7ad6b7169203331-01"), ("tracestate", "v=1"), ("baggage", "w=1"))
    async with open_channel(Endpoint(address, ana)) as channel:
        await stub_of(channel).GetCatalog(app_pb2.GetCatalogRequest(), metadata=said, timeout=20)


@pytest.mark.usefixtures("starts_processes")
async def test_an_outsiders_trace_ends_at_the_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """dp_service's span belongs to the gateway's call, whose trace is its own and links to the outsider's."""
    authority, issuer = Authority.new(tmp_path), Issuer(tmp_path)
    for name in ("small", "wide"):
        write_small(tmp_path / f"{name}.parquet", 10)
    with collecting() as collector:
        monkeypatch.setenv(ENDPOINT, collector.address)
        with ExitStack() as opened:
            log = tmp_path / "log"
            dp, budget = (
                opened.enter_context(process(module, words(tmp_path), log))["address"]
                for module, words in (("dp_service", dp_command), ("budget_service", budget_command))
            )
            config = write_configuration(tmp_path, authority, issuer, dp, budget)
            ready = opened.enter_context(process("gris_gateway", ["--config", config], log))
            await asked(ready["address"], authority)
    (outer,) = (each for each in collector.spans("gateway") if each.name.endswith("QueryService/GetCatalog"))
    (inner,) = (span for span in collector.spans("dp_service") if span.name.endswith("/GetCatalog"))
    (between,) = (span for span in collector.spans("gateway") if span.span_id == inner.parent_span_id)
    assert (b"", [THEIRS]) == (outer.parent_span_id, [link.trace_id.hex() for link in outer.links])
    assert THEIRS != outer.trace_id.hex()
    assert {outer.trace_id} == {between.trace_id, inner.trace_id}
    assert outer.span_id == between.parent_span_id
    assert ["", "", ""] == [outer.links[0].trace_state, between.trace_state, inner.trace_state]
