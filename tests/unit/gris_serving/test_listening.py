"""An address that cannot be listened on is named with the reason, and nothing of gRPC's reaches standard error."""

from __future__ import annotations

import asyncio
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gris_serving.listening import ListeningError, bound_socket, require_free
from tests.support.paths import ROOT
from tests.support.rings import needs


@pytest.fixture
def taken() -> Iterator[str]:
    """An address on which another program listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "localhost:0", "[::1]:0"])
def test_a_free_address_may_be_listened_on(listen: str) -> None:
    """And is free afterwards as well."""
    require_free(listen)
    with bound_socket("a face", listen) as listening:
        assert listening.getsockname()[1] != 0


def test_an_address_in_use_is_refused(taken: str) -> None:
    """With the operating system's reason."""
    with pytest.raises(ListeningError, match="address already in use"):
        require_free(taken)


@pytest.mark.parametrize(
    ("listen", "reason"), [("192.0.2.1:0", "cannot assign"), ("no.such.host.invalid:0", "no such host")]
)
def test_an_address_that_is_none_of_this_machine_is_refused(listen: str, reason: str) -> None:
    """An address of nobody, and a name of nobody."""
    with pytest.raises(ListeningError, match=reason):
        require_free(listen)


async def test_no_part_of_an_answer_waits_for_another_to_be_acknowledged() -> None:
    """Connections that asyncio accepts send at once what is written."""
    delays: list[int] = []

    def accepted(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        delays.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async with await asyncio.start_server(accepted, sock=bound_socket("broker", "127.0.0.1:0")) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        await reader.read()
        writer.close()
    assert delays == [1]


@pytest.fixture
@needs("process")
def key(tmp_path: Path) -> Path:
    """A noise key; a test that starts a service needs processes."""
    path = tmp_path / "noise.key"
    path.write_text(secrets.token_hex(32))
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    "command",
    [
        (
            "dp_service",
            "--policy",
            "{root}/examples/policy.yaml",
            "--key-file",
            "{key}",
            "--listen",
            "{taken}",
        ),
        (
            "budget_service",
            "--config",
            "{root}/examples/budget.yaml",
            "--store",
            "sqlite:{key}.db",
            "--listen",
            "{taken}",
        ),
        (
            *("budget_service", "--config", "{root}/examples/budget.yaml", "--store", "sqlite:{key}.db"),
            *("--listen", "127.0.0.1:0", "--admin-listen", "{taken}"),
        ),
        (
            *("budget_service", "--config", "{root}/examples/budget.yaml", "--store", "sqlite:{key}.db"),
            *("--listen", "127.0.0.1:0", "--health-listen", "{taken}"),
        ),
    ],
)
def test_a_service_whose_port_is_taken_says_so_in_one_line(
    key: Path, taken: str, command: tuple[str, ...]
) -> None:
    """Its name, the address and the reason; exit code 2 and no line of gRPC's source."""
    named = {"root": ROOT, "key": key, "taken": taken}
    words = [word.format_map(named) for word in command]
    ended = subprocess.run(
        [sys.executable, "-m", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=key.parent,
    )
    said = [
        line
        for line in ended.stderr.splitlines()
        if not line.startswith(("INFO", "WARNING")) and "event=" not in line
    ]
    assert ended.returncode == 2
    assert [command[0]] == [line.partition(":")[0] for line in said]
    assert taken in said[0]
    assert "address already in use" in said[0]
