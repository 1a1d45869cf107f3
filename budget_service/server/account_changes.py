"""What an administrator may close by the configuration, before the ledger decides."""

from __future__ import annotations

from budget_service.configuration.budget_file import AccountUnknownError, Configuration, InvisibleNameError
from budget_service.ledger.ignorable import PROBLEM
from budget_service.ledger.requests import (
    AccountRequest,
    CloseAccount,
    ReopenAccount,
)
from budget_service.ledger.values import Account, InvalidFieldError
from budget_service.stores.interface import Store


async def require_known(request: AccountRequest, configuration: Configuration, store: Store) -> None:
    """Refuse to close or reopen what nobody could use, most likely a misspelt name.

    Args:
        request: What is asked.
        configuration: The configuration in force.
        store: The ledger, whose stored limits create accounts too.

    Raises:
        AccountUnknownError: There is no such account to be closed or opened.
        InvalidFieldError: The name looks like another one.
        StoreError: The store failed.
    """
    if isinstance(request, CloseAccount):
        await _require_named(request.account, configuration, store)
    # Where nothing was ever closed, nothing was closed of this account either: most likely its name is misspelt.
    if isinstance(request, ReopenAccount) and not (await store.limits(request.account)).version:
        await _require_named(request.account, configuration, store)


async def _require_named(level: Account, configuration: Configuration, store: Store) -> None:
    try:
        configuration.limits_of(level, (await store.limits(level)).limits)
    except InvisibleNameError as error:
        # Who reads its budget is refused in the same way.
        raise InvalidFieldError(f"account.path[{error.index}]", PROBLEM) from None
    except AccountUnknownError:
        pass
    if configuration.is_about(level):
        return
    # A root may have very many stored limits, and few names are unknown.
    stored = (await store.all_limits(level.root)).limits
    if not any(each.level(level.depth) == level for each in stored):
        raise AccountUnknownError
