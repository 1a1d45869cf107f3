"""A gateway that knows its callers by certificates, and accepts no tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from gris_api.app.v1 import app_pb2

from tests.gateway.conftest import GatewayWorld, stub_of, write_configuration
from tests.support.pki import Authority, Issuer, uri
from tests.support.processes import process


@pytest.fixture
def certificates_alone(gateway: GatewayWorld, tmp_path: Path) -> Iterator[GatewayWorld]:
    """Run a gateway whose configuration has no `identity.jwt`."""
    for name in ("wide.parquet", "small.parquet"):
        (tmp_path / name).symlink_to(gateway.folder / name)
    authority, issuer = Authority.new(tmp_path), Issuer(tmp_path)
    config = write_configuration(tmp_path, authority, issuer, gateway.dp, gateway.budget)
    text = config.read_text()
    # Agents are known by tokens only.
    ends = text[text.index("history:") : text.index("mcp:")] + text[text.index("limits:") :]
    config.write_text(text[: text.index("  jwt:")] + ends)
    with process("gris_gateway", ["--config", config], tmp_path / "log") as ready:
        yield replace(gateway, address=ready["address"], authority=authority, issuer=issuer, folder=tmp_path)


async def test_a_token_is_refused_and_not_ignored(certificates_alone: GatewayWorld) -> None:
    """Its sender means the token's account, and the certificate's would pay."""
    ana = certificates_alone.authority.client(uri("spiffe://example.org/ana"), file="ana")
    remaining = app_pb2.GetRemainingRequest()
    async with certificates_alone.channel(ana) as channel:
        for header in ("Bearer " + certificates_alone.issuer.token("x", sub="bob"), "Basic YTpi"):
            metadata = [("authorization", header)]
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stub_of(channel).GetRemaining(remaining, metadata=metadata, timeout=5)
            assert grpc.StatusCode.UNAUTHENTICATED is refused.value.code()
        answer = await stub_of(channel).GetRemaining(remaining, timeout=5)
    assert ["app", "acme", "ana"] == answer.account.path
