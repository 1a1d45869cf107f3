"""The tables of the adaptive bound: made once for each currency, with progress, and kept in the user's cache."""

from __future__ import annotations

import os
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from gris_cli.plan.progress import progress

if TYPE_CHECKING:
    from dp_service.accounting.epsilon_table import EpsilonTable
    from dp_service.accounting.solving import Split, Target

MAX_WORK = 10**9
"""No table that would take more than about five minutes is made."""


def cache_directory() -> Path:
    """Return where tables are kept: the directory gris of XDG_CACHE_HOME, by default ~/.cache."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    # The standard says that a relative path is to be ignored.
    return (Path(named) if Path(named).is_absolute() else Path.home() / ".cache") / "gris"


def table_for(epsilon_per: Fraction, information: int, *, quick: bool = False) -> EpsilonTable | None:
    """Return the table of a currency for so many units, made or extended if needed.

    Args:
        epsilon_per: What one unit buys.
        information: The largest number of units that will be asked for.
        quick: Whether to take only what is in the cache.

    Returns:
        The table; None if it would take too long to make. With `quick` it may have fewer units.

    Raises:
        ValueError: Not 0 < epsilon_per <= 10; the message names the argument.
    """
    from dp_service.accounting.epsilon_table import extended, work_of  # noqa: PLC0415 - loads numpy

    found = kept_table(epsilon_per)
    if quick or found.units >= information:
        return found
    if work_of(epsilon_per, information) > MAX_WORK:
        return None
    with progress("the adaptive bound", information - found.units) as advance:
        made = extended(found, information, advance)
    keep(made)
    return made


def table_beyond(target: Target, split: Split, epsilon_per: Fraction) -> EpsilonTable | None:
    """Return a table that reaches beyond the units that a target allows; None if it would take too long to make."""
    from dp_service.accounting.solving import information_for  # noqa: PLC0415 - loads numpy

    found = None if target.gaussian else kept_table(epsilon_per)
    while (
        found is not None
        and information_for(target, split, epsilon_per=epsilon_per, table=found) >= found.units
    ):
        allowed = information_for(target, split, epsilon_per=epsilon_per, table=found)
        # A tenth more than what the other bounds allow is nearly always enough.
        found = table_for(epsilon_per, allowed + allowed // 10 + 10)
    return found


def kept_table(epsilon_per: Fraction) -> EpsilonTable:
    """Return the table of a currency that is in the cache, or one without any units."""
    from dp_service.accounting.epsilon_table import TableError, new_table, table_from  # noqa: PLC0415

    try:
        table = table_from(_path(epsilon_per).read_bytes())
    except (OSError, TableError):
        # It is made anew, and replaces what is there.
        return new_table(epsilon_per)
    return table if table.epsilon_per == epsilon_per else new_table(epsilon_per)


def keep(table: EpsilonTable) -> None:
    """Put a table into the cache. Where that is not possible, it is made again next time."""
    path = _path(table.epsilon_per)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, table.to_bytes())
    except OSError:
        return


def write_whole(path: Path, content: bytes) -> None:
    """Write a file such that whoever reads it meanwhile finds the earlier content or all of the new one.

    Raises:
        OSError: It cannot be written.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _path(epsilon_per: Fraction) -> Path:
    return cache_directory() / f"adaptive-{epsilon_per.numerator}-{epsilon_per.denominator}.npz"
