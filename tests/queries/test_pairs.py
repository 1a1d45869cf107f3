"""Which questions a pairs copy answers, and what is refused of a policy that names one."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

from dp_service.mechanisms.parameters import Cost
from dp_service.queries.audience_terms import AskedAs
from dp_service.queries.audiences import seen_by
from dp_service.queries.errors import PolicyError
from dp_service.queries.pairs_manifest import ManifestError, chain, read_manifest
from dp_service.queries.policy import Policy, read_policy
from dp_service.queries.render import Feature, render, required_features
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.sql import parse_sql
from dp_service.releases.choosing import chosen
from dp_service.releases.kinds.views import ExpectedAccuracy
from dp_service.releases.looks import Named, second_plan, second_question
from dp_service.releases.saying import of_question
from dp_service.releases.translation import IssueContext, plan_for
from tests.dp.identities import KEY
from tests.support.pairs_copies import policy_text
from tests.support.queries.lookups import FILE, content, said
from tests.support.some import some
from tests.support.statements import texts

MANIFEST: dict[str, Any] = {
    "format": "gris-pairs/3",
    "table": "visits",
    "member": "who",
    "null_member": "null",
    "elements": ["what"],
    "attributes": ["country"],
    "first_attributes": False,
    "time": "day",
    "zone": "",
    "calendar": "month",
    "end": "2024-04-01",
    "left_out": {"member": 1, "time": 2, "element": 3},
    "periods": [
        {
            "period": f"2024-0{month}-01",
            "file": f"{month}.parquet",
            "checksum": f"sha256:{month:064}",
            "rows": month,
            "build": 10 + month,
            "check_sum": 20 + month,
        }
        for month in (1, 2, 3)
    ],
}


def read(folder: Path, text: str = "", /, **changed: object) -> Policy:
    """Return a policy whose copy has this manifest, with changes, chained as its periods are then."""
    content = MANIFEST | changed
    links = zip(content["periods"], chain(content), strict=True)
    content["periods"] = [{"chain": link} | each for each, link in links]
    (folder / "manifest.json").write_text(json.dumps(content))
    return read_policy((text or policy_text("manifest.json")).encode(), str(folder / "policy.yaml")).policy


def ask(policy: Policy, sql: str, now: int = 0) -> Resolution:
    """Return what a question resolves to."""
    return resolve(parse_sql(sql, policy), policy, now=now)


BY = "SELECT what, COUNT(DISTINCT who) FROM visits WHERE {} GROUP BY what ORDER BY COUNT(DISTINCT who) DESC LIMIT 3"
IN_FEBRUARY = "day >= '2024-02-01' AND day < '2024-03-01'"


@pytest.mark.parametrize(
    ("where", "conditions"),
    [
        (IN_FEBRUARY, ['"gris_period" >= 19754', '"gris_period" < 19783', '"gris_previous" < 19754']),
        ("day < '2024-04-01'", ['"gris_period" < 19814', '"gris_previous" = -2147483648']),
        (
            f"{IN_FEBRUARY} AND country = 'FR' AND what <> 'x'",
            ["\"country\" = 'FR'", "\"what\" NOT IN ('null', 'x')"],
        ),
        (
            f"{IN_FEBRUARY} AND (country = 'FR' OR what LIKE 'x')",
            ["\"country\" = 'FR'", " OR ", "\"what\" = 'x'"],
        ),
    ],
)
def test_a_question_of_whole_periods_counts_the_rows_of_the_copy(
    tmp_path: Path, where: str, conditions: list[str]
) -> None:
    """One of each member and element; nothing names the member or the time column."""
    resolution = ask(read(tmp_path), BY.format(where))
    assert (resolution.query.table, resolution.parameters.tau) == ("visits_pairs", 1)
    for dialect in ("duckdb", "pinot"):
        sql = render(resolution, dialect)
        assert 'COUNT(*) AS "gris_count" FROM "visits_pairs"' in sql
        assert all(each in sql for each in some(conditions))
        assert "who" not in sql
        assert "day" not in sql
        assert required_features(resolution, dialect) == (Feature.PAIRS_COPY,)
    assert {read.name for read in resolution.reads} >= {"what", "gris_period", "gris_previous"}
    lines = texts(of_question(resolution, Cost(1, 1), ExpectedAccuracy()))
    assert any("The prepared copy visits_pairs answers for visits" in line for line in lines)


RAW = {
    "no range": BY.format("what <> 'x'"),
    "a range that begins within a period": BY.format("day >= '2024-02-02' AND day < '2024-03-01'"),
    "a range that ends within a period": BY.format("day >= '2024-02-01' AND day < '2024-03-02'"),
    "a range beyond the copy": BY.format("day >= '2024-02-01' AND day < '2024-05-01'"),
    "a range without an end": BY.format("day >= '2024-02-01'"),
    "two ranges": BY.format(f"{IN_FEBRUARY} AND day NOT IN ('2024-02-07')"),
    "another element": f"SELECT country, COUNT(DISTINCT who) FROM visits WHERE {IN_FEBRUARY} GROUP BY country LIMIT 3",
    "more than the element": BY.format(IN_FEBRUARY).replace("what", "what, country"),
    "a total": f"SELECT COUNT(DISTINCT who) FROM visits WHERE {IN_FEBRUARY}",
    "events": f"SELECT what, COUNT(*) AS n FROM visits WHERE {IN_FEBRUARY} GROUP BY what ORDER BY n DESC LIMIT 3",
    "a column of events among alternatives": BY.format(f"{IN_FEBRUARY} AND (kind LIKE 'a%' OR what = 'x')"),
    "the time among alternatives": BY.format(f"{IN_FEBRUARY} AND (day = '2024-02-03' OR what = 'x')"),
    "a column of events": BY.format(f"{IN_FEBRUARY} AND kind = 'a'"),
}


@pytest.mark.parametrize("sql", RAW.values(), ids=RAW)
def test_what_the_copy_cannot_answer_is_asked_of_the_table(tmp_path: Path, sql: str) -> None:
    """By the same fingerprint as without a copy."""
    text = policy_text("manifest.json").replace(
        "filter: [in, range]}", "filter: [in, not_in, range]}\n      kind: {type: string, filter: [in]}"
    )
    resolution = ask(read(tmp_path, text), sql)
    assert (resolution.pairs, resolution.query.table) == (None, "visits")
    kept = [line for line in text.splitlines() if "prepared" not in line]
    without = read_policy("\n".join(kept).encode(), "policy").policy
    assert resolution == ask(without, sql)


def test_what_is_looked_up_by_an_element_is_asked_of_the_table(tmp_path: Path) -> None:
    """A member has a row of the copy for each element, and so several for a topic; no copy is made of topics."""
    file = content("what", [("a", "x"), ("b", "x")])
    (tmp_path / FILE).write_bytes(file)
    text = policy_text("manifest.json").replace(
        "columns:", f"columns:\n      topic: {json.dumps(said('what', file))}", 1
    )
    for sql in (BY.format(IN_FEBRUARY).replace("what", "topic"), BY.format(f"{IN_FEBRUARY} AND topic = 'x'")):
        resolution = ask(read(tmp_path, text), sql)
        assert (resolution.pairs, resolution.query.table) == (None, "visits")
        assert 'COUNT(DISTINCT "who")' in render(resolution, "pinot")
    with pytest.raises(PolicyError, match=r"topic is part of the copy's elements: .* not a looked-up one"):
        read(tmp_path, text, elements=["topic"])


def test_the_version_is_that_of_the_rows_that_count(tmp_path: Path) -> None:
    """A period that is appended changes nothing; another file of a period that counts does, with as many rows."""
    sql = BY.format(IN_FEBRUARY)
    version = ask(read(tmp_path), sql).fixed_data_version
    april = MANIFEST["periods"][2] | {"period": "2024-04-01", "file": "4.parquet"}
    appended = read(tmp_path, end="2024-05-01", periods=[*MANIFEST["periods"], april])
    assert ask(appended, sql).fixed_data_version == version
    other = [each | {"checksum": f"sha256:{9:064}"} for each in MANIFEST["periods"]]
    assert ask(read(tmp_path, periods=other), sql).fixed_data_version != version


def test_closed_periods_end_the_range(tmp_path: Path) -> None:
    """Once a period is closed that the copy does not hold yet, the raw table answers."""
    policy = read(tmp_path, policy_text("manifest.json", refresh=", refresh: month, delay_minutes: 0"))
    for month, table in ((4, "visits_pairs"), (5, "visits")):
        now = int(datetime.datetime(2024, month, 9, tzinfo=datetime.UTC).timestamp())
        assert ask(policy, BY.format("what <> 'x'"), now).query.table == table


FAULTS: dict[str, tuple[dict[str, object], str]] = {
    "another table": ({"table": "clicks"}, "expected visits"),
    "another member": ({"member": "whose"}, "expected who"),
    "another missing member": ({"null_member": ""}, "expected the member column's null_value"),
    "another time": ({"time": "at"}, "expected day"),
    "a zone": ({"zone": "Europe/Berlin"}, "expected the time column's, and none for days"),
    "an element that is not grouped by": (
        {"elements": ["what", "kind"]},
        "kind is part of the copy's elements",
    ),
    "an attribute that is none": ({"attributes": ["what2"]}, "expected attribute: true"),
    "no manifest": ({"format": "gris-pairs/4"}, "expected a manifest of the form gris-pairs/3"),
    "rows that name no build": ({"format": "gris-pairs/1"}, "Make it anew with gris bound --pairs"),
    "sums without previous periods": (
        {"format": "gris-pairs/2"},
        "previous periods that they had. Make it anew",
    ),
    "a period of another copy": (
        {"periods": [MANIFEST["periods"][0] | {"chain": f"sha256:{7:064}"}, *MANIFEST["periods"][1:]]},
        "a period does not follow the one before it",
    ),
    "a period twice": ({"periods": [MANIFEST["periods"][0]] * 2}, "expected each period once"),
    "a period beyond the end": ({"end": "2024-03-01"}, "expected periods before the end"),
    "a period that is none": ({"end": "2024-04-02"}, "expected first days of a month"),
    "no period": ({"periods": []}, "expected at least one period"),
}


@pytest.mark.parametrize(("changed", "message"), FAULTS.values(), ids=FAULTS)
def test_a_copy_of_something_else_is_refused(
    tmp_path: Path, changed: dict[str, object], message: str
) -> None:
    """By the key that names it."""
    with pytest.raises(PolicyError) as refused:
        read(tmp_path, **changed)
    assert message in str(refused.value)
    assert "tables.visits.prepared" in str(refused.value)


TABLES = {
    "an element that keeps NULL": (
        "filter: [in, not_in]}\n      country",
        "filter: [in, not_in], nulls: keep}\n      country",
        "expected nulls: drop",
    ),
    "days for rows without one": (
        "day: {type: date,",
        "day: {type: date, nulls: keep, null_value: 2024-02-03,",
        "expected nulls: drop for day",
    ),
    "no member column": ("      who: {type: string}\n", "", "expected who among the columns"),
    "no distinct members": ("distinct_members: true", "distinct_members: false", "expected distinct_members"),
    "the name of a table": ("table: visits_pairs", "table: Visits", "expected a name that no other table"),
    "no such file": ("manifest.json", "absent.json", "No such file"),
}


@pytest.mark.parametrize(("old", "new", "message"), TABLES.values(), ids=TABLES)
def test_a_table_that_no_copy_can_answer_for_is_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    """Rather than answered by something else than its members."""
    text = policy_text("manifest.json")
    assert old in text
    with pytest.raises(PolicyError, match=message):
        read(tmp_path, text.replace(old, new))


EDITS: dict[str, dict[str, Any]] = {
    "an end that was not copied": {"end": "2024-05-01"},
    "without its last period": {"periods": 2},
    "first attributes in the place of checked ones": {"first_attributes": True},
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edited_manifest_is_none(tmp_path: Path, edit: dict[str, Any]) -> None:
    """What the chain of periods does not show, the whole one's checksum does; one of before states none."""
    read(tmp_path)
    written = json.loads(read_manifest((tmp_path / "manifest.json").read_bytes()).to_json())
    if "periods" in edit:
        edit = {"periods": written["periods"][: edit["periods"]]}
    assert read_manifest(json.dumps(written).encode())
    with pytest.raises(ManifestError, match="it was changed or cut since"):
        read_manifest(json.dumps(written | edit).encode())


NOW = 1_720_000_000
BOUNDED = """
epsilon_per: 0.15
delta: 1e-10
count_noise: gaussian
tables:
  visits:
    member: who
    time: {column: day, type: date}
    contributions: {bound: in_query, delta_0: 4, units: 12, totals: {share: 1/4}}
    measures: {distinct_members: true}
    columns:
      who: {type: string}
      what: {type: string, group_by: true}
      country: {type: string, group_by: true, domain: [DE, FR]}
      day: {type: date, filter: [in, range]}
"""
OTHER_ROWS = [each | {"checksum": f"sha256:{9:064}"} for each in MANIFEST["periods"]]
TOTALS = "units: 12, totals: {share: 1/4}"
TWO_LOOKS = BOUNDED.replace(TOTALS, "units: 12, names: {delta_1: 2, share: 3/7, max_names: 4}")
COUNTRY = "      country: {type: string, group_by: true, domain: [DE, FR]}\n"
BOUNDED_COPY = (
    BOUNDED.replace("bound: in_query", "bound: prepared")
    .replace(TOTALS, "units: 12, elements: [what], period: all")
    .replace(COUNTRY, "")
)
OF_BOUNDED = f"SELECT what, COUNT(DISTINCT who) FROM visits WHERE {IN_FEBRUARY} GROUP BY what"
BY_TOPIC = "      topic: {}\n"


def looked_up(folder: Path) -> str:
    """Return a policy with a pairs copy and a column that a public file looks up."""
    file = content("what", [("a", "x"), ("b", "x")])
    (folder / FILE).write_bytes(file)
    column = BY_TOPIC.format(json.dumps(said("what", file)))
    return policy_text("manifest.json").replace("    columns:\n", f"    columns:\n{column}")


@pytest.mark.parametrize("fixed", ["declared", "refresh", "both", "no"])
@pytest.mark.parametrize(
    ("text", "sql", "answers"),
    [
        pytest.param("", BY.format(IN_FEBRUARY), "visits_pairs", id="pairs"),
        pytest.param("", BY.format("day < '2024-03-01' AND country = 'FR'"), "visits_pairs", id="attribute"),
        pytest.param("", BY.format("day >= '2024-02-02' AND day < '2024-03-01'"), "visits", id="raw"),
        pytest.param("", BY.format(IN_FEBRUARY).replace("DISTINCT who", "*"), "visits", id="events"),
        pytest.param("topic", BY.format(IN_FEBRUARY).replace("what", "topic"), "visits", id="look-up"),
        pytest.param(BOUNDED, OF_BOUNDED, "visits", id="bounded"),
        pytest.param(TWO_LOOKS, OF_BOUNDED, "visits", id="two looks"),
        pytest.param(BOUNDED_COPY, OF_BOUNDED, "visits", id="bounded copy"),
        pytest.param(
            BOUNDED,
            f"SELECT country, what, COUNT(DISTINCT who) FROM visits WHERE {IN_FEBRUARY} "
            "GROUP BY GROUPING SETS ((country, what), (country))",
            "visits",
            id="totals",
        ),
    ],
)
def test_rows_that_change_under_a_fixed_version_leave_the_id_of_a_question(
    tmp_path: Path, text: str, sql: str, answers: str, fixed: str
) -> None:
    """Whichever table answers, and whatever a copy says of itself; without a fixed version the id follows the rows."""
    text = looked_up(tmp_path) if text == "topic" else text or policy_text("manifest.json")
    if fixed in ("declared", "both"):
        text = text.replace("    member: who\n", "    member: who\n    data_version: first\n")
    if fixed in ("refresh", "both"):
        text = text.replace("type: date}\n", "type: date, refresh: month}\n", 1)
    ids, seconds = set(), set()
    for periods, engine_version in ((MANIFEST["periods"], "before"), (OTHER_ROWS, "after")):
        resolution = ask(read(tmp_path, text, periods=periods), sql, now=NOW)
        assert resolution.query.table == answers
        plan = plan_for(resolution, engine_version, KEY, IssueContext(NOW, bytes(32)))
        ids.add(plan.query_id)
        if plan.looks is not None:
            second = second_plan(plan, Named((("a",),), "ab" * 32), now=NOW)
            seconds.add((second.query_id, second.data_version, second_question(second).fixed_data_version))
    differing = 2 if fixed == "no" else 1
    assert len(ids) == differing
    assert len(seconds) == (differing if plan.looks is not None else 0)


@pytest.mark.parametrize("first", [False, True])
def test_a_copy_of_first_attributes_answers_no_audience_of_some_rows(tmp_path: Path, first: bool) -> None:
    """It has rows of members who had a value once, and an audience is offered rows of that value."""
    audiences = "audiences: {french: {tables: {visits: {where: {country: FR}}}}, staff: {}}\n"
    policy = read(tmp_path, policy_text("manifest.json") + audiences, first_attributes=first)
    for name, is_of_copy in (("staff", True), ("french", not first)):
        seen = seen_by(policy, AskedAs(name))
        asked = parse_sql(BY.format(IN_FEBRUARY), seen)
        assert (chosen(asked, seen, now=0).resolution.pairs is not None) is is_of_copy
