"""What a configuration may say, and what has no effect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from budget_service.configuration.budget_file import Configuration


def remarks(file: Path, configuration: Configuration) -> Iterator[str]:
    """Yield a line for each limit of a purpose that is no less than that of its level."""
    for number, entry in enumerate(configuration.accounts):
        for name, most in sorted(entry.purposes.items()):
            if entry.limit.cost.within(most.cost):
                where = f"{file}: accounts.{number}.purposes.{name}"
                yield f"{where}: has no effect, for the limit of its level is no higher\n"
