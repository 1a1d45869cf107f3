"""Pods that die and pods that are replaced while questions are asked."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.cluster import CONFIGURATION, Deployment, Namespace, pod

DATA = "/opt/gris/lib/examples/cofacts/feedback.parquet"
STOP = "import os, signal; os.kill(1, signal.SIGTERM)"
SERVICES = ("dp-service", "budget-service")
ANSWERS = 100
TIMEOUT_SECONDS = 120


@dataclass
class Asking:
    """A pod that asks all along; `told` is what it says in the end."""

    gris: Namespace
    reported: dict[str, Any] = field(default_factory=dict)

    def more_answers(self) -> None:
        """Wait until some more questions have been answered."""
        wanted, end = self._answered() + ANSWERS, time.monotonic() + TIMEOUT_SECONDS
        while self._answered() < wanted:
            assert time.monotonic() < end, "no answers any more"
            time.sleep(1)

    def last_line(self) -> dict[str, Any]:
        """Return what the pod said last."""
        said = self.gris.kubectl("logs", "--tail=30", "asking")
        lines = said.splitlines()
        try:
            found: dict[str, Any] = json.loads(lines[-1]) if lines else {"answered": 0}
        except ValueError:
            raise AssertionError(said) from None
        return found

    def _answered(self) -> int:
        return int(self.last_line()["answered"])


@contextmanager
def asking(gris: Namespace, deployment: Deployment) -> Iterator[Asking]:
    """Have questions asked in a pod; in the end it has held what it was told against the ledger."""
    program = Path(__file__).with_name("application.py")
    gris.put(CONFIGURATION, "asking", **{"application.py": program})
    command = (
        "/asking/application.py",
        "--dp",
        "dns:///dp-service:50051",
        "--budget",
        "dns:///budget-service:50052",
    )
    more = ("--data", DATA, *deployment.shown)
    folders, secret = {"asking": "/asking"}, deployment.secret
    made = pod("asking", "application", *command, *more, folders=folders, secret=secret)
    gris.kubectl("apply", "--filename=-", given=made)
    try:
        gris.wait_for("--for=condition=Ready", "pod/asking")
        running = Asking(gris)
        running.more_answers()
        yield running
        running.more_answers()
        gris.python("asking", "-c", STOP)
        gris.wait_for("--for=jsonpath={.status.phase}=Succeeded", "pod/asking")
        running.reported.update(running.last_line())
        print(json.dumps(running.reported))
    finally:
        gris.kubectl("delete", "pod/asking")


@pytest.mark.parametrize("name", SERVICES)
def test_a_killed_pod_loses_no_budget(gris: Namespace, deployment: Deployment, name: str) -> None:
    """Every answer is charged once, and nothing else is; questions go on at the other pod."""
    with asking(gris, deployment) as running:
        victim = gris.pods(name)[0]["metadata"]["name"]
        gris.kubectl("delete", "pod", victim, "--grace-period=0", "--force")
        running.more_answers()
        gris.rolled_out(name)
    assert running.reported["charged_calls"] - running.reported["unknown"] <= running.reported["answered"]


def test_a_rolling_restart_loses_no_question(gris: Namespace, deployment: Deployment) -> None:
    """Both services are replaced pod by pod: every question is answered, and the ledger counts exactly the answers."""
    before = {each["metadata"]["name"] for name in SERVICES for each in gris.pods(name)}
    with asking(gris, deployment) as running:
        for name in SERVICES:
            gris.kubectl("rollout", "restart", f"deployment/{name}")
        gris.rolled_out(*SERVICES)
        for name in SERVICES:
            gris.wait_for("--for=delete", *(f"pod/{each}" for each in before if each.startswith(name)))
    assert running.reported["failed"] == {}
    assert running.reported["answered"] == running.reported["charged_calls"]
