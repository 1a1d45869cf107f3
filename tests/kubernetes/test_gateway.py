"""An analyst who asks the gateway from a pod, is told what she has asked, and somebody who is told nothing."""

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
        print(json.dumps([each.result.release_id async for each in client.releases()]))
asyncio.run(main())
"""
# Asks one question, which is free from the second time on, until it is told to stop, and says what became of it.
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


def test_an_analyst_asks_the_gateway_and_is_told_her_history(
    gris: Namespace, application: str, analyst: str
) -> None:
    """Her certificate says who pays; what she was told is in her history, and asking again is free."""
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
    pod = gris.pods("gateway")[0]["metadata"]["name"]
    fetch = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9464/metrics').read().decode())"
    shown = gris.python(pod, "-c", fetch)
    assert 'gris_questions_total{outcome="answered"} 2.0' in shown
    assert 'reason="CALLER_WITHOUT_ACCOUNT"' in shown
    for part in ("server", "dp_service", "budget_service", "engine"):
        assert f'gris_component_serving{{component="{part}"}} 1.0' in shown
    assert "ana" not in shown.replace("analyst", "")


def test_a_gateway_is_replaced_without_a_lost_question(
    gris: Namespace, application: str, analyst: str
) -> None:
    """The new one begins before the old one ends, and an analyst who asks all along notices nothing."""
    if gris.get("deployment", "gateway")["spec"]["strategy"]["type"] == "Recreate":
        pytest.skip("its history is on a volume, which one gateway has at a time")
    loaded(gris, application)
    (before,) = (each["metadata"]["name"] for each in gris.pods("gateway"))
    with ThreadPoolExecutor(1) as other:
        asking = other.submit(gris.python, analyst, "-c", _ASKING)
        try:
            gris.kubectl("rollout", "restart", "deployment/gateway")
            gris.rolled_out("gateway")
            gris.wait_for("--for=delete", f"pod/{before}")
        finally:
            gris.python(analyst, "-c", "open('/tmp/stop', 'w')")
        reported = json.loads(asking.result())
    print(json.dumps(reported))
    assert reported["failed"] == {}
    assert reported["answered"] > 10
