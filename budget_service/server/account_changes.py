"""What an administrator may close, move and forget by the configuration, before the ledger decides."""

from __future__ import annotations

import secrets

from budget_service.configuration.budget_file import AccountUnknownError, Configuration, InvisibleNameError
from budget_service.ledger.account_states import UNTOUCHED
from budget_service.ledger.ignorable import PROBLEM, first_ignorable
from budget_service.ledger.limits import NO_LIMITS, AppliedLimits, LimitsChangedError, StoredLimits
from budget_service.ledger.outcomes import Answer, Refused
from budget_service.ledger.requests import (
    AccountRequest,
    CloseAccount,
    ForgetAccount,
    MoveAccount,
    ReopenAccount,
    SetLimits,
)
from budget_service.ledger.values import Account, InvalidFieldError, Limit
from budget_service.server import rpc_errors
from budget_service.stores.interface import Store, StoreUnavailableError
from budget_service.stores.named_store import NamedStore

MAX_ATTEMPTS = 5


async def require_known(request: AccountRequest, configuration: Configuration, store: Store) -> None:
    """Refuse to close or reopen what nobody could use, most likely a misspelt name, or to move one where nobody is.

    Args:
        request: What is asked.
        configuration: The configuration in force.
        store: The ledger, whose stored limits create accounts too.

    Raises:
        AccountUnknownError: There is no such account to be closed or opened.
        InvalidFieldError: The name, or the new one, looks like another one.
        RefusalError: There is no account of the new name.
        StoreError: The store failed.
    """
    if isinstance(request, CloseAccount):
        await _require_named(request.account, configuration, store)
    # Where nothing was ever closed, nothing was closed of this account either: most likely its name is misspelt.
    if isinstance(request, ReopenAccount) and not (await store.limits(request.account)).version:
        await _require_named(request.account, configuration, store)
    if isinstance(request, MoveAccount):
        limits = dict((await store.limits(request.account)).limits)
        limits |= (await store.limits(request.target)).limits
        _require_target(request, configuration, limits)


async def forget_account(request: ForgetAccount, configuration: Configuration, store: NamedStore) -> Answer:
    """Forget an account and what it was called before: the ledger says whether it may be, and then their names go.

    Who is interrupted in between does it once more, by the same request or another one.

    Raises:
        AccountUnknownError: The ledger has never heard of it, or has forgotten it.
        StoreError: The store failed.
    """
    account = request.account
    for _ in range(MAX_ATTEMPTS):
        stored = await store.limits(account)
        names = (account, *stored.states.get(account, UNTOUCHED).former(account))
        rows = await store.rows_of(names)
        if not any(each.level == account for each in rows):
            # What an earlier call has left when it was interrupted, and persons who asked for a level above alone.
            await store.drop_persons(account)
            await _look_up_anew(request, stored, store)
            raise AccountUnknownError
        limits = filter(None, map(configuration.limit_of, names))
        windows = tuple({each.window for each in limits})
        try:
            answer = await store.apply(request, AppliedLimits(version=stored.version, rules=windows))
        except LimitsChangedError:
            # It may have got another name meanwhile, or another limit.
            continue
        if not isinstance(answer.outcome, Refused):
            await store.drop(rows)
            await _look_up_anew(request, stored, store)
        return answer
    raise StoreUnavailableError("the limits of this root are being changed without pause")


async def _look_up_anew(request: ForgetAccount, stored: StoredLimits, store: NamedStore) -> None:
    """Have the limits of the root looked up again: who has seen the name in between takes it for closed."""
    if stored.version:
        id_ = f"forgotten {secrets.token_hex(8)}"
        anew = SetLimits(account=request.account.level(1), request_id=id_, actor=request.actor, changes=())
        await store.apply(anew, NO_LIMITS)


async def _require_named(level: Account, configuration: Configuration, store: Store) -> None:
    try:
        configuration.limits_of(level, (await store.limits(level)).limits)
    except InvisibleNameError as error:
        # Who reads its budget is refused in the same way.
        _require_visible(error.index, "account")
    except AccountUnknownError:
        pass
    if configuration.is_about(level):
        return
    # A root may have very many stored limits, and few names are unknown.
    stored = (await store.all_limits(level.root)).limits
    if not any(each.level(level.depth) == level for each in stored):
        raise AccountUnknownError


def _require_target(request: MoveAccount, configuration: Configuration, limits: dict[Account, Limit]) -> None:
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


def _require_visible(index: int | None, field: str = "target") -> None:
    if index is not None:
        raise InvalidFieldError(f"{field}.path[{index}]", PROBLEM)
