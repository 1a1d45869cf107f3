"""A transaction of one root account: it compares the revision of the root's record, and writes that record.

So of two transactions that have loaded the same, etcd takes one; the other one begins again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from aetcd.rpc import rpc_pb2
from msgspec.structs import replace as replace_fields

from budget_service.stores.etcd import encoding as text
from budget_service.stores.etcd import writing
from budget_service.stores.etcd.loading import Snapshot
from budget_service.stores.etcd.members import put, range_of, unchanged
from budget_service.stores.etcd.pending import MOST_AT_ONCE, RootAccess, carry_out
from budget_service.stores.interface import StoreError
from budget_service.stores.transactions import Changes

# So long at most a transaction waits that somebody else was quicker than: services that begin again together would
# disturb each other again.
LONGEST_PAUSE_SECONDS = 0.01


class EtcdTransaction:
    """A transaction that has loaded; see `Transaction`."""

    def __init__(self, at: RootAccess, snapshot: Snapshot, noted: Callable[[Changes], None]) -> None:
        self.loaded = snapshot.loaded
        self._at = at
        self._noted = noted
        # The engine adds to what is loaded.
        self._snapshot = replace(snapshot, reservations=dict(snapshot.reservations))

    async def commit(self, changes: Changes, committed: Callable[[], None]) -> bool:
        """Write all changes; see `Transaction`.

        Without changes there is nothing to do: what a linearizable read has shown is on the disks of the majority.
        """
        if not changes:
            committed()
            return True
        keys, snapshot = self._at.keys, self._snapshot
        operations = await writing.operations(self._at.members, keys, changes, snapshot)
        root = text.Root(changes.roots[self._at.root], snapshot.root.entries + len(changes.journal))
        is_large = len(operations) > MOST_AT_ONCE
        if is_large:
            root = replace_fields(root, is_pending=True)
            carried = rpc_pb2.TxnRequest(success=operations).SerializeToString()
            operations = [put(keys.pending, carried)]
        new = [keys.reservation(id_) for id_ in writing.opened(changes)]
        if not await self._written(root, operations, new):
            await asyncio.sleep(LONGEST_PAUSE_SECONDS * random.random())  # noqa: S311 - a pause
            return False
        self._noted(changes)
        committed()
        if is_large:
            # The next one who reads would do it too.
            with suppress(StoreError):
                await carry_out(self._at)
        return True

    async def _written(self, root: text.Root, operations: Sequence[Any], new: Sequence[bytes]) -> bool:
        """Write and return True, or False if the root has changed. Raises ValueError if a new key is not new."""
        record = self._at.record
        transaction = rpc_pb2.TxnRequest(
            compare=[unchanged(record, self._snapshot.root_revision), *(unchanged(key, 0) for key in new)],
            success=[put(record, text.root_text(root)), *operations],
            failure=[rpc_pb2.RequestOp(request_range=range_of(record))],
        )
        answer = await self._at.members.write(transaction)
        if answer.succeeded:
            return True
        found = answer.responses[0].response_range.kvs
        revision = found[0].mod_revision if found else 0
        if revision == self._snapshot.root_revision:
            raise ValueError("the id of a new reservation is taken")
        return False
