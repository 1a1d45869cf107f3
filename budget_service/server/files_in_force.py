"""The files by which this process decides, in the journals of the roots for which it does.

A root's journal gets an entry soon after the root is used, unless the last one of that kind in it says the same: once
for all processes of a ledger, and again after a change and its withdrawal. No answer waits for it, and none depends on
it. A root that is not used gets none.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias, cast

from budget_service.internal_errors import log_internal_error
from budget_service.ledger.limits import NO_LIMITS, AppliedLimits
from budget_service.ledger.outcomes import Answer, Exhausted, Held, Refused
from budget_service.ledger.recorded_files import RecordedFile, journal_name
from budget_service.ledger.requests import RecordFile, Request
from budget_service.ledger.state import EntryKind
from budget_service.ledger.values import Account
from budget_service.server.actors import local_actor
from budget_service.server.settings import LiveSettings
from budget_service.stores.interface import Store, StoreDamagedError, StoreError
from gris_serving.security import Security

INTERVAL_SECONDS = 1.0
KNOWN_ROOTS = 50_000
FINISH_SECONDS = 5.0
SAID_FOR_SECONDS = 3600.0
"""How long nobody looks whether another process has said something else since."""
# How far a journal is read back for the last entry of a kind; beyond, the file is said again.
PAGE, PAGES = 1000, 10
REASON = "in force"

InForce: TypeAlias = Callable[[], Mapping[str, RecordedFile]]
"""Returns the files in force now, by kind; none where they are not to be recorded."""

log = logging.getLogger(__name__)


class FilesInForce:
    """A store that keeps in mind which roots are used, and what records files in their journals; see `Store`."""

    def __init__(self, ledger: Store, in_force: InForce) -> None:
        self._ledger = ledger
        self._in_force = in_force
        self._used: set[str] = set()
        self._said: OrderedDict[str, tuple[Mapping[str, RecordedFile], float]] = OrderedDict()
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
            await self._record_now()

    async def finish(self) -> None:
        """Record what is left when the process ends, for so long as that may take; what is left then is logged."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FINISH_SECONDS):
                await self._record_now()
        if self._used:
            self._fails = False
            self._note("stopped")

    async def _record_now(self) -> None:
        try:
            await self.record()
        except Exception as error:
            log_internal_error(error)

    async def record(self) -> None:
        """Record the files in force where a root was used; where that fails, the next call tries again."""
        files, now = self._in_force(), monotonic()
        used, self._used = self._used, set()
        left = {root for root in used if files and not self._has_said(root, files, now)}
        problem = ""
        try:
            for root in sorted(left):
                try:
                    await self._record(root, files)
                except StoreError as error:
                    problem = type(error).__name__
                    if not isinstance(error, StoreDamagedError):
                        break
                else:
                    left.remove(root)
                    self._keep(root, files, now)
        finally:
            self._used |= left
        self._note(problem)

    def _has_said(self, root: str, files: Mapping[str, RecordedFile], now: float) -> bool:
        said, at = self._said.get(root, (None, now))
        return said == files and now - at < SAID_FOR_SECONDS

    async def _record(self, root: str, files: Mapping[str, RecordedFile]) -> None:
        last = await self._last(root, [(each.kind, each.name) for each in files.values()])
        for file in files.values():
            sha256, position = last.get((file.kind, file.name), ("", f"{datetime.now(UTC):%Y-%m-%dT%H}"))
            if sha256 == file.sha256:
                continue
            # Processes that find the same entry write one together.
            id_ = hashlib.sha256("\0".join((root, file.text, position)).encode()).hexdigest()
            request = RecordFile(
                account=Account((root,)), request_id=id_, actor=local_actor(), file=file, reason=REASON
            )
            await self._ledger.apply(request, NO_LIMITS)

    async def _last(
        self, root: str, names: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], tuple[str, str]]:
        """Return the last digest of files by kind and name, and the entry's position, as far back as is looked."""
        found: dict[tuple[str, str], tuple[str, str]] = {}
        before = ""
        for _ in range(PAGES):
            page = await self._ledger.latest(root, before, PAGE)
            for position, entry in page:
                if entry.kind is EntryKind.FILE:
                    file = RecordedFile.of_text(entry.change)
                    found.setdefault((file.kind, file.name), (file.sha256, position))
            if len(page) < PAGE or found.keys() >= {*names}:
                break
            before = page[-1][0]
        return found

    def _keep(self, root: str, files: Mapping[str, RecordedFile], now: float) -> None:
        self._said[root] = files, now
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
        files = {"budget": RecordedFile("budget", current.sha256, journal_name(config.name))}
        if access is not None:
            files["access"] = RecordedFile("access", security.access_sha256, journal_name(access.name))
        return files

    return found
