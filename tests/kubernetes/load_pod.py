"""A pod that asks without pause, while pods are killed and replaced around it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kubernetes.cluster import CONFIGURATION, Chart, Namespace, pod

DATA = "/opt/gris/lib/examples/cofacts/feedback.parquet"
STOP = "import os, signal; os.kill(1, signal.SIGTERM)"
ANSWERS = 100
TIMEOUT_SECONDS = 300


@dataclass
class LoadPod:
    """A pod that asks all along; `reported` is what it says in the end."""

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
def load_pod(gris: Namespace, deployment: Chart, *ledgers: str) -> Iterator[LoadPod]:
    """Have questions asked in a pod; in the end it has compared what it was charged with the ledger.

    `ledgers` are regions of one budget, whose accounts are spread over them; without one the single ledger is asked.
    """
    program = Path(__file__).with_name("application.py")
    gris.put(CONFIGURATION, "asking", **{"application.py": program})
    command = (
        "/asking/application.py",
        "--dp",
        "dns:///dp-service:50051",
        "--budget",
        *(f"dns:///{each}:50052" for each in ledgers or ("budget-service",)),
    )
    more = ("--data", DATA, *deployment.shown)
    folders, secret = {"asking": "/asking"}, deployment.secret
    made = pod("asking", "application", *command, *more, folders=folders, secret=secret)
    gris.kubectl("apply", "--filename=-", given=made)
    try:
        gris.wait_for("--for=condition=Ready", "pod/asking")
        running = LoadPod(gris)
        running.more_answers()
        yield running
        running.more_answers()
        gris.python("asking", "-c", STOP)
        # Also where it has failed: then its last lines say why.
        gris.wait_for("--for=condition=Ready=false", "pod/asking")
        running.reported.update(running.last_line())
        print(json.dumps(running.reported))
    finally:
        gris.kubectl("delete", "pod/asking")
