"""The flags of what an owner publishes for everyone who sees it, a domain or a bound."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.flag_groups import flag
from gris_cli.flags import DEFAULT_BUDGET, BudgetFlag

if TYPE_CHECKING:
    from gris_cli.data.domain.ledger_entry import LedgerAccount

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

    def payer(self) -> LedgerAccount | None:
        """Return the account that records the price; None: none does.

        Raises:
            typer.BadParameter: The flags say both, or neither.
        """
        if bool(self.account) == self.unrecorded:
            raise typer.BadParameter("give either --account, which records the price, or --unrecorded")
        if self.unrecorded:
            return None
        from gris_cli.data.domain.ledger_entry import LedgerAccount

        return LedgerAccount(self.budget, tuple(self.account.split("/")), self.key_file)
