"""Changes that are larger than a transaction: written down whole first, and carried out after that.

Writing down is a transaction as any other, which decides that the change is made. Carrying it out takes several, and is
the affair of the next one who reads anything of the root; until it is finished nobody is shown anything of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aetcd.rpc import rpc_pb2
from msgspec.structs import replace

from budget_service.stores.etcd import encoding as text
from budget_service.stores.etcd.layout import Keys, Layout
from budget_service.stores.etcd.members import (
    MAX_OPERATIONS,
    Found,
    Members,
    Range,
    delete,
    put,
    range_of,
    unchanged,
)
from budget_service.stores.interface import OutcomeUnknownError, StoreUnavailableError

# With the record of the root.
MOST_AT_ONCE = MAX_OPERATIONS - 1
MAX_ATTEMPTS = 4


@dataclass(frozen=True, slots=True)
class Settled:
    """What was read of a root of which no change is pending.

    `root_revision` is that of the last change of the root, 0 if it was never used.
    """

    root: text.Root
    root_revision: int
    found: Found


@dataclass(frozen=True, slots=True)
class RootAccess:
    """One root account of a ledger."""

    members: Members
    layout: Layout
    root: str

    @property
    def keys(self) -> Keys:
        """Its keys, but for that of its record."""
        return self.layout.of(self.root)

    @property
    def record(self) -> bytes:
        """The key of its record."""
        return self.layout.root(self.root)

    async def read(self, ranges: Sequence[Range]) -> Settled:
        """Read ranges with the record of the root, all at one revision. Raises StoreUnavailableError."""
        for _ in range(MAX_ATTEMPTS):
            found = await self.members.read([range_of(self.record), *ranges])
            records = found.ranges[0]
            root = text.read_root(records[0].key, records[0].value) if records else text.Root()
            if not root.is_pending:
                revision = records[0].mod_revision if records else 0
                return Settled(root, revision, Found(found.revision, found.ranges[1:], found.counts[1:]))
            try:
                await carry_out(self)
            except OutcomeUnknownError as error:
                raise StoreUnavailableError(str(error)) from None
        raise StoreUnavailableError("a large change of this root account is still being carried out")


async def carry_out(at: RootAccess) -> None:
    """Carry out the change of a root that is written down, if it still is. Others may do the same at the same time.

    Each part compares the record of the root, which changes with the end of the last part: nothing is done late.

    Raises:
        StoreUnavailableError: It is not carried out yet.
        OutcomeUnknownError: It may be.
    """
    keys = at.keys
    records, pending = (await at.members.read([range_of(at.record), range_of(keys.pending)])).ranges
    if not pending or not records:
        return
    (record,), (change,) = records, pending
    written = text.read_root(record.key, record.value)
    operations = list(rpc_pb2.TxnRequest.FromString(change.value).success)
    parts = [
        operations[start : start + MOST_AT_ONCE - 1] for start in range(0, len(operations), MOST_AT_ONCE - 1)
    ]
    finished = [put(at.record, text.root_text(replace(written, is_pending=False))), delete(keys.pending)]
    for number, part in enumerate(parts, 1):
        transaction = rpc_pb2.TxnRequest(
            compare=[unchanged(at.record, record.mod_revision)],
            success=[*part, *(finished if number == len(parts) else ())],
        )
        if not (await at.members.write(transaction)).succeeded:
            # Somebody else has finished it.
            return
