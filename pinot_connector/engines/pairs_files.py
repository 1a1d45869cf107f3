"""A pairs copy as files: a manifest, and the Parquet file of each period that it names.

The files are those that `gris bound --pairs` wrote, by their checksums; it writes no text that is not UTF-8. So they
are read as they are, and the version of the copy is a hash of its manifest.
"""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from glob import escape
from pathlib import Path

from pinot_connector.engines.file_versions import VersionedFile
from pinot_connector.engines.parquet import literal
from pinot_connector.errors import DataUnreadable

_MANIFEST = "manifest of a pairs copy, as gris bound --pairs writes it"


class PairsFiles:
    """The files of a pairs copy, with a version as a `VersionedFile` has one. Safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._manifest = VersionedFile(path)
        self._lock = threading.Lock()
        self._known: tuple[str, dict[str, VersionedFile]] = ("", {})

    def version(self) -> str:
        """Returns the version of the copy.

        Raises:
            EngineUnavailable: a file is not there.
            DataUnreadable: it is no manifest, or a file is not the one that it names.
        """
        version = self._manifest.version()
        for checksum, file in self._files(version).items():
            if file.version() != checksum:
                raise DataUnreadable(
                    f"the data file {file.path.name} is not the one that the manifest of the pairs copy names"
                )
        return version

    def rows(self) -> str:
        """Returns the query for all rows."""
        files = [str(file.path) for file in self._files(self._manifest.version()).values()]
        listed = ", ".join(literal(escape(each)) for each in files)
        # A file's own columns, as they are; a text that is no UTF-8 would be an error, and there is none.
        return f"SELECT * FROM read_parquet([{listed}], hive_partitioning = false)"  # noqa: S608 - paths are quoted

    def _files(self, version: str) -> dict[str, VersionedFile]:
        """Returns the file of each checksum; a file keeps what is known of it while manifests change."""
        with self._lock:
            known_version, known = self._known
            if known_version == version:
                return known
            by_path = {file.path: file for file in known.values()}
            files = {
                checksum: by_path.get(self.path.parent / name) or VersionedFile(self.path.parent / name)
                for name, checksum in _named(self.path)
            }
            self._known = (version, files)
            return files


def _named(path: Path) -> list[tuple[str, str]]:
    """Returns name and checksum of each file that a manifest names.

    Raises:
        DataUnreadable: it is no manifest, or names no file, or one twice.
    """
    found: list[tuple[str, str]] = []
    with suppress(OSError, ValueError, LookupError, TypeError):
        periods = json.loads(path.read_bytes())["periods"]
        found = [(str(each["file"]), str(each["checksum"])) for each in periods]
    if not found or any(len(set(each)) < len(found) for each in zip(*found, strict=True)):
        raise DataUnreadable(f"the data file {path.name} is no {_MANIFEST}")
    return found
