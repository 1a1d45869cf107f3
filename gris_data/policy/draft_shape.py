"""The numbers of a drafted policy that come from the rows: powers of two, so that they tell little of anybody.

A bound that is small cuts, and one that is large adds noise. Where a draft chooses one, both are weighed against what a
usual question counts: the share that is cut, and the noise beside the count.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from dp_service.mechanisms import Currency
from dp_service.mechanisms.bounded import BoundGauss, ContributionBound
from dp_service.mechanisms.bounded.contribution_bound import Counted
from dp_service.noise.gaussian_price import rho_of_units
from dp_service.queries.bucket_lengths import BucketLength
from dp_service.terms import ColumnType
from gris_data.policy.draft import Draft
from gris_data.table_schema import TableColumn
from pinot_connector.engines.parquet import quoted

TOP = 10
"""So many of the largest elements are weighed."""

POWERS = tuple(1 << power for power in range(17))
_FEW = 0.05
_MOSTLY = NormalDist().inv_cdf(0.95)


@dataclass(frozen=True)
class Looks:
    """How contributions are bounded.

    Attributes:
        delta_0: In how many elements a member counts.
        units: What a question costs.
        delta_1: The bound of a first look that names elements; 0: there is one look.
        share: The first look's share of the units.
        max_names: How many elements it names.
    """

    delta_0: int
    units: int
    delta_1: int = 0
    share: Fraction = Fraction(0)
    max_names: int = 0

    @property
    def rho(self) -> float:
        """What is left of the units for counts, in the currency of a draft."""
        return float(rho_of_units(CURRENCY.epsilon_per, (1 - self.share) * self.units))

    @property
    def rho_of_one(self) -> float:
        """What counts have of the units where one look is enough, as of buckets of time."""
        return float(rho_of_units(CURRENCY.epsilon_per, self.units))


@dataclass(frozen=True)
class Planned:
    """How contributions are bounded, and for which questions that was chosen.

    Attributes:
        looks: How they are bounded.
        column: The column that questions are by: the one with the most elements; empty: there is none.
        top: How many of its largest elements they ask for.
        is_useful: Whether trial runs with these bounds find useful answers to them.
    """

    looks: Looks
    column: str = ""
    top: int = 0
    is_useful: bool = False


CURRENCY = Currency(Fraction("0.15"), Fraction("1e-11"))
REACHED_BY = 12
"""How many members reach a bound that is chosen, at least: a few who are far from the others do not decide it."""


@dataclass(frozen=True)
class Shape:
    """What is chosen by the rows of a table.

    Attributes:
        planned: How contributions are bounded, and for which questions.
        tau: How many rows of a member count in one element.
        rows_cut: Which share of the rows that leaves out, in one total of all rows.
        buckets: In how many buckets of time a member counts; 0: there is no time.
        most_members: A power of ten far above the number of members.
        most_rows: The same of rows.
        months: The first day of the months of nearly all rows, and the day after the last of them; None: there is no
            time, or hardly a member.
    """

    planned: Planned
    tau: int
    rows_cut: float
    buckets: int
    most_members: int
    most_rows: int
    months: tuple[datetime.date, datetime.date] | None

    @property
    def looks(self) -> Looks:
        """How contributions are bounded."""
        return self.planned.looks


def shape_of(connection: duckdb.DuckDBPyConnection, draft: Draft, planned: Planned) -> Shape:
    """Return what is chosen by the rows that a connection reads."""
    looks = planned.looks
    rows, members = _one(connection, f"SELECT count(*), count(DISTINCT {_member(draft)}) FROM {_rows(draft)}")  # noqa: S608
    total = _Weighed(*_counted(connection, draft, "count(*)"), _noise(1, looks.rho), max(rows, 1))
    tau = _tau(connection, draft, planned) or best_power([total])
    buckets = _buckets(connection, draft, looks) if draft.times else 0
    months = _months(connection, draft) if draft.times else None
    return Shape(planned, tau, total.cut(tau), buckets, _power_of_ten(members), _power_of_ten(rows), months)


@dataclass(frozen=True)
class _Weighed:
    """What members have in one element, `sizes` and how often, and how much noise a bound of one brings."""

    sizes: NDArray[np.float64]
    often: NDArray[np.float64]
    noise: Callable[[int], float]
    usual: float

    def cut(self, bound: int) -> float:
        """Return the share of all sizes that a bound cuts."""
        whole = float((self.sizes * self.often).sum())
        return 1 - float((np.minimum(self.sizes, bound) * self.often).sum()) / whole if whole else 0.0

    def loss(self, bound: int) -> float:
        """Return what is cut, and the noise, as shares of what a usual question counts; more than all is not lost."""
        return min(1.0, self.cut(bound) + self.noise(bound) / self.usual)


def best_power(weighed: Sequence[_Weighed]) -> int:
    """Return the power of two with the smallest loss, all questions taken together."""
    return min(POWERS, key=lambda bound: sum(each.loss(bound) for each in weighed))


def usual_elements(connection: duckdb.DuckDBPyConnection, draft: Draft, planned: str) -> int:
    """Return the least bound that leaves nearly all elements of members in the columns that are not planned for."""
    # Days are asked for in buckets, which have a bound of their own.
    others = [each for each in draft.elements if each.name != planned and each.type is not ColumnType.DATE]
    bound = 1
    for each in others:
        sizes, often = _counted(connection, draft, f"count(DISTINCT {quoted(each.name)})")
        weighed = _Weighed(sizes, often, noise=float, usual=1.0)
        bound = max(bound, next((bound for bound in POWERS if weighed.cut(bound) < _FEW), POWERS[-1]))
    return bound


def _counted(
    connection: duckdb.DuckDBPyConnection, draft: Draft, size: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what members have, by an aggregate over their rows, and how often that is so."""
    found = connection.execute(
        f"SELECT size, count(*) AS often FROM (SELECT {size} AS size FROM {_rows(draft)} "  # noqa: S608 - names are quoted
        f"WHERE {_member(draft)} IS NOT NULL GROUP BY {_member(draft)}) GROUP BY size"
    ).fetchnumpy()
    return np.asarray(found["size"], dtype=np.float64), np.asarray(found["often"], dtype=np.float64)


def _noise(delta: int, rho: float) -> Callable[[int], float]:
    return lambda bound: bound * math.sqrt(delta / (2 * rho))


@dataclass(frozen=True)
class _Top:
    """The rows of members in the largest elements of a column.

    Attributes:
        weighed: How many rows a member has in one of them, and the noise beside half of the smallest of these: with
            more, others would be taken for it.
        found: How many rows of the smallest a bound leaves in the look that finds names, once members are bounded.
    """

    weighed: _Weighed
    found: Callable[[int], float]

    def is_found(self, bound: int, needed: Mapping[int, float]) -> bool:
        """Return whether a list of all of them is likely to be found."""
        return self.found(bound) >= needed[bound]

    def loss(self, bound: int, needed: Mapping[int, float]) -> float:
        """Return what a list loses: all of it if it is not found."""
        return self.weighed.loss(bound) if self.is_found(bound, needed) else 1.0


def _tau(connection: duckdb.DuckDBPyConnection, draft: Draft, planned: Planned) -> int:
    """Return how many rows of a member count in one element: what loses least in lists by each of the columns.

    The column that is planned for comes first: with any bound that finds its elements, one that does not is no choice.
    0 if there is no column.
    """
    columns = [each for each in draft.elements if each.type is not ColumnType.DATE]
    tops = {each.name: _top(connection, draft, each.name, planned.looks) for each in columns}
    needed = {bound: _needed(planned.looks, bound) for bound in POWERS}
    first = [each for name, each in tops.items() if name == planned.column]

    def loss(bound: int) -> tuple[bool, float]:
        is_missed = not all(each.is_found(bound, needed) for each in first)
        return is_missed, sum(each.loss(bound, needed) for each in tops.values())

    return min(POWERS, key=loss) if tops else 0


def _needed(looks: Looks, tau: int) -> float:
    """Return how many rows an element needs to be found with 95 %."""
    units = looks.share * looks.units if looks.delta_1 else Fraction(looks.units)
    bound = ContributionBound(looks.delta_1 or looks.delta_0, tau=tau, counted=Counted.EVENTS)
    look = BoundGauss(CURRENCY, units, bound, 1)
    return (look.threshold or 0) + _MOSTLY * math.sqrt(look.variance)


def _top(connection: duckdb.DuckDBPyConnection, draft: Draft, column: str, looks: Looks) -> _Top:
    who, name = _member(draft), quoted(column)
    found = connection.execute(
        f"WITH pairs AS (SELECT {who} AS who, {name} AS element, count(*) AS size FROM {_rows(draft)} "  # noqa: S608
        f"WHERE {who} IS NOT NULL AND {name} IS NOT NULL GROUP BY ALL), kept AS (SELECT *, "
        f"least(1, {looks.delta_1 or looks.delta_0} / count(*) OVER (PARTITION BY who)) AS part FROM pairs), "
        f"top AS (SELECT element FROM pairs GROUP BY 1 ORDER BY sum(size) DESC, 1 LIMIT {TOP}) "
        "SELECT dense_rank() OVER (ORDER BY element) - 1 AS place, size, count(*) AS often, sum(part) AS kept "
        "FROM kept SEMI JOIN top USING (element) GROUP BY element, size"
    ).fetchnumpy()
    place = np.asarray(found["place"], dtype=np.int64)
    sizes, often, kept = (np.asarray(found[key], dtype=np.float64) for key in ("size", "often", "kept"))
    smallest = float(np.bincount(place, sizes * often).min()) if sizes.size else 1.0

    def left(bound: int) -> float:
        return float(np.bincount(place, np.minimum(sizes, bound) * kept).min()) if sizes.size else 0.0

    return _Top(_Weighed(sizes, often, _noise(looks.delta_0, looks.rho), smallest / 2), left)


def _buckets(connection: duckdb.DuckDBPyConnection, draft: Draft, looks: Looks) -> int:
    """Return in how many buckets a member should count: days, weeks and months taken together."""
    weighed = []
    for length in ("day", "week", "month"):
        bucket = f"date_trunc('{length}', {time_of(draft.times[0])})"
        (buckets,) = _one(connection, f"SELECT count(DISTINCT {bucket}) FROM {_rows(draft)}")  # noqa: S608
        sizes, often = _counted(connection, draft, f"count(DISTINCT {bucket})")
        usual = float((sizes * often).sum()) / max(buckets, 1)
        weighed.append(_Weighed(sizes, often, _root_noise(buckets, looks.rho), max(usual, 1.0)))
    return best_power(weighed)


def _months(
    connection: duckdb.DuckDBPyConnection, draft: Draft
) -> tuple[datetime.date, datetime.date] | None:
    """Return months that leave out rows of fewer members than a dozen before them, and after them."""
    month = f"CAST(date_trunc('month', {time_of(draft.times[0])}) AS DATE)"
    ends = (
        f"SELECT min({month}) AS first, max({month}) AS last FROM {_rows(draft)} "  # noqa: S608 - names are quoted
        f"GROUP BY {_member(draft)} HAVING first IS NOT NULL"
    )
    members, first, last = _one(
        connection,
        f"SELECT count(*), min(first, {REACHED_BY})[-1], max(last, {REACHED_BY})[-1] FROM ({ends})",  # noqa: S608
    )
    return None if members < REACHED_BY else (first, BucketLength.MONTH.day_after(last))


def _root_noise(most: int, rho: float) -> Callable[[int], float]:
    """Return the noise in counts of members, who are in so many of them; of `most` elements none is in more."""
    return lambda bound: math.sqrt(min(bound, most) / (2 * rho))


def time_of(column: TableColumn) -> str:
    """Return SQL for the time of a row, in DuckDB's own type."""
    name = quoted(column.name)
    factor = {"seconds": 1_000_000, "milliseconds": 1000, "microseconds": 1}.get(column.time_unit, 0)
    return f"make_timestamp({name} * {factor})" if factor else name


def _member(draft: Draft) -> str:
    return quoted(draft.member.name)


def _rows(draft: Draft) -> str:
    return quoted(draft.table.name)


def _power_of_ten(number: int) -> int:
    """Return a power of ten, ten times as large as a number or more."""
    return int(10 ** (math.ceil(math.log10(max(number, 1))) + 1))


def _one(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    return connection.execute(query).fetchone() or ()
