"""Looked-up columns are read by the parser of Pinot 1.5.1, which fills up no text and counts as the reference does."""

from __future__ import annotations

import pytest

from dp_service.queries.render import render
from dp_service.queries.resolution import resolve
from tests.support.queries.lookups import expected, nasty
from tests.support.queries.strategies import NOW

from .planner import Planner, Table, is_there

pytestmark = pytest.mark.skipif(
    not is_there(),
    reason="Pinot's parser needs a JDK 17 and Maven (Debian: openjdk-17-jdk-headless and maven)",
)


def test_pinot_counts_what_is_looked_up(planner: Planner) -> None:
    """With a query inside and without one, bounded and not, with and without an element for other keys."""
    texts, answers = [], []
    for kept in (False, True):
        for bounded in (False, True):
            policy, rows, questions = nasty(kept=kept, bounded=bounded)
            texts += [render(resolve(each, policy, now=NOW), "pinot") for each in questions]
            answers += [expected(each, policy, rows) for each in questions]
    held = [(row.member, row.text) for row in rows]
    found = planner.planned({"t": Table({"member": "VARCHAR", "text": "VARCHAR"}, held)}, texts)
    assert [each.unknown_options for each in found] == [[]] * len(texts)
    assert [[tuple(row) for row in each.rows] for each in found] == answers
