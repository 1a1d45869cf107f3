"""How much a service reads and decodes of a message, and for whom: real processes, and their memory."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.internal.encoder import _VarintBytes  # type: ignore[attr-defined]
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_health.v1 import health_pb2_grpc
from grpc_status import rpc_status

from budget_service.server.admin_service import MAX_REQUEST_BYTES as ADMIN_BYTES
from budget_service.server.service import MAX_REQUEST_BYTES as BUDGET_BYTES
from dp_service.server.process import MESSAGE_LIMIT_BYTES as DP_BYTES
from dp_service.server.process import METHODS, QUESTION_LIMIT_BYTES
from gris_serving import health
from gris_serving.authorisation import OPEN_READERS, Authorisation, Callers
from gris_serving.instrumentation import NOTHING
from pinot_connector import Credentials, Endpoint
from pinot_connector.channels import open_channel
from tests.support.pki import ISSUER, Authority, Issuer
from tests.support.proc import require_proc
from tests.support.processes import budget_command, dp_command, process
from tests.support.raw_connection import raw_connection
from tests.support.rings import needs

AUDIENCE = "gris-services"
CALLERS = 6

GET_BUDGET = "/gris.budget.v1.BudgetService/GetBudget"
SET_LIMITS = "/gris.budget.v1.BudgetAdminService/SetLimits"
TRANSLATE = "/gris.dp.v1.DpService/TranslateQuery"
ADD_NOISE_UNARY = "/gris.dp.v1.DpService/AddNoiseUnary"
ADD_NOISE = "/gris.dp.v1.DpService/AddNoise"
HEALTH = "/grpc.health.v1.Health/Check"


@dataclass(frozen=True)
class Running:
    """A service as a process."""

    address: str
    pid: str

    def peak_mebibytes(self) -> float:
        """Return the most memory that it has held since `forget_peak`."""
        require_proc()
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024

    def forget_peak(self) -> None:
        """Let the peak be what the process holds now."""
        require_proc()
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")


@dataclass(frozen=True)
class Services:
    """Services that ask for a token and for no certificate, and the credentials of a stranger and of a reader."""

    by_method: dict[str, Running]
    stranger: Credentials
    reader: Credentials


@pytest.fixture(scope="module")
@needs("process")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """Run both services with TLS of the server's side only."""
    folder = tmp_path_factory.mktemp("limits")
    authority, issuer = Authority.new(folder), Issuer(folder)
    (folder / "access.yaml").write_text(
        f"jwt: {{key_file: {issuer.key_file}, algorithms: [ES256], issuer: {ISSUER}, audience: {AUDIENCE}}}"
    )
    certificate, key = authority.server()
    words = ["--tls-certificate", certificate, "--tls-key", key, "--access", folder / "access.yaml"]
    admin = ["--admin-listen", "127.0.0.1:0"]
    token = issuer.token_file(AUDIENCE, sub="reader", gris_roles=["read", "spend", "admin"])
    with (
        process("dp_service", [*dp_command(folder), *words], folder / "dp.log") as dp,
        process("budget_service", [*budget_command(folder), *words, *admin], folder / "budget.log") as budget,
    ):
        noise = Running(dp["address"], dp["pid"])
        yield Services(
            {
                GET_BUDGET: Running(budget["address"], budget["pid"]),
                SET_LIMITS: Running(budget["admin_address"], budget["pid"]),
                **dict.fromkeys((TRANSLATE, ADD_NOISE_UNARY, ADD_NOISE), noise),
            },
            Credentials(authority.ca_file),
            Credentials(authority.ca_file, token_file=token),
        )


def nested(size: int, *fields: int) -> bytes:
    """Return a message of `size` bytes whose last field, inside the others, stands there empty again and again."""
    content = bytes((fields[-1] << 3 | 2, 0)) * ((size - 5 * len(fields)) // 2)
    for field in reversed(fields[:-1]):
        content = bytes((field << 3 | 2,)) + _VarintBytes(len(content)) + content
    return content


# What is empty here takes a string or a message each when it is decoded.
HOSTILE = {
    GET_BUDGET: (1, 1),
    SET_LIMITS: (1,),
    TRANSLATE: (1, 1, 2),
    ADD_NOISE_UNARY: (2, 1),
    ADD_NOISE: (2, 1),
}
TAKEN = {GET_BUDGET: BUDGET_BYTES, SET_LIMITS: ADMIN_BYTES}


async def ended(
    address: str, credentials: Credentials, method: str, message: bytes, compression: grpc.Compression | None
) -> grpc.aio.AioRpcError | None:
    """Return how a call with this message ends, None if it is answered."""
    async with open_channel(Endpoint(address, credentials)) as channel:
        try:
            if method == ADD_NOISE:
                many: Any = channel.stream_stream(method)
                await many(iter([message]), timeout=60, compression=compression).read()
            else:
                call: Any = channel.unary_unary(method)
                await call(message, timeout=60, compression=compression)
        except grpc.aio.AioRpcError as error:
            return error
    return None


async def attack(
    running: Running,
    credentials: Credentials,
    method: str,
    message: bytes,
    compression: grpc.Compression | None = None,
) -> tuple[float, set[grpc.StatusCode | None]]:
    """Let several callers send a message at once; return by how many MiB the service grew, and how the calls ended."""
    running.forget_peak()
    before = running.peak_mebibytes()
    calls = [ended(running.address, credentials, method, message, compression) for _ in range(CALLERS)]
    errors = await asyncio.gather(*calls)
    return running.peak_mebibytes() - before, {None if each is None else each.code() for each in errors}


@pytest.mark.parametrize("method", HOSTILE)
@pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip])
async def test_messages_of_strangers_take_hardly_any_memory(
    services: Services, method: str, compression: grpc.Compression | None
) -> None:
    """Six callers without a token send the largest message that is taken, and one of 16 MiB: nothing is decoded."""
    running = services.by_method[method]
    # Code that runs for the first time takes memory, too.
    await attack(running, services.stranger, method, nested(1000, *HOSTILE[method]))
    for size in {TAKEN.get(method, DP_BYTES), DP_BYTES}:
        message = nested(size - 64, *HOSTILE[method])
        grown, _ = await attack(running, services.stranger, method, message, compression)
        assert grown < 24, f"{size} bytes"


@pytest.mark.parametrize("method", HOSTILE)
async def test_a_request_that_a_stranger_never_finishes_is_refused_at_once(
    services: Services, method: str
) -> None:
    """Nothing of it is kept: without its last byte the call has ended."""
    running, trusted = services.by_method[method], services.stranger.ca_file
    assert trusted is not None

    def attack() -> str:
        with raw_connection(running.address, trusted=Path(trusted)) as connection:
            call = connection.begin(method)
            connection.send([call], nested(1000, *HOSTILE[method]), withheld=1)
            return connection.status(call)

    assert str(grpc.StatusCode.UNAUTHENTICATED.value[0]) == await asyncio.to_thread(attack)


@pytest.mark.slow
async def test_few_strangers_at_a_time_may_send_a_request_of_health(tmp_path: Path) -> None:
    """Of 60 requests without their last byte, the oldest are refused by name; a whole one is answered."""
    (tmp_path / "access.yaml").write_text("certificates: {'dns:reader.example.org': [read]}")
    callers = Callers(tmp_path / "access.yaml")
    server = grpc.aio.server(interceptors=(Authorisation(METHODS, callers, NOTHING, reads_first=False),))
    served_health = health.Health()
    health_pb2_grpc.add_HealthServicer_to_server(served_health, server)
    served_health.report((health.OVERALL,), serving=True)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()

    def attack() -> list[str]:
        with raw_connection(address) as connection:
            streams = [connection.begin(HEALTH) for _ in range(60)]
            connection.send(streams, b"xxx", withheld=1)
            while connection.listen(1.0):
                pass
            whole = connection.begin(HEALTH)
            connection.send([whole], b"")
            return [connection.status(each) for each in (*streams[: 60 - OPEN_READERS], whole)]

    refused = str(grpc.StatusCode.INVALID_ARGUMENT.value[0])
    assert [*[refused] * (60 - OPEN_READERS), "0"] == await asyncio.to_thread(attack)
    await server.stop(None)


@pytest.mark.parametrize("method", [GET_BUDGET, SET_LIMITS])
async def test_a_known_caller_has_no_larger_messages(services: Services, method: str) -> None:
    """What every request fits into is the limit; gRPC refuses a larger one and says so."""
    running, most = services.by_method[method], TAKEN[method]
    for size, refused in ((most - 64, None), (most + 64, grpc.StatusCode.RESOURCE_EXHAUSTED)):
        error = await ended(running.address, services.reader, method, nested(size, *HOSTILE[method]), None)
        assert error is not None
        if refused is None:
            assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        else:
            assert (refused, True) == (error.code(), str(most) in (error.details() or ""))


async def test_a_question_is_not_decoded_if_it_is_larger_than_any_question(services: Services) -> None:
    """A histogram or a plan may be larger, so the limit of the server is not that of a question."""
    message = nested(QUESTION_LIMIT_BYTES + 64, *HOSTILE[TRANSLATE])
    error = await ended(services.by_method[TRANSLATE].address, services.reader, TRANSLATE, message, None)
    failed: Any = error
    info, status = ErrorInfo(), rpc_status.from_call(failed)
    assert status is not None
    assert status.details[0].Unpack(info)
    assert ("gris.dp", "REQUEST_TOO_LARGE") == (info.domain, info.reason)
    assert str(QUESTION_LIMIT_BYTES) in status.message
