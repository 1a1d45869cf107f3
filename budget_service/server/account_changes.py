"""What an administrator may close and move by the configuration, before the ledger decides."""

from __future__ import annotations

from collections.abc import Mapping

from budget_service.configuration.budget_file import AccountUnknownError, Configuration, InvisibleNameError
from budget_service.ledger.ignorable import PROBLEM, first_ignorable
from budget_service.ledger.requests import AccountRequest, CloseAccount, MoveAccount
from budget_service.ledger.values import Account, InvalidFieldError, Limit
from budget_service.server import rpc_errors


def require_known(
    request: AccountRequest, configuration: Configuration, stored: Mapping[Account, Limit]
) -> None:
    """Refuse to close what nobody could use, most likely a misspelt name, or to move an account where nobody is.

    Args:
        request: What is asked.
        configuration: The configuration in force.
        stored: The limits that the root has in the ledger.

    Raises:
        AccountUnknownError: There is no such account to be closed.
        InvalidFieldError: The new name looks like another one.
        RefusalError: There is no account of the new name.
    """
    if isinstance(request, CloseAccount):
        _require_named(request.account, configuration, stored)
    if isinstance(request, MoveAccount):
        _require_target(request, configuration, stored)


def _require_named(level: Account, configuration: Configuration, stored: Mapping[Account, Limit]) -> None:
    if configuration.is_about(level) or any(each.level(level.depth) == level for each in stored):
        return
    raise AccountUnknownError


def _require_target(
    request: MoveAccount, configuration: Configuration, stored: Mapping[Account, Limit]
) -> None:
    limits = dict(stored)
    limit = limits.pop(request.account, None)
    if limit is not None:
        limits[request.target] = limit
        if not configuration.is_written_out(request.target):
            _require_visible(first_ignorable(request.target.path))
    try:
        configuration.limits_of(request.target, limits)
    except InvisibleNameError as error:
        _require_visible(error.index)
    except AccountUnknownError:
        raise rpc_errors.RefusalError(rpc_errors.target_unknown()) from None


def _require_visible(index: int | None) -> None:
    if index is not None:
        raise InvalidFieldError(f"target.path[{index}]", PROBLEM)
