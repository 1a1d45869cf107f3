"""The tables of the adaptive bound: made once for each currency, with progress, and kept in the user's cache."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gris_data.caching import cache_directory
from gris_lab.progress import progress

if TYPE_CHECKING:
    from dp_service.accounting.epsilon_table import EpsilonTable
    from dp_service.accounting.solving import Solution, Split, Target

MAX_WORK = 10**9
"""No table that would take more than about a quarter of an hour is made."""


@dataclass(frozen=True)
class _Stage:
    """A search for an epsilon_per: the points of the grid for one e, how often they are worked out, and where not."""

    resolution: int
    most_often: int
    most_work: float


# Work grows with the square of the resolution, and half of it is enough: from above only.
_STAGES = (_Stage(8, 6, 4 * MAX_WORK), _Stage(64, 3, MAX_WORK / 3))


def table_for(
    epsilon_per: Fraction,
    information: int,
    *,
    gaussian: bool = False,
    quick: bool = False,
    directory: Path | None = None,
) -> EpsilonTable | None:
    """Return the table of a currency for so many units, made or extended if needed.

    Args:
        epsilon_per: What one unit buys.
        information: The largest number of units that will be asked for.
        gaussian: Whether units may also be of Gaussian noise.
        quick: Whether to take only what is in the cache.
        directory: Where the table is kept instead of the cache.

    Returns:
        The table; None if it would take too long to make. With `quick` it may have fewer units.

    Raises:
        ValueError: Not 0 < epsilon_per <= 10; the message names the argument.
    """
    from dp_service.accounting.checks import MAX_EPSILON_PER, require_epsilon  # noqa: PLC0415 - loads numpy
    from dp_service.accounting.epsilon_table import extended, work_of  # noqa: PLC0415

    require_epsilon("epsilon_per", epsilon_per, at_most=MAX_EPSILON_PER)
    if work_of(epsilon_per, information, gaussian=gaussian) > MAX_WORK:
        return None
    kept_in = directory or cache_directory()
    found = kept_table(epsilon_per, kept_in, gaussian=gaussian)
    if quick or found.units >= information:
        return found
    with progress("the adaptive bound", information - found.units) as advance:
        made = extended(found, information, advance)
    keep(made, kept_in)
    return made


def make_table(
    epsilon_per: Fraction, information: int, directory: Path, *, gaussian: bool = False
) -> EpsilonTable:
    """Return a table that is kept in a directory, made or extended if needed.

    Raises:
        ValueError: An argument is out of range, making the table would take too long, or it cannot be written.
    """
    from dp_service.accounting.checks import require_units  # noqa: PLC0415 - `gris --help` should be quick

    require_units("information", information, at_least=1)
    made = table_for(epsilon_per, information, gaussian=gaussian, directory=directory)
    if made is None:
        raise ValueError("information must be smaller for a table to be made in minutes")
    if not keep(made, directory):
        raise ValueError(f"directory must be one that can be written, got {directory}")
    return made


@dataclass(frozen=True)
class Remade:
    """The table of a file, made again without it: whether all of the file agrees, and what is said of that."""

    table: EpsilonTable
    agrees: bool
    said: str


def made_again(path: Path, epsilon_per: Fraction, information: int, *, gaussian: bool = False) -> Remade:
    """Make the table of a file again, for all of its units and as many as are asked for, and compare it with the file.

    Raises:
        ValueError: It is no table of this currency, or making it again would take too long; the message names it.
        OSError: The file cannot be read.
    """
    from dp_service.accounting.epsilon_table import (  # noqa: PLC0415 - loads numpy
        TableError,
        extended,
        new_table,
        table_from,
        work_of,
    )

    try:
        kept = table_from(path.read_bytes())
    except TableError as error:
        raise ValueError(f"{path}: {error}") from error
    if (kept.epsilon_per, kept.gaussian) != (epsilon_per, gaussian):
        noise = " with Gaussian steps" if kept.gaussian else ""
        raise ValueError(f"{path}: it is the table of an epsilon_per of {kept.epsilon_per}{noise}")
    if work_of(epsilon_per, max(kept.units, information), gaussian=gaussian) > MAX_WORK:
        raise ValueError(f"{path}: to make a table of so many units would take hours")
    with progress("the adaptive bound", max(kept.units, information)) as advance:
        table = extended(new_table(epsilon_per, gaussian=gaussian), kept.units, advance)
        agrees, said = _compared(kept, table)
        return Remade(extended(table, information, advance), agrees, f"{path}: {said}")


def _compared(kept: EpsilonTable, made: EpsilonTable) -> tuple[bool, str]:
    """Return whether two tables of as many units agree, and what is said of that."""
    import numpy as np  # noqa: PLC0415 - `gris --help` should be quick

    from dp_service.accounting.epsilon_table import STEPS_PER_E  # noqa: PLC0415 - loads numpy

    pairs = ((kept.rows.enough, made.rows.enough), (kept.rows.needed, made.rows.needed))
    apart = np.max([abs(ours.astype(np.int64) - theirs).max(axis=1) for ours, theirs in pairs], axis=0)
    if (rows := np.flatnonzero(apart)).size:
        most = float(apart.max() * kept.epsilon_per / STEPS_PER_E)
        said = f"of its {apart.size} rows {rows.size} differ from the table that was made again"
        return False, f"{said}, the first for {rows[0]} units, by an epsilon of {most:.2g} at most"
    # What it is extended from, up to what another processor rounds.
    ends = ((kept.upper.values, made.upper.values), (kept.lower.values, made.lower.values))
    if not all(
        ours.shape == theirs.shape and np.allclose(ours, theirs, rtol=1e-9, atol=0) for ours, theirs in ends
    ):
        return (
            False,
            "its rows are those of the table that was made again, but it would be extended to another one",
        )
    return True, f"all of its {apart.size} rows are those of the table that was made again"


def table_beyond(target: Target, split: Split, epsilon_per: Fraction) -> EpsilonTable | None:
    """Return a table that reaches beyond the units that a target allows; None if it would take too long to make."""
    from dp_service.accounting.solving import information_for  # noqa: PLC0415 - loads numpy

    found = table_for(epsilon_per, 0, gaussian=target.gaussian, quick=True)
    while (
        found is not None
        and information_for(target, split, epsilon_per=epsilon_per, table=found) >= found.units
    ):
        allowed = information_for(target, split, epsilon_per=epsilon_per, table=found)
        # A tenth more than what the other bounds allow is nearly always enough.
        found = table_for(epsilon_per, allowed + allowed // 10 + 10, gaussian=target.gaussian)
    return found


def with_adaptive_bound(target: Target, found: Sequence[Solution], *, information: int) -> list[Solution]:
    """Return solutions with the larger epsilon_per that the adaptive bound allows.

    A coarse grid finds about where it is, and the grid of the tables the rest. Both give bounds, so where the second
    would take too long, what the first has found holds too.
    """
    from dp_service.accounting.epsilon_table import work_of  # noqa: PLC0415 - loads numpy

    work = max(work_of(each.epsilon_per, information, gaussian=target.gaussian) for each in found)
    solutions = list(found)
    for stage in _STAGES:
        if work <= stage.most_work:
            with progress("the adaptive bound", len(found) * stage.most_often * information) as advance:
                solutions = [_enlarged(target, each, information, stage, advance) for each in solutions]
    return solutions


def _enlarged(
    target: Target, found: Solution, information: int, stage: _Stage, advance: Callable[[], None]
) -> Solution:
    from dp_service.accounting.epsilon_table import BudgetEpsilons  # noqa: PLC0415 - loads numpy
    from dp_service.accounting.solving import larger_epsilon_per  # noqa: PLC0415

    epsilon_per = larger_epsilon_per(
        target,
        found.split,
        information=information,
        least=found.epsilon_per,
        worked_out=partial(
            BudgetEpsilons.of,
            units=information,
            gaussian=target.gaussian,
            resolution=stage.resolution,
            advance=advance,
        ),
        most_often=stage.most_often,
    )
    return replace(found, epsilon_per=epsilon_per)


def kept_table(epsilon_per: Fraction, directory: Path, *, gaussian: bool = False) -> EpsilonTable:
    """Return the table of a currency that is in a directory, or one without any units."""
    from dp_service.accounting.epsilon_table import (  # noqa: PLC0415 - loads numpy
        TableError,
        file_name,
        new_table,
        table_from,
    )

    try:
        table = table_from((directory / file_name(epsilon_per, gaussian=gaussian)).read_bytes())
    except (OSError, TableError):
        # It is made anew, and replaces what is there.
        return new_table(epsilon_per, gaussian=gaussian)
    is_asked_for = (table.epsilon_per, table.gaussian) == (epsilon_per, gaussian)
    return table if is_asked_for else new_table(epsilon_per, gaussian=gaussian)


def keep(table: EpsilonTable, directory: Path) -> bool:
    """Put a table into a directory, and return whether that was possible. If not, it is made again next time."""
    from dp_service.accounting.epsilon_table import file_name  # noqa: PLC0415 - loads numpy

    try:
        directory.mkdir(parents=True, exist_ok=True)
        write_whole(directory / file_name(table.epsilon_per, gaussian=table.gaussian), table.to_bytes())
    except OSError:
        return False
    return True


def write_whole(path: Path, content: bytes) -> None:
    """Write a file such that a reader finds the earlier content or all of the new one.

    Raises:
        OSError: It cannot be written.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        # Everybody who may enter the directory may read the table: it says nothing about data.
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
