"""Bins and parts of texts are read by the parser of Pinot 1.5.1, and are there what Python makes of them."""

from __future__ import annotations

import math

import pytest

from dp_service.queries.render import render
from tests.support.queries import sums
from tests.support.queries.row_functions import FUNCTIONS, POLICY, expected, resolved, rows

from .planner import Ask, Table, is_there

pytestmark = pytest.mark.skipif(
    not is_there(),
    reason="Pinot's parser needs a JDK 17 and Maven (Debian: openjdk-17-jdk-headless and maven)",
)


def test_functions_of_a_row_are_those_of_python(planned: Ask) -> None:
    """Every bin and every part of a text; NULL is what Pinot stores for it."""
    held = [each for each in rows() if each.number is None or math.isfinite(each.number)]
    types = ("VARCHAR", "VARCHAR", "BIGINT", "DOUBLE")
    table = Table(dict(zip(sums.Row._fields, types, strict=True)), sums.as_in_pinot(POLICY, "t", held))
    answers = planned({"t": table}, [render(resolved(each), "pinot") for each in FUNCTIONS])
    for function, answer in zip(FUNCTIONS, answers, strict=True):
        assert {row[0]: row[1] for row in answer.rows} == expected(function, held), function
