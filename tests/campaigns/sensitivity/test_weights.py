"""Members of 1 to 10,000 elements change no more than is charged: policy, SQL, DuckDB and histogram together."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from dp_service.queries.asked_numbers import Measure
from dp_service.queries.resolution import Resolution
from dp_service.queries.structured import HistogramQuery
from pinot_connector.engines.base import EngineQuery
from tests.support.engine_queries import engine_query, of_each_element
from tests.support.queries.reference import Row

from . import measuring
from .measuring import Asked, AskedTable, Totals, _change_faults, _policy, _resolutions, _second_looks
from .strategies import World

SIZES = (1, 2, 3, 5, 49, 50, 130, 256, 625, 1111, 2500, 10_000)


def world(measure: Measure, *, is_known: bool, looks: int) -> World:
    """Return a table of members of these sizes, of whom each has the first elements, and others in all of them."""
    day = datetime.date(2019, 1, 1)
    rows = [Row(f"m{size}", None, element, True, day) for size in SIZES for element in range(size)]
    rows += [Row(f"m{size}", None, 7, True, day) for size in SIZES if size > 7 for _ in range(3)]
    others = [Row(f"o{element}-{i}", None, element, True, day) for element in range(300) for i in range(3)]
    number = {"type": "int64", "group_by": True, "typical": 4}
    if is_known:
        number["domain"] = list(range(1200))
    block = {"bound": "in_query", "units": 20}
    if looks == 2:
        block["longest_list"] = 100
    measures = {"distinct_members": True, "rows": 12}
    table = {"member": "member", "contributions": block, "measures": measures, "columns": {"number": number}}
    policy = {"epsilon_per": "0.15", "delta": "1e-10", "count_noise": "gaussian", "tables": {"t": table}}
    return World(rows + others, policy, {}, [HistogramQuery("t", ("number",), measure, k=3)])


def found_faults(asked: World, folder: Path, totals: Totals) -> list[str]:
    """Return what the members of these sizes change beyond what is charged."""
    resolutions = [replace(each, row_limit=20_000) for each in _resolutions(asked, _policy(asked, folder))]
    found: list[str] = []
    with closing(AskedTable(folder / "t.parquet", asked.rows)) as table:
        first = table.met([Asked.of(each) for each in resolutions])
        resolutions += list(_second_looks(resolutions, first))
        questions = [Asked.of(each) for each in resolutions]
        whole = table.met(questions)
        for size in SIZES:
            table.hold_without(f"m{size}")
            for resolution, before, after in zip(resolutions, whole, table.met(questions), strict=True):
                found += _change_faults(resolution, before, after, totals)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("measure", Measure)
@pytest.mark.parametrize(("is_known", "looks"), [(True, 1), (False, 1), (False, 2)])
def test_members_of_any_size_change_no_more_than_is_charged(
    tmp_path: Path, measure: Measure, is_known: bool, looks: int
) -> None:
    """Over a known domain, an unknown one, and in two looks."""
    totals = Totals()
    assert found_faults(world(measure, is_known=is_known, looks=looks), tmp_path, totals) == []
    assert totals.at_weight > 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken",
    [
        lambda sql: sql.replace("FLOOR(SQRT(", "CEIL(SQRT("),
        lambda sql: sql.replace("> 4 THEN", "> 100000 THEN"),
        lambda sql: of_each_element(sql, "number"),
    ],
    ids=["rounded up", "not weighted", "of each element"],
)
def test_wrong_weights_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: Callable[[str], str]
) -> None:
    """What stands between policy and engine is broken: the same members change more than is charged."""

    def asked(resolution: Resolution, dialect: str) -> EngineQuery:
        query = engine_query(resolution, dialect)
        changed = broken(query.sql)
        assert changed != query.sql
        return replace(query, sql=changed)

    monkeypatch.setattr(measuring, "engine_query", asked)
    found = found_faults(world(Measure.DISTINCT_MEMBERS, is_known=True, looks=1), tmp_path, Totals())
    assert any("is charged" in each for each in found)
