"""A member changes what is looked up by no more than was priced, through a policy's file, SQL and a real DuckDB."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dp_service.queries import resolution as resolving
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.filters import In
from dp_service.queries.resolution import Resolution
from dp_service.queries.structured import HistogramQuery
from pinot_connector.engines.base import EngineQuery
from tests.support.engine_queries import engine_query
from tests.support.examples import examples
from tests.support.queries.lookups import FILE, TOPICS, asked, content, lookups, said
from tests.support.queries.reference import Row

from . import measuring
from .measuring import Totals, faults
from .strategies import World, worlds

DAY = datetime.date(2019, 1, 1)


@st.composite
def looking_up(draw: st.DrawFn) -> World:
    """Draw a world with a looked-up column, and questions that use it; its Delta is what is true of the key."""
    world = draw(worlds())
    file, topic = draw(lookups())
    table = world.policy["tables"]["t"]
    questions = [
        replace(each, k=draw(st.integers(1, 5))) for each in draw(st.lists(asked(), min_size=4, max_size=4))
    ]
    assumes = table["measures"]["events"]["tau_is"] == "assumed"
    return replace(
        world,
        policy={**world.policy, "tables": {"t": table | {"columns": table["columns"] | {"topic": topic}}}},
        files={**world.files, FILE: file},
        # Of rows by topics alone nothing is promised, and they are refused.
        questions=[each for each in questions if not (assumes and counts_rows_by_topics(each))],
    )


def counts_rows_by_topics(question: HistogramQuery) -> bool:
    """Tell whether a question counts rows by nothing but what is looked up, and functions."""
    return question.measure is Measure.EVENTS and tuple(question.plain_dimensions) == ("topic",)


@pytest.mark.slow
def test_one_member_changes_no_more_of_what_is_looked_up_than_is_charged(tmp_path: Path) -> None:
    """Worlds with NULLs, keys of all types and files that lack most of them, with each member and without."""
    totals = Totals()

    @settings(
        max_examples=examples(25), deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(looking_up())
    def ask(world: World) -> None:
        assert [] == faults(world, tmp_path, totals)

    ask()
    assert totals.changed > 0
    assert totals.at_delta > 0
    assert len(totals.mechanisms) > 2


@dataclass(frozen=True)
class Broken:
    """A promise that is broken: the world that shows it, what breaks it, and what is then found."""

    world: World
    breaking: Callable[[pytest.MonkeyPatch], None]
    found: str


def world(
    file: bytes, measures: dict[str, Any], question: HistogramQuery, *, key_delta: int | None = 4, **more: Any
) -> World:
    """Return a world of one member with four texts, each in two rows, of which three have one topic."""
    rows = [Row("m1", f"t{i % 4}", 1, True, DAY) for i in range(8)]
    key = {"type": "string", **({} if key_delta is None else {"delta": key_delta})}
    typical = {"typical": 1} if "contributions" in more else {}
    columns = {"text": key, "topic": {**said("text", file), **typical}}
    table = {"member": "member", "measures": measures, "columns": columns, **more}
    noise = {"count_noise": "gaussian"} if "contributions" in more else {}
    policy = {"epsilon_per": "0.15", "delta": "1e-10", **noise, "tables": {"t": table}}
    return World(rows, policy, {FILE: file}, [question])


ENTRIES = content("text", [("t0", "a"), ("t1", "a"), ("t2", "a"), ("t3", "other")])
MEMBERS: dict[str, Any] = {"distinct_members": True}
BY_TOPIC = HistogramQuery("t", ("topic",), Measure.DISTINCT_MEMBERS, k=4)


def rewriting(old: str, new: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Return what changes a query before DuckDB is given it."""

    def changed(resolution: Resolution, dialect: str) -> EngineQuery:
        query = engine_query(resolution, dialect)
        assert old in query.sql
        return replace(query, sql=query.sql.replace(old, new))

    return lambda patch: patch.setattr(measuring, "engine_query", changed)


def assuming(patch: pytest.MonkeyPatch) -> None:
    """Offer rows by topics where tau is a promise about the key."""
    patch.setattr(resolving, "require_bounded_rows", lambda *_: None)


BROKEN = {
    "rows of a key are counted for members": Broken(
        world(ENTRIES, MEMBERS, BY_TOPIC),
        rewriting('COUNT(DISTINCT "member")', 'COUNT(DISTINCT "text")'),
        "a member changes a count by 3, and tau is 1",
    ),
    "events are clipped by the key": Broken(
        world(
            ENTRIES,
            {"events": {"tau": 2, "tau_is": "clipped"}},
            replace(BY_TOPIC, measure=Measure.EVENTS),
        ),
        rewriting(', "member") AS', ', "member", "text") AS'),
        "a member changes a count by 6, and tau is 2",
    ),
    "members are bounded by the key": Broken(
        world(
            ENTRIES,
            MEMBERS,
            BY_TOPIC,
            key_delta=None,
            contributions={"bound": "in_query", "units": 10},
        ),
        rewriting('PARTITION BY "gris_member"', 'PARTITION BY "gris_member", "topic"'),
        "a member changes 2 elements, and Delta is 1",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("broken", BROKEN)
def test_a_lookup_that_acts_at_the_wrong_place_is_found(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members, events and elements are those of the looked-up value."""
    case = BROKEN[broken]
    assert [] == faults(case.world, tmp_path, Totals())
    case.breaking(monkeypatch)
    assert any(case.found in each for each in faults(case.world, tmp_path, Totals()))


def test_a_tau_that_is_assumed_of_keys_is_found_where_topics_rest_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two rows of each text are promised and there; of one topic there are six."""
    events = {"events": {"tau": 2, "tau_is": "assumed"}}
    question = replace(BY_TOPIC, measure=Measure.EVENTS, filters=(In("topic", tuple(TOPICS[1:2])),))
    assuming(monkeypatch)
    found = faults(world(ENTRIES, events, question), tmp_path, Totals())
    assert any("a member changes a count by 6, and tau is 2" in each for each in found)
