"""Looked-up columns: what they mean on every engine's form of a query, and what a policy cannot say of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dp_service.mechanisms.parameters import Cost
from dp_service.queries.asked_numbers import Measure
from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.errors import PolicyError, QuestionError, RefusedByPolicyError
from dp_service.queries.filters import In, NotIn
from dp_service.queries.lookups import LARGEST_LOOKUP_BYTES, MAXIMUM_LOOKUP_ENTRIES, hash_of
from dp_service.queries.policy import Policy, read_policy
from dp_service.queries.render import render
from dp_service.queries.render.dialects import DIALECTS
from dp_service.queries.render.member_bounds import Weights
from dp_service.queries.render.statement import statement, weighted_statement
from dp_service.queries.resolution import resolve, second_look
from dp_service.queries.sql import parse_sql
from dp_service.queries.structured import HistogramQuery
from dp_service.releases.kinds.views import ExpectedAccuracy
from dp_service.releases.saying import of_question
from dp_service.terms import GRID, MechanismName
from tests.support.examples import examples
from tests.support.queries.as_in_plans import carried
from tests.support.queries.duckdb_rows import store
from tests.support.queries.lookups import FILE, asked, content, nasty, policies, policy_of, said
from tests.support.queries.reference import Row, answer, bounded_answer
from tests.support.queries.strategies import NOW, rows
from tests.support.statements import texts

# The form that engines without a join of lists are given, in a dialect that can be run here.
CASE = replace(DIALECTS["duckdb"], joins_lookups=False)
FORMS = {"join": DIALECTS["duckdb"], "case": CASE}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a database with the small table, which has a column of the looked-up one's name as well."""
    with duckdb.connect() as found:
        found.execute(
            "CREATE TABLE t "
            "(member VARCHAR, text VARCHAR, number BIGINT, flag BOOLEAN, day DATE, topic VARCHAR)"
        )
        yield found


def answered(connection: duckdb.DuckDBPyConnection, table: list[Row], sql: str) -> list[tuple[object, ...]]:
    """Return what DuckDB answers over rows."""
    store(connection, "t", [(*row, "not the public one") for row in table])
    return connection.execute(sql).fetchall()


@pytest.mark.slow
@settings(max_examples=examples(120), deadline=None)
@given(
    policy=policies(),
    query=asked(),
    table=rows(),
    asked_as=st.sampled_from([(form, bounded) for form in FORMS for bounded in (False, True)]),
)
def test_every_form_counts_what_the_reference_looks_up(
    connection: duckdb.DuckDBPyConnection,
    policy: Policy,
    query: HistogramQuery,
    table: list[Row],
    asked_as: tuple[str, bool],
) -> None:
    """Keys of all types, NULL or absent, kept or dropped; members are distinct, clipped and bounded after it."""
    try:
        resolution = resolve(query, policy, now=NOW)
    except QuestionError:
        assume(False)
    form, is_bounded = asked_as
    if is_bounded:
        of_members = Weights(1, 2, 1, ())
        found = answered(connection, table, weighted_statement(resolution, of_members, FORMS[form]))
        assert found == bounded_answer(query, policy, table, of_members, now=NOW)
    else:
        found = answered(connection, table, statement(resolution, FORMS[form]))
        assert found == answer(query, policy, table, now=NOW)


@pytest.mark.parametrize("kept", [False, True])
def test_a_condition_among_others_is_met_by_keys(
    connection: duckdb.DuckDBPyConnection, *, kept: bool
) -> None:
    """Also by those that the file does not have, where the policy keeps them."""
    policy_, table, questions = nasty(kept=kept, bounded=False)
    for question in questions:
        for form in FORMS.values():
            found = answered(connection, table, statement(resolve(question, policy_, now=NOW), form))
            assert found == answer(question, policy_, table, now=NOW)


def test_an_alternative_that_every_key_meets_is_met_by_a_kept_null(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    """NULL is a key without a text, so it has the value of those, and no other question's fingerprint is this one's."""
    file = content("number", [(1, "one"), (2, "two")])
    columns = {
        "number": {"type": "int64", "filter": ["in", "not_in"], "nulls": "keep", "null_value": 0},
        "flag": {"type": "bool", "filter": ["in"]},
        "topic": said("number", file, nulls="keep", null_value="other"),
    }
    table = {"member": "member", "measures": {"distinct_members": True}, "columns": columns}
    policy_ = policy_of({"epsilon_per": "1", "delta": "1e-2", "tables": {"t": table}}, file)
    head = "SELECT COUNT(DISTINCT member) FROM t WHERE"
    every, other = (
        resolve(parse_sql(f"{head} {where}", policy_), policy_, now=NOW)
        for where in ("flag OR topic NOT LIKE 'x%'", "number IS NOT NULL")
    )
    rows_: list[Row] = [
        Row("m1", None, None, False, None),
        Row("m2", None, 7, False, None),
        Row("m3", None, 1, False, None),
    ]
    for form in FORMS.values():
        assert answered(connection, rows_, statement(every, form)) == [(3,)]
        assert answered(connection, rows_, statement(other, form)) == [(2,)]
    assert canonical_bytes(every.query) != canonical_bytes(other.query)


ARTICLES = content("article", [("a1", "health"), ("a2", "health"), ("a3", "scam's")])


def policy(file: bytes = ARTICLES, table: dict[str, Any] | None = None, **topic: Any) -> Policy:
    """Return a policy of articles, whose topics are looked up."""
    columns = {
        "m": {"type": "string"},
        "article": {"type": "string", "group_by": True, "delta": 2},
        "country": {"type": "string", "group_by": True},
        "topic": said("article", file, **topic),
    }
    stated = {"member": "m", "measures": {"distinct_members": True}, "columns": columns, **(table or {})}
    gaussian = {"count_noise": "gaussian"} if "contributions" in stated else {}
    text = {"epsilon_per": "0.15", "delta": "1e-10", **gaussian, "tables": {"t": stated}}
    return policy_of(text, file)


BY_TOPIC = HistogramQuery("t", ("topic",), Measure.DISTINCT_MEMBERS, k=5)


def test_the_values_of_the_file_are_the_domain_and_delta_is_that_of_the_key() -> None:
    """The file is public, so elements are shown without a threshold; a kept element for other keys is one of them."""
    dropped, kept = policy(), policy(nulls="keep", null_value="other")
    found = resolve(BY_TOPIC, dropped, now=0).parameters
    assert (found.mechanism, found.delta_l0) == (MechanismName.KNOWN_LAP, 2)
    assert found.domain == (("health",), ("scam's",))
    assert resolve(BY_TOPIC, kept, now=0).parameters.domain == (("health",), ("other",), ("scam's",))
    assert policy(delta=1).tables[0].column("topic").delta == 1
    assert policy(delta=9).tables[0].column("topic").delta == 2


def test_one_meaning_has_one_fingerprint_and_another_file_is_another_question() -> None:
    """All values of a looked-up column are known, so leaving one out is naming the others."""
    only = replace(BY_TOPIC, filters=(In("topic", ("health",)),))
    without = replace(BY_TOPIC, filters=(NotIn("topic", ("scam's",)),))
    one = policy()
    fingerprints = [canonical_bytes(resolve(each, one, now=0).query) for each in (only, without, BY_TOPIC)]
    assert fingerprints[0] == fingerprints[1] != fingerprints[2]
    other = policy(content("article", [("a1", "health"), ("a2", "scam's"), ("a3", "scam's")]))
    assert canonical_bytes(resolve(BY_TOPIC, other, now=0).query) != fingerprints[2]


def test_a_plan_carries_what_is_looked_up() -> None:
    """The second of two looks is written from the plan alone, under whatever policy is then served."""
    query = resolve(replace(BY_TOPIC, dimensions=("topic", "country")), policy(), now=0).query
    again = carried(query)
    assert again == query
    lookup = again.dimensions[0].lookup
    assert lookup is not None
    assert lookup.entries == (("a1", "health"), ("a2", "health"), ("a3", "scam's"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("nulls", [{}, {"nulls": "keep", "null_value": "other"}])
def test_a_second_look_counts_its_names_alone(form: str, nulls: dict[str, str]) -> None:
    """Pairs of a topic and a country are named, among them those of articles that the file does not have."""
    block = {"bound": "in_query", "units": 10, "longest_list": 5}
    columns = {"article": {"type": "string"}, "country": {"type": "string", "group_by": True, "typical": 1}}
    two = policy(
        table={
            "contributions": block,
            "columns": columns | {"topic": {**said("article", ARTICLES, **nulls), "typical": 1}},
        }
    )
    query = replace(BY_TOPIC, dimensions=("topic", "country"))
    names = (("health", "DE"), ("other", "FR"), ("scam's", "DE"))
    look = second_look(resolve(query, two, now=0), names)
    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE t (m VARCHAR, article VARCHAR, country VARCHAR)")
        given_ = [("m1", "a1", "FR"), ("m1", "a2", "DE"), ("m2", "new", "FR"), ("m3", "new", "DE")]
        engine.executemany(
            "INSERT INTO t VALUES (?, ?, ?)", [*given_, ("m4", "a3", "DE"), ("m5", None, "FR")]
        )
        found = engine.execute(statement(look, FORMS[form])).fetchall()
    # m1 has two pairs. Only one of them is a name, and there it counts in full.
    of_others = {("other", "FR", GRID)} if nulls else set()
    assert set(found) == {("health", "DE", GRID), ("scam's", "DE", GRID)} | of_others


def test_an_assumed_tau_of_elements_bounds_no_looked_up_value() -> None:
    """All articles of a member may have one topic; beside the article, its rows are those of one article."""
    events = {"tau": 1, "tau_is": "assumed"}
    assumed = policy(table={"measures": {"events": events}})
    alone = replace(BY_TOPIC, measure=Measure.EVENTS)
    with pytest.raises(RefusedByPolicyError, match=r"COUNT.* by topic alone is not offered"):
        resolve(alone, assumed, now=0)
    assert resolve(replace(alone, dimensions=("topic", "article")), assumed, now=0).parameters.tau == 1
    clipped = policy(table={"measures": {"events": events | {"tau_is": "clipped"}}})
    assert resolve(alone, clipped, now=0).query.clip == 1


def test_a_query_names_the_key_and_never_the_looked_up_column() -> None:
    """Engines are asked whether the table has the key; the numbers that it is compared with are those of the file."""
    file = content("article", [("-7", "low"), ("400", "high")])
    columns = {"article": {"type": "int64"}, "topic": said("article", file)}
    found = resolve(BY_TOPIC, policy(file, {"columns": columns}), now=0)
    assert [each.name for each in found.reads] == ["article", "m"]
    numbers = found.reads[0].numbers
    assert numbers is not None
    assert numbers.end == 401
    for dialect in DIALECTS:
        # Only as what the answer calls it, and as a part of the name of what is joined.
        sql = (
            render(found, dialect)
            .replace("gris_of_topic", "")
            .replace('AS "topic"', "")
            .replace("AS `topic`", "")
        )
        assert "topic" not in sql


def test_a_copy_that_is_bounded_by_the_key_answers_for_what_is_looked_up() -> None:
    """Members have no more topics than articles of such a copy; no copy is bounded by topics, for it has none."""
    columns = {"article": {"type": "string", "group_by": True}}
    block = {"bound": "prepared", "delta": 2, "units": 10, "elements": ["article"], "period": "all"}

    def prepared(key: str, elements: list[str]) -> Policy:
        file = content(key, [("a1", "health"), ("a2", "scam's"), ("a3", "x")])
        topic = {"columns": columns | {"topic": said(key, file)}}
        measures = {"measures": {"distinct_members": True}}
        return policy(file, {"contributions": block | {"elements": elements}, **measures, **topic})

    found = resolve(BY_TOPIC, prepared("article", ["article"]), now=0)
    assert 'MAX("weight")' in render(found, "duckdb")
    with pytest.raises(PolicyError, match="expected no group_by for topic"):
        prepared("country", ["article"])
    with pytest.raises(PolicyError, match="topic: expected a column that questions may group by"):
        prepared("article", ["topic"])


def test_explain_says_what_is_looked_up_and_what_becomes_of_other_keys() -> None:
    """Once for a column that is grouped by and has a condition."""
    question = replace(BY_TOPIC, filters=(In("topic", ("health",)),))
    for under, rest in (
        (policy(), "are left out"),
        (policy(nulls="keep", null_value="other"), "count with the policy's value for NULL"),
    ):
        (line,) = [
            each
            for each in texts(of_question(resolve(question, under, now=0), Cost(1, 0), ExpectedAccuracy()))
            if "looked up" in each
        ]
        assert line.startswith("topic is looked up by article in a public file, before anything is counted")
        assert line.endswith(f"rows whose article it does not have {rest}.")


def test_sql_may_group_by_what_is_looked_up_and_have_conditions_on_it() -> None:
    """It is a column like any other to who asks."""
    text = "SELECT topic, COUNT(DISTINCT m) FROM t WHERE topic <> 'scam''s' GROUP BY topic ORDER BY 2 DESC LIMIT 5"
    found = resolve(parse_sql(text, policy()), policy(), now=0)
    expected = replace(BY_TOPIC, filters=(NotIn("topic", ("scam's",)),))
    assert found.query == resolve(expected, policy(), now=0).query


def faults(file: bytes | None, topic: dict[str, Any], folder: Path, **columns: Any) -> str:
    """Return what is wrong with a policy whose topics are looked up."""
    if file is not None:
        (folder / FILE).write_bytes(file)
    listed = {"m": {"type": "string"}, "article": {"type": "string"}, "at": {"type": "timestamp"}}
    table = {
        "member": "m",
        "measures": {"distinct_members": True},
        "columns": {**listed, "topic": topic, **columns},
    }
    text = json.dumps({"epsilon_per": "0.15", "delta": "1e-10", "tables": {"t": table}}).encode()
    with pytest.raises(PolicyError) as found:
        read_policy(text, str(folder / "policy.yaml"))
    return "\n".join(f"{each.key}: {each.message}" for each in found.value.problems)


BAD_FILES: dict[str, tuple[bytes, str]] = {
    "two values for a key": (
        b"article,topic\na1,x\na2,y\na1,z\n",
        "line 4: expected each key once; line 2 has this one",
    ),
    "the same key twice": (b"article,topic\na1,x\na1,x\n", "line 3: expected each key once"),
    "no key": (b"article,topic\n", "expected at least one line"),
    "nothing": (b"", "line 1: expected the names of two columns, article,topic"),
    "other names": (b"articleId,topic\na1,x\n", "line 1: expected the names of two columns, article,topic"),
    "a byte order mark": (b"\xef\xbb\xbfarticle,topic\na1,x\n", "line 1: .* without a byte order mark"),
    "other bytes": (b"article,topic\n\xff,x\n", "expected a text in UTF-8"),
    "three fields": (b"article,topic\na1,x,y\n", "line 2: expected two fields, article and topic, got 3"),
    "an empty line": (b"article,topic\na1,x\n\na2,y\n", "line 3: expected two fields"),
    "no text": (b"article,topic\na1,\n", "line 2: topic: expected a text of at most 512 characters"),
    "a long text": (
        b"article,topic\na1," + b"x" * 513 + b"\n",
        "line 2: topic: expected a text of at most 512",
    ),
    "a long key": (
        b"article,topic\n" + b"x" * 513 + b",y\n",
        "line 2: article: expected a text of at most 512",
    ),
    "a NUL": (b"article,topic\na\x001,x\n", "line 2: article: expected a text .* without NUL"),
    "a stray quote": (b'article,topic\n"a"1,x\n', "line 2: expected CSV with commas and double quotes"),
    "the null value": (b"article,topic\na1,null\n", "expected no line with the null_value"),
    "too many keys": (
        b"article,topic\n" + b"".join(b"%d,x\n" % i for i in range(MAXIMUM_LOOKUP_ENTRIES + 1)),
        "expected at most 10000 keys, got 10001",
    ),
    "too many bytes": (b"article,topic\n" + b"a" * LARGEST_LOOKUP_BYTES, "expected at most 524288 bytes"),
}


@pytest.mark.parametrize("bad", BAD_FILES)
def test_a_bad_file_is_refused_with_its_line(bad: str, tmp_path: Path) -> None:
    """The error names the key of the policy and the line of the file, and repeats no value of it."""
    file, expected = BAD_FILES[bad]
    found = faults(file, said("article", file), tmp_path)
    assert found.startswith("tables.t.columns.topic.lookup.file: ")
    assert re.search(expected, found), found


BAD_KEYS: dict[str, tuple[str, bytes, str]] = {
    "a text as a number": ("int64", b"article,topic\na1,x\n", "article: expected a whole number of 64 bits"),
    "a number beyond 64 bits": (
        "int64",
        b"article,topic\n9223372036854775808,x\n",
        "expected a whole number of 64 bits",
    ),
    "a number of two spellings": (
        "int64",
        b"article,topic\n1,x\n01,y\n",
        "line 3: article: expected a whole number",
    ),
    "no day": ("date", b"article,topic\n2024-02-30,x\n", "article: expected a day as YYYY-MM-DD"),
    "no truth value": ("bool", b"article,topic\nTrue,x\n", "article: expected true or false"),
}


@pytest.mark.parametrize("bad", BAD_KEYS)
def test_a_key_of_another_type_is_refused(bad: str, tmp_path: Path) -> None:
    """Each value has one spelling, so no key can be there twice in two of them."""
    kind, file, expected = BAD_KEYS[bad]
    found = faults(file, said("article", file), tmp_path, article={"type": kind})
    assert "tables.t.columns.topic.lookup.file: " in found
    assert expected in found


def test_a_lookup_that_cannot_be_is_refused_by_its_key(tmp_path: Path) -> None:
    """Another hash, no file, no column, members as keys or topics, another type, a chain, a published domain."""

    def of(topic: dict[str, Any], **columns: Any) -> str:
        return faults(ARTICLES, topic, tmp_path, **columns)

    good = said("article", ARTICLES)
    other = {**good, "lookup": {**good["lookup"], "hash": hash_of(b"another")}}
    assert "topic.lookup.hash: expected the SHA-256 of topics.csv, which is another one" in of(other)
    missing = {**good, "lookup": {**good["lookup"], "file": "no.csv"}}
    assert "topic.lookup.file: " in of(missing)
    assert "No such file" in of(missing)
    assert "topic.lookup.hash: " in of({**good, "lookup": {**good["lookup"], "hash": "sha256:12"}})
    assert "topic.lookup.column: expected a column that the policy lists" in of(said("page", ARTICLES))
    assert "topic.lookup.column: expected another column: a function of the member" in of(said("m", ARTICLES))
    assert "topic.lookup.column: expected a column of type string, int64, bool, date" in of(
        said("at", ARTICLES)
    )
    assert "topic.type: expected string" in of({**good, "type": "int64"})
    assert "m.lookup: expected none: members are not looked up" in of(
        good, m=said("article", ARTICLES, group_by=False)
    )
    assert "broad.lookup.column: expected a column of the table itself" in of(
        good, broad=said("topic", ARTICLES)
    )
    published = {"published": "d.json", "integrity": hash_of(b"")}
    assert "topic.domain: expected a list, or none" in of({**good, "domain": published})
    assert "topic.domain: expected values that the file of the lookup has; 1 are" in of(
        {**good, "domain": ["health", "x"]}
    )
