"""`gris budget ticket-key`, and a ledger that demands dp_service's word on every charge."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gris_cli.__main__ import main
from pinot_connector import PrivateClient
from pinot_connector.embedded import EmbeddedServices, noise_key
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import GrisError
from tests.support.command_line import run_json
from tests.support.world import BUDGET, COFACTS, POLICY, new_account


def ticket_key_of(folder: Path) -> Path:
    """Make a noise key in a folder and derive its ticket key by the command."""
    out = folder / "ticket.key"
    folder.mkdir(exist_ok=True)
    assert 0 == main(
        ["budget", "ticket-key", "--key-file", str(noise_key(folder)), "--out", str(out), "--json"]
    )
    return out


@contextmanager
def demanding_ledger(folder: Path, ticket_key: Path) -> Iterator[PrivateClient]:
    """Run both services with a ledger that verifies tickets; give a client."""
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "budget.yaml").write_text(f"{BUDGET}\ncharge_tickets: {{key_file: {ticket_key}}}\n")
    services = EmbeddedServices(
        policy=folder / "policy.yaml", budget_config=folder / "budget.yaml", directory=folder
    )
    engine = DuckDBEngine({"feedback": COFACTS})
    with services:
        client = PrivateClient(
            dp=services.dp_address, budget=services.budget_address, account=new_account(), engine=engine
        )
        with client:
            yield client
    engine.close()


@pytest.mark.usefixtures("starts_processes")
def test_a_charge_with_dp_services_own_ticket_is_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both services agree on what a ticket is, though neither knows the other's code."""
    key = ticket_key_of(tmp_path)
    assert {"written": str(key)} == json.loads(capsys.readouterr().out)
    with demanding_ledger(tmp_path, key) as client:
        assert 11 == client.top_k("feedback", "article_id", 5).charged.information
        assert 0 == client.top_k("feedback", "article_id", 5).charged.information


@pytest.mark.usefixtures("starts_processes")
def test_a_charge_with_anothers_ticket_shows_nothing_and_costs_nothing(tmp_path: Path) -> None:
    """A ticket of another key is no word of this dp_service: no result, and the reservation is given back."""
    foreign = ticket_key_of(tmp_path / "another")
    with demanding_ledger(tmp_path, foreign) as client:
        with pytest.raises(GrisError):
            client.top_k("feedback", "article_id", 5)
        (*_, level) = client.remaining()
    assert (0, 0) == (level.spent.information, level.reserved.information)


def test_the_ticket_key_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    """It is a secret as the noise key is, and not the noise key."""
    out = ticket_key_of(tmp_path)
    assert 0o600 == out.stat().st_mode & 0o777
    assert out.read_text() != (tmp_path / "noise.key").read_text()


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_text("short")])
def test_a_noise_key_that_is_none_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil: Callable[[Path], object]
) -> None:
    """Exit code 2, and the option that is wrong."""
    key = noise_key(tmp_path)
    spoil(key)
    assert (
        "key file"
        in run_json(capsys, "budget", "ticket-key", "--key-file", key, "--out", str(tmp_path / "t"), code=2)[
            "error"
        ]["message"]
    )


def test_an_existing_file_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A ticket key that a ledger uses must not change by accident."""
    out = ticket_key_of(tmp_path)
    before = out.read_text()
    again = ["budget", "ticket-key", "--key-file", str(noise_key(tmp_path)), "--out", str(out), "--json"]
    assert 2 == main(again)
    assert before == out.read_text()
    assert "exists" in capsys.readouterr().out
