"""The programs on the pages of the RPCs."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest
from gris_api.budget.v1 import admin_pb2, budget_pb2, regions_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector.embedded import EmbeddedServices
from tests.support.budget_process import service
from tests.support.rings import needs

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "rpc"
SERVICES = [
    each for file in (dp_pb2, budget_pb2, admin_pb2) for each in file.DESCRIPTOR.services_by_name.values()
]
# In this order the listings of the administrator have something to list.
RPCS = [method.name for each in SERVICES for method in each.methods]
# The programs of a region need a home that lends, which the demo starts none of.
REGIONAL = [
    method.name for each in regions_pb2.DESCRIPTOR.services_by_name.values() for method in each.methods
]


@pytest.fixture(scope="module")
@needs("process")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Both services with the demo's policy and budgets, and the ledger's administration."""
    folder = tmp_path_factory.mktemp("rpc")
    budgets = (ROOT / "examples" / "budget.yaml").read_text()
    store = f"sqlite:{folder}/administered.db"
    with (
        EmbeddedServices(
            policy=ROOT / "examples" / "policy.yaml",
            budget_config=ROOT / "examples" / "budget.yaml",
            directory=folder / "embedded",
        ) as embedded,
        service(
            folder, store, "--admin-listen", "127.0.0.1:0", "--backups", str(folder), configuration=budgets
        ) as ledger,
    ):
        assert ledger.admin_address is not None
        yield {
            "GRIS_DP": embedded.dp_address,
            "GRIS_BUDGET": ledger.address,
            "GRIS_BUDGET_ADMIN": ledger.admin_address,
        }


def program(rpc: str) -> Path:
    """Return the program of an RPC's page."""
    return EXAMPLES / f"{re.sub(r'(?<!^)(?=[A-Z])', '_', rpc).lower()}.py"


def test_every_rpc_has_a_program_and_every_program_an_rpc() -> None:
    """No page is without its program, and no program is left over."""
    assert {program(each) for each in (*RPCS, *REGIONAL)} == set(EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("rpc", RPCS)
def test_the_program_of_a_page_runs(
    rpc: str, addresses: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A reader who copies the program gets an answer from the services that the demo starts."""
    for name, address in addresses.items():
        monkeypatch.setenv(name, address)
    called = runpy.run_path(str(program(rpc)))
    assert capsys.readouterr().out.strip()
    assert hasattr(called["service"], rpc)


def test_the_ledger_lists_what_the_programs_charged(
    addresses: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The settled reservation of one page is the charge that another lists."""
    for name, address in addresses.items():
        monkeypatch.setenv(name, address)
    runpy.run_path(str(program("UpdateBudget")))
    capsys.readouterr()
    runpy.run_path(str(program("ListCharges")))
    assert "demo/ada 16" in capsys.readouterr().out
