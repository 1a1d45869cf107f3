"""Pods that die and pods that are replaced while questions are asked."""

from __future__ import annotations

import pytest

from tests.kubernetes.cluster import Chart, Namespace
from tests.kubernetes.load_pod import load_pod

SERVICES = ("dp-service", "budget-service")


@pytest.mark.parametrize("name", SERVICES)
def test_a_killed_pod_loses_no_budget(gris: Namespace, deployment: Chart, name: str) -> None:
    """The ledger has the charges that the askers know of, and no others; questions go on at the other pod."""
    with load_pod(gris, deployment) as running:
        victim = gris.pods(name)[0]["metadata"]["name"]
        gris.kubectl("delete", "pod", victim, "--grace-period=0", "--force")
        running.more_answers()
        gris.rolled_out(name)
    assert running.reported["charged_calls"] - running.reported["unknown"] <= running.reported["calls"]


def test_a_rolling_restart_loses_no_question(gris: Namespace, deployment: Chart) -> None:
    """Both services are replaced pod by pod: every question is answered, and the ledger counts exactly the answers."""
    before = {each["metadata"]["name"] for name in SERVICES for each in gris.pods(name)}
    with load_pod(gris, deployment) as running:
        for name in SERVICES:
            gris.kubectl("rollout", "restart", f"deployment/{name}")
        gris.rolled_out(*SERVICES)
        for name in SERVICES:
            gris.wait_for("--for=delete", *(f"pod/{each}" for each in before if each.startswith(name)))
    assert running.reported["failed"] == {}
    assert running.reported["answered"] == running.reported["charged_calls"]
