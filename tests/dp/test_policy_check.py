"""The RPC that checks the text of a policy: all faults with line and key, and no file of the server is opened."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from gris_api.dp.v1 import dp_pb2

from dp_service.queries.currency import Currency
from dp_service.queries.policy import parse_policy
from dp_service.server.policy_check import LARGEST_TEXT_BYTES, check_policy
from tests.support.dp_questions import POLICY, error_of
from tests.support.dp_server import servicer_of, serving
from tests.support.paths import ROOT

TEXT = (ROOT / "examples" / "policy.yaml").read_text()
NAMING_FILES = """
epsilon_per: 0.15
delta: 1e-10
tables:
  t:
    member: m
    time: {column: day, type: date}
    measures: {distinct_members: true}
    columns:
      m: {type: string}
      c: {type: string, group_by: true, domain: {published: %s, integrity: '%s'}}
"""


def checked(text: str, served: Currency | None = None) -> dp_pb2.CheckPolicyResponse:
    """Return the check of a text."""
    return check_policy(dp_pb2.CheckPolicyRequest(text=text), served or parse_policy(TEXT).currency)


def test_a_sound_policy_has_tables_warnings_and_defaults() -> None:
    """And the answer says whether it could replace the served one without a restart."""
    found = checked(TEXT)
    assert not found.faults
    assert "cofacts_feedback" in found.tables
    assert any(each.key.endswith("delta") and each.line > 1 for each in found.warnings)
    assert ("max_k", "100") in {(each.key, each.value) for each in found.defaults}
    assert found.keeps_currency
    assert not checked(TEXT, Currency.model_validate({"epsilon_per": "0.5", "delta": "1e-9"})).keeps_currency


def test_every_fault_has_its_line_and_key() -> None:
    """All of them at once, as `gris check` prints them."""
    member, odd = "      member_id: {type: string}\n", "      member_id: {type: text}\n      a b: 3\n"
    text = TEXT.replace(member, odd, 1)
    found = checked(text)
    line = 1 + text.splitlines().index("      member_id: {type: text}")
    places = {(each.line, each.key) for each in found.faults}
    assert (line, "tables.cofacts_feedback.columns.member_id.type") in places
    assert any(number == line + 1 for number, _ in places)
    assert not found.tables


def test_no_file_of_the_server_is_opened(tmp_path: Path) -> None:
    """A text that names files gets a fault for each, the same whether or not they exist."""
    there = tmp_path / "there.json"
    there.write_text("{}")
    opened: list[str] = []

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            opened.append(str(arguments[0]))

    sys.addaudithook(watch)
    answers = [
        checked(NAMING_FILES % (path, "sha256:" + "a" * 64)) for path in (there, tmp_path / "missing.json")
    ]
    assert not [path for path in opened if str(tmp_path) in path]
    assert answers[0] == answers[1]
    keys = {each.key for each in answers[0].faults}
    assert "tables.t.columns.c.domain.published" in keys


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "{", "a: &b 1\nc: *b", "tables: []", "[" * 50_000])
def test_what_is_no_policy_is_a_fault_and_no_error(text: str) -> None:
    """Even if it is no YAML, or nested without end."""
    assert checked(text).faults


@pytest.mark.slow
def test_an_answer_stays_small_whatever_is_sent() -> None:
    """Every fault repeats the keys above it, so long keys, deep ones and many faults are bounded."""
    inner = ",".join(f"a{number}" for number in range(20_000))
    for text in (f"? {'a' * 200_000}\n: {{{inner}}}\n", f"{'k' * 128}: {{{inner}}}\n", f"{{{inner}}}"):
        found = checked(text)
        assert 1 <= len(found.faults) <= 101
        assert found.ByteSize() < 40_000, text[:50]
    assert "and 19,9" in found.faults[-1].message
    (long,) = checked(f"{'a' * 129}: 1").faults
    assert "at most 128 characters" in long.message
    (deep,) = checked("{a: " * 40 + "1" + "}" * 40).faults
    assert "less nesting" in deep.message


async def test_the_service_answers_it_and_refuses_too_long_a_text() -> None:
    """With the field's name."""
    async with serving(servicer_of(POLICY)) as dp:
        assert (await dp.CheckPolicy(dp_pb2.CheckPolicyRequest(text=POLICY))).keeps_currency
        long = dp_pb2.CheckPolicyRequest(text="#" * (LARGEST_TEXT_BYTES + 1))
        _, _, metadata = await error_of(dp.CheckPolicy(long))
    assert metadata["field"] == "text"
