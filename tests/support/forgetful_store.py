"""A release store that finds nothing, for campaigns whose every question has to go the whole way."""

from __future__ import annotations

from pinot_connector.release_store import Found, KeptRelease, MemoryReleaseStore
from pinot_connector.release_store.interface import Account


class ForgetfulStore(MemoryReleaseStore):
    """Finds nothing and keeps nothing."""

    async def find(self, query_id: str, account: Account) -> Found | None:
        """Returns None."""
        return None

    async def keep(self, query_id: str, kept: KeptRelease) -> KeptRelease:
        """Returns the release, and keeps nothing."""
        return kept
