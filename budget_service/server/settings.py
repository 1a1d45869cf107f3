"""The settings in force: `budget.yaml` and the ticket keys it names, reloaded when one of the files changes.

If a file cannot be used, the settings in force stay. The log has the reason; `LiveSettings.refusal` has it without
anything that the file contains.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from budget_service.configuration.budget_file import Configuration, ConfigurationError, load_configuration
from budget_service.server.tickets import TicketVerifier
from gris_serving.key_files import KeyFileError
from gris_serving.reloading_files import FileStamp, file_stamp

INTERVAL_SECONDS = 1.0

log = logging.getLogger(__name__)


def no_further_checks(_configuration: Configuration) -> None:
    """Require nothing of a configuration but that it is valid."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A valid configuration, and if it demands tickets their verifier."""

    configuration: Configuration
    tickets: TicketVerifier | None = None


@dataclass
class LiveSettings:
    """The settings in force. Code that caches anything derived from them compares `current` by identity.

    `check` raises ConfigurationError if a valid configuration cannot be this process's.
    """

    current: Settings
    check: Callable[[Configuration], None] = no_further_checks

    async def follow(self, path: Path) -> None:
        """Reload the files whenever one of them changes, until cancelled."""
        seen = await asyncio.to_thread(_stamps, path, self.current)
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            found = await asyncio.to_thread(_stamps, path, self.current)
            if found != seen:
                # The stamps are taken before the files are read, so a change in between is noticed next time.
                seen = found
                await asyncio.to_thread(self.reload, path)

    def reload(self, path: Path) -> None:
        """Put the settings of the files in force as a whole, or keep the present ones and log the reason."""
        try:
            self.current = load_settings(path, self.check)
        except (ConfigurationError, KeyFileError) as error:
            log.error(
                "The new configuration cannot be used; the old one stays in force.",
                extra={"event": "settings.refused", "fields": {"problem": str(error)}},
            )
            return
        log.info("A new configuration is in force.", extra={"event": "settings.reloaded"})


def load_settings(path: Path, check: Callable[[Configuration], None] = no_further_checks) -> Settings:
    """Read `budget.yaml` and the ticket keys it names.

    Raises:
        ConfigurationError: The configuration is not valid, or `check` raises it.
        KeyFileError: A ticket key cannot be used.
    """
    configuration = load_configuration(path)
    check(configuration)
    wanted = configuration.charge_tickets
    if wanted is None:
        return Settings(configuration)
    previous = [Path(each) for each in wanted.previous_key_files]
    return Settings(configuration, TicketVerifier.from_files(Path(wanted.key_file), previous))


def _stamps(path: Path, settings: Settings) -> list[FileStamp | None]:
    wanted = settings.configuration.charge_tickets
    keys = [] if wanted is None else [wanted.key_file, *wanted.previous_key_files]
    return [file_stamp(each) for each in (path, *map(Path, keys))]
