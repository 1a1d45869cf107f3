"""Trims the journal of a root after an export: `ledger.base` says what goes, and what stands for it.

Neither a trim nor a backup is an entry of the journal: the log has who made one, and why. It has that of a trim before
anything is changed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from gris_api.budget.v1 import admin_pb2 as pb

from budget_service.ledger.base import counted_since
from budget_service.ledger.windows import WindowRule
from budget_service.server import audit, rpc_errors
from budget_service.server.ledger import Ledger
from budget_service.server.settings import LiveSettings
from budget_service.stores.interface import OutcomeUnknownError, StoreDamagedError, StoreUnavailableError
from budget_service.tuning import Tuning

log = logging.getLogger(__name__)


def note_backup(made: pb.BackUpLedgerResponse, *, actor: str, reason: str) -> None:
    """Log a backup of the whole ledger, and who asked for it."""
    fields = {"file": made.file, "bytes": made.bytes, "actor": actor, "reason": reason}
    log.info("The ledger was backed up.", extra={"event": "ledger.backed_up", "fields": fields})


async def trimmed(
    ledger: Ledger,
    root: str,
    exported: str,
    settings: LiveSettings,
    *,
    by: tuple[str, str],
    tuning: Tuning,
) -> pb.TrimJournalResponse:
    """Verify a root, and drop the oldest entries that no window counts, up to the last one that was exported.

    Args:
        ledger: The ledger.
        root: The root account's name.
        exported: The position of the last entry that was exported.
        settings: Have the limits that are not stored.
        by: Who trims, and why, for the log.
        tuning: Sets the lengths of pages.

    Raises:
        RefusalError: There is no such root, or the ledger differs from its journal.
        StoreUnavailableError: The store failed before anything was changed, or limits were changed meanwhile.
        OutcomeUnknownError: It failed later. The trim may be repeated.
    """
    if root not in await ledger.roots():
        raise rpc_errors.RefusalError(rpc_errors.root_unknown(root))
    page = await ledger.balances(root, "", 1)
    rules = await _rules(ledger, root, settings)
    until = counted_since(rules, page.root.now(page.clock))
    found = audit.Verification()
    with ledger.reading("journal", root):
        base = await audit.verify(ledger, root, found, tuning, trim=audit.Trim(exported, until))
    if found.different:
        raise rpc_errors.RefusalError(rpc_errors.ledger_differs())
    if rules != await _rules(ledger, root, settings):
        raise StoreUnavailableError("limits of this root were changed while its journal was verified")
    actor, reason = by
    fields = {"root": root, "entries": base.entries, "actor": actor, "reason": reason}
    log.info("A journal is trimmed.", extra={"event": "ledger.trimmed", "fields": fields})
    dropped = 0
    try:
        if base.entries:
            await ledger.write_base(root, base)
        while count := await ledger.drop_trimmed(root, tuning.dropped_at_once):
            dropped += count
        # Another trim may have written a newer one.
        base = await ledger.base(root)
    except StoreDamagedError:
        raise
    except StoreUnavailableError as error:
        raise OutcomeUnknownError(str(error)) from error
    return pb.TrimJournalResponse(entries=base.entries, dropped=dropped, digest=base.digest)


async def _rules(ledger: Ledger, root: str, settings: LiveSettings) -> Sequence[WindowRule]:
    stored = (await ledger.all_limits(root)).limits
    return settings.current.configuration.rules_of(root, stored)
