"""What is reported of a sound policy: promises that nothing checks, choices with a price, and defaults."""

from __future__ import annotations

import pytest

from dp_service.queries.domains import MAXIMUM_ELEMENTS
from dp_service.queries.policy import read_policy
from dp_service.queries.policy_review import Review, review
from dp_service.queries.shown_elements import D_BAR_PER_K, DEFAULT_D_BAR
from tests.support.pages import rows, section
from tests.support.typical import typically

SOUND = """\
epsilon_per: 0.15
delta: 1e-10
tables:
  t:
    member: m
    data_version: v1
    measures: {distinct_members: true}
    columns:
      c: {type: string, group_by: true}
      m: {type: string}
"""


def reviewed(text: str) -> Review:
    """Review the text of a policy."""
    return review(read_policy(text.encode(), "policy"))


@pytest.mark.parametrize(
    ("old", "new", "line", "key", "message"),
    [
        ("0.15", "1.01", 1, "epsilon_per", "above 1"),
        ("1e-10", "0.00000101", 2, "delta", "above 1e-6"),
        ("tables:", "count_noise: gaussian\ntables:", 3, "count_noise", "zCDP"),
        ("member: m", "member: m\n    consistency: fresh", 6, "tables.t.consistency", "new noise"),
        (
            "{distinct_members: true}",
            "{events: {tau: 7, tau_is: assumed}}",
            7,
            "tables.t.measures.events",
            "more than 7 rows",
        ),
        ("      m: {type: string}\n", "", 5, "tables.t.member", "without a member"),
        ("    data_version: v1\n", "", 4, "tables.t", "every change of the data"),
        (
            "data_version: v1",
            "time: {column: d, type: date, refresh: day, delay_minutes: 0}",
            6,
            "tables.t.time.delay_minutes",
            "arrives late",
        ),
        ("group_by: true}", "group_by: true, delta: 3}", 9, "tables.t.columns.c.delta", "more than 3 of"),
        (
            "group_by: true}",
            "delta: 1, domain: [a, b], group_by: true}",
            9,
            "tables.t.columns.c.delta",
            "1 of",
        ),
        ("string, group_by: true", "string", 9, "tables.t.columns.c", "neither group by it nor filter"),
        ("v1", f"sha256:{'0a' * 32}", 6, "tables.t.data_version", "a plain hash of the data"),
        ("v1", "0a" * 20, 6, "tables.t.data_version", "a plain hash of the data"),
        ("v1", f"files:{'0a' * 32}", 6, "tables.t.data_version", "a plain hash of the data"),
        (
            "_by: true}",
            "_by: true, delta: 1, nulls: keep}",
            9,
            "tables.t.columns.c.delta",
            "'null', is one of them",
        ),
        (
            "group_by: true}",
            "group_by: true, domain: [a, b], delta: 1, nulls: keep, null_value: b}",
            9,
            "tables.t.columns.c.delta",
            "a kept NULL, 'b', is one of them",
        ),
        (
            "group_by: true}",
            "group_by: true, domain: [a, b], nulls: keep}",
            9,
            "tables.t.columns.c.nulls",
            "the domain does not list the null value 'null'",
        ),
    ],
)
def test_a_risk_is_told_with_its_line(old: str, new: str, line: int, key: str, message: str) -> None:
    """One warning, at the key that brings it."""
    (warning,) = reviewed(SOUND.replace(old, new)).warnings
    assert (warning.line, warning.key) == (line, key)
    assert message in warning.message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # The safe defaults are silent.
        ("", ""),
        ("epsilon_per: 0.15", "epsilon_per: 1"),
        ("1e-10", "1e-6"),
        ("{distinct_members: true}", "{events: {tau: 7, tau_is: clipped}}"),
        ("data_version: v1", "time: {column: d, type: date, refresh: day}"),
        # What is keyed, or named by somebody, verifies no guess.
        ("v1", f"hmac-sha256:{'0a' * 32}"),
        ("v1", "2019-04-14"),
        # Nobody has more of three values than three.
        ("group_by: true}", "group_by: true, domain: [x, y, z], delta: 3}"),
        ("      m: {type: string}\n", "      m: {type: int64}\n"),
    ],
)
def test_what_is_ensured_is_not_warned_of(old: str, new: str) -> None:
    """A warning that is always there is no warning."""
    assert reviewed(SOUND.replace(old, new)).warnings == ()


@pytest.mark.parametrize(
    ("buckets", "bound", "expected"),
    [
        (", buckets: [week, month]", "assumed", ["tables.t.time.buckets"]),
        (", buckets: {week: 3}", "in_query", []),
        ("", "assumed", []),
    ],
)
def test_buckets_widen_what_an_assumed_bound_promises(buckets: str, bound: str, expected: list[str]) -> None:
    """Where the query bounds members, or no buckets are offered, there is nothing to tell."""
    text = SOUND.replace(
        "data_version: v1",
        f"data_version: v1\n    time: {{column: d, type: date{buckets}}}\n"
        f"    contributions: {{bound: {bound}, {'delta: 3, ' if bound == 'assumed' else ''}units: 4}}",
    ).replace("tables:", "count_noise: gaussian\ntables:")
    text = typically(3, text) if bound == "in_query" else text
    found = [each for each in reviewed(text).warnings if "time" in each.key]
    assert [each.key for each in found] == expected
    assert all("these buckets, too: no member counts in more than 3" in each.message for each in found)


def test_every_default_that_was_taken_is_listed_and_none_that_was_stated() -> None:
    """An operator sees what holds without being written down."""
    by_default = {default.key: default.value for default in reviewed(SOUND).defaults}
    assert by_default == {
        "count_noise": "laplace",
        "max_k": "100",
        "tables.t.consistency": "keyed",
        "tables.t.d_bar": "min(max(10 k, 1000), 100,000), or 1000 where the price does not depend on k",
        "tables.t.reserve_first": "false",
        "tables.t.columns.c.domain": "unknown",
        "tables.t.columns.c.delta": "any number",
        "tables.t.columns.c.nulls": "drop",
        "tables.t.columns.c.null_value": "'null'",
        "tables.t.columns.m.nulls": "drop",
        "tables.t.columns.m.null_value": "'null'",
    }
    stated = SOUND.replace("tables:", "count_noise: laplace\nmax_k: 9\ntables:").replace(
        "    measures",
        "    d_bar: 1000\n    reserve_first: false\n    consistency: keyed\n    measures",
    )
    stated = stated.replace(
        "group_by: true", "group_by: true, domain: [a], delta: 1, nulls: keep, null_value: a"
    ).replace("m: {type: string", "m: {type: string, nulls: drop, null_value: ''")
    assert reviewed(stated).defaults == ()


def test_the_reference_tells_the_default_of_d_bar_as_the_code_has_it() -> None:
    """It is written out on the page, with the same numbers."""
    (row,) = [
        cells
        for cells in rows(section("policy-reference.md", "## Reference"), "key")
        if cells[0] == "`tables.T.d_bar`"
    ]
    assert D_BAR_PER_K == 10
    assert f"Without it: {DEFAULT_D_BAR} for UnkLap; for UnkGumb ten times the" in row[3]
    assert f"but at least {DEFAULT_D_BAR} and at most {MAXIMUM_ELEMENTS:,}" in row[3]


def test_the_time_columns_defaults_are_listed() -> None:
    """Zone and delay decide what a question sees."""
    closed = SOUND.replace("data_version: v1", "time: {column: d, type: date, refresh: week}")
    by_default = {default.key: default.value for default in reviewed(closed).defaults}
    assert by_default["tables.t.time.zone"] == "UTC"
    assert by_default["tables.t.time.delay_minutes"] == "5"
