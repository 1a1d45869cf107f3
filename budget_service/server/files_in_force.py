"""The files by which this process decides, in the journals: that they came into force before what was decided by them.

A root's journal gets an entry soon after the root is used, unless the last one of that kind in it says the same: once
for all processes of a ledger, and again after a change and its withdrawal. No answer waits for it, and none depends on
it. A root that is not used gets none.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias, cast

from budget_service.internal_errors import log_internal_error
from budget_service.ledger.limits import NO_LIMITS, AppliedLimits
from budget_service.ledger.outcomes import Answer, Exhausted, Held, Refused
from budget_service.ledger.recorded_files import RecordedFile
from budget_service.ledger.requests import RecordFile, Request
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import Account
from budget_service.server.actors import local_actor
from budget_service.server.settings import LiveSettings
from budget_service.stores.interface import Store, StoreDamagedError, StoreError
from gris_serving.security import Security

INTERVAL_SECONDS = 1.0
KNOWN_ROOTS = 50_000
# How far a journal is read back for the last entry of a kind; beyond, the file is said again.
PAGE, PAGES = 1000, 10
REASON = "in force"

InForce: TypeAlias = Callable[[], Mapping[str, RecordedFile]]
"""Returns the files in force now, by kind; it reads none."""

log = logging.getLogger(__name__)


class FilesInForce:
    """A store that keeps in mind which roots are used, and what records files in their journals; see `Store`."""

    def __init__(self, ledger: Store, in_force: InForce) -> None:
        self._ledger = ledger
        self._in_force = in_force
        self._used: set[str] = set()
        self._said: OrderedDict[str, Mapping[str, RecordedFile]] = OrderedDict()
        self._fails = False

    @property
    def store(self) -> Store:
        """Return this as a store."""
        return cast(Store, self)

    def __getattr__(self, name: str) -> Any:
        """Return a method of the store by its name."""
        return getattr(self._ledger, name)

    async def apply(self, request: Request, limits: AppliedLimits) -> Answer:
        """Decide a request and write the change; see `Store`."""
        answer = await self._ledger.apply(request, limits)
        # Who is refused may have made the root up.
        if not isinstance(answer.outcome, Exhausted | Held | Refused):
            self._used.add(request.account.root)
        return answer

    async def run(self) -> None:
        """Record files in the journals of roots that are used, until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            try:
                await self.record()
            except Exception as error:
                log_internal_error(error)

    async def record(self) -> None:
        """Record the files in force where a root was used; where that fails, the next call tries again."""
        files = self._in_force()
        used, self._used = self._used, set()
        left = {root for root in used if self._said.get(root) != files}
        problem = ""
        for root in sorted(left):
            try:
                for file in files.values():
                    await self._record(root, file)
            except StoreError as error:
                problem = type(error).__name__
                if not isinstance(error, StoreDamagedError):
                    break
            else:
                left.remove(root)
                self._keep(root, files)
        self._used |= left
        self._note(problem)

    async def _record(self, root: str, file: RecordedFile) -> None:
        last, before = await self._last(root, file.kind)
        if last is not None and last.sha256 == file.sha256:
            return
        # Processes that find the same entry write one together.
        id_ = hashlib.sha256("\0".join((root, file.text, before)).encode()).hexdigest()
        request = RecordFile(
            account=Account((root,)), request_id=id_, actor=local_actor(), file=file, reason=REASON
        )
        await self._ledger.apply(request, NO_LIMITS)

    async def _last(self, root: str, kind: str) -> tuple[RecordedFile | None, str]:
        """Return the last file of a kind that a journal has, and what no other entry of a file has."""
        position = ""
        for _ in range(PAGES):
            page = await self._ledger.latest(root, position, PAGE)
            for found, entry in page:
                if entry.kind is EntryKind.FILE and (file := RecordedFile.of_text(entry.change)).kind == kind:
                    return file, found
            if len(page) < PAGE:
                break
            position = page[-1][0]
        return None, datetime.now(UTC).date().isoformat()

    def _keep(self, root: str, files: Mapping[str, RecordedFile]) -> None:
        self._said[root] = files
        self._said.move_to_end(root)
        if len(self._said) > KNOWN_ROOTS:
            self._said.popitem(last=False)

    def _note(self, problem: str) -> None:
        if problem and not self._fails:
            log.warning(
                "The files in force are not recorded yet.",
                extra={"event": "file.not_recorded", "fields": {"problem": problem}},
            )
        self._fails = bool(problem)


def in_force(settings: LiveSettings, config: Path, security: Security, access: Path | None) -> InForce:
    """Return what tells the files by which a process decides; none where they are not to be recorded."""

    def found() -> Mapping[str, RecordedFile]:
        current = settings.current
        if not current.configuration.administration.records_files:
            return {}
        files = {"budget": _named("budget", current.sha256, config)}
        if access is not None:
            files["access"] = _named("access", security.access_sha256, access)
        return files

    return found


def _named(kind: str, sha256: str, path: Path) -> RecordedFile:
    return RecordedFile.parse(kind, sha256, re.sub(r"[^A-Za-z0-9._-]", "_", path.name)[:128])
