"""The short form of the campaign on DuckDB, and proof that it can fail; others in tests/engines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from dp_service.queries.canonical_columns import PatternCondition
from dp_service.queries.render.dialects import DIALECTS
from tests.campaigns.one_row.asking import Totals, faults, on_duckdb
from tests.campaigns.one_row.forms import Form, conditions, forms, policy

POLICY = policy()
MATCHES = DIALECTS["duckdb"].matches


@cache
def every_form() -> list[Form]:
    """Return all questions. They take seconds to read, so that none but a worker that asks them does."""
    return [*forms(POLICY)]


def test_every_column_and_form_is_asked_for() -> None:
    """Few conditions are such that no row can meet them."""
    of = {table: sum(form.table == table for form in every_form()) for table in ("dropped", "kept", "summed")}
    assert min(of.values()) > 0.85 * len([*conditions()])
    assert {name for form in every_form() for name in form.names} >= {
        "at",
        "at_s",
        "at_ms",
        "day",
        "flag",
        "number",
        "price",
    }
    second = [form for form in every_form() if form.about is not None]
    assert {form.query.dimensions[0] for form in second} >= {"who", "text", "number", "flag", "day"}


@pytest.mark.slow
@pytest.mark.parametrize(("every", "one_at_a_time"), [(29, False), (397, True)])
def test_no_row_makes_an_error_or_counts_where_it_does_not_in_the_reference(
    tmp_path: Path, every: int, one_at_a_time: bool
) -> None:
    """All odd rows at once, and each one alone beside the ordinary ones."""
    totals = Totals()
    with on_duckdb(tmp_path) as held:
        assert faults(held, POLICY, every_form()[::every], totals, one_at_a_time=one_at_a_time) == []
    assert totals.rows > 100
    assert totals.refused == 0


def casts(text: str, condition: PatternCondition) -> str:
    """Write a pattern behind the length of its text, for which there is not always room."""
    return f"(CAST(length({text}) AS UTINYINT) >= 0 AND {MATCHES(text, condition)})"


def likes(text: str, condition: PatternCondition) -> str:
    """Write a pattern in the engine's own words, in which a backslash is a character like any other."""
    word = "ILIKE" if condition.folds else "LIKE"
    return f"{text} {'NOT ' * condition.negated}{word} '{condition.pattern}'"


@pytest.mark.parametrize(
    ("wrong", "said", "every"), [(casts, "EngineRefused", 97), (likes, "missing", 9)], ids=["casts", "likes"]
)
def test_a_condition_that_fails_or_differs_on_one_row_is_found(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wrong: Callable[[str, PatternCondition], str],
    said: str,
    every: int,
) -> None:
    """A cast that has no room for one text, and LIKE as the engine has it."""
    asked = [form for form in every_form() if "LIKE" in form.sql and form.table == "dropped"][::every]
    monkeypatch.setitem(DIALECTS, "duckdb", replace(DIALECTS["duckdb"], matches=wrong))
    with on_duckdb(tmp_path) as held:
        found = faults(held, POLICY, asked, Totals(), one_at_a_time=wrong is casts)
    assert any(said in each for each in found), found[:3]
