"""The options of the high-water mark, as an operator meets them: a service on a real Redis, and what it says."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import grpc

from tests.support.budget_client import charging, connected, failure
from tests.support.budget_process import (
    NOT_SERVING,
    SERVING,
    command,
    health_becomes,
    refused,
    service,
)
from tests.support.redis_server import RedisServer

JSON_LOG = ("--log-format", "json")


def events(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return the events of a name in the log of a service."""
    lines = (folder / "log").read_text().splitlines()
    return [each for each in map(json.loads, lines) if each.get("event") == name]


async def charged(address: str, request_id: str) -> None:
    """Charge one unit."""
    async with connected(address) as stub:
        await stub.UpdateBudget(charging(request_id=request_id))


async def test_a_typing_error_in_the_path_of_the_mark_costs_nothing(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    """The service ends with 2 and the reason; with the right path it serves, and nothing has to be confirmed."""
    code, reported = refused(tmp_path, own_redis.address, "--mark", str(tmp_path / "typo" / "mark"))
    assert code == 2
    assert f"{tmp_path}/typo/mark cannot be written: No such file or directory" in reported
    with service(tmp_path, own_redis.address, "--mark", str(tmp_path / "mark")) as running:
        await charged(running.address, "a")


async def test_a_mark_whose_folder_is_lost_while_it_serves_stops_the_charges_and_is_logged(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    """Health says so, charges are UNAVAILABLE with no effect, the log has the reason; with the folder it goes on."""
    folder = tmp_path / "volume"
    folder.mkdir()
    options = ("--mark", str(folder / "mark"), *JSON_LOG)
    with service(tmp_path, own_redis.address, *options) as running:
        await health_becomes(running.address, SERVING)
        folder.rename(tmp_path / "away")
        await health_becomes(running.address, NOT_SERVING)
        async with connected(running.address) as stub:
            answer = await failure(stub.UpdateBudget(charging(request_id="b")))
        assert (answer.code, answer.info.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
        (failed,) = events(tmp_path, "store.check_failed")
        assert f"{folder}/mark cannot be written" in failed["problem"]
        (tmp_path / "away").rename(folder)
        await health_becomes(running.address, SERVING)
        await charged(running.address, "b")


async def test_a_service_without_a_mark_says_so_unless_it_was_asked_for(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    """`--no-mark` accepts it, and does not go together with `--mark`."""
    for more, warnings in (((), 1), (("--no-mark",), 0)):
        (tmp_path / "log").unlink(missing_ok=True)
        with service(tmp_path, own_redis.address, *JSON_LOG, *more) as running:
            await charged(running.address, "a")
        assert warnings == len(events(tmp_path, "rollback_guard.missing"))
    code, reported = refused(tmp_path, own_redis.address, "--no-mark", "--mark", str(tmp_path / "mark"))
    assert (code, "not allowed with argument" in reported) == (2, True)
    code, reported = refused(tmp_path, f"sqlite:{tmp_path}/ledger.db", "--no-mark")
    assert (code, "has its mark beside it" in reported) == (2, True)


def renewed(folder: Path, store: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run `--renew-mark`."""
    arguments = command(folder, store, *options)
    return subprocess.run(arguments, capture_output=True, text=True, timeout=30, check=False)


async def test_a_lost_mark_is_renewed_from_the_log(own_redis: RedisServer, tmp_path: Path) -> None:
    """With the last position that the service logged, and with no other."""
    mark = ("--mark", str(tmp_path / "mark"))
    with service(tmp_path, own_redis.address, *mark, *JSON_LOG) as running:
        await charged(running.address, "a")
        running.process.terminate()
        assert running.process.wait(timeout=20) == 0
    last = events(tmp_path, "rollback_guard.position")[-1]
    (tmp_path / "mark").unlink()
    code, reported = refused(tmp_path, own_redis.address, *mark)
    assert (code, "--renew-mark" in reported) == (2, True)
    stated = f"{last['ledger']}:{last['count']}"
    assert last["ledger"] not in reported
    wrong = renewed(
        tmp_path, own_redis.address, *mark, "--renew-mark", f"{last['ledger']}:{last['count'] - 1}"
    )
    assert (wrong.returncode, "does not stand at that position" in wrong.stderr) == (2, True)
    unreadable = renewed(tmp_path, own_redis.address, *mark, "--renew-mark", "17")
    assert (unreadable.returncode, "LEDGER:COUNT" in unreadable.stderr) == (2, True)
    nowhere = renewed(tmp_path, own_redis.address, "--renew-mark", stated)
    assert (nowhere.returncode, "--mark" in nowhere.stderr) == (2, True)
    assert renewed(tmp_path, own_redis.address, *mark, "--renew-mark", stated).returncode == 0
    with service(tmp_path, own_redis.address, *mark) as running:
        await charged(running.address, "b")
