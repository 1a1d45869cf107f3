"""The process of dp_service: ready, healthy, gracefully gone, and clear about a wrong configuration."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from tests.support.dp_questions import POLICY


@pytest.fixture
def configuration(tmp_path: Path) -> list[str]:
    """Write a policy and a key file; return the options that name them."""
    policy, key = tmp_path / "policy.yaml", tmp_path / "noise.key"
    policy.write_text(POLICY)
    key.write_bytes(b"k" * 32)
    key.chmod(0o400)
    return ["--policy", str(policy), "--key-file", str(key), "--listen", "127.0.0.1:0"]


def run(*options: str) -> subprocess.CompletedProcess[str]:
    """Run the service until it ends by itself."""
    command = [sys.executable, "-m", "dp_service", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


def services_of(channel: grpc.Channel) -> set[str]:
    """Return what reflection lists."""
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    answer = next(iter(stub.ServerReflectionInfo(iter([request]))))
    return {service.name for service in answer.list_services_response.service}


@pytest.mark.usefixtures("starts_processes")
def test_it_says_where_it_listens_serves_and_ends_on_sigterm(configuration: list[str]) -> None:
    """One line of JSON, SERVING by name and overall, reflection as asked, exit code 0 after SIGTERM."""
    command = [sys.executable, "-m", "dp_service", *configuration, "--reflection"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert ready["service"] == "dp_service"
        with grpc.insecure_channel(ready["address"]) as channel:
            health: Any = health_pb2_grpc.HealthStub(channel)
            for name in ("", "gris.dp.v1.DpService"):
                status = health.Check(health_pb2.HealthCheckRequest(service=name)).status
                assert status == health_pb2.HealthCheckResponse.SERVING
            assert "gris.dp.v1.DpService" in services_of(channel)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0


@pytest.mark.usefixtures("starts_processes")
def test_validation_ends_at_once(configuration: list[str]) -> None:
    """--validate reads everything and serves nothing."""
    finished = run(*configuration, "--validate")
    assert (finished.returncode, finished.stdout) == (0, "")


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize(
    ("position", "value", "complaint"),
    [
        (1, "absent.yaml", "absent.yaml"),
        (3, "absent.key", "absent.key"),
        (5, "127.0.0.1:99999", "--listen"),
        (5, "127.0.0.1:65536", "--listen: expected HOST:PORT with a port from 0 to 65535"),
        (5, "256.1.1.1:50051", "--listen"),
        (5, "localhost", "--listen"),
    ],
)
def test_a_wrong_configuration_is_named_in_one_line(
    configuration: list[str], position: int, value: str, complaint: str
) -> None:
    """Exit code 2, the last line says which file or option, and no traceback."""
    configuration[position] = value
    finished = run(*configuration)
    assert finished.returncode == 2
    assert complaint in finished.stderr.splitlines()[-1]
    assert "Traceback" not in finished.stderr


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize(
    ("content", "mode", "complaint"),
    [
        (b"p" * 31, 0o400, "expected 32 bytes"),
        (b"p" * 32, 0o644, "0440"),
        (b"k" * 32, 0o400, "every key once"),
    ],
)
def test_a_wrong_previous_key_keeps_it_from_starting(
    configuration: list[str], tmp_path: Path, content: bytes, mode: int, complaint: str
) -> None:
    """Short, readable by others, or the current key again: exit code 2 and one line."""
    previous = tmp_path / "previous.key"
    previous.write_bytes(content)
    previous.chmod(mode)
    finished = run(*configuration, "--previous-key-file", str(previous), "--validate")
    assert finished.returncode == 2
    assert complaint in finished.stderr.splitlines()[-1]
    assert "Traceback" not in finished.stderr
