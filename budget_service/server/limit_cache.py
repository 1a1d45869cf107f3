"""The limits that apply to an account: those stored in the ledger, before those of the configuration.

They are cached for the next request of the account and may be out of date. The ledger refuses to decide by limits that
have changed since; then they are looked up again.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

from budget_service.configuration.budget_file import AccountUnknownError
from budget_service.ledger.account_statement import AccountStatement
from budget_service.ledger.act import Act
from budget_service.ledger.acts.currency import ChangeCurrency
from budget_service.ledger.limits import NO_VERSION, AppliedLimits, LimitsChangedError, StoredLimits
from budget_service.ledger.outcomes import Answer
from budget_service.ledger.values import NOTHING, Account, LevelLimit, Limit, Mode
from budget_service.ledger.windows import Period, WindowRule
from budget_service.server.settings import LiveSettings
from budget_service.stores.interface import Store, StoreUnavailableError

KNOWN_ACCOUNTS = 50_000
# A request looks limits up again after each change of its root's limits.
MAX_ATTEMPTS = 5

PLACEHOLDER_LIMIT = Limit(NOTHING, Mode.ENFORCE, WindowRule(Period.NEVER, "UTC"))


class LimitCache:
    """Applies requests, and reads accounts, by the limits that are in force."""

    def __init__(self, store: Store, settings: LiveSettings) -> None:
        self._store = store
        self._settings = settings
        self._configuration = settings.current.configuration
        self._found: OrderedDict[Account, AppliedLimits] = OrderedDict()

    def forget(self) -> None:
        """Drop the cache: a ledger that was set back gives old versions to other limits."""
        self._found.clear()

    async def apply(self, request: Act) -> Answer:
        """Apply a request by the limits that are in force; see `Store.apply`.

        Raises:
            AccountUnknownError: There is no such account, and the request was not answered when there was.
        """
        try:
            return await self._applied(request)
        except AccountUnknownError:
            if (answer := await self.earlier_answer(request)) is not None:
                return answer
            raise

    async def earlier_answer(self, request: Act) -> Answer | None:
        """Return the ledger's earlier answer to the same request, None if it has none; see `Store.apply`."""
        answer = await self._earlier_answer(request)
        # The refusal of an id that was used for another request is no earlier answer.
        return answer if answer is not None and answer.replayed else None

    async def has_answered(self, request: Act) -> bool:
        """Return whether the ledger remembers an answer to the request's id, whatever else was asked under it."""
        return await self._earlier_answer(request) is not None

    async def _earlier_answer(self, request: Act) -> Answer | None:
        # The store looks up payments by the last level, so there has to be one.
        kept = self._kept(request.account)
        levels = (LevelLimit(request.account, PLACEHOLDER_LIMIT),) if kept is None else kept.levels
        try:
            return await self._store.apply(request, AppliedLimits(levels, NO_VERSION))
        except LimitsChangedError:
            return None

    async def _applied(self, request: Act) -> Answer:
        limits = self._kept(request.account) or await self._look_up(request.account)
        for _ in range(MAX_ATTEMPTS):
            try:
                return await self._store.apply(request, limits)
            except LimitsChangedError:
                limits = await self._look_up(request.account)
        raise StoreUnavailableError("the limits of this root are being changed without pause")

    async def read(self, account: Account) -> AccountStatement:
        """Return the state of an account now; see `Store.read`.

        Raises:
            AccountUnknownError: There is no such account.
        """
        for _ in range(MAX_ATTEMPTS):
            found = self._kept(account) or await self._look_up(account)
            statement = await self._store.read(account, found.levels)
            if found.version == statement.limits_version:
                return replace(statement, closed=found.closed)
            await self._look_up(account)
        raise StoreUnavailableError("the limits of this root are being changed without pause")

    async def apply_anyway(self, request: Act) -> Answer:
        """Apply a request that grants nothing, even if its account has no limit any more; see `Store.apply`."""
        try:
            return await self._applied(request)
        except AccountUnknownError:
            stored = await self._store.limits(request.account)
            levels = (LevelLimit(request.account, PLACEHOLDER_LIMIT),)
            return await self._store.apply(request, stored.applied_to(request.account, levels))

    async def applied_to(self, account: Account) -> AppliedLimits:
        """Return the limits of an account, as they were looked up last.

        Raises:
            AccountUnknownError: There is no such account.
        """
        return self._kept(account) or await self._look_up(account)

    async def change_currency(self, request: ChangeCurrency) -> Answer:
        """Apply a change of currency by the windows of its root; see `Store.apply`.

        Raises:
            AccountUnknownError: The root has no limit.
        """
        root = request.account.root
        for _ in range(MAX_ATTEMPTS):
            stored = await self._store.all_limits(root)
            rules = self._settings.current.configuration.rules_of(root, stored.limits)
            if not rules:
                raise AccountUnknownError
            try:
                return await self._store.apply(request, AppliedLimits((), stored.version, rules))
            except LimitsChangedError:
                continue
        raise StoreUnavailableError("the limits of this root are being changed without pause")

    def _kept(self, account: Account) -> AppliedLimits | None:
        if self._configuration is not self._settings.current.configuration:
            self._configuration = self._settings.current.configuration
            self.forget()
        found = self._found.get(account)
        if found is not None:
            self._found.move_to_end(account)
            return found
        try:
            # Most roots have no stored limits. If this one has, the ledger refuses the request.
            return self._keep(account, StoredLimits())
        except AccountUnknownError:
            return None

    async def _look_up(self, account: Account) -> AppliedLimits:
        self._found.pop(account, None)
        return self._keep(account, await self._store.limits(account))

    def _keep(self, account: Account, stored: StoredLimits) -> AppliedLimits:
        levels = self._configuration.limits_of(account, stored.limits)
        self._found[account] = found = stored.applied_to(account, levels)
        if len(self._found) > KNOWN_ACCOUNTS:
            self._found.popitem(last=False)
        return found
