"""How many values of a function of a row one member can have: what DuckDB finds is no more than what is priced."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from dp_service.queries.dimensions import labels_of
from dp_service.queries.errors import QuestionError, RefusedByPolicyError
from dp_service.queries.lookups import hash_of
from dp_service.queries.policy import Policy, read_policy
from dp_service.queries.render import render
from dp_service.queries.resolution import Resolution, resolve, second_look
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import Free
from dp_service.terms import ColumnType

TOPICS = b"article,topic\nx,health\ny,politics\n"
COLUMNS: dict[str, dict[str, object]] = {
    "member": {"type": "string"},
    "article": {"type": "string", "group_by": True, "filter": ["in"], "delta": 1},
    "topic": {
        "type": "string",
        "group_by": True,
        "filter": ["in", "not_in"],
        "nulls": "keep",
        "null_value": "other",
    },
    "day": {
        "type": "date",
        "group_by": True,
        "filter": ["range"],
        "delta": 1,
        "nulls": "keep",
        "null_value": "1970-01-01",
    },
    "age": {"type": "int64", "group_by": True, "filter": ["range"], "delta": 2},
    "app": {"type": "string", "filter": ["in"]},
}
ROWS = """
    SELECT * FROM (VALUES
        ('ada', 'x', DATE '2024-01-01', 7, 'a'),
        ('ada', NULL, DATE 'infinity', NULL, 'b'),
        ('cyd', 'x', DATE '2024-01-01', 7, 'a'),
        ('cyd', 'y' || repeat('z', 2000), DATE '2024-01-01', 7, 'a'),
        ('cyd', NULL, DATE '2024-01-01', 7, 'a'),
        ('bob', 'y', DATE '1970-01-02', 99, NULL),
        ('dan', 'x', DATE '2024-01-01', 7, 'a'),
        ('dan', 'y', DATE '2024-01-01', 7, 'a')
    ) AS rows(member, article, day, age, app)
"""


def policy_of(
    directory: Path,
    contributions: dict[str, object] | None = None,
    *,
    topics: bytes = TOPICS,
    typical: int | None = None,
) -> Policy:
    """Return a policy of the columns, of which no Delta is stated beside a bound of contributions."""
    (directory / "topics.csv").write_bytes(topics)
    columns: dict[str, dict[str, object]] = {
        **COLUMNS,
        "topic": {
            **COLUMNS["topic"],
            "lookup": {"column": "article", "file": "topics.csv", "hash": hash_of(topics)},
        },
    }
    left_out = "" if contributions is None else "delta"
    table: dict[str, object] = {
        "member": "member",
        "measures": {"distinct_members": True},
        "columns": {
            name: {key: value for key, value in stated.items() if key != left_out}
            | ({"typical": typical} if typical and stated.get("group_by") else {})
            for name, stated in columns.items()
        },
    }
    if contributions is not None:
        table["contributions"] = contributions
    stated = {"epsilon_per": 1, "delta": 1e-6, "count_noise": "gaussian", "tables": {"t": table}}
    return read_policy(json.dumps(stated).encode(), str(directory / "policy.yaml")).policy


def by(function: str, policy: Policy) -> Resolution:
    """Return what a question by a function resolves to."""
    text = "SELECT ?, COUNT(DISTINCT member) FROM t GROUP BY ALL"
    return resolve(parse_sql(text.replace("?", function), policy), policy, now=0)


def counts(resolution: Resolution, *members: str) -> dict[object, int]:
    """Return what DuckDB counts of some members' rows."""
    with duckdb.connect() as database:
        database.execute("CREATE TABLE t AS " + ROWS)
        database.execute("DELETE FROM t WHERE NOT list_contains(?, member)", [members])
        return dict(database.execute(render(resolution, "duckdb")).fetchall())


def test_a_member_is_in_no_more_bins_than_it_has_numbers(tmp_path: Path) -> None:
    """The column's Delta bounds its bins; a row without a number is in none."""
    resolution = by("WIDTH_BUCKET(age, 0, 30, 3)", policy_of(tmp_path))
    assert resolution.parameters.delta_l0 == 2
    assert len(counts(resolution, "ada")) == 1


def test_a_row_without_a_number_is_in_no_bin(tmp_path: Path) -> None:
    """As in SQL, where WIDTH_BUCKET of NULL is NULL: it is not beyond the last bin."""
    assert counts(by("WIDTH_BUCKET(age, 0, 30, 3)", policy_of(tmp_path)), "ada", "bob") == {1: 1, 4: 1}


def test_one_function_is_grouped_by_once_however_it_is_written(tmp_path: Path) -> None:
    """Two texts of one function would be two columns of the same values, and another release."""
    policy = policy_of(tmp_path)
    with pytest.raises(QuestionError, match="to group by once"):
        by("WIDTH_BUCKET(age, 0, 9, 3), WIDTH_BUCKET(age, -0.5, 8.5, 3)", policy)
    first, second = "WIDTH_BUCKET(age, 0, 9, 3)", "WIDTH_BUCKET(age, 0, 9, 9)"
    resolution = by(f"{first}, {second}", policy)
    assert [name for name, _ in resolution.columns] == ["gris_case", "gris_case_2"]
    text = f"SELECT {first}, article, {second}, COUNT(*) FROM t GROUP BY ALL"  # noqa: S608 - the test's own
    assert labels_of(parse_sql(text, policy).dimensions) == ("case", None, "case_2")


def test_columns_of_a_function_alone_cost_nothing(tmp_path: Path) -> None:
    """Tools ask for the columns of a statement by LIMIT 0, also where it selects no number."""
    policy = policy_of(tmp_path)
    asked = parse_sql("SELECT WIDTH_BUCKET(age, 0, 9, 3) AS young FROM t LIMIT 0", policy)
    assert asked.free is Free.COLUMNS
    assert resolve(asked, policy, now=0).columns == (("gris_case", ColumnType.INT64),)


def test_what_bounds_columns_alone_bounds_no_function_of_others(tmp_path: Path) -> None:
    """Several values of a column may be in one bin, and have one part."""
    policy = policy_of(tmp_path, {"bound": "assumed", "delta": 1, "units": 10})
    for function in ("WIDTH_BUCKET(age, 0, 9, 3)", "LEFT(article, 1)"):
        with pytest.raises(RefusedByPolicyError, match="bins and parts of texts are not offered"):
            by(function, policy)


def test_a_query_bounds_members_in_a_function_of_a_column(tmp_path: Path) -> None:
    """Dan has two values of it, and counts with the root of a half in each."""
    policy = policy_of(tmp_path, {"bound": "in_query", "units": 10}, typical=1)
    assert counts(by("LEFT(article, 1)", policy), "ada", "bob", "dan") == {"x": 170, "y": 170}


def test_a_second_look_fits_into_a_message_however_many_names_are_found(tmp_path: Path) -> None:
    """Each name repeats the bins, which are few enough."""
    policy = policy_of(tmp_path, {"bound": "in_query", "units": 20, "longest_list": 500}, typical=8)
    bins = by("WIDTH_BUCKET(age, 0, 900, 97), article", policy)
    found = tuple((place % 99, str(place) * 300) for place in range(most_of(bins)))
    assert len(render(second_look(bins, found), "duckdb").encode()) < 8_000_000


def most_of(resolution: Resolution) -> int:
    """Return how many names a first look finds at most."""
    contributions = resolution.parameters.contributions
    assert contributions is not None
    assert contributions.names is not None
    return contributions.names.most_names


def test_a_question_that_names_the_keys_of_a_lookup_again_and_again_is_refused(tmp_path: Path) -> None:
    """A short question would have a query of many megabytes."""
    lines = "".join(f"{place:>040},topic{place % 9}\n" for place in range(10_000))
    policy = policy_of(tmp_path, topics=b"article,topic\n" + lines.encode())
    conditions = " OR ".join(f"(topic <> 'other' AND age < {place})" for place in range(60))
    text = f"SELECT COUNT(DISTINCT member) FROM t WHERE {conditions}"  # noqa: S608 - the test's own
    with pytest.raises(QuestionError, match="conditions with at most about 6,000,000 characters"):
        resolve(parse_sql(text, policy), policy, now=0)
