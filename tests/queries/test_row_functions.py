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
from dp_service.queries.sql import parse_sql, with_places
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
        ('bob', 'y', DATE '1970-01-02', 99, NULL)
    ) AS rows(member, article, day, age, app)
"""


def policy_of(
    directory: Path, contributions: dict[str, object] | None = None, *, topics: bytes = TOPICS
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


@pytest.mark.parametrize(
    ("function", "delta"),
    [
        ("CASE WHEN topic = 'health' THEN 1 ELSE 2 END", 2),
        ("CASE WHEN topic = 'health' THEN 1 WHEN topic <> 'health' THEN 2 END", 1),
        ("topic = 'health'", 1),
        ("CASE WHEN day >= '2024-01-01' THEN 1 WHEN day < '2000-01-01' THEN 2 ELSE 3 END", 2),
        ("CASE WHEN age < 9 THEN 1 WHEN age < 50 THEN 2 ELSE 3 END", 3),
        ("WIDTH_BUCKET(age, 0, 30, 3)", 2),
    ],
)
def test_a_row_that_no_question_by_the_column_counts_is_in_one_value_more(
    tmp_path: Path, function: str, delta: int
) -> None:
    """The column's Delta says nothing of NULL, of a NULL key and of infinite days, which ELSE counts."""
    resolution = by(function, policy_of(tmp_path))
    assert resolution.parameters.delta_l0 == delta
    assert len(counts(resolution, "ada")) <= delta


def test_a_text_that_is_too_long_to_be_shown_is_in_a_value_more(tmp_path: Path) -> None:
    """Questions by its column leave it out, and a condition of LIKE may hold of it."""
    case = "CASE WHEN article LIKE 'yzz%' THEN 1 WHEN article = 'x' THEN 2 ELSE 3 END"
    resolution = by(case, policy_of(tmp_path))
    assert len(counts(resolution, "cyd")) == resolution.parameters.delta_l0 == 3


def test_a_row_without_a_number_is_in_no_bin(tmp_path: Path) -> None:
    """As in SQL, where WIDTH_BUCKET of NULL is NULL: it is not beyond the last bin."""
    assert counts(by("WIDTH_BUCKET(age, 0, 30, 3)", policy_of(tmp_path)), "ada", "bob") == {1: 1, 4: 1}


def test_one_function_is_grouped_by_once_however_it_is_written(tmp_path: Path) -> None:
    """Two texts of one function would be two columns of the same values, and another release."""
    policy = policy_of(tmp_path)
    with pytest.raises(QuestionError, match="two of them are one"):
        by("age < 5, age <= 4", policy)
    resolution = by("age < 5, age < 7", policy)
    assert [name for name, _ in resolution.columns] == ["gris_case", "gris_case_2"]
    text = "SELECT age < 5, article, age < 7, COUNT(*) FROM t GROUP BY ALL"
    assert labels_of(parse_sql(text, policy).dimensions) == ("case", None, "case_2")


def test_columns_of_a_function_alone_cost_nothing(tmp_path: Path) -> None:
    """Tools ask for the columns of a statement by LIMIT 0, also where it selects no number."""
    policy = policy_of(tmp_path)
    asked = parse_sql("SELECT age < 5 AS young FROM t LIMIT 0", policy)
    assert asked.free is Free.COLUMNS
    assert resolve(asked, policy, now=0).columns == (("gris_case", ColumnType.BOOL),)


@pytest.mark.parametrize("more", [{"bound": "assumed"}, {"bound": "prepared", "period": "all"}])
def test_what_bounds_columns_alone_bounds_no_function_of_others(
    tmp_path: Path, more: dict[str, object]
) -> None:
    """A CASE may be of columns without a bound, and rows with NULL are in the value of ELSE: one element more."""
    elements = {"elements": ["article", "day", "age"]} if more["bound"] == "prepared" else {}
    policy = policy_of(tmp_path, {"delta_0": 1, "units": 10, **more, **elements})
    for function in ("CASE WHEN app = 'a' THEN 1 ELSE 2 END", "CASE WHEN article = 'x' THEN 1 ELSE 2 END"):
        with pytest.raises(RefusedByPolicyError, match="CASE, bins and parts of texts are not offered"):
            by(function, policy)


def test_a_query_bounds_members_in_a_function_of_any_column(tmp_path: Path) -> None:
    """Ada has two values of it, and counts in one."""
    policy = policy_of(tmp_path, {"bound": "in_query", "delta_0": 1, "units": 10})
    found = counts(by("CASE WHEN app = 'a' THEN 1 WHEN app = 'b' THEN 2 END", policy), "ada")
    assert sum(found.values()) == 1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            "CASE WHEN age < 5 AND age > 7 THEN 1 ELSE 2 END",
            "column 8: expected CASE, or grouped by, without a condition that no",
        ),
        (
            "CASE WHEN topic = 'sports' THEN 1 ELSE 2 END",
            "column 18: topic: expected a value of the column's domain",
        ),
    ],
)
def test_a_condition_of_a_case_is_pointed_at_there(tmp_path: Path, function: str, message: str) -> None:
    """Though the statement has WHERE, where most conditions stand."""
    policy = policy_of(tmp_path)
    text = "SELECT ?, COUNT(DISTINCT member) FROM t WHERE app = 'a' GROUP BY 1".replace("?", function)
    with pytest.raises(QuestionError, match=message):
        with_places(text, policy, lambda: resolve(parse_sql(text, policy), policy, now=0))


def test_a_second_look_fits_into_a_message_however_many_names_are_found(tmp_path: Path) -> None:
    """Each name repeats the CASE, so one that could be too long for some number of names is refused beforehand."""
    names = {"delta_1": 4, "share": 0.35, "max_names": 500}
    policy = policy_of(tmp_path, {"bound": "in_query", "delta_0": 8, "units": 20, "names": names})
    bins = by("WIDTH_BUCKET(age, 0, 900, 97), article", policy)
    found = tuple((place % 99, str(place) * 300) for place in range(most_of(bins)))
    assert len(render(second_look(bins, found), "duckdb").encode()) < 8_000_000
    branches = " ".join(f"WHEN app = '{place:0900}' THEN {place}" for place in range(100))
    with pytest.raises(QuestionError, match="beside a column of an unknown domain"):
        by(f"CASE {branches} END, article", policy)
    alone = by(f"CASE {branches} END", policy)
    assert len(render(alone, "duckdb")) < 1_000_000


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
    branches = " ".join(f"WHEN topic <> 'other' AND age < {place} THEN {place}" for place in range(9))
    assert by("CASE WHEN topic = 'topic1' THEN 1 ELSE 2 END", policy).parameters.domain is not None
    conditions = " OR ".join(f"(topic <> 'other' AND age < {place})" for place in range(60))
    text = f"SELECT COUNT(DISTINCT member) FROM t WHERE {conditions}"  # noqa: S608 - the test's own
    with pytest.raises(QuestionError, match="conditions with at most about 6,000,000 characters"):
        resolve(parse_sql(text, policy), policy, now=0)
    with pytest.raises(QuestionError, match="about 2,000,000 characters of conditions"):
        by(f"CASE {branches} END", policy)
