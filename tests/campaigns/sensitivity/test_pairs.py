"""A member changes what a pairs copy counts by one in each element: from rows by the owner's tool, SQL and DuckDB."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from random import Random

import pytest

from dp_service.queries.pairs import PairsRange
from dp_service.queries.policy import read_policy
from dp_service.queries.render.dialects import Dialect
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.structured import HistogramQuery
from dp_service.terms import Element
from pinot_connector.engines.duckdb import DuckDBEngine
from tests.support.engine_queries import engine_query
from tests.support.examples import long_but
from tests.support.pairs_copies import START, UNTIL, Row, asked, make, policy_text, questions, write

DELTA = 4
DOMAIN = f", domain: [e0, e1, e2, e3, e4, e5], delta: {DELTA}"


@dataclass(frozen=True)
class Met:
    """What the mechanism of a question meets."""

    resolution: Resolution
    counts: dict[Element, int]


def rows_with_gaps(seed: int) -> list[Row]:
    """Return rows of few members, each with Delta elements in many periods; some rows lack something."""
    chosen = Random(seed)
    rows: list[Row] = [(None, "e1", "FR", UNTIL), ("null", "e1", "FR", UNTIL), ("m1", None, "DE", UNTIL)]
    for member, country in (("m0", "FR"), ("m1", "DE"), ("m2", "US"), ("m3", "FR")):
        own = chosen.sample([f"e{number}" for number in range(9)], DELTA)
        days = [START + datetime.timedelta(days=chosen.randrange(182)) for _ in range(25)]
        rows += [(member, chosen.choice(own), country, day) for day in days]
    return chosen.sample(rows, len(rows))


def met(rows: list[Row], asked_: list[HistogramQuery], folder: Path) -> list[Met]:
    """Return what questions meet on a table of these rows, of which the owner's tool made a copy."""
    folder.mkdir()
    make(write(folder / "visits.parquet", rows), folder / "copy", asked())
    policy = read_policy(
        policy_text("copy/manifest.json", what=DOMAIN).encode(), str(folder / "policy.yaml")
    ).policy
    engine = DuckDBEngine({"visits_pairs": folder / "copy" / "manifest.json"})
    try:
        return [_met(resolve(each, policy, now=0), engine) for each in asked_]
    finally:
        engine.close()


def _met(resolution: Resolution, engine: DuckDBEngine) -> Met:
    query = engine_query(resolution, "duckdb")
    version = engine.data_version(query.table)
    engine.check(query)
    answer = engine.run(query, version)
    engine.confirm(query, answer)
    return Met(resolution, dict(zip(zip(*answer.elements, strict=True), answer.counts, strict=True)))


def faults(seed: int, folder: Path) -> Iterator[str]:
    """Yield what a member changes beyond tau or Delta, or of what was resolved, over all members of a world."""
    rows, asked_ = rows_with_gaps(seed), questions(Random(seed))
    whole = met(rows, asked_, folder / "whole")
    for member in sorted({row[0] for row in rows if row[0] is not None}):
        without = met([row for row in rows if row[0] != member], asked_, folder / member)
        for one, other in zip(whole, without, strict=True):
            yield from _changes(one, other)


def _changes(one: Met, other: Met) -> Iterator[str]:
    parameters = one.resolution.parameters
    # Which table answers, at what price and by which query depends on no row; the version is of the data.
    if _public(one.resolution) != _public(other.resolution):
        yield "a member decides how the question is answered"
    changes = {
        each: one.counts.get(each, 0) - other.counts.get(each, 0) for each in one.counts | other.counts
    }
    moved = [abs(change) for change in changes.values() if change]
    if max(moved, default=0) > parameters.tau:
        yield f"a member changes a count by {max(moved)}, and tau is {parameters.tau}"
    if parameters.delta_l0 is not None and len(moved) > parameters.delta_l0:
        yield f"a member changes {len(moved)} elements, and Delta is {parameters.delta_l0}"


def _public(resolution: Resolution) -> Resolution:
    assert resolution.pairs is not None
    return replace(
        resolution, fixed_data_version=None, pairs=replace(resolution.pairs, periods=(), version="")
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", long_but(lambda seed: seed < 3, range(40)))
def test_one_member_changes_one_count_by_one(tmp_path: Path, seed: int) -> None:
    """However many periods they are active in."""
    assert list(faults(seed, tmp_path)) == []


@pytest.mark.slow
def test_a_query_that_counts_each_period_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the condition on the period before, a member counts once in each."""
    statement = import_module("dp_service.queries.render.statement")
    conditions = statement.pairs_conditions

    def of_each_period(pairs: PairsRange, dialect: Dialect) -> Iterator[str]:
        yield from (each for each in conditions(pairs, dialect) if "gris_previous" not in each)

    monkeypatch.setattr(statement, "pairs_conditions", of_each_period)
    assert any("a member changes a count by" in each for each in faults(1, tmp_path))
