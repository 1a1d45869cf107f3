"""The example data: where they are, and what they are called."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gris_cli.data.input_files import require_file
from gris_cli.inputs import named_by

if TYPE_CHECKING:
    pass

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
    def bounded_policy(self) -> Path:
        """dp_service's policy for the first example table with bounded contributions."""
        return self.directory / "bounded" / "policy.yaml"

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
        if all(
            path.is_file()
            for path in (found.policy, found.bounded_policy, found.budget, *found.tables.values())
        ):
            return found
    raise typer.BadParameter(
        "the example data are not here; run this in a checkout of the project, or name their directory with --examples"
    )


@dataclass(frozen=True)
class ServiceFiles:
    """The policy and the budgets that services are started with."""

    policy: Path
    budget: Path


def service_files(policy: Path | None, budget: Path | None, examples: Path | None) -> ServiceFiles:
    """Return the files that are named; in place of one that is not, that of the examples.

    Args:
        policy: The policy of `--policy`, if it is given.
        budget: The budgets of `--budget-config`, if they are given.
        examples: The directory of the examples, if it is named.

    Raises:
        typer.BadParameter: A file is not there, or the examples are needed and not there.
    """
    for flag, path in (("--policy", policy), ("--budget-config", budget)):
        if path is not None:
            with named_by(flag):
                require_file(path)
    if policy is not None and budget is not None:
        return ServiceFiles(policy, budget)
    found = find_examples(examples)
    return ServiceFiles(policy or found.policy, budget or found.budget)


def locations_of(texts: Iterable[str]) -> dict[str, str]:
    """Return the location of each table that `--data TABLE=PATH` names.

    Raises:
        typer.BadParameter: One is not of that form, or two name the same table.
    """
    found: dict[str, str] = {}
    for text in texts:
        table, equals, location = text.partition("=")
        if not equals or not table or not location:
            example = f", such as {Path(text).stem}={text}," if text and not equals else ","
            raise typer.BadParameter(f"--data expects TABLE=PATH{example} got {text}")
        if table in found:
            raise typer.BadParameter(f"--data names the table {table} twice; give it one location")
        found[table] = location
    return found


def require_tables(policy: Path, tables: Collection[str]) -> None:
    """Check that a policy lists the tables of `--data`: no question could need others.

    Raises:
        typer.BadParameter: The policy has faults, or does not list a table; the message names the table.
    """
    from gris_cli.data.policies import policy_of

    if not tables:
        return
    found = policy_of(policy)
    listed = [table.name for table in found.tables]
    for table in tables:
        if table not in listed:
            raise typer.BadParameter(
                f"--data {table}: the policy {policy} lists no such table, only {', '.join(listed)}; "
                "--policy FILE names yours"
            )
