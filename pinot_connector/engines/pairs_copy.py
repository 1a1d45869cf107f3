"""Whether a pairs copy holds what its manifest says, in the periods that a question counts.

COUNT(*) of such a copy is the number of members only while each of its rows is there once, with its own previous
period, and all are of one copy. So the engine is asked, on the version of the data that then answers, for what each
period holds: which builds, and for each previous period how many rows, and the sum of their check numbers. Anything
else than the manifest says is refused:

- rows of another copy of the same table carry another build, unless that copy has exactly the same rows in the period;
- rows that are there twice, or missing, change their number, or if as many are missing as are there twice, the sum of
  their check numbers: two rows have the same one with probability 2^-20, and two sets of many rows hardly ever;
- rows with another previous period, such as those of a table that has lost this column, change the sum too: in it each
  check number counts as often as its row's previous period says.

What is right is said by the manifest, and both sides change with any member's rows alike: whether there is an answer
depends on how the copy was loaded, on nobody's rows and on no account.
"""

from __future__ import annotations

import copy
import threading
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from fractions import Fraction

from pinot_connector.engines.base import (
    ColumnType,
    Engine,
    EngineQuery,
    ExpectedColumn,
    Feature,
    PairsCopy,
    PairsPeriod,
    ReadColumn,
    ReadValue,
    ValueType,
    sum_column,
)
from pinot_connector.errors import EngineRefused, GrisError

PERIOD_COLUMN = "gris_period"
PREVIOUS_COLUMN = "gris_previous"
BUILD_COLUMN = "gris_build"
CHECK_COLUMN = "gris_check"
# What an engine without NULL stores where a value is missing, by the schema that gris bound writes.
NO_PERIOD = -(2**31)
NO_BUILD = -(2**63)
_KEYS = {PERIOD_COLUMN: NO_PERIOD, BUILD_COLUMN: NO_BUILD, PREVIOUS_COLUMN: NO_PERIOD}
# A copy has at most 1,400 periods, each with one build, and its rows have one of the periods before or none. What has
# more groups than that can make is cut off here, and refused.
_MOST_GROUPS = 1_000_000
# 2^61 - 1, by which the manifest counts its sums as well.
_CHECK_MODULUS = 2**61 - 1
_OTHER_ROWS = (
    "the prepared copy {table} does not hold what its manifest says of the periods that the question counts: it was "
    "loaded twice or in part, parts of another copy are among it, or the policy names another manifest. Load the whole "
    "copy as gris bound wrote it, under a name of its own"
)


@dataclass(frozen=True, eq=False)
class _Asked:
    """What a version of a table holds, as soon as the thread that asks for it knows."""

    data_version: str
    held: Future[frozenset[PairsPeriod]] = field(default_factory=Future)

    @property
    def has_failed(self) -> bool:
        """Whether the next one asks again."""
        return self.held.done() and self.held.exception() is not None


class PairsCopies:
    """What the periods of an engine's pairs copies hold, asked once for each version. Thread-safe.

    Different questions that come at the same time, such as all of a dashboard, wait for the one that asks, and fail as
    it does.

    Args:
        engine: The engine, whose promises hold for these answers as for all others.
        quote: The quote around a name in its SQL.
        prefix: What precedes a query there.
        adds_doubles: It adds integers up as doubles, and has no way to make integers of these that it calls so. The
            sums stay below 2^53, up to where doubles are exact: check numbers are below 2^20, and a period has at most
            2^33 rows.
    """

    def __init__(
        self, engine: Engine, *, quote: str = '"', prefix: str = "", adds_doubles: bool = False
    ) -> None:
        self._engine = engine
        self._quote = quote
        self._prefix = prefix
        self._adds_doubles = adds_doubles
        self._lock = threading.Lock()
        self._asked: dict[str, _Asked] = {}

    def require(self, query: EngineQuery, data_version: str) -> None:
        """Returns if the query needs no pairs copy, or this version of its table is the one that it needs.

        Raises:
            EngineRefused: the table holds other rows, or is no pairs copy.
            DataChanged: it has another version meanwhile.
            IncompleteAnswer, EngineUnavailable: its rows cannot be counted.
        """
        if Feature.PAIRS_COPY not in query.requires:
            return
        expected = query.pairs_copy
        if expected is None or not _is_as_stated(self._periods(query.table, data_version), expected):
            raise EngineRefused(_OTHER_ROWS.format(table=query.table))

    def _periods(self, table: str, data_version: str) -> frozenset[PairsPeriod]:
        with self._lock:
            asked = self._asked.get(table)
            is_known = asked is not None and asked.data_version == data_version and not asked.has_failed
            if asked is None or not is_known:
                asked = self._asked[table] = _Asked(data_version)
        if not is_known:
            self._ask(table, asked)
        try:
            return asked.held.result()
        except GrisError as error:
            failure = copy.copy(error)
        # One error must not be raised in several threads: each adds its own traceback to it.
        raise failure

    def _ask(self, table: str, asked: _Asked) -> None:
        """Ask the engine, within its own time-out."""
        try:
            asked.held.set_result(self._counted(table, asked.data_version))
        except BaseException as error:
            # Those who wait must hear of it.
            asked.held.set_exception(error)

    def _counted(self, table: str, data_version: str) -> frozenset[PairsPeriod]:
        query = self._query(table)
        answer = self._engine.run(query, data_version)
        self._engine.confirm(query, answer)
        # Whatever type the columns have, these are integers: `run` has checked it.
        numbers = zip(*answer.elements, answer.counts, *answer.sums, strict=True)
        return _by_build(tuple(map(int, each)) for each in numbers)

    def _query(self, table: str) -> EngineQuery:
        named, check, count, total, *keys = (
            f"{self._quote}{name}{self._quote}"
            for name in (table, CHECK_COLUMN, "gris_count", sum_column(0), *_KEYS)
        )
        grouped = ", ".join(keys)
        added = f"SUM({check})" if self._adds_doubles else f"CAST(SUM({check}) AS BIGINT)"
        clauses = [
            f"SELECT {grouped}, COUNT(*) AS {count}, {added} AS {total} FROM {named}",  # noqa: S608
            f"GROUP BY {grouped} ORDER BY {', '.join(f'{key} ASC' for key in keys)} LIMIT {_MOST_GROUPS}",
        ]
        return EngineQuery(
            table=table,
            sql=self._prefix + " ".join(clauses),
            columns=tuple(ExpectedColumn(name, ColumnType.INT64) for name in _KEYS),
            row_limit=_MOST_GROUPS,
            reads=tuple(ReadColumn(name, ColumnType.INT64, missing) for name, missing in _KEYS.items()),
            sums=(ReadValue(CHECK_COLUMN, ValueType.INT64, Fraction(0)),),
            double_sums=self._adds_doubles,
        )


def _by_build(groups: Iterable[tuple[int, ...]]) -> frozenset[PairsPeriod]:
    """Returns what each period has of each build: of how many rows, and the sum of their check numbers."""
    rows: Counter[tuple[int, int]] = Counter()
    sums: Counter[tuple[int, int]] = Counter()
    for period, build, previous, count, checks in groups:
        rows[period, build] += count
        sums[period, build] += checks * (previous - NO_PERIOD + 1)
    return frozenset(PairsPeriod(*key, count, sums[key] % _CHECK_MODULUS) for key, count in rows.items())


def _is_as_stated(held: frozenset[PairsPeriod], expected: PairsCopy) -> bool:
    counting = {
        each
        for each in held
        if each.period < expected.end and (expected.start is None or each.period >= expected.start)
    }
    return counting == {each for each in expected.periods if each.rows}
