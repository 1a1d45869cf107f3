"""Which Parquet files are one table: a file, all in a folder, or those of a pattern such as `events/2026-*/*.parquet`.

What folders such as `country=FR` say below it is a column of texts, as Spark and Hive write it. Files and folders whose
names begin with `.` or `_` are no data, as there. Nothing here reads a row.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from glob import escape, glob, has_magic
from pathlib import Path
from stat import S_ISREG
from typing import NoReturn
from urllib.parse import unquote_to_bytes

from pinot_connector.errors import DataUnreadable, EngineGone

PARQUET = ".parquet"
_HIDDEN = (".", "_")
MAX_FILES = 10_000

# What a table format keeps beside its files: which of them are the table now, only its own library knows.
_TABLE_FORMATS = {
    "_delta_log/*.json": "Delta Lake",
    ".hoodie/hoodie.properties": "Hudi",
    "metadata/version-hint.text": "Iceberg",
    "metadata/*.metadata.json": "Iceberg",
}


@dataclass(frozen=True)
class ParquetFiles:
    """The files of a table.

    Attributes:
        paths: The files, in the order of their names; of a folder, from the root on.
        keys: The columns that the names of folders say.
        base: The folder below which these are.
        is_one: Whether the table is a file that was named, and no folder or pattern.
    """

    paths: tuple[Path, ...]
    keys: tuple[str, ...] = ()
    base: Path = Path()
    is_one: bool = True


def is_many(path: Path) -> bool:
    """Return whether a path is a folder, or a pattern of files and folders."""
    return path.is_dir() or (has_magic(str(path)) and not path.exists())


def is_parquet(path: Path) -> bool:
    """Return whether what a path names is read as Parquet."""
    return path.suffix == PARQUET or is_many(path)


def files_of(path: Path) -> ParquetFiles:
    """Return the files of a table that a path names.

    Files are left out whose folders are no UTF-8, as rows with such a text are: who writes a folder for each value
    makes one of what one member says. So are those whose folders hold characters of patterns, which Spark and others
    write as `%2A`: beside a folder that is no UTF-8, DuckDB would fail to find them.

    Raises:
        EngineGone: A folder or pattern has no Parquet file.
        DataUnreadable: There are more than `MAX_FILES`, folders say other columns, or they are of a table format.
    """
    if not is_many(path):
        return ParquetFiles((path,))
    base = base_of(path).absolute()
    if format_ := next((name for mark, name in _TABLE_FORMATS.items() if any(base.glob(mark))), None):
        raise DataUnreadable(
            f"the data folder {base.name} is a table of {format_}, some of whose files may be of rows "
            "that it has no more: write its rows as Parquet files of a folder of their own"
        )
    held = sorted(each for each in set(_below(path.absolute(), base)) if _is_data(each, base))
    if not held:
        raise EngineGone(f"the data folder {base.name} has no file named {PARQUET}")
    if len(held) > MAX_FILES:
        raise DataUnreadable(
            f"the data folder {base.name} has more than {MAX_FILES:,} files: write larger ones"
        )
    _require_files(held)
    return ParquetFiles(tuple(held), _keys(held, base), base, is_one=False)


def base_of(path: Path) -> Path:
    """Return the folder below which the files of a folder or pattern are."""
    while has_magic(str(path)) and not path.exists():
        path = path.parent
    return path


def table_path(path: Path) -> Path:
    """Return the file or folder after which a table is called: not one such as `country=FR`."""
    base = base_of(path)
    above = (base, *base.parents, *base.resolve().parents)
    return next((each for each in above if each.name not in ("", "..") and "=" not in each.name), base)


def said_by_folders(file: Path, base: Path) -> list[tuple[str, str]]:
    """Return names and values that the folders of a file say below another, as they are written."""
    parts = file.relative_to(base).parts[:-1]
    return [(name, value) for name, equals, value in (part.partition("=") for part in parts) if equals]


def _below(path: Path, base: Path) -> Iterator[Path]:
    """Yield all files below a folder, or below and among what a pattern finds; nothing that is hidden.

    Raises:
        DataUnreadable: A folder cannot be read, or is a link.
    """
    pattern = "" if path.is_dir() else os.path.join(escape(str(base)), path.relative_to(base))  # noqa: PTH118
    # `Path.glob` takes no pattern that begins at the root.
    for found in map(Path, glob(pattern, recursive=True)) if pattern else [path]:  # noqa: PTH207
        if is_hidden(found, base):
            continue
        if not found.is_dir():
            yield found
            continue
        for folder, below, names in os.walk(found, onerror=_unreadable):
            below[:] = [name for name in below if not name.startswith(_HIDDEN)]
            inside = [Path(folder) / name for name in below] + ([found] if pattern else [])
            if any(each.is_symlink() for each in inside):
                raise DataUnreadable(
                    f"the data folder {base.name} has a link to a folder below it: name that folder, or put it there"
                )
            yield from (Path(folder) / name for name in names)


def _unreadable(error: OSError) -> NoReturn:
    # Not the folder's name, which may say what a member has.
    raise DataUnreadable(f"a folder of the data cannot be read: {error.strerror}") from None


def _require_files(paths: list[Path]) -> None:
    """Refuse names that no file is behind, and files with two.

    Raises:
        EngineGone: A link leads nowhere, or a file is gone meanwhile.
        DataUnreadable: What has the name is no file, or one file has two names, or one that is not UTF-8.
    """
    found: dict[tuple[int, int], Path] = {}
    for path in paths:
        try:
            path.name.encode()
            status = path.stat()
        except UnicodeError:
            raise DataUnreadable("a file of the data has a name that is not UTF-8") from None
        except OSError as error:
            raise EngineGone(f"the data file {path.name} cannot be read: {error.strerror}") from None
        if not S_ISREG(status.st_mode):
            raise DataUnreadable(f"the data file {path.name} is no file")
        other = found.setdefault((status.st_dev, status.st_ino), path)
        if other != path:
            raise DataUnreadable(f"the data files {other.name} and {path.name} are one file with two names")


def is_hidden(file: Path, folder: Path) -> bool:
    """Return whether Spark ignores a file, as it does with its own marks and what it has not finished."""
    return any(part.startswith(_HIDDEN) for part in file.relative_to(folder).parts)


def _is_data(file: Path, base: Path) -> bool:
    is_named = file.suffix == PARQUET and not is_hidden(file, base)
    return is_named and _is_readable(str(file.parent.relative_to(base)))


def _is_readable(folders: str) -> bool:
    try:
        unquote_to_bytes(folders).decode()
    except UnicodeError:
        return False
    return not has_magic(folders)


def _keys(files: list[Path], base: Path) -> tuple[str, ...]:
    said = {tuple(name for name, _ in said_by_folders(each, base)) for each in files}
    keys = said.pop()
    if said:
        raise DataUnreadable(
            f"the data folder {base.name} has files whose folders say other columns than those of others: expected "
            "folders such as country=FR in the same order above each file"
        )
    if len(set(map(str.casefold, keys))) < len(keys) or "" in keys:
        raise DataUnreadable(f"the data folder {base.name} has folders that say one column twice, or =VALUE")
    return keys
