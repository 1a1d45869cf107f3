"""Functions of all of a member's rows on the parser and planner of Pinot 1.5.1: the integers of plain Python."""

from __future__ import annotations

from random import Random

import pytest

from dp_service.queries.render import render
from dp_service.queries.resolution import resolve
from tests.support.queries.buckets import NOW, Row, policy, stored
from tests.support.queries.of_members import QUESTIONS, Asked, days_in, random_rows

from .planner import Ask, Table, is_there

pytestmark = pytest.mark.skipif(
    not is_there(),
    reason="Pinot's parser needs a JDK 17 and Maven (Debian: openjdk-17-jdk-headless and maven)",
)


def held(rows: list[Row], asked: Asked) -> Table:
    """Return the rows as Pinot stores them: days and timestamps as numbers, and no NULL among texts."""
    of = "milliseconds" if asked.kind == "timestamps" else asked.kind
    return Table(
        {"member": "VARCHAR", "at": "INTEGER" if asked.kind == "days" else "BIGINT", "text": "VARCHAR"},
        [(row.member, stored(row.at, of), row.text) for row in rows if row.at is not None],
    )


@pytest.mark.parametrize("asked", QUESTIONS, ids=str)
def test_pinot_counts_each_member_by_all_of_its_rows(planned: Ask, asked: Asked) -> None:
    """Where nobody is bounded and where the query bounds; and no sum becomes a filtered one, which may be NULL."""
    rows = [row._replace(text=row.text or "c") for row in random_rows(Random(7)) if row.at is not None]
    blocks = ("", "contributions: {bound: in_query, units: 10}")
    questions = [
        render(
            resolve(asked.question, policy(asked.kind, asked.zone, contributions=each, typical=60), now=NOW),
            "pinot",
        )
        for each in blocks
    ]
    answers = planned({"t": held(rows, asked)}, questions)
    size = len(asked.question.dimensions)
    for answer in answers:
        assert answer.unknown_options == []
        assert answer.filtered == 0
        found = {
            tuple(each if isinstance(each, str) else int(each) for each in row[:size]): int(row[size])  # type: ignore[call-overload]
            for row in answer.rows
        }
        assert found == days_in(asked.counted(rows))
