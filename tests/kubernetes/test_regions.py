"""Two regions and their home: questions go on where the home is away, up to what is lent, and are all charged."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.kubernetes.cluster import Chart, KubectlError, Namespace
from tests.kubernetes.database import NAME as DATABASE
from tests.kubernetes.ledger_sums import of_home, of_region
from tests.kubernetes.load_pod import load_pod
from tests.kubernetes.regions import REGIONS

ACCOUNT = "demo/ana"
DATA = "cofacts_feedback=/opt/gris/lib/examples/cofacts/feedback.parquet"
HOME = "deployment/budget-service"
# A share of `demo/ana` has three calls.
QUESTIONS = 6
BACK_SECONDS = 120


def asked(gris: Namespace, deployment: Chart, application: str, region: str, k: int) -> int:
    """Have an application ask in a region for the `k` first articles; return what it was charged."""
    words = ("--dp", "dns:///dp-service:50051", "--budget", f"dns:///region-{region}:50052")
    question = (
        "--data",
        DATA,
        "--table",
        "cofacts_feedback",
        "--by",
        "article_id",
        "--k",
        str(k),
        "--account",
        ACCOUNT,
    )
    said = gris.python(application, "-m", "gris_cli", *deployment.shown, "ask", *words, *question, "--json")
    charged: int = json.loads(said)["charged"]["information"]
    return charged


def spent(gris: Namespace, deployment: Chart, application: str) -> int:
    """Return what the home knows that the account has spent."""
    words = ("--budget", "dns:///budget-service:50052", "--account", ACCOUNT, "--json")
    said = gris.python(application, "-m", "gris_cli", *deployment.shown, "budget", "show", *words)
    rows = {(each["account"], each["unit"]): each for each in json.loads(said)["levels"]}
    return int(rows[ACCOUNT, "information"]["spent"])


@contextmanager
def home_away(gris: Namespace) -> Iterator[None]:
    """Take every replica of the home away, and in the end bring them back."""
    gris.kubectl("scale", HOME, "--replicas=0")
    try:
        gris.wait_for("--for=delete", "pod", "--selector=app.kubernetes.io/name=budget-service")
        yield
    finally:
        gris.kubectl("scale", HOME, "--replicas=3")
        gris.rolled_out("budget-service")


def test_a_region_goes_on_without_its_home_up_to_what_it_holds(
    gris: Namespace, deployment: Chart, application: str
) -> None:
    """It grants its share and then refuses, answers again for nothing, and in the end the home has every charge."""
    gris.rolled_out(*(f"region-{each}" for each in REGIONS))
    charged = asked(gris, deployment, application, "eu", 10)
    assert charged == 21
    with home_away(gris):
        answered, refused = 0, ""
        for k in range(1, QUESTIONS + 1):
            try:
                charged += asked(gris, deployment, application, "eu", k)
                answered += 1
            except KubectlError as error:
                refused = str(error)
                break
        print(f"{answered} questions were answered while the home was away, then: {refused[-300:]}")
        assert answered > 0
        assert "budget" in refused
        assert asked(gris, deployment, application, "eu", 10) == 0
    again = time.monotonic() + BACK_SECONDS
    while spent(gris, deployment, application) != charged:
        assert time.monotonic() < again, "the home does not hear of what was charged"
        time.sleep(1)
    # In the other region nothing was paid for, so it asks the home, which knows: it is free there, too.
    assert asked(gris, deployment, application, "us", 10) == 0
    assert spent(gris, deployment, application) == charged


def kill(gris: Namespace, *names: str) -> None:
    """Kill one pod of each Deployment, without a word."""
    for name in names:
        # One that is about to end might be gone before it is killed.
        owned = [
            each
            for each in gris.get("pods")["items"]
            if each["metadata"]["name"].startswith(f"{name}-") and "deletionTimestamp" not in each["metadata"]
        ]
        victim = owned[0]["metadata"]["name"]
        gris.kubectl("delete", "pod", victim, "--grace-period=0", "--force")


def test_the_ledgers_of_regions_and_home_agree_after_kills_and_restarts(
    gris: Namespace, deployment: Chart
) -> None:
    """While its home is replaced, and killed, no region fails; what a killed region has charged reaches the home.

    In the end the home's journal has the charges of both regions' journals, and no others.
    """
    regions = [f"region-{each}" for each in REGIONS]
    with load_pod(gris, deployment, *regions) as running:
        for name in ("dp-service", "budget-service"):
            gris.kubectl("rollout", "restart", f"deployment/{name}")
        gris.rolled_out("dp-service", "budget-service")
        kill(gris, "budget-service")
        running.more_answers()
        gris.rolled_out("budget-service")
        assert running.last_line()["failed"] == {}
        kill(gris, *regions)
        running.more_answers()
        gris.rolled_out(*regions)
        gris.kubectl("rollout", "restart", *(f"deployment/{each}" for each in regions))
        gris.rolled_out(*regions)
    for each in regions:
        gris.kubectl("scale", f"deployment/{each}", "--replicas=0")
    gris.wait_for("--for=delete", "pod", "--selector=app.kubernetes.io/name=region")
    in_regions = [of_region(gris, each) for each in REGIONS]
    at_home = of_home(gris, DATABASE)
    print(f"charged in the regions: {in_regions}; reported at the home: {at_home}")
    assert all(each.calls for each in in_regions)
    assert at_home.calls == sum(each.calls for each in in_regions)
    assert at_home.information == sum(each.information for each in in_regions)
    assert at_home.lost == 0
    # What the home charged itself, as it does before a share is lent.
    assert at_home.all_calls == running.reported["charged_calls"]
    for each in regions:
        gris.kubectl("scale", f"deployment/{each}", "--replicas=1")
    gris.rolled_out(*regions)
