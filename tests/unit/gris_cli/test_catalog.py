"""`gris catalog`: what may be asked, for people and for programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dp_service.server.served_policy import ServedPolicy
from gris_cli.__main__ import main
from gris_cli.catalog_tables import print_catalog
from tests.support.catalog_calls import DOMAIN, calls_to, content
from tests.support.command_line import run_json
from tests.support.world import World

EXACT = """
epsilon_per: 0.15
delta: 1e-11
count_noise: gaussian
blocks: {name: area, values: [DE, FR]}
tables:
  visits:
    member: m
    block: land
    time: {column: day, type: date, buckets: {month: 8}}
    contributions:
      {bound: in_query, units: 7, least_units: 2, most_units: 40, sums: {max_members: 10, max_rows: 99}}
    measures: {distinct_members: true}
    values: {paid: {type: int64, lower: 0, upper: 50}}
    columns: {page: {type: string, group_by: true, typical: 8}, land: {type: string, filter: [in]}}
"""


def test_it_is_told_for_people(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """One table, its measures, and a line a column."""
    assert main(["catalog", "--table", "feedback", "--dp", world.dp]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 100
    reported = " ".join(printed.split())
    for words in (
        "feedback; its members are member_id",
        "events, a member changes a count by at most 50",
        "score │ int64 │ KnownGumb │ in, not_in, range │ -1, 0, 1",
        "article_id │ string │ UnkGumb │ in, not_in │ not known",
    ):
        assert words in reported


async def test_long_domains_are_cut_and_closed_periods_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Eight values, how many there are in all, and the day before which rows count."""
    async with calls_to(ServedPolicy(content())) as calls:
        catalog = await calls.catalog("")
    print_catalog(catalog, as_json=False)
    reported = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "v0007, ... 1300 in all" in reported
    assert DOMAIN[8] not in reported
    assert "closed each month, now before 1970-01-01" in reported


async def test_what_an_exactness_may_cost_and_who_pays_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Beside what every other question costs; members are divided by the values of a column."""
    async with calls_to(ServedPolicy(content(EXACT))) as calls:
        print_catalog(await calls.catalog(""), as_json=False)
    reported = " ".join(capsys.readouterr().out.split())
    for words in (
        "costs 7 information, or 2 to 40 if it says how exact it has to be",
        "by area, each paying for itself: DE, FR, and all others",
        "a row's, by land",
        "a member's total in an element counts with 0 to 50, in steps of 1; a row counts with 0 to 50",
    ):
        assert words in reported


async def test_how_much_bounds_cut_is_told_to_who_asks_and_to_the_owner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the catalogue and by `gris check`, where the policy states it."""
    (tmp_path / "policy.yaml").write_text(EXACT.replace("units: 7,", "units: 7, largest_cut: 1/8,"))
    async with calls_to(ServedPolicy(content((tmp_path / "policy.yaml").read_text()))) as calls:
        print_catalog(await calls.catalog(""), as_json=False)
    assert main(["check", str(tmp_path / "policy.yaml")]) == 0
    reported = " ".join(capsys.readouterr().out.split())
    assert reported.count("bounds cut at most 1/8 of a number of rows") == 2


def test_it_is_told_as_json(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Every table of the policy."""
    reported = run_json(capsys, "catalog", "--dp", world.dp)
    assert {"feedback", "wide", "small", "pinned"} <= {table["name"] for table in reported["tables"]}
    assert reported["epsilon_per"] == "8"


def test_an_unknown_table_is_refused_by_policy(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 3, as for a question about it."""
    refused = run_json(capsys, "catalog", "--table", "employees", "--dp", world.dp, code=3)
    assert refused["error"]["code"] == "refused_by_policy"
