"""Both services under a policy of a test's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pinot_connector import Timeouts
from pinot_connector.embedded import EmbeddedServices

PLENTY = """
accounts:
  - path: [t]
    limit: {information: 1000000000, calls: 1000000}
  - path: [t, "*"]
    limit: {information: 100000000, calls: 1000}
"""
# No end here is one of a slow machine.
UNHURRIED = Timeouts(dp=60, engine=60, budget_attempt=10, budget=30, budget_silence=60, reservation=120)


def embedded(folder: Path, policy: str, budget: str = PLENTY, **options: Any) -> EmbeddedServices:
    """Write a policy and budgets into a folder; return services on them that are not started yet."""
    (folder / "policy.yaml").write_text(policy)
    (folder / "budget.yaml").write_text(budget)
    return EmbeddedServices(
        policy=folder / "policy.yaml",
        budget_config=folder / "budget.yaml",
        directory=folder / "state",
        **options,
    )
