"""Whether a pairs copy holds what its manifest says, in the periods that a question counts.

COUNT(*) of such a copy is the number of members only while each of its rows is there once. A copy that was loaded
twice, in part or from other periods has other numbers of rows in its periods, and nothing is asked of it. Which numbers
are right is said by the manifest, and both change with any member's rows alike: whether there is an answer depends on
how the copy was loaded, and on nobody's rows.

It does not find parts of two copies that differ in `gris_previous` alone: they have as many rows.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from pinot_connector.engines.base import (
    ColumnType,
    Engine,
    EngineQuery,
    ExpectedColumn,
    Feature,
    PairsCopy,
    ReadColumn,
)
from pinot_connector.errors import EngineRefused

PERIOD_COLUMN = "gris_period"
PREVIOUS_COLUMN = "gris_previous"
NO_PERIOD = -(2**31)
_MOST_PERIODS = 100_000
_OTHER_ROWS = (
    "the prepared copy {table} does not hold what its manifest says of the periods that the question counts: it was "
    "loaded twice, in part or from another copy, or the policy names another manifest"
)


class PairsCopies:
    """The numbers of rows in the periods of an engine's pairs copies, counted once for each version. Thread-safe.

    Args:
        engine: The engine, whose promises hold for these counts as for all others.
        quote: The quote around a name in its SQL.
        prefix: What precedes a query there.
    """

    def __init__(self, engine: Engine, *, quote: str = '"', prefix: str = "") -> None:
        self._engine = engine
        self._quote = quote
        self._prefix = prefix
        self._lock = threading.Lock()
        self._counted: dict[str, tuple[str, Mapping[int, int]]] = {}

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
        if expected is None or not _is_as_stated(self._rows(query.table, data_version), expected):
            raise EngineRefused(_OTHER_ROWS.format(table=query.table))

    def _rows(self, table: str, data_version: str) -> Mapping[int, int]:
        with self._lock:
            version, rows = self._counted.get(table, ("", {}))
        if version == data_version:
            return rows
        query = self._count(table)
        answer = self._engine.run(query, data_version)
        self._engine.confirm(query, answer)
        # Whatever type the column has, these are integers: `run` has checked it.
        rows = {int(period): count for period, count in zip(answer.elements[0], answer.counts, strict=True)}
        with self._lock:
            self._counted[table] = (data_version, rows)
        return rows

    def _count(self, table: str) -> EngineQuery:
        named, column = (f"{self._quote}{name}{self._quote}" for name in (table, PERIOD_COLUMN))
        clauses = [
            f"SELECT {column}, COUNT(*) AS {self._quote}gris_count{self._quote} FROM {named}",  # noqa: S608
            f"GROUP BY {column} ORDER BY {column} ASC LIMIT {_MOST_PERIODS}",
        ]
        return EngineQuery(
            table=table,
            sql=self._prefix + " ".join(clauses),
            columns=(ExpectedColumn(PERIOD_COLUMN, ColumnType.INT64),),
            row_limit=_MOST_PERIODS,
            reads=tuple(
                ReadColumn(name, ColumnType.INT64, NO_PERIOD) for name in (PERIOD_COLUMN, PREVIOUS_COLUMN)
            ),
        )


def _is_as_stated(rows: Mapping[int, int], expected: PairsCopy) -> bool:
    counting = {
        period: count
        for period, count in rows.items()
        if period < expected.end and (expected.start is None or period >= expected.start)
    }
    return counting == {period: count for period, count in expected.rows if count}
