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


@pytest.mark.parametrize(
    ("sql", "names", "rows"),
    [
        ("SELECT DISTINCT app FROM feedback", ["app"], 4),
        ("SELECT app AS c FROM feedback GROUP BY app ORDER BY c LIMIT 2", ["c"], 2),
        (
            "SELECT cohort, COUNT(DISTINCT member_id) AS n FROM feedback GROUP BY cohort LIMIT 0",
            ["cohort", "n"],
            0,
        ),
        ("SELECT COUNT(DISTINCT member_id) AS n FROM feedback WHERE 1 = 0", ["n"], 0),
        ('SELECT TRUE AS "_" FROM "public"."feedback" WHERE 1 <> 1 LIMIT 0', ["_"], 0),
        ("SELECT * FROM feedback LIMIT 0", ["member_id", "app", "article_id", "cohort", "day", "score"], 0),
        ("SELECT v.* FROM (SELECT app AS c, member_id FROM feedback) v WHERE 1 = 0", ["c", "member_id"], 0),
    ],
)
def test_what_needs_no_release_is_free(connection: Connection, sql: str, names: list[str], rows: int) -> None:
    """Tools ask for columns before they ask for rows, and for the values of a filter; neither is charged."""
    cursor = connection.cursor()
    cursor.execute(sql)
    found = cursor.fetchall()
    assert names == [each[0] for each in cursor.description or () if not each[0].startswith("n_")]
    assert rows == len(found)
    assert cursor.release is not None
    assert cursor.release.charged.information == cursor.release.charged.calls == 0
