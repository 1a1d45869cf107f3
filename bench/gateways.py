"""Gateways as processes, whose engine answers at once, and callers that ask them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import grpc
from gris_api.app.v1 import app_pb2, app_pb2_grpc
from gris_api.dp.v1 import question_pb2

from bench.tables import Table
from tests.support.pki import ISSUER, Issuer
from tests.support.processes import process
from tests.unit.gris_gateway.token_world import AUDIENCE


@contextmanager
def running_gateway(
    name: str, folder: Path, table: Table, *, dp: str, budget: str, faces: Sequence[str] = ()
) -> Iterator[dict[str, str]]:
    """Runs a gateway while the block runs, and gives its `address` and its `pid`; `issuer.pem` is in the folder.

    The address of each face, such as `broker`, is given as `broker_address`.
    """
    config = {
        "listen": "127.0.0.1:0",
        "dp": {"address": dp},
        "budget": {"address": budget},
        "engine": {"duckdb": {table.name: str(table.parquet)}},
        "identity": {
            "jwt": {
                "key_file": str(folder / "issuer.pem"),
                "algorithms": ["ES256"],
                "issuer": ISSUER,
                "audience": AUDIENCE,
                "accounts": [{"claim": "iss", "equals": ISSUER, "prefix": ["bench"], "append": "sub"}],
            }
        },
        "limits": {"per_second": 10_000, "burst": 10_000, "concurrent": 1000, "waiting": 1000},
        # A gateway that is given little CPU is slow to hear what has long been said.
        "timeouts": {"budget_silence": 30, "budget_attempt": 20, "budget": 30},
        **{face: {"listen": "127.0.0.1:0"} for face in faces},
    }
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(config))
    with process("bench.stub_gateway", ["--config", path], folder / f"{name}.log") as running:
        yield running


class Caller:
    """Asks a gateway, known by a token of its own; one token is used for a few minutes."""

    def __init__(self, stub: app_pb2_grpc.PrivateQueryServiceAsyncStub, issuer: Issuer, name: str) -> None:
        self._stub = stub
        token = issuer.token(AUDIENCE, sub=name)
        self._metadata = (("authorization", f"Bearer {token}"),)

    async def ask(self, question: question_pb2.Question) -> None:
        """Asks, and reads the whole answer."""
        request = app_pb2.AskRequest(question=question)
        async for _ in self._stub.Ask(request, metadata=self._metadata, timeout=60):
            pass


@asynccontextmanager
async def calling(address: str, issuer: Issuer, name: str) -> AsyncIterator[Caller]:
    """Gives a caller of the gateway at an address."""
    async with grpc.aio.insecure_channel(address) as channel:
        yield Caller(app_pb2_grpc.PrivateQueryServiceStub(channel), issuer, name)  # type: ignore[arg-type]
