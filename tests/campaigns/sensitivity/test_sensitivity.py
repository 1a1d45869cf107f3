"""A member changes no more than a release was resolved for and charged: policy, SQL, engine and histogram together."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import Phase

from dp_service.queries.canonical import OrdinalRestriction, Restriction, TextRestriction
from dp_service.queries.intervals import UNIVERSES
from dp_service.queries.resolution import Resolution
from dp_service.queries.structured import HistogramQuery, Measure
from tests.support.queries.reference import Row

from .campaign import campaign
from .drawing import World, domain_file, named
from .measuring import Totals, Translate, faults

WORLDS = 150


@pytest.mark.slow
def test_one_member_changes_no_more_than_is_promised_and_charged(tmp_path: Path) -> None:
    """Promises hold by construction; every neighbour's histogram is within Delta and tau, and within the price."""
    totals = campaign(WORLDS, tmp_path)
    # Worlds that show nothing would prove nothing.
    assert {"KnownLap", "KnownGumb", "UnkLap", "UnkGumb"} == set(totals.mechanisms)
    assert totals.partly_known > WORLDS // 20
    assert totals.in_time > WORLDS // 20
    assert totals.at_delta > WORLDS // 20
    assert totals.at_tau > WORLDS // 20


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
@pytest.mark.parametrize("broken", [unrestricted, counts_rows])
def test_a_broken_translation_is_found(broken: Translate, tmp_path: Path) -> None:
    """The campaign finds a query that does not enforce what its Delta or its tau rest on."""
    with pytest.raises(AssertionError, match="a member changes"):
        campaign(3 * WORLDS, tmp_path, translate=broken, phases=(Phase.generate,))
