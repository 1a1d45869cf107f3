"""The example data: where they are, and what they are called."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

COFACTS = "cofacts_feedback"
ONLINE_RETAIL = "online_retail"


@dataclass(frozen=True)
class Examples:
    """The directory of the examples and what it holds."""

    directory: Path

    @property
    def policy(self) -> Path:
        """dp_service's policy for the example tables."""
        return self.directory / "policy.yaml"

    @property
    def budget(self) -> Path:
        """budget_service's configuration for the example accounts."""
        return self.directory / "budget.yaml"

    @property
    def tables(self) -> dict[str, Path]:
        """The file of each example table."""
        return {
            COFACTS: self.directory / "cofacts" / "feedback.parquet",
            ONLINE_RETAIL: self.directory / "online_retail" / "purchases.parquet",
        }


def find_examples(given: Path | None) -> Examples:
    """Return the examples in the given directory, else in ./examples, in this checkout, or in the installed wheel.

    Raises:
        typer.BadParameter: They are in none of these.
    """
    here = Path(__file__).resolve().parent
    # The last one is made by pyproject.toml when a wheel is built.
    usual = [Path("examples"), here.parent / "examples", here / "example_data"]
    for directory in [given] if given is not None else usual:
        found = Examples(directory.resolve())
        if all(path.is_file() for path in (found.policy, found.budget, *found.tables.values())):
            return found
    raise typer.BadParameter(
        "the example data are not here; run this in a checkout of the project, or name their directory with --examples"
    )
