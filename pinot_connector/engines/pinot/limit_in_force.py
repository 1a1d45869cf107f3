"""Finds out whether the LIMIT of a query is the one in force.

A broker lowers LIMIT without reporting it where `pinot.broker.enable.query.limit.override` is on, as Pinot sets up
clusters since 1.4, and `pinot.broker.query.response.limit` is set, which may be only in the broker's own file. This
shows in the plan of a query. The plan's other lines hold true counts, and are never shown.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pinot_connector.engines.pinot.answer import broker_of, require_no_exceptions
from pinot_connector.engines.pinot.columns import PinotColumn
from pinot_connector.engines.pinot.configuration import EXACT
from pinot_connector.errors import EngineRefused, EngineUnavailable

LARGEST = 100_001
"""The largest number of rows that any question asks for: d_bar and one more."""

MOST_BROKERS = 8
"""How many answers to wait for from the wanted broker; others may be behind the same address."""

PLAN_MEMORY_SECONDS = 60.0
"""How long a broker is trusted to treat a LIMIT as its last plan showed."""

_MOST_REMEMBERED = 1000
_REDUCE = re.compile(r"BROKER_REDUCE\(.*\blimit:(\d+)")
_GROUPED_TYPES = frozenset({"STRING", "INT", "LONG", "BOOLEAN"})
_NAME = re.compile(r"\w+", re.ASCII)


@dataclass(frozen=True)
class Plan:
    """What a broker made of a LIMIT; `shown` None: the plan has none, because there is no segment."""

    asked: int
    shown: int | None
    at: float

    def covers(self, rows: int) -> bool:
        """Returns whether it shows what happens to a LIMIT of so many rows."""
        return self.shown is not None and rows <= self.asked


Explain = Callable[[int], Mapping[str, Any]]
"""Returns a broker's response to EXPLAIN of a query with this LIMIT."""


class LimitsInForce:
    """Remembers what each broker does to a LIMIT. Thread-safe.

    A broker is known by its name in its answers. Before Pinot 1.0 there is none, and the address stands for one broker.
    """

    def __init__(self) -> None:
        self._plans: dict[str, Plan] = {}

    def brokers(self) -> frozenset[str]:
        """Returns the brokers that were asked within the last minute."""
        return frozenset(broker for broker, plan in self._plans.copy().items() if self._is_recent(plan))

    def require(self, broker: str, rows: int, explain: Explain, *, has_rows: bool) -> None:
        """Refuses a broker that lowers a LIMIT of so many rows; a recent plan is not asked for again.

        Args:
            broker: the name of the broker in the answer; empty: it has none.
            rows: the LIMIT of that answer's query.
            explain: asks for a plan from whichever broker is behind the address.
            has_rows: whether the table has any row; without rows, LIMIT leaves none out.

        Raises:
            EngineRefused: the broker lowers the LIMIT, or does not explain.
            EngineUnavailable: it cannot be reached, or its plan does not show the LIMIT.
        """
        plan = self._plan(broker, rows, explain)
        if plan.shown is None:
            # Otherwise a table's first row would decide whether there is an answer.
            if has_rows:
                raise EngineUnavailable("Pinot's broker does not report which LIMIT is in force")
        elif plan.shown < rows:
            raise EngineRefused(
                f"Pinot's broker lowers LIMIT to {plan.shown} rows (pinot.broker.query.response.limit), "
                f"and the question asks for {rows}"
            )

    def _plan(self, broker: str, rows: int, explain: Explain) -> Plan:
        plan = self._plans.get(broker)
        if plan is not None and self._is_recent(plan) and plan.covers(rows):
            return plan
        for _ in range(MOST_BROKERS):
            name, plan = _explained(rows, explain)
            self._remember(name, plan)
            if name == broker:
                return plan
        raise EngineUnavailable("the broker that answered cannot be found again behind Pinot's address")

    def _is_recent(self, plan: Plan) -> bool:
        return time.monotonic() - plan.at < PLAN_MEMORY_SECONDS

    def _remember(self, broker: str, plan: Plan) -> None:
        if len(self._plans) >= _MOST_REMEMBERED:
            self._plans = {}
        self._plans[broker] = plan


def explained_query(table: str, columns: Mapping[str, PinotColumn], limit: int) -> str:
    """Returns the EXPLAIN of a query like those of questions, without a filter: else it may have no plan."""
    column = _grouped(columns.items())
    return (
        f'{EXACT}EXPLAIN PLAN FOR SELECT "{column}", COUNT(*) FROM "{table}" '  # noqa: S608 - names of the schema
        f'GROUP BY "{column}" LIMIT {limit}'
    )


def _grouped(columns: Iterable[tuple[str, PinotColumn]]) -> str:
    """Returns a column that can be grouped by, always the same one."""
    names = [
        name
        for name, held in columns
        if held.is_single and held.type in _GROUPED_TYPES and _NAME.fullmatch(name)
    ]
    if not names:
        raise EngineRefused("Pinot's table has no column that a question could name")
    return min(names)


def _explained(rows: int, explain: Explain) -> tuple[str, Plan]:
    """Returns which broker answered, and what happens to the largest LIMIT.

    A broker that does not override refuses a LIMIT above its own outright; then this question's is asked about.
    """
    try:
        return _planned(max(rows, LARGEST), explain)
    except EngineRefused:
        return _planned(rows, explain)


def _planned(asked: int, explain: Explain) -> tuple[str, Plan]:
    response = explain(asked)
    shown = _shown(response)
    if shown is None:
        require_no_exceptions(response)
    return broker_of(response), Plan(asked, shown, time.monotonic())


def _shown(response: Mapping[str, Any]) -> int | None:
    """Returns the LIMIT in a plan. The broker writes that line itself, whatever servers say of theirs."""
    table = response.get("resultTable")
    rows = table.get("rows") if isinstance(table, dict) else None
    for row in rows if isinstance(rows, list) else ():
        found = _REDUCE.match(row[0]) if isinstance(row, list) and row and isinstance(row[0], str) else None
        if found is not None:
            return int(found[1])
    return None
