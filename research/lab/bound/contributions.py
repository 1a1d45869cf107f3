"""What every bound leaves of the counts: sums that DuckDB makes, for tens of millions of pairs in limited memory.

A member with s elements of whom Delta are kept keeps each with the chance min(1, Delta / s), because the hash that
chooses knows nothing of elements. So a count that is bounded to Delta is expected to be the sum of these chances over
the members that hold the element, and one pass gives it for all bounds at once, without a hash of any pair. What the
hash would choose differs from that by less than noise does.

Texts are read as 64-bit hashes: two that have the same one are rarer than what such a plan could notice. No element and
no member leaves this module, only sums.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gris_cli.data.bound.source import ROWS, Columns, first_missing, open_rows, require_all_read
from gris_cli.data.bound.spilling import OWN_MISTAKES, spilling
from gris_cli.data.errors import InputError
from pinot_connector.engines.parquet import quoted

Floats = NDArray[np.float64]

MOST_ELEMENTS = 20_000
"""So many elements of the largest counts take part: further ones are far below what is ever shown of a top k."""

LARGEST_BOUND = 2**16
SHARES = (0.25, 0.5, 0.75, 0.9, 0.99, 1.0)


@dataclass(frozen=True)
class DataFile:
    """A file of another period, what its columns are, and whether rows without a value are left out."""

    path: Path
    columns: Columns
    drops_nulls: bool
    memory: str


@dataclass(frozen=True)
class Heaviness:
    """How many elements members have: `quantiles` at `SHARES` of the members."""

    members: int
    pairs: int
    quantiles: tuple[int, ...]

    @property
    def largest(self) -> int:
        """How many elements the member with the most of them has."""
        return self.quantiles[-1]


@dataclass(frozen=True, eq=False)
class BoundedCounts:
    """Counts by descending size, and what is expected of them under each bound.

    Attributes:
        counts: Members of each element, shape (elements,), of at most `MOST_ELEMENTS` elements.
        bounds: The bounds that were tried, ascending, shape (bounds,).
        bounded: What each bound leaves of each count, shape (bounds, elements).
        within: The same where members are bounded within the M largest elements alone, shape (bounds, elements).
        most_names: M.
        heaviness: How many elements members have.
    """

    counts: Floats
    bounds: tuple[int, ...]
    bounded: Floats
    within: Floats
    most_names: int
    heaviness: Heaviness

    def under(self, bound: int) -> Floats:
        """Return what is left of each count where members are bounded to `bound` elements."""
        left: Floats = self.bounded[self.bounds.index(bound)]
        return left

    def within_names(self, bound: int) -> Floats:
        """Return what is left where members are bounded to `bound` of the M names."""
        left: Floats = self.within[self.bounds.index(bound)]
        return left

    @property
    def kept_within(self) -> Floats:
        """The share of pairs with the M largest elements that each bound within them keeps, shape (bounds,)."""
        names = slice(None, self.most_names)
        return _floats(self.within[:, names].sum(axis=1) / self.counts[names].sum())

    @property
    def kept(self) -> Floats:
        """The share of pairs that each bound keeps of those that take part, shape (bounds,)."""
        return _floats(self.bounded.sum(axis=1) / self.counts.sum())


def counts_of_file(data: DataFile, k: int, most_names: int, bounds: Sequence[int] = ()) -> BoundedCounts:
    """Return what bounds leave of the counts of a file.

    Args:
        data: The file and its columns.
        k: How many elements will be asked for.
        most_names: M, how many names the first of two looks keeps.
        bounds: The bounds to try; by default the powers of two up to the most elements of a member.

    Raises:
        InputError: The file cannot be read as `gris bound` would read it, has no rows, or fewer than k elements.
        OSError: There is no room for what does not fit into memory.
    """
    failure = None
    with spilling(Path(tempfile.gettempdir()), data.memory) as connection:
        open_rows(connection, data.path, data.columns)
        try:
            _read_pairs(connection, data)
            return summed(connection, k, most_names, bounds)
        except duckdb.OutOfMemoryException:
            failure = InputError(f"{data.memory} is too little for this input", "memory")
        except OWN_MISTAKES:
            raise
        except duckdb.Error:
            # What DuckDB says may quote the file's content.
            failure = InputError("expected a file that can be read to its end")
    raise failure


def _read_pairs(connection: duckdb.DuckDBPyConnection, data: DataFile) -> None:
    needed = " AND ".join(f"given.{quoted(name)} IS NOT NULL" for name in data.columns.needed)
    member, *elements = (f"given.{quoted(name)}::VARCHAR" for name in data.columns.needed)
    connection.execute(
        f"CREATE TEMP TABLE pairs AS SELECT DISTINCT hash({member}) AS member, "  # noqa: S608 - names are quoted
        f"hash({', '.join(elements)}) AS element FROM {ROWS} AS given WHERE {needed}"
    )
    require_all_read(connection, data.path)
    if data.drops_nulls:
        return
    missing = connection.execute(f"SELECT 1 FROM {ROWS} AS given WHERE NOT ({needed}) LIMIT 1")  # noqa: S608
    if missing.fetchone():
        where = first_missing(connection, data.path, data.columns)
        raise InputError(f"{where}: expected a value, or that such rows are left out", remedy="drop_nulls")


def summed(
    connection: duckdb.DuckDBPyConnection, k: int, most_names: int, bounds: Sequence[int], weight: float = 1.0
) -> BoundedCounts:
    """Return what bounds leave of the counts of the table `pairs`; each of its members stands for `weight` members.

    Raises:
        InputError: There are no pairs, or fewer than k elements.
    """
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE sizes AS SELECT member, count(*) AS size FROM pairs GROUP BY member"
    )
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE ranked AS "  # noqa: S608
        "SELECT element, row_number() OVER (ORDER BY count(*) DESC, element) AS place "
        f"FROM pairs GROUP BY element ORDER BY place LIMIT {MOST_ELEMENTS}"
    )
    heaviness = _heaviness(connection, weight)
    (elements,) = _one(connection, "SELECT count(DISTINCT element) FROM pairs")
    if elements < k:
        raise InputError(f"there are {elements} different elements: fewer than the {k} that are asked for")
    tried = tuple(bounds) or powers_up_to(heaviness.largest)
    counts, bounded = _sums(connection, tried)
    return BoundedCounts(
        counts * weight,
        tried,
        bounded * weight,
        _sums_within(connection, tried, counts, most_names) * weight,
        most_names,
        heaviness,
    )


def powers_up_to(size: int) -> tuple[int, ...]:
    """Return 1, 2, 4 and so on, up to the first power of two that bounds nobody who has `size` elements.

    >>> powers_up_to(5)
    (1, 2, 4, 8)
    """
    largest = min(LARGEST_BOUND, 1 << max(size - 1, 0).bit_length())
    return tuple(1 << power for power in range(largest.bit_length()))


def _heaviness(connection: duckdb.DuckDBPyConnection, weight: float) -> Heaviness:
    members, pairs = _one(connection, "SELECT count(*), coalesce(sum(size), 0)::BIGINT FROM sizes")
    if not members:
        raise InputError("expected rows: there is nobody to plan for")
    (quantiles,) = _one(connection, f"SELECT quantile_disc(size, {list(SHARES)}) FROM sizes")  # noqa: S608
    return Heaviness(round(members * weight), round(pairs * weight), tuple(map(int, quantiles)))


def _sums(connection: duckdb.DuckDBPyConnection, bounds: Sequence[int]) -> tuple[Floats, Floats]:
    """Return the counts of the ranked elements, and the sums of chances for each bound."""
    chances = ", ".join(f"{_chances(bound, 'size')} AS kept_{bound}" for bound in bounds)
    found = connection.execute(
        f"SELECT count(*) AS held, {chances} FROM pairs JOIN sizes USING (member) JOIN ranked USING (element) "  # noqa: S608
        "GROUP BY place ORDER BY place"
    ).fetchnumpy()
    return _floats(found["held"]), np.stack([_floats(found[f"kept_{bound}"]) for bound in bounds])


def _sums_within(
    connection: duckdb.DuckDBPyConnection, bounds: Sequence[int], counts: Floats, most_names: int
) -> Floats:
    """Return the sums of chances where members are bounded within the names.

    The names are taken to be the M largest elements. An element beyond them that becomes a name is one name more for
    those who hold it. That is added up for as many more; what lies further down is hardly ever a name.
    """
    added = 4 * most_names
    size = f"(size + (place > {most_names})::INTEGER)"
    chances = ", ".join(f"{_chances(bound, size)} AS kept_{bound}" for bound in bounds)
    found = connection.execute(
        f"WITH names AS (SELECT member, place FROM pairs JOIN ranked USING (element) WHERE place <= {added}), "  # noqa: S608
        f"held AS (SELECT member, count(*) FILTER (WHERE place <= {most_names}) AS size FROM names GROUP BY member) "
        f"SELECT {chances} FROM names JOIN held USING (member) GROUP BY place ORDER BY place"
    ).fetchnumpy()
    within = np.repeat(counts[np.newaxis], len(bounds), axis=0)
    within[:, :added] = [_floats(found[f"kept_{bound}"]) for bound in bounds]
    return within


def _chances(bound: int, size: str) -> str:
    """Return SQL for the sum of the chances to be kept.

    It is a sum of integers, 2^-32 each: floats would add up to something else each time, in another order.
    """
    return f"sum((least(1.0, {bound} / {size}) * {2**32})::BIGINT) / {2.0**32}"


def _floats(values: ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64)


def _one(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    found = connection.execute(query).fetchone()
    return found or ()
