"""A policy file that changes while the service runs: taken whole once it has settled, or not at all."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.dp.v1 import dp_pb2, dp_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from dp_service.queries.published_files import integrity_of, written
from dp_service.releases.keys import KeySet
from dp_service.server.served_policy import PolicyContent, PolicyFileWatch, ServedPolicy, usable_policy
from dp_service.server.service import DpServicer, Environment
from tests.support.dp_questions import (
    KEY,
    POLICY,
    Clock,
    Entropy,
    answer_of,
    error_of,
    header,
    question,
    translated,
)
from tests.support.dp_server import serving
from tests.support.log_events import logged_events
from tests.support.publishing import domain_file
from tests.support.rings import needs

WITHOUT_ARTICLE = POLICY.replace("article: {type: string, group_by: true, filter: [in, not_in]}", "")
OTHER_TAU = POLICY.replace("tau: 3", "tau: 4")


def content_of(policy: str) -> PolicyContent:
    """Return a policy as it is served."""
    return usable_policy(policy.encode(), "policy", KEY)


class Watched:
    """A policy file, what is served of it, and the watch over it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_text(POLICY)
        self.served = ServedPolicy(content_of(POLICY))
        self.watch = PolicyFileWatch(path, self.served, POLICY.encode(), KEY)

    def polls(self, times: int = 2) -> list[bool]:
        """Poll so many times and return what each poll decided."""
        return [self.watch.poll() for _ in range(times)]

    @property
    def tau(self) -> int:
        """The tau that is served, by which the policies of these tests differ."""
        events = self.served.content.policy.table("engagement").measures.events
        assert events is not None
        return events.tau


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    """Write a policy that is served and watched."""
    return Watched(tmp_path / "policy.yaml")


def test_a_new_content_is_served_at_the_second_look_that_finds_it(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    """Once it has settled it is taken, under a name of its own, and then nothing is decided any more."""
    before = watched.served.content.policy_id
    watched.path.write_text(OTHER_TAU)
    with caplog.at_level(logging.INFO):
        assert watched.polls(4) == [False, True, False, False]
    ((_, fields),) = logged_events(caplog)
    assert fields["changed"] == "tables.engagement.measures.events.tau"
    assert watched.tau == 4
    assert watched.watch.is_served
    assert watched.served.content.policy_id != before


def test_a_file_that_is_still_being_written_is_not_taken(watched: Watched) -> None:
    """A first half that would be a sound policy, with fewer tables or a smaller tau, is never served."""
    half = POLICY[: POLICY.index("  drawn_anew")].replace("tau: 3", "tau: 1")
    assert content_of(half).policy.tables
    watched.path.write_text(half)
    assert watched.polls(1) == [False]
    watched.path.write_text(OTHER_TAU)
    assert watched.polls(1) == [False]
    assert watched.tau == 3
    assert watched.polls(1) == [True]
    assert watched.tau == 4


def test_a_swapped_link_is_seen(tmp_path: Path) -> None:
    """Kubernetes keeps each version of a ConfigMap in a directory of its own and swaps the link to it."""
    for name, policy in (("..1", POLICY), ("..2", OTHER_TAU)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "policy.yaml").write_text(policy)
    (tmp_path / "..data").symlink_to("..1")
    path = tmp_path / "policy.yaml"
    path.symlink_to(Path("..data") / "policy.yaml")
    served = ServedPolicy(content_of(POLICY))
    watch = PolicyFileWatch(path, served, POLICY.encode(), KEY)
    (tmp_path / "..tmp").symlink_to("..2")
    (tmp_path / "..tmp").replace(tmp_path / "..data")
    assert [watch.poll(), watch.poll()] == [False, True]
    assert served.content.policy_id == content_of(OTHER_TAU).policy_id


def problem_of(caplog: pytest.LogCaptureFixture) -> str:
    """Return why a policy is not served; nothing else was logged."""
    events = logged_events(caplog)
    assert {"policy.refused"} == {event for event, _ in events}
    return "\n".join(fields["problem"] for _, fields in events)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (
            POLICY.replace("group_by: true", "group_by: maybe"),
            ":9: tables.engagement.columns.article.group_by:",
        ),
        ("", ":1: the file:"),
        ("[" * 5000, "less nesting"),
        (POLICY.replace("epsilon_per: 1", "epsilon_per: 2"), "needs a restart"),
        (POLICY.replace("delta: 1e-2", "delta: 1e-3"), "needs a restart"),
        (f"count_noise: gaussian{POLICY}", "needs a restart"),
    ],
)
def test_what_cannot_be_served_leaves_the_policy_before_it(
    watched: Watched, caplog: pytest.LogCaptureFixture, content: str, complaint: str
) -> None:
    """It is said in the log, once, and can be asked for; the same policy goes on, and so does the watch."""
    before = watched.served.content
    watched.path.write_text(content)
    with caplog.at_level(logging.ERROR):
        assert watched.polls(5) == [False, True, False, False, False]
    assert complaint in problem_of(caplog)
    assert not watched.watch.is_served
    assert watched.served.content is before
    watched.path.write_text(POLICY)
    watched.polls()
    assert watched.watch.is_served
    watched.path.write_text(OTHER_TAU)
    watched.polls()
    assert watched.tau == 4


def test_a_policy_without_drawable_noise_leaves_the_policy_before_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A tau whose noise no sampler can draw would refuse questions that are answered now."""
    sound = POLICY.replace("epsilon_per: 1\n", "epsilon_per: 1e-3\n")
    path = tmp_path / "policy.yaml"
    path.write_text(sound.replace("tau: 3", "tau: 1000000"))
    served = ServedPolicy(content_of(sound))
    watch = PolicyFileWatch(path, served, sound.encode(), KEY)
    assert [watch.poll(), watch.poll()] == [False, True]
    assert not watch.is_served
    assert served.content.text == sound
    assert "no noise that can be drawn" in problem_of(caplog)


def test_a_file_that_is_gone_leaves_the_policy_before_it(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    """Replacing a file by removing it first does no harm, and a file that stays away is reported."""
    watched.path.unlink()
    assert watched.polls(1) == [False]
    assert watched.watch.is_served
    assert watched.polls(2) == [True, False]
    assert not watched.watch.is_served
    assert "No such file" in problem_of(caplog)
    watched.path.write_text(POLICY)
    assert watched.polls() == [False, True]
    assert watched.watch.is_served


async def test_a_plan_of_an_earlier_policy_is_honoured_and_a_new_question_is_not() -> None:
    """AddNoise needs no policy: what was translated, and may be reserved, is released as it was planned."""
    served = ServedPolicy(content_of(POLICY))
    async with serving(DpServicer(served, KeySet(KEY), Environment(Clock(), Entropy()))) as dp:
        plan = await translated(dp, question("article"))
        request = dp_pb2.AddNoiseUnaryRequest(header=header(plan), histogram=answer_of("article"))
        before = await dp.AddNoiseUnary(request)
        served.replace(content_of(WITHOUT_ARTICLE))
        assert before == await dp.AddNoiseUnary(request)
        code, _, metadata = await error_of(translated(dp, question("article")))
        assert (grpc.StatusCode.PERMISSION_DENIED, "column") == (code, metadata["rule"])


class Alternating(ServedPolicy):
    """Another policy at every poll, as if the file changed all the time."""

    def __init__(self, *contents: PolicyContent) -> None:
        super().__init__(contents[0])
        self.reads = 0
        self._contents = contents

    @property
    def content(self) -> PolicyContent:
        """Return the next one."""
        self.reads += 1
        return self._contents[self.reads % len(self._contents)]


async def test_no_request_sees_half_of_one_policy_and_half_of_another() -> None:
    """Names are looked up and the question is resolved in one and the same policy, however often it changes."""
    other = POLICY.replace("article", "piece").replace("tau: 3", "tau: 4")
    served = Alternating(content_of(POLICY), content_of(other))
    async with serving(DpServicer(served, KeySet(KEY), Environment(Clock(), Entropy()))) as dp:
        outcomes = []
        for column in ["article", "article", "piece", "piece"]:
            sql = f"SELECT {column}, COUNT(*) FROM engagement WHERE {column} <> 'x' GROUP BY {column} LIMIT 2"  # noqa: S608
            request = dp_pb2.EstimateCostRequest(question={"sql": sql})
            try:
                outcomes.append((await dp.EstimateCost(request)).estimate.parameters.tau)
            except grpc.aio.AioRpcError as error:
                outcomes.append(error.code())
    denied = grpc.StatusCode.PERMISSION_DENIED
    assert outcomes == [denied, 3, 4, denied]
    assert served.reads == 4


class Running:
    """A dp_service on a policy file."""

    def __init__(self, policy: Path, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.policy, self.process = policy, process
        self.ready = json.loads(process.stdout.readline())
        self.channel = grpc.insecure_channel(self.ready["address"])
        self.dp: Any = dp_pb2_grpc.DpServiceStub(self.channel)
        self._health: Any = health_pb2_grpc.HealthStub(self.channel)

    def serves(self, name: str = "") -> bool:
        """Tell what the health check says of a name."""
        try:
            status = self._health.Check(health_pb2.HealthCheckRequest(service=name)).status
        except grpc.RpcError:
            return False
        return bool(status == health_pb2.HealthCheckResponse.SERVING)

    def wait_until(self, serves: bool, name: str) -> None:
        """Wait until the health check says something of a name; a poll a second, twenty at most."""
        for _ in range(200):
            if self.serves(name) is serves:
                return
            time.sleep(0.1)
        raise AssertionError(f"{name} never came to be {serves}")


@pytest.fixture
@needs("process")
def running(tmp_path: Path) -> Iterator[Running]:
    """Run the service on a policy and a key, and end it."""
    policy, key = tmp_path / "policy.yaml", tmp_path / "noise.key"
    policy.write_text(POLICY)
    key.write_bytes(b"k" * 32)
    key.chmod(0o400)
    options = ["--policy", str(policy), "--key-file", str(key), "--listen", "127.0.0.1:0"]
    command = [sys.executable, "-m", "dp_service", *options]
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        found = Running(policy, process)
        yield found
        found.channel.close()
        process.terminate()
        assert process.wait(timeout=20) == 0


def test_a_running_service_takes_a_new_policy_and_keeps_the_last_sound_one(
    running: Running, tmp_path: Path
) -> None:
    """The health check names what is served and whether the file is; SERVING overall never ends."""
    service = "gris.dp.v1.DpService"
    request = dp_pb2.EstimateCostRequest(question=question("article"))
    assert running.dp.EstimateCost(request).estimate.parameters.tau == 1
    assert running.serves(f"{service}/policy/{running.ready['policy_id']}")
    running.policy.write_text(WITHOUT_ARTICLE)
    taken = content_of(WITHOUT_ARTICLE).policy_id
    running.wait_until(True, f"{service}/policy/{taken}")
    assert not running.serves(f"{service}/policy/{running.ready['policy_id']}")
    with pytest.raises(grpc.RpcError):
        running.dp.EstimateCost(request)
    running.policy.write_text("epsilon_per: CANARY [")
    running.wait_until(False, f"{service}/policy-file")
    assert running.serves(f"{service}/policy/{taken}")
    assert running.serves()
    assert running.serves(service)
    log = (tmp_path / "log").read_text()
    assert "event=policy.refused" in log
    assert "CANARY" not in log
    running.policy.write_text(POLICY)
    running.wait_until(True, f"{service}/policy-file")
    assert running.dp.EstimateCost(request).estimate.parameters.tau == 1


def test_a_published_domain_comes_and_goes_with_the_policy_that_names_it(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    """The policy's text holds the domain's hash, so a new domain is a new policy; without its file nothing changes."""
    domain = domain_file("article", "1/10", "1/1000000000", table="engagement").model_copy(
        update={"elements": ("a", "b")}
    )
    article = "article: {type: string, group_by: true, "
    named = f"{article}domain: {{published: d.json, integrity: '{integrity_of(written(domain))}'}}, "
    assert article in POLICY
    watched.path.write_text(POLICY.replace(article, named))
    with caplog.at_level(logging.ERROR):
        watched.polls()
    assert "d.json: No such file" in problem_of(caplog)
    assert not watched.watch.is_served
    (watched.path.parent / "d.json").write_bytes(written(domain))
    watched.path.write_text(f"{POLICY.replace(article, named)}\n# the file is there now\n")
    watched.polls()
    assert watched.watch.is_served
    assert ("a", "b") == watched.served.content.policy.table("engagement").column("article").domain
