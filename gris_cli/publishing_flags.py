"""The flags of what an owner publishes for everyone who sees it, a domain or a bound."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from gris_cli.flag_groups import flag
from gris_cli.flags import DEFAULT_BUDGET, BudgetFlag

TableFlag = Annotated[str, typer.Option(help="The table's name in the policy.")]
DataVersionFlag = Annotated[
    str,
    typer.Option(
        metavar="TEXT", help="The version of the data that the file states: a name, not a hash of them."
    ),
]


@dataclass(frozen=True)
class PriceFlags:
    """Who records the price of what is published, or that nobody does."""

    account: str = flag("", "The account that records the price.", metavar="A/B")
    budget: BudgetFlag = DEFAULT_BUDGET
    key_file: Path | None = flag(
        None, "The noise key of dp_service, if the ledger demands tickets.", metavar="FILE"
    )
    unrecorded: bool = flag(False, "Record no price: for trials whose result nobody sees.")

    def payer(self) -> tuple[str, str, Path | None]:
        """Return the account that records the price (empty: none does), its service, and the key of tickets.

        Raises:
            typer.BadParameter: The flags say both, or neither.
        """
        if bool(self.account) == self.unrecorded:
            raise typer.BadParameter("give either --account, which records the price, or --unrecorded")
        return self.account, self.budget, self.key_file
