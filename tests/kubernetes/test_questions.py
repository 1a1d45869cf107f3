"""Private questions from a pod, and a policy that changes while the services run."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.kubernetes.cluster import Chart, Namespace
from tests.kubernetes.loading import PINOT, loaded

SERVICES = ("--dp", "dns:///dp-service:50051", "--budget", "dns:///budget-service:50052")
# Kubernetes brings a changed ConfigMap to its pods within about 90 seconds.
CHANGED_SECONDS = 180


def test_an_application_asks_a_private_question_of_pinot(
    gris: Namespace, deployment: Chart, application: str
) -> None:
    """The data are loaded into Pinot, ten articles are ranked and paid for, and asking again is free."""
    loaded(gris, application)
    controller, broker = PINOT
    engine = ("--engine", "pinot", "--pinot-controller", controller, "--pinot-broker", broker)
    question = (
        "--table",
        "cofacts_feedback",
        "--by",
        "article_id",
        "--k",
        "10",
        "--account",
        "demo/ana",
        "--json",
    )
    reported = [
        json.loads(
            gris.python(
                application, "-m", "gris_cli", *deployment.shown, "ask", *SERVICES, *engine, *question
            )
        )
        for _ in "12"
    ]
    assert [len(each["rows"]) for each in reported] == [10, 10]
    assert reported[0]["rows"] == reported[1]["rows"]
    assert [each["charged"]["information"] for each in reported] == [21, 0]


def test_a_changed_policy_reaches_every_pod(
    gris: Namespace, deployment: Chart, application: str, policy_file: Path
) -> None:
    """A column that the new policy no longer lists is gone from each replica's catalogue, without a restart."""
    if deployment.secret is not None:
        pytest.skip("with TLS a single replica cannot be asked: its address is in no certificate")
    before = gris.pods("dp-service")
    assert len(before) == 2
    assert all("cohort" in columns(gris, application, pod) for pod in before)
    policy_file.write_text(
        policy_file.read_text().replace("      cohort:\n", "      cohort_of_another_name:\n")
    )
    deployment.change_policy(gris, policy_file)
    began = time.monotonic()
    while any("cohort" in columns(gris, application, pod) for pod in before):
        assert time.monotonic() - began < CHANGED_SECONDS, "the new policy does not arrive"
        time.sleep(2)
    print(f"a changed policy is served by every pod after {time.monotonic() - began:.0f} s")
    assert [(pod["metadata"]["name"], 0) for pod in before] == [
        (pod["metadata"]["name"], pod["status"]["containerStatuses"][0]["restartCount"])
        for pod in gris.pods("dp-service")
    ]


def columns(gris: Namespace, application: str, pod: dict[str, dict[str, str]]) -> set[str]:
    """Return the columns that one replica of dp_service shows of the example table."""
    address = f"{pod['status']['podIP']}:50051"
    reported = gris.python(application, "-m", "gris_cli", "catalog", "--dp", address, "--json")
    (table,) = [table for table in json.loads(reported)["tables"] if table["name"] == "cofacts_feedback"]
    return {column["name"] for column in table["columns"]}
