"""The overlay for production: whoever starts from it starts from something sound, which trusts nobody yet."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from budget_service.configuration.budget_file import load_configuration
from budget_service.ledger.values import Account
from deploy.kubernetes.validate import FOLDER, rendered, renderer
from dp_service.queries.policy import read_policy
from gris_gateway.configuration import GatewayConfiguration
from gris_gateway.process import main
from gris_serving.documents import read_document
from tests.support.pki import Authority, Issuer

PRODUCTION = FOLDER / "overlays" / "production"


@pytest.fixture
def gateway(tmp_path: Path) -> Path:
    """Return the overlay's gateway.yaml, with its folders moved here and a certificate of its own."""
    Authority.new(tmp_path).server("gateway")
    shutil.copy(PRODUCTION / "issuer.jwks", tmp_path)
    text = (PRODUCTION / "gateway.yaml").read_text().replace("0.0.0.0:50054", "127.0.0.1:0")
    for folder in ("/run/gris", "/etc/gris", "/var/lib/gris"):
        assert folder in text
        text = text.replace(folder, str(tmp_path))
    (tmp_path / "gateway.yaml").write_text(text)
    return tmp_path / "gateway.yaml"


def test_its_configuration_can_be_served() -> None:
    """The policy has a table, the budgets a limit for an analyst, and the gateway speaks TLS."""
    policy = read_policy((PRODUCTION / "policy.yaml").read_bytes(), "policy.yaml").policy
    assert [table.name for table in policy.tables] == ["engagement"]
    assert load_configuration(PRODUCTION / "budget.yaml").limit_of(Account(("acme", "ann"))) is not None
    read_document(PRODUCTION / "gateway.yaml", GatewayConfiguration).require_protected()


@pytest.mark.usefixtures("starts_processes")
def test_its_ledger_demands_tickets_under_a_key_that_its_pods_hold() -> None:
    """The key's file is in a Secret that only the process may read; a pod does not start without it."""
    demanded = load_configuration(PRODUCTION / "budget.yaml").charge_tickets
    assert demanded is not None
    if renderer() is None:
        pytest.skip("there is nothing to render the overlay with")
    pod = next(
        each.content["spec"]["template"]["spec"]
        for each in rendered(FOLDER)
        if each.title == "rendered production: Deployment budget-service"
    )
    folder, name = demanded.key_file.rsplit("/", 1)
    mounts = {each["mountPath"]: each for each in pod["containers"][0]["volumeMounts"]}
    assert mounts[folder]["readOnly"]
    volume = next(each for each in pod["volumes"] if each["name"] == mounts[folder]["name"])
    assert volume["secret"] == {"secretName": "gris-ticket-key", "defaultMode": 0o440}
    made = f"create secret generic gris-ticket-key --from-file={name}"
    assert made in (FOLDER.parents[1] / "docs" / "deploying.md").read_text()


@pytest.mark.parametrize("options", [[], ["--validate"]])
def test_a_gateway_whose_issuer_nobody_named_does_not_start(
    gateway: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The file that stands in for the issuer's keys has none, and the gateway says what to replace it by."""
    assert main(["--config", str(gateway), *options]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert f"gateway: {gateway.parent / 'issuer.jwks'}: " in said.err
    assert "replace it by your issuer's public keys" in said.err


@pytest.mark.usefixtures("starts_processes")
async def test_a_gateway_with_the_keys_of_an_issuer_starts(gateway: Path) -> None:
    """So nothing but these keys was missing."""
    issuer = Issuer(gateway.parent, key_id="yours")
    (gateway.parent / "issuer.jwks").write_text(json.dumps({"keys": [issuer.jwk()]}))
    assert main(["--config", str(gateway), "--validate"]) == 0
    command = [sys.executable, "-m", "gris_gateway", "--config", str(gateway)]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, env=os.environ)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            assert json.loads(await process.stdout.readline())["service"] == "gateway"
    finally:
        process.send_signal(signal.SIGTERM)
        await process.communicate()
    assert process.returncode == 0
