"""The rows of the table: what must hold, and what came of trying it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum

from tests.campaigns.pinot_check.cluster import CannotTryError, CheckedCluster

_LONGEST = 160


class Outcome(Enum):
    """What came of a row."""

    HELD = "held"
    DID_NOT = "DID NOT"
    NOT_TRIED = "not tried"


@dataclass(frozen=True)
class Row:
    """What must hold on a cluster.

    `attempt` returns a remark, raises CannotTryError, or raises whatever it likes if the row does not hold.
    """

    says: str
    attempt: Callable[[CheckedCluster], str]
    is_slow: bool


@dataclass(frozen=True)
class Result:
    """What came of a row, and why."""

    row: Row
    outcome: Outcome
    remark: str


def row(attempt: Callable[[CheckedCluster], str]) -> Row:
    """Make a function a row of the table, which says what its docstring says."""
    return Row((attempt.__doc__ or "").strip().rstrip("."), attempt, is_slow=False)


def slow_row(attempt: Callable[[CheckedCluster], str]) -> Row:
    """Make a function a row that may take a minute."""
    return replace(row(attempt), is_slow=True)


def tried(rows: Iterable[Row], cluster: CheckedCluster) -> Iterator[Result]:
    """Try each row, whatever came of the others."""
    for each in rows:
        try:
            remark = each.attempt(cluster)
        except CannotTryError as reason:
            yield Result(each, Outcome.NOT_TRIED, str(reason))
        except Exception as error:
            yield Result(each, Outcome.DID_NOT, f"{type(error).__name__}: {error}"[:_LONGEST])
        else:
            yield Result(each, Outcome.HELD, remark)
