"""The settings in force: `budget.yaml` and the ticket keys it names, read again whenever one of the files changes.

A file that cannot be used changes nothing: the settings in force stay, the log says why, and so does whoever is asked
for the last refusal, without what stands in the file.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from budget_service.configuration.budget_file import Configuration, ConfigurationError, load_configuration
from budget_service.configuration.errors import Fault
from budget_service.server.tickets import TicketKeyError, TicketVerifier
from gris_serving.reloading_files import FileStamp, file_stamp

INTERVAL_SECONDS = 1.0

UNUSABLE_KEYS = Fault("charge_tickets", "ticket keys that this process may read and nobody else")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """A valid configuration and, if it demands tickets, the keys they are checked with."""

    configuration: Configuration
    tickets: TicketVerifier | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Files that cannot be used, since when this process knows, and why."""

    since: datetime
    faults: tuple[Fault, ...]


@dataclass
class LiveSettings:
    """The settings in force; whoever keeps something that follows from them asks whether they are still the same.

    `refusal` says why those in the files are not in force; None if they are.
    """

    current: Settings
    in_force_since: datetime = field(default_factory=lambda: datetime.now(UTC))
    refusal: Refusal | None = None

    async def follow(self, path: Path) -> None:
        """Read the files again whenever one of them has changed; runs until it is cancelled."""
        seen = await asyncio.to_thread(_stamps, path, self.current)
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            found = await asyncio.to_thread(_stamps, path, self.current)
            if found != seen:
                # The stamps are older than what is read now, so that a change in between is noticed next time.
                seen = found
                await asyncio.to_thread(self.reload, path)

    def reload(self, path: Path) -> None:
        """Put the files' settings in force as a whole, or keep those that are and log why."""
        try:
            self.current = load_settings(path)
        except (ConfigurationError, TicketKeyError) as error:
            log.error(
                "The new configuration cannot be used; the old one stays in force.",
                extra={"event": "settings.refused", "fields": {"problem": str(error)}},
            )
            faults = error.faults if isinstance(error, ConfigurationError) else (UNUSABLE_KEYS,)
            self.refusal = Refusal(self.refusal.since if self.refusal else datetime.now(UTC), faults)
            return
        self.in_force_since, self.refusal = datetime.now(UTC), None
        log.info("A new configuration is in force.", extra={"event": "settings.reloaded"})


def load_settings(path: Path) -> Settings:
    """Read `budget.yaml` and the keys it names. Raises ConfigurationError or TicketKeyError."""
    configuration = load_configuration(path)
    wanted = configuration.charge_tickets
    if wanted is None:
        return Settings(configuration)
    previous = [Path(each) for each in wanted.previous_key_files]
    return Settings(configuration, TicketVerifier.from_files(Path(wanted.key_file), previous))


def _stamps(path: Path, settings: Settings) -> list[FileStamp | None]:
    wanted = settings.configuration.charge_tickets
    keys = [] if wanted is None else [wanted.key_file, *wanted.previous_key_files]
    return [file_stamp(each) for each in (path, *map(Path, keys))]
