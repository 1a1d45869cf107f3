"""The table of the adaptive bound for the served currency: read from a file if there is one, and never waited for."""

from __future__ import annotations

import logging
from fractions import Fraction
from pathlib import Path

from dp_service.accounting.epsilon_table import EpsilonTable, TableError, file_name, table_from

_log = logging.getLogger(__name__)
_Version = tuple[int, int, int]


class AdaptiveTables:
    """Reads the table of one currency from a directory, and again when its file changes.

    A new table replaces the file as a whole. Until there is one, and while it cannot be read, guarantees are
    stated by the other bounds. A table that was read stays in use if its file goes away or is damaged.
    """

    def __init__(self, directory: Path, epsilon_per: Fraction, *, gaussian: bool = False) -> None:
        """Look for the table of a currency in a directory, which need not exist."""
        self._path = directory / file_name(epsilon_per, gaussian=gaussian)
        self._currency = (epsilon_per, gaussian)
        self._seen: _Version | None = None
        self._table: EpsilonTable | None = None

    @property
    def table(self) -> EpsilonTable | None:
        """The table that is in use, or None if there was none yet."""
        return self._table

    def poll(self) -> bool:
        """Check the file once, and return whether a new table is in use."""
        try:
            status = self._path.stat()
            version = (status.st_ino, status.st_mtime_ns, status.st_size)
            if version == self._seen:
                return False
            self._seen = version
            table = table_from(self._path.read_bytes())
            if (table.epsilon_per, table.gaussian) != self._currency:
                raise TableError("it is the table of another epsilon_per, or of other noise")
        except FileNotFoundError:
            return False
        except OSError as error:
            self._log_refusal(error.strerror or "cannot be read")
            return False
        except TableError as error:
            self._log_refusal(str(error))
            return False
        self._table = table
        fields = {"path": str(self._path), "units": table.units}
        _log.info("A table of the adaptive bound is used.", extra={"event": "table.used", "fields": fields})
        return True

    def _log_refusal(self, problem: str) -> None:
        _log.error(
            "The table of the adaptive bound cannot be used; guarantees stay as they were.",
            extra={"event": "table.refused", "fields": {"path": str(self._path), "problem": problem}},
        )
