"""What cannot be the configuration of a region, or of a home, is refused: at the start, and when a file changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from budget_service.configuration.budget_file import ConfigurationError
from budget_service.configuration.region_file import load_region
from budget_service.server.process import main, require_usable
from budget_service.server.settings import LiveSettings, load_settings

LIMITS = "accounts:\n  - path: [acme]\n    limit: {information: 100, calls: 10}\n"
REFUSED = {
    "expired_reservations": "expired_reservations: forfeit\n",
    "shared_levels": "shared_levels: worst_case\n",
    "leases": "leases: {}\n",
    "allow_volatile": "allow_volatile: true\n",
}


@pytest.mark.parametrize("field", REFUSED)
def test_a_region_takes_up_no_configuration_that_it_would_not_start_with(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, field: str
) -> None:
    """What is in force stays, and the reason names the field."""
    path = tmp_path / "budget.yaml"
    path.write_text(LIMITS)

    def check(configuration: object) -> None:
        require_usable(configuration, "sqlite:region.db", is_region=True)  # type: ignore[arg-type]

    settings = LiveSettings(load_settings(path, check), check=check)
    before = settings.current
    path.write_text(REFUSED[field] + LIMITS)
    settings.reload(path)
    assert settings.current is before
    (refused,) = caplog.records
    assert field in vars(refused)["fields"]["problem"]
    with pytest.raises(ConfigurationError, match=field):
        load_settings(path, check)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--store", "sqlite:ledger.db", "--confirm-restored"], "--confirm-restored"),
        (["--store", "sqlite::memory:"], "in a file"),
    ],
)
def test_a_region_whose_ledger_may_be_set_back_does_not_start(
    tmp_path: Path, words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would grant from leases that it has spent already."""
    (tmp_path / "budget.yaml").write_text(LIMITS)
    (tmp_path / "region.yaml").write_text("name: eu\nhome: 127.0.0.1:1\n")
    files = ["--config", str(tmp_path / "budget.yaml"), "--region", str(tmp_path / "region.yaml")]
    assert main([*files, *words, "--listen", "127.0.0.1:0", "--validate"]) == 2
    assert reason in capsys.readouterr().err


def test_a_region_speaks_plainly_only_to_its_own_machine(tmp_path: Path) -> None:
    """Unless the file says that it may."""
    path = tmp_path / "region.yaml"
    path.write_text("name: eu\nhome: home.example:50052\n")
    with pytest.raises(ConfigurationError, match="insecure"):
        load_region(path)
    path.write_text("name: eu\nhome: home.example:50052\ninsecure: true\n")
    assert load_region(path).insecure
