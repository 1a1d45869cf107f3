"""What Gris says is what it said: cases in full, and how changes are found."""

from __future__ import annotations

import copy
from collections import Counter

import pytest

from tests.support.rings import needs

from .cases import Texts, cases, changes, kept_digests, moved, read_texts, texts_of
from .recording import Record, differences, record, whole

ACCEPT = "\nWhere it is meant: python -m tests.referee accept, and say in the commit what differs and why."
KINDS = (
    *("laplace, known domain", "laplace, unknown domain", "gumbel, known domain", "gumbel, unknown domain"),
    *("pairs", "having", "empty", "bounded counts", "lookup", "series", "totals", "shift", "sharpened twice"),
    *("bounded moments", "in the order of a sum", "two looks", "quantiles"),
)
REFUSED = ("refused invalid_question", "refused refused_by_policy")
SURFACES = {
    *("sql_duckdb", "sql_pinot", "sql_spark", "explained", "plan", "released", "gateway", "history"),
    *("cli", "cli_json", "mcp", "dbapi", "console", "notebook"),
}
# What has no way of asking for a sharpening, and what a refusal does not reach.
NOT_SHARPENED, NOT_REFUSED = {"mcp", "dbapi"}, {"sql_duckdb", "sql_pinot", "sql_spark", "plan", "history"}


@pytest.fixture(scope="module")
@needs("process")
def said() -> Record:
    """What is said to the questions that stand in full, and to the first ones of the whole record."""
    return record([*cases(), *whole(texts=200, asked=60, everywhere=0)])


def test_every_surface_says_what_it_said(said: Record) -> None:
    """The SQL for each engine, prices, plans, what is released, refusals, and what each surface makes of them."""
    differing = changes(read_texts(), texts_of(cases(), said))
    assert not differing, f"{len(differing)} places differ\n" + "\n".join(differing[:40]) + ACCEPT


def test_the_first_questions_of_the_whole_record_are_answered_as_they_were(said: Record) -> None:
    """By their digests; `python -m tests.referee write` says the rest, and `compare` what differs."""
    full = Counter(case.part for case in cases())
    assert moved(kept_digests(), {part: each[full[part] :] for part, each in said.items()}) == []


def test_every_kind_of_answer_is_seen_on_every_surface() -> None:
    """Among the cases that stand in full, which are about two hundred."""
    kept = read_texts()
    for kind in (*KINDS, *REFUSED):
        seen = {surface for surface, by_case in kept.items() if any(kind in name for name in by_case)}
        wanted = SURFACES - NOT_SHARPENED if "sharpened" in kind else SURFACES
        assert seen >= wanted - (NOT_REFUSED if kind in REFUSED else set()), kind
    assert len(cases()) >= 200


def test_a_change_is_found_by_surface_and_case() -> None:
    """A line that is another, one that is gone, and a surface that is silent."""
    kept: Texts = {
        "cli": {"gaussian: totals": [".ask = 12 persons", ".cost = 3"]},
        "mcp": {"one": [".ask = 1"]},
    }
    new = copy.deepcopy(kept)
    new["cli"]["gaussian: totals"][0] = ".ask = 12 members"
    assert changes(kept, new) == ["cli, gaussian: totals\n  - .ask = 12 persons\n  + .ask = 12 members"]
    del new["cli"]["gaussian: totals"][0], new["mcp"]
    assert changes(kept, new) == ["cli, gaussian: totals\n  - .ask = 12 persons", "mcp, one\n  - .ask = 1"]


def test_a_change_is_found_by_its_place() -> None:
    """Between two whole records: a number, a word, and a case that is missing."""
    old: Record = {
        "world": [
            {"asked": f"SELECT {number}", "released": {"rows": [number]}, "sql": ""} for number in range(3)
        ]
    }
    new = copy.deepcopy(old)
    new["world"][1]["released"]["rows"] = [7]
    new["world"][2]["sql"] = "a word"
    rows, words = differences(old, new)
    assert rows == "1 x world.released.rows[]\n  case 1: SELECT 1\n    1\n    -> 7"
    assert words.startswith("1 x world.sql")
    assert differences(old, {"world": []}) == ["1 x worldcases\n  3 cases -> 0 cases"]
