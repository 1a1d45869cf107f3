"""A member changes no more than a release was resolved for and charged: policy, SQL, engine and histogram together."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path

import pytest

from dp_service.queries.asked_numbers import DistinctValues, Measure
from dp_service.queries.canonical_columns import (
    OrdinalRestriction,
    Restriction,
    TextRestriction,
)
from dp_service.queries.canonical_query import QueryDistinct
from dp_service.queries.intervals import UNIVERSES
from dp_service.queries.resolution import Resolution
from dp_service.queries.structured import HistogramQuery
from dp_service.queries.tables import Table
from pinot_connector.engines.base import EngineQuery
from tests.support.engine_queries import engine_query
from tests.support.queries.reference import Row

from . import measuring
from .campaign import campaign
from .measuring import Totals, faults
from .strategies import World, domain_file, named

# Worlds that one seed draws are alike, and which they are depends on the modules that have been imported.
WORLDS = 10
LEAST, MOST = 2, 20
ENOUGH = 2


@pytest.mark.slow
def test_one_member_changes_no_more_than_is_promised_and_charged(tmp_path: Path) -> None:
    """Promises hold by construction; every neighbour's histogram is within Delta and tau, and within the price."""
    totals = Totals()
    for seed in range(MOST):
        totals = campaign(WORLDS, tmp_path, seed_=seed, before=totals)
        if seed + 1 >= LEAST and not unseen(totals):
            break
    assert not unseen(totals), f"{MOST * WORLDS} worlds have not shown {unseen(totals)}"


def unseen(totals: Totals) -> list[str]:
    """Return what too few worlds have shown: those that show nothing would prove nothing."""
    seen = (
        "partly_known",
        "in_time",
        "totals",
        "second_looks",
        "shifts",
        "compound",
        "distinct",
        "at_delta",
        "at_tau",
        "at_weight",
        "values_at_tau",
        "spared",
        "paying_alone",
    )
    mechanisms = {"KnownLap", "KnownGumb", "UnkLap", "UnkGumb", "BoundGauss"} - set(totals.mechanisms)
    return [
        *sorted(mechanisms),
        *(each for each in seen if getattr(totals, each) <= ENOUGH),
    ]


@pytest.mark.slow
def test_a_domain_that_no_query_carries_is_left_to_its_delta(tmp_path: Path) -> None:
    """Of three columns two have domains of 110,000 values together; a member has values beyond both."""
    day = datetime.date(2019, 1, 1)
    # The text is one of the shorter domain or not; the number is beyond the longer one, which is not asked for.
    rows = [Row("m1", f"t{i % 2}", 200_000 + i % 3, True, day) for i in range(6)]
    rows += [Row("m2", "t0", 1, True, day), Row("m1", "other", 2, True, day)]
    long, short = tuple(range(60_000)), tuple(sorted(f"t{i}" for i in range(50_000)))
    files = {"number.json": domain_file("number", long), "text.json": domain_file("text", short)}
    columns = {
        "number": {"type": "int64", "group_by": True, "delta": 4, "domain": named(files, "number.json")},
        "text": {"type": "string", "group_by": True, "delta": 60_000, "domain": named(files, "text.json")},
        "day": {"type": "date", "group_by": True, "delta": 1},
    }
    table = {"member": "member", "measures": {"distinct_members": True}, "columns": columns}
    policy = {"epsilon_per": "0.15", "delta": "1e-10", "tables": {"t": table}}
    question = HistogramQuery("t", ("number", "text", "day"), Measure.DISTINCT_MEMBERS, k=3)
    totals = Totals()
    assert [] == faults(World(rows, policy, files, [question]), tmp_path, totals)
    assert (1, 1, 2) == (totals.questions, totals.partly_known, totals.changed)


def unrestricted(resolution: Resolution) -> Resolution:
    """Return a question whose query holds a column to its domain only where the whole key has one."""
    parameters = resolution.parameters
    if parameters.domain is not None:
        return resolution
    within = parameters.within or (None,) * len(resolution.columns)
    held = {name for (name, _), values in zip(resolution.columns, within, strict=True) if values}
    restrictions = tuple(
        _any_value(each) if each.column.name in held else each for each in resolution.query.restrictions
    )
    return replace(
        resolution,
        query=replace(resolution.query, restrictions=restrictions),
        parameters=replace(parameters, within=()),
    )


def _any_value(restriction: Restriction) -> Restriction:
    """Return the restriction to whatever is no NULL."""
    match restriction:
        case TextRestriction():
            return replace(restriction, values=("no such text",), excluded=True)
        case OrdinalRestriction():
            return replace(restriction, intervals=(UNIVERSES[restriction.column.type],))


def counts_rows(resolution: Resolution) -> Resolution:
    """Return a question that clips nobody's events."""
    return replace(resolution, query=replace(resolution.query, clip=None))


@pytest.mark.slow
def test_a_query_that_clips_nobody_is_found(tmp_path: Path) -> None:
    """A member has four rows in one element where two may count; also in a total, whose one element is everything."""
    day = datetime.date(2019, 1, 1)
    rows = [Row("m1", "t0", 1, True, day), *(Row("m2", "t0", 1, True, day) for _ in range(4))]
    columns = {"text": {"type": "string", "group_by": True}}
    measures = {"events": {"tau": 2, "tau_is": "clipped"}}
    table = {"member": "member", "measures": measures, "columns": columns}
    policy = {"epsilon_per": "0.15", "delta": "1e-10", "tables": {"t": table}}
    for question in (
        HistogramQuery("t", ("text",), Measure.EVENTS, k=3),
        HistogramQuery("t", (), Measure.EVENTS),
    ):
        world = World(rows, policy, {}, [question])
        assert [] == faults(world, tmp_path, Totals())
        found = faults(world, tmp_path, Totals(), translate=counts_rows)
        assert any("a member changes a count by 4" in each for each in found)


def keeps_every_value(resolution: Resolution) -> Resolution:
    """Return a question in which members keep all their values."""
    counted = resolution.query.measure
    assert isinstance(counted, QueryDistinct)
    return replace(resolution, query=replace(resolution.query, measure=replace(counted, most=100)))


@pytest.mark.slow
def test_a_query_in_which_members_keep_all_their_values_is_found(tmp_path: Path) -> None:
    """A member has four values where two count, in three elements where two count; also in a total."""
    day = datetime.date(2019, 1, 1)
    rows = [Row("m1", f"t{i}", 1, True, day) for i in range(4)]
    rows += [Row("m2", f"u{i}", number, True, day) for number in range(3) for i in range(4)]
    columns = {
        name: {"type": kind, "group_by": True, "typical": 2}
        for name, kind in (("text", "string"), ("number", "int64"))
    }
    table = {
        "member": "member",
        "contributions": {"bound": "in_query", "units": 20},
        "measures": {"distinct": {"text": 2}},
        "columns": columns,
    }
    policy = {"epsilon_per": "0.15", "delta": "1e-10", "count_noise": "gaussian", "tables": {"t": table}}
    for dimensions in ((), ("number",)):
        world = World(rows, policy, {}, [HistogramQuery("t", dimensions, DistinctValues("text"))])
        totals = Totals()
        assert [] == faults(world, tmp_path, totals)
        assert totals.values_at_tau >= 2
        found = faults(world, tmp_path, Totals(), translate=keeps_every_value)
        assert "a member changes a count by 4, and tau is 2" in found


def test_an_assumed_tau_that_a_total_rests_on_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member has one row in each of three elements, as is promised, and so three rows in all."""
    day = datetime.date(2019, 1, 1)
    rows = [Row("m1", text, number, True, day) for number, text in enumerate(("t0", "t1", "t2"))]
    columns = {"text": {"type": "string", "group_by": True}, "number": {"type": "int64", "group_by": True}}
    measures = {"events": {"tau": 1, "tau_is": "assumed"}}
    table = {"member": "member", "measures": measures, "columns": columns}
    policy = {"epsilon_per": "0.15", "delta": "1e-10", "tables": {"t": table}}
    grouped = HistogramQuery("t", ("text",), Measure.EVENTS, k=3)
    total = HistogramQuery("t", (), Measure.EVENTS)
    assert [] == faults(World(rows, policy, {}, [grouped]), tmp_path, Totals())
    # What would be answered if a total were not refused for it.
    monkeypatch.setattr(Table, "require_total", lambda self, measure: None)
    monkeypatch.setattr(measuring, "_has_no_tau", lambda question, policy: False)
    found = faults(World(rows, policy, {}, [total]), tmp_path, Totals())
    assert any("a member changes a count by 3" in each for each in found)


def test_a_query_that_is_not_held_to_a_domain_is_found(tmp_path: Path) -> None:
    """A member has three texts beyond the domain of two, and no domain says which days there are."""
    day = datetime.date(2019, 1, 1)
    rows = [Row("m1", "t0", 1, True, day), Row("m1", "t1", 1, True, day)]
    rows += [Row("m2", text, 1, True, day) for text in ("t0", "x", "y", "z")]
    files = {"text.json": domain_file("text", ("t0", "t1"))}
    columns = {
        "text": {"type": "string", "group_by": True, "delta": 9, "domain": named(files, "text.json")},
        "day": {"type": "date", "group_by": True, "delta": 1},
    }
    table = {"member": "member", "measures": {"distinct_members": True}, "columns": columns}
    policy = {"epsilon_per": "0.15", "delta": "1e-10", "tables": {"t": table}}
    world = World(rows, policy, files, [HistogramQuery("t", ("text", "day"), Measure.DISTINCT_MEMBERS, k=3)])
    assert [] == faults(world, tmp_path, Totals())
    found = faults(world, tmp_path, Totals(), translate=unrestricted)
    assert any("a member changes" in each for each in found)


def bounds_nobody(resolution: Resolution) -> Resolution:
    """Return a question whose query counts every element of a member in full; its noise and price are for a few."""
    contributions = resolution.parameters.contributions
    if contributions is None:
        return resolution
    names = contributions.names
    wide = replace(
        contributions, typical=10_000, names=None if names is None else replace(names, typical=10_000)
    )
    return replace(resolution, parameters=replace(resolution.parameters, contributions=wide))


@pytest.mark.slow
def test_a_query_that_bounds_nobody_is_found(tmp_path: Path) -> None:
    """A member has four texts where two may count; bounded, nothing is found, for members and for events."""
    day = datetime.date(2019, 1, 1)
    rows = [Row(f"m{j}", f"t{i}", 1, True, day) for i in range(4) for j in range(3)]
    rows += [Row("m9", f"t{i % 4}", 1, True, day) for i in range(8)]
    block = {"bound": "in_query", "units": 20}
    columns = {"text": {"type": "string", "group_by": True, "typical": 2}}
    measures = {"distinct_members": True, "rows": 4}
    table = {"member": "member", "contributions": block, "measures": measures, "columns": columns}
    policy = {"epsilon_per": "0.15", "delta": "1e-10", "count_noise": "gaussian", "tables": {"t": table}}
    for measure in Measure:
        world = World(rows, policy, {}, [HistogramQuery("t", ("text",), measure, k=3)])
        assert [] == faults(world, tmp_path, Totals())
        found = faults(world, tmp_path, Totals(), translate=bounds_nobody)
        assert any("and 9/160 is charged" in each for each in found)


def bounds_nobody_in_the_second_look(resolution: Resolution) -> Resolution:
    """Return a question whose second query counts every name of a member."""
    return resolution if resolution.names is None else bounds_nobody(resolution)


@pytest.mark.slow
def test_a_second_look_that_bounds_nobody_is_found(tmp_path: Path) -> None:
    """A member has four of the names where two may count; bounded within them, nothing is found."""
    day = datetime.date(2019, 1, 1)
    rows = [Row(f"m{j}-{i}", f"t{i}", 1, True, day) for i in range(4) for j in range(2)]
    rows += [Row("m9", f"t{i % 4}", 1, True, day) for i in range(8)]
    block = {"bound": "in_query", "units": 20, "longest_list": 4}
    columns = {"text": {"type": "string", "group_by": True, "typical": 2}}
    table = {
        "member": "member",
        "contributions": block,
        "measures": {"distinct_members": True},
        "columns": columns,
    }
    policy = {"epsilon_per": "0.15", "delta": "1e-10", "count_noise": "gaussian", "tables": {"t": table}}
    world = World(rows, policy, {}, [HistogramQuery("t", ("text",), Measure.DISTINCT_MEMBERS, k=3)])
    totals = Totals()
    assert [] == faults(world, tmp_path, totals)
    assert (totals.questions, totals.second_looks, totals.at_weight) == (2, 1, 2)
    found = faults(world, tmp_path, Totals(), translate=bounds_nobody_in_the_second_look)
    # 25/2 units are those of the second look.
    assert any("and 9/256 is charged" in each for each in found)


@pytest.mark.slow
@pytest.mark.parametrize("measure", Measure)
def test_a_total_that_counts_other_members_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measure: Measure
) -> None:
    """n has to count every member that some x counts; without the members of the first element it does not."""
    day = datetime.date(2019, 1, 1)
    rows = [Row(f"m{i}", f"t{j}", 1, True, day) for i in range(6) for j in range(4) if (i + j) % 2 or i < 2]
    rows = [*rows, *rows]
    block = {"bound": "in_query", "units": 20}
    columns = {"text": {"type": "string", "group_by": True, "typical": 4, "domain": ["t0", "t1", "t2", "t3"]}}
    measures = {"distinct_members": True, "rows": 8}
    table = {"member": "member", "contributions": block, "measures": measures, "columns": columns}
    policy = {"epsilon_per": "0.15", "delta": "1e-10", "count_noise": "gaussian", "tables": {"t": table}}
    world = World(rows, policy, {}, [HistogramQuery("t", ("text",), measure)])
    totals = Totals()
    assert [] == faults(world, tmp_path, totals)
    assert totals.shifts == 1

    def others(resolution: Resolution, dialect: str) -> EngineQuery:
        query = engine_query(resolution, dialect)
        return replace(query, sql=query.sql.replace('"gris_rank" > 2', '"gris_rank" > 2 OR "text" = \'t0\''))

    monkeypatch.setattr(measuring, "engine_query", others)
    found = faults(world, tmp_path, Totals())
    assert any("relative to the total is worth" in each for each in found)
