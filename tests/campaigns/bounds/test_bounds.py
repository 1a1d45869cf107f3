"""What is headed as an interval holds the truth as often as it says, and what is a bound is true."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import duckdb
import pytest
from scipy.stats import binom

from pinot_connector import PrivateClient
from pinot_connector.coverage import Interval, Least, LeastAndMost
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.results import PrivateResult
from tests.campaigns.bounds.questions import POLICY, QUESTIONS, TABLES, write_tables
from tests.support.embedded import UNHURRIED, embedded

DRAWS = 12
CONFIDENCE = 0.95


@pytest.fixture(scope="module")
def asking(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[PrivateClient, duckdb.DuckDBPyConnection]]:
    """Give a client of services of its own, and the rows themselves."""
    folder = tmp_path_factory.mktemp("bounds")
    paths = write_tables(folder)
    truth = duckdb.connect()
    for name in TABLES:
        truth.sql(f"CREATE VIEW {name} AS SELECT * FROM '{paths[name]}'")  # noqa: S608 - names of these tests
    with (
        embedded(folder, POLICY) as services,
        PrivateClient(
            engine=DuckDBEngine(paths),
            dp=services.dp_address,
            budget=services.budget_address,
            account="t/a",
            timeouts=UNHURRIED,
        ) as client,
    ):
        yield client, truth


def judged(
    result: PrivateResult, truth: dict[tuple[str, ...], tuple[float, ...]]
) -> Iterator[tuple[str, bool]]:
    """Yield of each interval and bound of an answer which it is, and whether it is true."""
    for row in result.rows:
        numbers = truth[tuple(map(str, row.element))]
        shown = [
            *([] if row.interval is None else [row.interval]),
            *(value and value.interval for value in row.values),
        ]
        for ends, number in zip(shown, numbers, strict=True):
            match ends:
                case Interval(lower, upper):
                    assert not isinstance(lower, Fraction) or isinstance(upper, Fraction)
                    yield "interval", bool(lower <= number <= upper)
                case Least(least):
                    yield "bound", bool(least <= number)
                case LeastAndMost(least, most):
                    yield "bound", bool(least <= number)
                    yield "upper bound", bool(number <= most)


def test_intervals_and_bounds_hold_the_truth(
    asking: tuple[PrivateClient, duckdb.DuckDBPyConnection],
) -> None:
    """Over many draws of 24 questions; members of the orders exceed every bound of their policy."""
    client, rows = asking
    true: Counter[str] = Counter()
    of: Counter[str] = Counter()
    for name, asked in QUESTIONS.items():
        plain = (asked.truth or asked.sql).partition(" ORDER BY")[0]
        found = rows.sql(plain).fetchall()
        for _ in range(DRAWS):
            result = client.sql(asked.sql)
            names = len(result.columns)
            truth = {tuple(map(str, each[:names])): each[names:] for each in found}
            for kind, holds in judged(result, truth):
                true[kind] += holds
                of[kind] += 1
                true[f"{kind}: {name}"] += holds
                of[f"{kind}: {name}"] += 1
    print({kind: f"{true[kind]} of {of[kind]}" for kind in of})
    assert set(of) >= {"interval", "bound", "upper bound"}
    assert true["interval"] >= binom.ppf(0.01, of["interval"], CONFIDENCE)
    assert true["bound"] >= CONFIDENCE * of["bound"]
    # Of the subscriptions their owner states how much is cut, which is true of them.
    assert true["upper bound"] >= CONFIDENCE * of["upper bound"]
