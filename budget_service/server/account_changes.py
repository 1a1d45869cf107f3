"""What an administrator may close by the configuration, before the ledger decides."""

from __future__ import annotations

from budget_service.configuration.budget_file import AccountUnknownError, Configuration, InvisibleNameError
from budget_service.ledger.ignorable import PROBLEM
from budget_service.ledger.values import Account, InvalidFieldError
from budget_service.server.ledger import Ledger


async def require_known(account: Account, configuration: Configuration, ledger: Ledger) -> None:
    """Refuse to close or reopen what nobody could use, most likely a misspelt name.

    Args:
        account: Whom it is about.
        configuration: The configuration in force.
        ledger: The ledger, whose stored limits create accounts too.

    Raises:
        AccountUnknownError: There is no such account to be closed or opened.
        InvalidFieldError: The name looks like another one.
        StoreError: The store failed.
    """
    try:
        configuration.limits_of(account, (await ledger.limits(account)).limits)
    except InvisibleNameError as error:
        # Who reads its budget is refused in the same way.
        raise InvalidFieldError(f"account.path[{error.index}]", PROBLEM) from None
    except AccountUnknownError:
        pass
    if configuration.is_about(account):
        return
    # A root may have very many stored limits, and few names are unknown.
    stored = (await ledger.all_limits(account.root)).limits
    if not any(each.level(account.depth) == account for each in stored):
        raise AccountUnknownError
