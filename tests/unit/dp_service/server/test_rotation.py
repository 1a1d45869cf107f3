"""Two keys are live while keys are rotated: old plans stay good, and no key ever releases another key's question."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from gris_api.dp.v1 import dp_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status

from dp_service.releases.keys import KeySet, NoiseKey
from dp_service.server.key_file import read_key_files
from dp_service.server.service import DpServicer
from gris_serving.key_files import KeyFileError
from pinot_connector.embedded import KEY_FILE
from pinot_connector.engines.duckdb import DuckDBEngine
from tests.support.clients import blocking_client_of
from tests.support.dp_questions import POLICY, answer_of, header, question, translated
from tests.support.dp_server import servicer_of, serving
from tests.support.embedded import embedded
from tests.support.world import BUDGET, write_small
from tests.support.world import POLICY as CONNECTOR_POLICY
from tests.unit.dp_service.key_files import key_file

OLD, NEW = NoiseKey(b"o" * 32), NoiseKey(b"n" * 32)
BEFORE, DURING, AFTER = KeySet(OLD, (NEW,)), KeySet(NEW, (OLD,)), KeySet(NEW)


def holding(keys: KeySet) -> DpServicer:
    """Return a replica that holds these keys."""
    return servicer_of(POLICY, keys)


async def release_of(dp: Any, plan: dp_pb2.TranslateQueryResponse, by: str) -> dp_pb2.AddNoiseUnaryResponse:
    """Release a plan that may come from another replica."""
    request = dp_pb2.AddNoiseUnaryRequest(header=header(plan), histogram=answer_of(by))
    response: dp_pb2.AddNoiseUnaryResponse = await dp.AddNoiseUnary(request)
    return response


@pytest.mark.parametrize("by", ["article", "app"])
@pytest.mark.parametrize(("maker", "other", "key"), [(BEFORE, DURING, OLD), (DURING, BEFORE, NEW)])
async def test_replicas_on_both_sides_of_a_rotation_honour_one_anothers_plans(
    maker: KeySet, other: KeySet, key: NoiseKey, by: str
) -> None:
    """A plan is made under the current key, and gives one release under it, whichever key is current by then."""
    async with serving(holding(maker)) as first, serving(holding(other)) as second:
        plan = await translated(first, question(by))
        here, there = await release_of(first, plan, by), await release_of(second, plan, by)
    assert here == there
    assert here.release.shown.key_id == key.key_id
    assert plan.query_id == there.release.bill.query_id


async def test_a_plan_of_a_retired_key_is_refused() -> None:
    """Once the old key is gone its plans are forgeries like any other: the question is translated again."""
    async with serving(holding(DURING)) as dp, serving(holding(KeySet(OLD))) as gone:
        plan = await translated(gone, question())
        await release_of(dp, plan, "article")
        async with serving(holding(AFTER)) as after:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await release_of(after, plan, "article")
    info = error_details_pb2.ErrorInfo()
    status = rpc_status.from_call(caught.value)  # type: ignore[arg-type]  # the same methods
    assert status is not None
    assert status.details[0].Unpack(info)
    assert info.reason == "PLAN_NOT_AUTHENTIC"


def test_a_key_set_is_named_by_what_it_holds() -> None:
    """The name is the same before and after the current key changes, and another where a key is missing."""
    # Both computed apart from the project, from the labels in the code.
    assert (OLD.key_id, BEFORE.set_id) == ("48279bd6ca600221", "fad3be2c7f085ecd")
    assert BEFORE.set_id == DURING.set_id
    assert len({BEFORE.set_id, AFTER.set_id, KeySet(OLD).set_id}) == 3


@pytest.mark.parametrize(
    ("previous", "message"),
    [((NEW,), "every key once"), ((OLD, OLD), "every key once"), ((OLD,) * 4, "at most 3 keys, got 4")],
)
def test_a_key_set_holds_few_keys_and_each_once(previous: tuple[NoiseKey, ...], message: str) -> None:
    """A repeated file is a mistake, and keys do not pile up."""
    with pytest.raises(ValueError, match=message):
        KeySet(NEW, previous)


def test_every_key_file_is_checked(tmp_path: Path) -> None:
    """A previous key is as secret as the current one, and the same key twice is named."""
    current = key_file(tmp_path, b"c" * 32)
    for name, content, mode, complaint in [
        ("open.key", b"p" * 32, 0o644, "0440"),
        ("short.key", b"p", 0o600, "expected 32 bytes"),
        ("same.key", b"c" * 32, 0o600, "every key once"),
    ]:
        previous = tmp_path / name
        previous.write_bytes(content)
        previous.chmod(mode)
        with pytest.raises(KeyFileError, match=complaint):
            read_key_files(current, [previous])
    with pytest.raises(KeyFileError, match="No such file"):
        read_key_files(current, [tmp_path / "absent.key"])


@pytest.mark.usefixtures("starts_processes")
def test_the_process_says_which_keys_it_holds(tmp_path: Path) -> None:
    """The ready line names the current key and the set; the set's health name serves, another set's does not exist."""
    for name, key in (("old.key", OLD), ("new.key", NEW)):
        (tmp_path / name).write_bytes(key.secret)
        (tmp_path / name).chmod(0o400)
    (tmp_path / "policy.yaml").write_text(POLICY)
    options = ["--policy", "policy.yaml", "--key-file", "new.key", "--previous-key-file", "old.key"]
    command = [sys.executable, "-m", "dp_service", *options, "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=tmp_path, text=True) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert (NEW.key_id, DURING.set_id) == (ready["key_id"], ready["key_set_id"])
        with grpc.insecure_channel(ready["address"]) as channel:
            health: Any = health_pb2_grpc.HealthStub(channel)
            held = health_pb2.HealthCheckRequest(service=f"gris.dp.v1.DpService/keys/{DURING.set_id}")
            assert health.Check(held).status == health_pb2.HealthCheckResponse.SERVING
            absent = health_pb2.HealthCheckRequest(service=f"gris.dp.v1.DpService/keys/{AFTER.set_id}")
            with pytest.raises(grpc.RpcError):
                health.Check(absent)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0


@pytest.mark.usefixtures("starts_processes")
def test_a_release_under_another_key_is_another_release_and_charged(tmp_path: Path) -> None:
    """Both services: asking again is free, after a rotation it is paid once, and then it is free again."""
    write_small(tmp_path / "small.parquet", 1000)
    engine = DuckDBEngine({"small": tmp_path / "small.parquet"})
    services = embedded(tmp_path, CONNECTOR_POLICY, BUDGET)
    spent, names = [], []
    for key in (OLD, NEW):
        (tmp_path / "state").mkdir(exist_ok=True)
        (tmp_path / "state" / KEY_FILE).write_text(key.secret.hex())
        (tmp_path / "state" / KEY_FILE).chmod(0o600)
        with (
            services,
            blocking_client_of(services, engine, account="t/ana") as client,
        ):
            for _ in range(2):
                result = client.histogram("small", by="element")
                spent.append(client.remaining()[-1].spent.information)
                names.append((result.release_id, result.query_id))
    engine.close()
    assert spent == [1, 1, 2, 2]
    assert len({release for release, _ in names}) == len({query for _, query in names}) == 2
