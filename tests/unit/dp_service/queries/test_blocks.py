"""Which blocks of members a question reads, and what a policy may say of blocks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dp_service.queries.errors import PolicyError
from dp_service.queries.policy import Policy, parse_policy
from dp_service.queries.resolution import resolve
from dp_service.queries.sql import parse_sql
from tests.support.queries.lookups import content, policy_of, said
from tests.support.queries.strategies import NOW

TEXT = {"type": "string", "group_by": True, "filter": ["in", "not_in"]}
TABLE: dict[str, Any] = {
    "member": "member",
    "block": "country",
    "time": {"column": "day", "type": "date"},
    "measures": {"distinct_members": True},
    "columns": {"country": TEXT, "shard": {**TEXT, "type": "int64", "filter": ["in", "range"]}, "city": TEXT},
}
POLICY: dict[str, Any] = {
    "epsilon_per": "0.15",
    "delta": "1e-11",
    "blocks": {"name": "country", "values": ["DE", "FR", "IT"]},
    "tables": {"t": TABLE},
}
SHARDS = {
    **POLICY,
    "blocks": {"name": "shard", "values": [0, 1, 2, 7]},
    "tables": {"t": {**TABLE, "block": "shard"}},
}
ALL = "all"


def policy(said: dict[str, Any] = POLICY, **blocks: object) -> Policy:
    """Return a policy with changed blocks."""
    return parse_policy(json.dumps({**said, "blocks": {**said["blocks"], **blocks}}))


def read(where: str, of: Policy, dimension: str = "city", more: str = "") -> str:
    """Return the blocks that a question reads, by their values; it shows `more` numbers."""
    sql = f"SELECT {dimension}, COUNT(DISTINCT member) {more} FROM t WHERE {where} GROUP BY 1 ORDER BY 2 DESC LIMIT 5"  # noqa: S608
    asked = parse_sql(sql, of)
    blocks = of.currency.blocks
    assert blocks is not None
    names = {**{id_: str(value) for value, id_ in blocks.ids.items()}, blocks.rest: "rest"}
    paying = resolve(asked, of, now=NOW).paid_by.blocks
    assert list(paying) == sorted(set(paying))
    return " ".join(sorted(names[each] for each in paying)) or ALL


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("country = 'DE'", "DE"),
        ("country IN ('FR', 'DE', 'FR')", "DE FR"),
        ("city = 'Bonn'", ALL),
        ("country = 'DE' AND city = 'Bonn'", "DE"),
        ("country = 'DE' OR country = 'IT'", "DE IT"),
        ("country = 'DE' OR city = 'Bonn'", ALL),
        ("(country = 'DE' AND city = 'Bonn') OR (city = 'Lyon' AND country IN ('FR', 'IT'))", "DE FR IT"),
        ("(country = 'DE' OR city = 'Bonn') AND (country IN ('FR', 'IT') OR city = 'Lyon')", ALL),
        ("country IN ('DE', 'FR') AND country IN ('FR', 'IT')", "FR"),
        ("country = 'US'", "rest"),
        ("country IN ('US', 'FR')", "FR rest"),
        ("country <> 'DE'", "FR IT rest"),
        ("country NOT IN ('DE', 'FR', 'IT')", "rest"),
        ("country IS NOT NULL", ALL),
        ("NOT country = 'DE' AND city = 'Bonn'", "FR IT rest"),
        ("country LIKE 'D%'", ALL),
        # Some columns take these for equal.
        ("country = 'de'", "DE rest"),
        ("country = 'DE '", "DE rest"),
        ("country = 'D\u00c9'", "DE rest"),
        ("country = '\uff24\uff25'", "DE rest"),
    ],
)
def test_conditions_on_the_column_in_every_branch_leave_blocks_out(where: str, expected: str) -> None:
    """An AND takes what leaves fewest, an OR all of its branches; what says nothing of the column reads all."""
    assert read(where, policy()) == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("shard = 1", "1"),
        ("shard BETWEEN 0 AND 2", "0 1 2"),
        ("shard < 1", "0 rest"),
        ("shard IN (2, 9)", "2 rest"),
        ("shard BETWEEN 3 AND 6", "rest"),
    ],
)
def test_integers_have_blocks_as_well(where: str, expected: str) -> None:
    """A range reads the blocks in it, and the rest unless every integer in it has a block."""
    assert read(where, policy(SHARDS)) == expected


def test_a_known_domain_leaves_out_what_it_does_not_have() -> None:
    """A question that groups by the column counts only the values that may be shown."""
    columns = {**TABLE["columns"], "country": {**TEXT, "domain": ["DE", "IT"]}}
    known = {**POLICY, "tables": {"t": {**TABLE, "columns": columns}}}
    assert read("city = 'Bonn'", policy(known), "country") == "DE IT"


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("country IS NULL", "rest"),
        ("country = 'DE' OR country IS NULL", "DE rest"),
        ("country <> 'DE' AND country IS NOT NULL", "FR IT rest"),
        # What is looked up by the column, whatever it is called, is another value.
        ("land = 'DE'", ALL),
        ("land = 'DE' AND country = 'FR'", "FR"),
        # In a branch it is a condition on the column itself, by the file: FR or US.
        ("land = 'DE' OR country = 'FR'", "FR rest"),
        ("land = 'FR' OR country = 'IT'", "DE IT"),
    ],
)
def test_null_is_of_the_rest_and_what_is_looked_up_is_no_block(where: str, expected: str) -> None:
    """Where rows without a value are kept, and where the looked-up texts are those of blocks."""
    file = content("country", [("DE", "FR"), ("FR", "DE"), ("US", "DE")], "land")
    columns = {
        **TABLE["columns"],
        "country": {**TEXT, "nulls": "keep", "null_value": "none"},
        "land": said("country", file),
    }
    of = policy_of({**POLICY, "tables": {"t": {**TABLE, "columns": columns}}}, file)
    assert read(where, of) == expected


def test_conditions_of_a_count_leave_no_block_out() -> None:
    """A condition inside of a number decides what is added up, and not which rows are read."""
    columns = {
        name: {**said, "typical": 2} if said.get("group_by") else said
        for name, said in TABLE["columns"].items()
    }
    table = {**TABLE, "contributions": {"bound": "in_query", "units": 5}, "columns": columns}
    of = policy({**POLICY, "count_noise": "gaussian", "tables": {"t": table}})
    number = ", COUNT(DISTINCT CASE WHEN country = 'DE' THEN member END)"
    assert read("city <> 'Bonn'", of, more=number) == ALL


def test_a_question_that_names_too_many_blocks_is_one_of_all() -> None:
    """A cost names at most 16 blocks."""
    of = policy(SHARDS, values=list(range(20)))
    assert len(read("shard BETWEEN 0 AND 15", of).split()) == 16
    assert read("shard BETWEEN 0 AND 16", of) == ALL


def test_another_division_is_another_currency() -> None:
    """Name and values make it, in any order; how often members move says nothing of who pays."""
    units = policy().currency.unit_id
    assert policy(values=["IT", "DE", "FR"], moves=1).currency.unit_id == units
    others = [policy(name="land"), policy(values=["DE", "FR"]), policy(values=["DE", "FR", "ES"])]
    assert len({units, *(each.currency.unit_id for each in others)}) == 4


@pytest.mark.parametrize(
    ("blocks", "table", "key", "expected"),
    [
        ({"values": []}, {}, "blocks.values", "at least 1"),
        ({"values": [f"v{i}" for i in range(1001)]}, {}, "blocks.values", "at most 1000"),
        ({"values": ["DE", 1]}, {}, "blocks.values", "one type"),
        ({"values": ["DE", "de"]}, {}, "blocks.values", "differ in more than case"),
        ({"values": ["DE", "DE"]}, {}, "blocks.values", "differ"),
        ({"values": ["D\x00E"]}, {}, "blocks.values", "NUL"),
        ({"values": [True]}, {}, "blocks.values", "expected"),
        ({"moves": -1}, {}, "blocks.moves", "0"),
        ({}, {"block": "member"}, "tables.t.block", "member column"),
        ({}, {"block": "nowhere"}, "tables.t.block", "a column of the table"),
        ({}, {"block": "shard"}, "tables.t.block", "type string"),
        ({}, {"block": None}, "blocks", "a table whose key block"),
        ({"values": ["null"]}, {}, "tables.t.block", "null_value"),
        ({"values": ["Null "]}, {}, "tables.t.block", "null_value"),
    ],
)
def test_faults_name_the_key_and_what_was_expected(
    blocks: dict[str, Any], table: dict[str, Any], key: str, expected: str
) -> None:
    """A division that engines could take for another one is refused with the rest of what is wrong."""
    changed = {k: v for k, v in {**TABLE, **table}.items() if v is not None}
    with pytest.raises(PolicyError) as refused:
        policy({**POLICY, "tables": {"t": changed}}, **blocks)
    assert any(each.key.startswith(key) and expected in each.message for each in refused.value.problems), (
        refused.value
    )


def test_a_table_without_a_division_names_no_block() -> None:
    """The key `block` needs `blocks`; a table without it reads all."""
    said = {key: value for key, value in POLICY.items() if key != "blocks"}
    with pytest.raises(PolicyError, match="expected the key blocks"):
        parse_policy(json.dumps(said))
    other = {**TABLE, "block": None}
    both = {**POLICY, "tables": {"t": TABLE, "u": {k: v for k, v in other.items() if v is not None}}}
    of = policy(both)
    asked = parse_sql(
        "SELECT city, COUNT(DISTINCT member) FROM u WHERE country = 'DE' GROUP BY 1 ORDER BY 2 DESC LIMIT 5",
        of,
    )
    assert resolve(asked, of, now=NOW).paid_by.blocks == ()
