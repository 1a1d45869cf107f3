"""An analyst asks the gateway from a pod and reads her history; somebody without an account gets nothing."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.kubernetes.cluster import KubectlError, Namespace
from tests.kubernetes.loading import loaded

GATEWAY = "gris://gateway:50054"
# Everything that was paid for, newest first, as Python's client lists it.
_HISTORY = f"""
import asyncio, json
from pinot_connector import AsyncGatewayClient, Credentials, gateway_address
async def main():
    shown = Credentials(*("/run/gris/" + name for name in ("ca.pem", "ana.pem", "ana.key")))
    async with AsyncGatewayClient(gateway_address("{GATEWAY}", shown)) as client:
        print(json.dumps([each.result.shown.release_id async for each in client.releases()]))
asyncio.run(main())
"""
# Asks one question, which is free from the second time on, until a file stops it, and says what became of it.
_ASKING = f"""
import asyncio, collections, json, pathlib
from pinot_connector import AsyncGatewayClient, Credentials, gateway_address
from pinot_connector.errors import GrisError
async def main():
    shown = Credentials(*("/run/gris/" + name for name in ("ca.pem", "ana.pem", "ana.key")))
    answered, failed = 0, collections.Counter()
    async with AsyncGatewayClient(gateway_address("{GATEWAY}", shown)) as client:
        while not pathlib.Path("/tmp/stop").exists():
            try:
                await client.top_k("cofacts_feedback", "article_id", 9)
                answered += 1
            except GrisError as error:
                failed[str(error)] += 1
            await asyncio.sleep(0.25)
    print(json.dumps({{"answered": answered, "failed": failed}}))
asyncio.run(main())
"""


def ask(gris: Namespace, analyst: str, name: str, k: int) -> dict[str, object]:
    """Ask as the holder of a certificate, and return what the command line says."""
    shown = ["--ca-file", "/run/gris/ca.pem"]
    shown += ["--certificate-file", f"/run/gris/{name}.pem", "--key-file", f"/run/gris/{name}.key"]
    question = ["--table", "cofacts_feedback", "--by", "article_id", "--k", str(k)]
    reported: dict[str, object] = json.loads(
        gris.python(analyst, "-m", "gris_cli", *shown, "ask", "--gateway", GATEWAY, *question, "--json")
    )
    return reported


def metrics(gris: Namespace) -> list[str]:
    """Return what each gateway has counted."""
    fetch = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9464/metrics').read().decode())"
    return [gris.python(pod, "-c", fetch) for pod in names(gris)]


def names(gris: Namespace) -> list[str]:
    """Return the names of the gateways' pods."""
    return [each["metadata"]["name"] for each in gris.pods("gateway")]


def counted(shown: list[str], metric: str) -> float:
    """Return what a metric with these labels counts in all gateways; none has it: 0."""
    lines = (line.rpartition(" ") for each in shown for line in each.splitlines())
    return sum(float(value) for name, _, value in lines if name == metric)


def test_an_analyst_asks_the_gateway_and_is_told_her_history(
    gris: Namespace, application: str, analyst: str
) -> None:
    """Her certificate says who pays; what she was shown is in her history, and asking again is free."""
    loaded(gris, application)
    first, second = ask(gris, analyst, "ana", 9), ask(gris, analyst, "ana", 9)
    assert len(first["rows"]) == 9  # type: ignore[arg-type]
    assert first["rows"] == second["rows"]
    assert [each["charged"]["information"] for each in (first, second)] == [19, 0]  # type: ignore[index]
    releases = json.loads(gris.python(analyst, "-c", _HISTORY))
    # The second time was the first release again.
    assert releases == [first["release_id"]]


def test_somebody_without_an_account_is_refused(gris: Namespace, analyst: str) -> None:
    """A certificate of the same authority that no rule knows, and none at all."""
    with pytest.raises(KubectlError, match="CALLER_WITHOUT_ACCOUNT"):
        ask(gris, analyst, "eve", 9)
    with pytest.raises(KubectlError):
        gris.python(analyst, "-m", "gris_cli", "catalog", "--gateway", GATEWAY)


def test_the_gateway_counts_its_callers_without_naming_them(gris: Namespace, analyst: str) -> None:
    """Its metrics have the questions and the refusals, and nobody's account."""
    shown = metrics(gris)
    assert counted(shown, 'gris_questions_total{outcome="answered"}') == 2
    assert any('reason="CALLER_WITHOUT_ACCOUNT"' in each for each in shown)
    for part in ("server", "dp_service", "budget_service", "engine"):
        assert counted(shown, f'gris_component_serving{{component="{part}"}}') == len(shown)
    assert not any("ana" in each.replace("analyst", "") for each in shown)


def test_a_gateway_is_replaced_without_a_lost_question(
    gris: Namespace, application: str, analyst: str
) -> None:
    """The new one begins before the old one ends, and an analyst who asks all along notices nothing."""
    if gris.get("deployment", "gateway")["spec"]["strategy"]["type"] == "Recreate":
        pytest.skip("its release store is on a volume, which one gateway has at a time")
    loaded(gris, application)
    before = names(gris)
    with ThreadPoolExecutor(1) as other:
        asking = other.submit(gris.python, analyst, "-c", _ASKING)
        try:
            gris.kubectl("rollout", "restart", "deployment/gateway")
            gris.rolled_out("gateway")
            gris.wait_for("--for=delete", *(f"pod/{each}" for each in before))
        finally:
            gris.python(analyst, "-c", "open('/tmp/stop', 'w')")
        reported = json.loads(asking.result())
    print(json.dumps(reported))
    assert reported["failed"] == {}
    assert reported["answered"] > 10


def test_what_was_paid_for_outlives_the_pod_of_a_gateway(
    gris: Namespace, application: str, analyst: str
) -> None:
    """The next one gives the same answer for nothing, from what is kept: no query is run and nothing is drawn."""
    loaded(gris, application)
    first, listed = ask(gris, analyst, "ana", 9), gris.python(analyst, "-c", _HISTORY)
    gris.kubectl("delete", "pod", *names(gris))
    gris.rolled_out("gateway")
    again = ask(gris, analyst, "ana", 9)
    assert (again["rows"], again["release_id"]) == (first["rows"], first["release_id"])
    assert again["charged"]["information"] == 0  # type: ignore[index]
    assert gris.python(analyst, "-c", _HISTORY) == listed
    shown = metrics(gris)
    assert counted(shown, 'gris_release_lookups_total{outcome="given"}') == 1
    assert counted(shown, 'gris_release_lookups_total{outcome="missed"}') == 0
    assert counted(shown, "gris_release_store_up") == len(shown)
