"""Known domains that are much larger than what is present of them."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from gris_api.dp.v1 import dp_pb2

from pinot_connector import Mechanism, PrivateResult, Timeouts
from pinot_connector.dp_service_client import MAX_UNARY_BYTES, DpServiceClient
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.base import ColumnType, Element, EngineAnswer, ExpectedColumn
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import PlanExpired, ServiceUnavailable
from tests.support.clients import blocking_client_of
from tests.support.embedded import embedded
from tests.support.relay import relayed
from tests.support.rings import needs
from tests.support.world import BUDGET, World

ELEMENTS = 100_000

_POLICY = """
epsilon_per: 8
delta: 1e-10
tables:
  large:
    member: member_id
    measures: {{distinct_members: true}}
    columns:
      member_id: {{type: int64}}
      element: {{type: string, group_by: true, delta: 1, domain: [{domain}]}}
"""


def _element(number: int) -> str:
    """Returns 32 characters."""
    return base64.b64encode(hashlib.sha256(str(number).encode()).digest()[:24]).decode()


@pytest.fixture(scope="module")
@needs("process")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedServices, DuckDBEngine]]:
    """Services whose policy knows 100,000 elements, and data in which every second one is present."""
    directory = tmp_path_factory.mktemp("large")
    # Text without a pattern, of which no compression makes a small plan.
    elements = [_element(number) for number in range(ELEMENTS)]
    domain = ", ".join(f"'{element}'" for element in elements)
    (directory / "present.csv").write_text("\n".join(["element", *elements[::2]]))
    with duckdb.connect() as connection:
        rows = f"read_csv('{directory / 'present.csv'}', all_varchar = true, header = true)"
        query = f"SELECT row_number() OVER () AS member_id, element FROM {rows}"
        connection.execute(f"COPY ({query}) TO '{directory / 'large.parquet'}' (FORMAT parquet)")
    engine = DuckDBEngine({"large": directory / "large.parquet"})
    services = embedded(directory, _POLICY.format(domain=domain), BUDGET)
    with services:
        yield services, engine
    engine.close()


async def test_a_large_domain_with_half_of_it_present_is_streamed(
    large: tuple[EmbeddedServices, DuckDBEngine], tmp_path: Path
) -> None:
    """The histogram alone is below 3 MiB, and the plan, which holds the domain, makes the request larger."""
    services, engine = large

    def ask(address: str) -> PrivateResult:
        with blocking_client_of(address, engine) as client:
            return client.histogram("large", "element")

    async with relayed(World(services.dp_address, services.budget_address, tmp_path)) as relay:
        result = await asyncio.to_thread(ask, relay.address)
    assert (Mechanism.KNOWN_LAP, ELEMENTS) == (result.mechanism, len(result.rows))
    assert ("AddNoise" in relay.methods, "AddNoiseUnary" in relay.methods) == (True, False)


TEXT = (ExpectedColumn("element", ColumnType.STRING),)


def _request(plan_bytes: int) -> tuple[dp_pb2.ReleaseHeader, EngineAnswer]:
    values: list[Element] = [f"{number:064}" for number in range(20_000)]
    header = dp_pb2.ReleaseHeader(plan=b"p" * plan_bytes, data_version="v", confidence=0.95)
    return header, EngineAnswer((values,), [1] * len(values), "v")


def _whole_bytes(plan_bytes: int) -> int:
    header, answer = _request(plan_bytes)
    request = dp_pb2.AddNoiseUnaryRequest(header=header)
    request.histogram.columns.add(name="element").strings.values.extend(map(str, answer.elements[0]))
    request.histogram.counts.extend(answer.counts)
    return request.ByteSize()


@pytest.mark.parametrize(("beyond", "method"), [(0, "AddNoiseUnary"), (1, "AddNoise")])
async def test_the_whole_request_decides_how_it_is_sent(world: World, beyond: int, method: str) -> None:
    """At exactly 3 MiB one message is sent, and dp_service finds that the plan is none; a byte more is streamed."""
    guess = MAX_UNARY_BYTES - _whole_bytes(2**20) + 2**20
    plan_bytes = guess + MAX_UNARY_BYTES - _whole_bytes(guess)
    assert MAX_UNARY_BYTES == _whole_bytes(plan_bytes)
    header, answer = _request(plan_bytes + beyond)
    async with relayed(world) as relay:
        calls = DpServiceClient(relay.address, Timeouts())
        # gRPC may lose the refusal of a stream that is still being sent.
        with pytest.raises(PlanExpired if not beyond else (PlanExpired, ServiceUnavailable)):
            await calls.add_noise(header, TEXT, answer)
        await calls.close()
    assert [method] == relay.methods
