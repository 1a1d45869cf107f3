"""Both services as processes: started, watched and stopped."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import grpc
import pytest

from pinot_connector.child_processes import ChildProcess
from pinot_connector.embedded import EmbeddedServices, noise_key
from pinot_connector.errors import ServiceUnavailable
from pinot_connector.local_services import DEFAULT_TIMEOUTS, SILENCE_SECONDS, default_timeouts
from tests.support.embedded import embedded
from tests.support.world import BUDGET, POLICY


def test_a_new_key_is_for_its_owner_only_and_stays(tmp_path: Path) -> None:
    """64 hexadecimal characters, mode 0600; a second start keeps them."""
    path = noise_key(tmp_path)
    key = path.read_text()
    assert (len(bytes.fromhex(key)), stat.S_IMODE(path.stat().st_mode)) == (32, 0o600)
    assert key == noise_key(tmp_path).read_text()


def test_the_services_end_with_the_block(not_started: EmbeddedServices) -> None:
    """Inside they answer; afterwards nobody listens. Git leaves out the directory that they have made."""
    with not_started:
        assert not_started.releases_file.with_name(".gitignore").read_text() == "*\n"
        not_started.ensure_running()
        address = not_started.dp_address
        assert _listens(address)
    assert not _listens(address)


def test_a_directory_that_was_there_is_left_to_git(tmp_path: Path, not_started: EmbeddedServices) -> None:
    """It may be somebody's work."""
    (tmp_path / "state").mkdir()
    with not_started:
        assert not (tmp_path / "state" / ".gitignore").exists()


def test_nothing_is_imported_from_the_current_directory(
    not_started: EmbeddedServices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is called like a library does not run with the noise key in reach."""
    for name in ("dp_service", "budget_service", "yaml"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the current directory')")
    monkeypatch.chdir(tmp_path)
    with not_started:
        not_started.ensure_running()


def _listens(address: str) -> bool:
    with grpc.insecure_channel(address) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=0.5)
        except grpc.FutureTimeoutError:
            return False
    return True


@pytest.mark.parametrize(
    ("file", "service"), [("policy.yaml", "dp_service"), ("budget.yaml", "budget_service")]
)
def test_a_service_that_does_not_start_says_why(
    not_started: EmbeddedServices, tmp_path: Path, file: str, service: str
) -> None:
    """The error holds the last line of its log, and the other service is stopped again."""
    (tmp_path / file).write_text("nonsense: 1\n")
    with pytest.raises(ServiceUnavailable, match=file) as raised, not_started:
        pass
    assert service == raised.value.service


def test_a_ledger_that_this_process_started_may_be_silent_for_seconds(
    tmp_path: Path, starts_processes: None
) -> None:
    """A machine that does other things stops it for a while; nobody else could answer."""
    with embedded(tmp_path, POLICY, BUDGET) as services:
        assert default_timeouts(services.budget_address).budget_silence >= SILENCE_SECONDS
        address = services.budget_address
    assert default_timeouts(address) is DEFAULT_TIMEOUTS


@pytest.mark.usefixtures("starts_processes")
def test_a_program_that_is_killed_has_no_line_of_its_log_as_the_reason(tmp_path: Path) -> None:
    """What it said last is about something else."""
    (tmp_path / "waiting.py").write_text("import time\nprint('{}', flush=True)\ntime.sleep(600)\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    process = ChildProcess.start("gateway", ("waiting",), tmp_path, environment=environment)
    process.wait_until_ready()
    (tmp_path / "gateway.log").write_text("rpc.finished\n")
    process.popen.kill()
    process.popen.wait()
    with pytest.raises(ServiceUnavailable, match=r"^gateway: ended: by SIGKILL$"):
        process.require_running()
    process.end()
