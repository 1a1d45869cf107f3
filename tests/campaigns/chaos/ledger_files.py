"""The files of a ledger in SQLite, and how somebody exchanges them under a service that runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class LedgerFiles:
    """A file and its write-ahead log."""

    path: Path

    @contextmanager
    def exchanged(self) -> Iterator[None]:
        """Have a copy without the last charges in the ledger's place, as after a restore without a stop.

        A service that has the ledger open goes on writing into the files that were moved away. The context must be left
        when no service runs.
        """
        log = self.path.with_name(f"{self.path.name}-wal")
        away = [(each, each.with_name(f"{each.name}.away")) for each in (self.path, log) if each.exists()]
        for each, elsewhere in away:
            each.rename(elsewhere)
        shutil.copyfile(away[0][1], self.path)
        self.path.chmod(0o600)
        try:
            yield
        finally:
            log.unlink(missing_ok=True)
            for each, elsewhere in away:
                elsewhere.replace(each)
