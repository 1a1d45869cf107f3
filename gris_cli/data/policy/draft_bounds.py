"""Which bounds a drafted policy proposes: those with which the noise and what the bound itself cuts are least together.

A bound that is small cuts what members add, and one that is large brings noise. Both are known for the owner's rows:
what weights cut is computed by the rule that questions are answered by, and noise follows from the bound and the units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import duckdb

MOST_CUT = 1 / 16
"""No bound is proposed that cuts more of a total."""

REACHED_BY = 12
"""How many members reach a bound that is chosen, at least: a few who are far from the others do not decide it."""

_MOST_ELEMENTS, _MOST_ROWS = 2**10, 2**15
_WORTH = 1 / 100
"""A larger bound is proposed where it lowers the error of each number by as much on average."""

_RANKS = 80
"""What a rank is off by for each row of a member that has a part, and four times that.

At the units of a draft the noise is about 20 rows. Rows that are left out move a rank by less than their number, for
most of them have the values that others have too.
"""

_LONGEST = 10
"""The error of a list is that of so many of its largest elements."""


@dataclass(frozen=True)
class Errors:
    """What goes wrong with a number, or with the largest numbers of a list, by one choice of a bound.

    Attributes:
        cut: The share of all of them together that the bound cuts.
        most_cut: The largest share of one of them that it cuts.
        error: What it cuts and the noise's standard deviation, as shares of each number; the mean of them.
    """

    cut: float
    most_cut: float
    error: float


@dataclass(frozen=True)
class UsualList:
    """What members have in the elements that a usual question counts.

    Attributes:
        cells: SQL of a relation with a row for each member and element: `who`, `element` and `size`.
        delta: In how many elements a member counts in full.
        rho: What the numbers cost.
    """

    cells: str
    delta: int
    rho: float

    def errors(self, connection: duckdb.DuckDBPyConnection, tau: float) -> Errors:
        """Return the errors if at most `tau` of a member counts in full in each of `delta` elements."""
        sums = f"SELECT sum(size)::DOUBLE AS size, sum(shown)::DOUBLE AS shown FROM ({self._weighted(tau)})"  # noqa: S608
        all_sums = f"SELECT size, shown, sum(size) OVER (), sum(shown) OVER () FROM ({sums} GROUP BY element)"  # noqa: S608
        found = connection.execute(f"{all_sums} ORDER BY size DESC LIMIT {_LONGEST}").fetchall()
        if not found or not found[0][2]:
            return Errors(0.0, 0.0, 0.0)
        noise = self._noise(tau)
        parts = [min(1.0, 1 - (shown - noise) / size) for size, shown, *_ in found if size > 0]
        return Errors(
            cut=1 - found[0][3] / found[0][2],
            most_cut=max(1 - shown / size for size, shown, *_ in found if size > 0),
            error=sum(parts) / len(parts),
        )

    def error_of_averages(self, connection: duckdb.DuckDBPyConnection, tau: float, width: float) -> float:
        """Return the mean error of averages: cells have a `total` of the rows that are their size.

        Args:
            connection: Reads the cells.
            tau: How many rows of a member count in full in each of `delta` elements.
            width: How far the ends of a row are apart.
        """
        sums = "sum(total) / sum(size), sum(shown * total / size), sum(shown)"
        of = f"FROM ({self._weighted(tau)}) WHERE size > 0 GROUP BY element"
        found = connection.execute(f"SELECT {sums} {of} ORDER BY sum(size) DESC LIMIT {_LONGEST}").fetchall()
        # A half of the price is that of the count.
        noise = width / math.sqrt(2) * self._noise(tau)
        parts: list[float] = [
            min(1.0, (abs(total / rows - average) + noise / rows) / abs(average))
            for average, total, rows in found
            if average
        ]
        return sum(parts) / max(len(parts), 1)

    def _weighted(self, tau: float) -> str:
        """Write what each member's cells show by their weights."""
        # S608: cells name columns that are quoted.
        counted = f"SELECT *, least(size, {tau}) AS x FROM ({self.cells})"  # noqa: S608
        weight = f"least(1, {tau} * sqrt({self.delta} / sum(x * x)))"
        weights = f"SELECT who, {weight} AS weight FROM ({counted}) GROUP BY who"  # noqa: S608
        return f"SELECT *, x * weight AS shown FROM ({counted}) JOIN ({weights}) USING (who)"  # noqa: S608

    def _noise(self, tau: float) -> float:
        return tau * math.sqrt(self.delta / (2 * self.rho))


@dataclass(frozen=True)
class _Listed:
    """A usual list: by some SQL of a row, with what its members have typically and what it costs."""

    element: str
    delta: int
    rho: float


class UsualLists:
    """The usual lists of a table: the total, and lists by each column, bucket and part of time that was asked for.

    Args:
        connection: Reads the rows, and keeps what members have in temporary tables.
        table: The table's name in SQL.
        member: The member's column in SQL.
        rho: What a total costs.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, table: str, member: str, rho: float) -> None:
        self._connection, self._table, self._member = connection, table, member
        self._listed = [_Listed("0", 1, rho)]
        self._kept: dict[tuple[str, str], str] = {}
        self._most_cut_of_members = 0.0
        self._rows = [self._cells("0", "count(*)")]
        self._most_rows = min(self._reached(f"FROM {self._rows[0]}"), _MOST_ROWS)
        self._least_rows = _least_uncut(self._errors_of_rows, self._most_rows)

    def typical(self, element: str, rho: float, *, is_usual: bool = True) -> int:
        """Return in how many elements a member counts in full, by the errors of a list of members and one of rows.

        Twice as many rows count in full as a total needs, in all elements together: where members have most of their
        rows in a few elements, a smaller bound leaves room for these.

        Args:
            element: SQL of a row.
            rho: What the list costs.
            is_usual: Whether bounds of rows and amounts are chosen for this list too.
        """
        cells = self._cells(element, "count(*)")
        members = f"SELECT who, element, 1 AS size FROM {cells}"  # noqa: S608
        most = self._reached(f"SELECT count(*) AS size FROM {cells} GROUP BY who")  # noqa: S608

        def errors(bound: int) -> Iterator[Errors]:
            yield UsualList(members, bound, rho).errors(self._connection, 1)
            rows = math.ceil(min(2 * self._least_rows, self._most_rows) / bound)
            yield UsualList(f"FROM {cells}", bound, rho).errors(self._connection, rows)

        most = min(most, _MOST_ELEMENTS)
        found = _least_error(errors, most, _least_uncut(errors, most))
        if is_usual:
            self._most_cut_of_members = max(self._most_cut_of_members, next(errors(found)).most_cut)
            self._listed.append(_Listed(element, found, rho))
            self._rows.append(cells)
        return found

    def rows(self) -> int:
        """Return how many rows of a member count in full, in all elements together."""
        return _least_error(self._errors_of_rows, self._most_rows, self._least_rows)

    def rows_ranked(self, value: str) -> int:
        """Return how many of its rows with some value, by SQL for it, have a part in quantiles: more may be cut."""
        cells = self._cells("0", f"count({value})")
        of_ranks = UsualList(f"FROM {cells}", 1, 1 / (2 * _RANKS**2))
        powers = [1 << power for power in range(self._reached(f"FROM {cells}").bit_length())]
        return min(powers, key=lambda rows: of_ranks.errors(self._connection, rows).error)

    def cuts(self, rows: int) -> list[float]:
        """Return which share a bound of rows cuts: of their total, at most of each list, and of any list of members."""
        return [*(each.most_cut for each in self._errors_of_rows(rows)), self._most_cut_of_members]

    def upper(self, amount: str, most: int) -> int:
        """Return up to what a member's amount counts in one element.

        Args:
            amount: SQL of what each row adds, 0 or more.
            most: The largest bound that may be chosen.
        """
        cells = self._cells_of_sums(amount)

        def errors(bound: int) -> Iterator[Errors]:
            return self._errors(cells, [bound] * len(cells))

        return _least_error(errors, most, _least_uncut(errors, most))

    def rows_with_value(self, of_row: str, low: int, high: int, upper: int) -> int:
        """Return how many rows with a value count in full, in all elements together, in sums and in averages.

        Args:
            of_row: SQL of a row's value between its ends, NULL where it has none.
            low: The lower end.
            high: The upper end.
            upper: Up to what a member's total counts in an element.
        """
        size = f"sum({of_row})::DOUBLE AS total, count({of_row})"
        cells = [self._cells(each.element, size) for each in self._listed]
        sums = self._cells_of_sums(f"greatest(0, {of_row})")

        def errors(rows: int) -> Iterator[Errors]:
            taus = [math.ceil(rows / each.delta) for each in self._listed]
            yield from self._errors(sums, [min(upper, tau * high) for tau in taus], rows)
            for held, each, tau in zip(cells, self._listed, taus, strict=True):
                averaged = UsualList(f"FROM {held}", min(each.delta, rows), each.rho)
                yield Errors(0.0, 0.0, averaged.error_of_averages(self._connection, tau, high - low))

        return _least_error(errors, self._most_rows, _least_uncut(errors, self._most_rows))

    def most_cut(self, amount: str, rows: int, row_upper: int, upper: int) -> float:
        """Return which share bounds cut at most of a large sum of a list, by SQL of what each row adds."""
        bounds = [min(upper, math.ceil(rows / each.delta) * row_upper) for each in self._listed]
        return max(each.most_cut for each in self._errors(self._cells_of_sums(amount), bounds, rows))

    def _cells_of_sums(self, amount: str) -> list[str]:
        return [self._cells(each.element, f"sum({amount})") for each in self._listed]

    def _errors_of_rows(self, rows: int) -> Iterator[Errors]:
        return self._errors(self._rows, [math.ceil(rows / each.delta) for each in self._listed])

    def _errors(
        self, cells: Sequence[str], bounds: Sequence[int], most: int = _MOST_ELEMENTS
    ) -> Iterator[Errors]:
        """Yield the errors of each list, in which a member counts in full in at most so many elements."""
        for held, each, bound in zip(cells, self._listed, bounds, strict=True):
            yield UsualList(f"FROM {held}", min(each.delta, most), each.rho).errors(self._connection, bound)

    def _cells(self, element: str, size: str) -> str:
        """Keep what each member has in each element; return the name of the temporary table."""
        if (element, size) in self._kept:
            return self._kept[element, size]
        # With a space, so that it is no table's name. Hashes are grouped in half of the time that texts take.
        name = self._kept[element, size] = f'"gris cells {len(self._kept)}"'
        self._connection.execute(
            f"CREATE TEMP TABLE {name} AS "  # noqa: S608 - names are quoted
            f"SELECT hash({self._member}) AS who, hash({element}) AS element, {size} AS size "
            f"FROM {self._table} WHERE {self._member} IS NOT NULL AND {element} IS NOT NULL GROUP BY ALL"
        )
        return name

    def _reached(self, sizes: str) -> int:
        """Return the power of two above the size that a dozen members reach, or all of fewer members."""
        largest = f"SELECT size FROM ({sizes}) ORDER BY 1 DESC LIMIT {REACHED_BY}"  # noqa: S608
        (reached,) = self._connection.execute(f"SELECT min(size) FROM ({largest})").fetchone() or (None,)  # noqa: S608
        return 1 << max(0, int(reached or 1) - 1).bit_length()


def _least_uncut(errors: Callable[[int], Iterator[Errors]], most: int) -> int:
    """Return the least power of two that cuts little of the first list: the others are not read; `most` if none is."""
    bound = 1
    while bound < most and next(errors(bound)).cut > MOST_CUT:
        bound *= 2
    return bound


def _least_error(errors: Callable[[int], Iterator[Errors]], most: int, least: int = 1) -> int:
    """Return the power of two with the least error of all lists together, between two of them."""
    bound = least
    found = [each.error for each in errors(bound)] if bound < most else []
    while bound < most:
        larger = [each.error for each in errors(2 * bound)]
        if sum(found) - sum(larger) < _WORTH * len(found):
            break
        bound, found = 2 * bound, larger
    return bound
