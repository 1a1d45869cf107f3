"""The columns of a cursor are those of SELECT, in its order."""

from __future__ import annotations

import pytest

from pinot_connector.dbapi import Connection


@pytest.mark.parametrize(
    ("selected", "names"),
    [
        ("cohort, COUNT(DISTINCT member_id) AS members", ["cohort", "members"]),
        ("COUNT(DISTINCT member_id) AS members, cohort", ["members", "cohort"]),
        ("COUNT(DISTINCT member_id) members, cohort AS c", ["members", "c"]),
    ],
)
def test_columns_come_in_the_order_of_the_text(
    connection: Connection, selected: str, names: list[str]
) -> None:
    """A program that unpacks rows by position reads what it selected; the question is one and the same."""
    cursor = connection.cursor()
    cursor.execute(f"SELECT {selected} FROM feedback GROUP BY cohort")  # noqa: S608  (a test's own)
    found = [each[0] for each in cursor.description or ()]
    assert names == [each for each in found if not each.startswith("members_")]
    place = next(i for i, name in enumerate(found) if not name.startswith("members"))
    rows = cursor.fetchall()
    assert rows
    assert all(isinstance(row[place], str) for row in rows)
