"""`gris policy diff`: what it prints for people and for programs, and what ends with which exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from dp_service.queries.policy import parse_policy
from gris_cli.__main__ import main
from gris_data.policy.field_changes import Effect
from tests.support.command_line import run_json, run_text

EXAMPLE = (Path(__file__).parents[2] / "examples" / "policy.yaml").read_text()
# Less is promised of the cohort, a column is no longer grouped by, and rows are clipped, where it was a promise.
CHANGED = (
    EXAMPLE.replace("        delta: 1\n", "")
    .replace("tau: 10000, tau_is: assumed", "tau: 100, tau_is: clipped")
    .replace("delta: 4", "delta: 3")
    .replace(
        "      stock_code:\n        type: string\n        group_by: true",
        "      stock_code:\n        type: string",
    )
)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Write a policy and another version of it."""
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(EXAMPLE)
    new.write_text(CHANGED)
    return old, new


def test_a_difference_is_printed_for_people(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """By what it means, with both values, both prices, what is kept, and the currency."""
    assert main(["policy", "diff", *map(str, files)]) == 1
    printed = capsys.readouterr()
    reported = " ".join(printed.out.split())
    assert printed.err == ""
    assert max(map(len, printed.out.splitlines())) <= 100
    heads = [
        "Promises less",
        "Promises more",
        "Refuses what could be asked",
        "The same questions",
        "Currency",
    ]
    assert heads == sorted(heads, key=reported.index)
    for words in (
        "tables.cofacts_feedback.columns.app.delta: 4 -> 3 (promised)",
        "tables.cofacts_feedback.columns.cohort.delta: 1 (promised) -> none",
        "tables.online_retail.measures.events.tau_is: assumed -> clipped who sees to tau: the query, or nobody",
        "tables.online_retail.columns.stock_code.group_by: true -> false",
        "cheaper, paid again: 2 questions about cofacts_feedback 4 information and 0 calls, noise 13.3 -> 3 "
        "information and 0 calls, noise 13.3, as: SELECT app, COUNT(DISTINCT member_id) FROM cofacts_feedback GROUP",
        "answerable: 1 question about online_retail refused -> 1 information and 0 calls, noise 1,330: SELECT COUNT(*) "
        "FROM online_retail",
        "the same currency: what was spent and is left goes on",
        "fails refused, weaker",
    ):
        assert words in reported


def test_a_difference_is_json_for_programs(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """All keys and all questions that differ, with the reasons of those that are refused."""
    found = run_json(capsys, "policy", "diff", *files, code=1)
    assert ["refused", "weaker"] == found["failed_on"]
    assert set(found["failed_on"]) < set(found["effects"])
    change = next(each for each in found["changes"] if each["key"].endswith("app.delta"))
    assert ("weaker", "4", "3 (promised)") == (change["effect"], change["old"], change["new"])
    questions = found["questions"]
    assert questions["asked"] > len(questions["changed"]) > 5
    refused = next(each for each in questions["changed"] if "refused" in each["effects"])
    assert {"information": 21, "calls": 1} == {
        name: refused["old"][name] for name in ("information", "calls")
    }
    assert "stock_code: the policy does not allow grouping" in refused["new"]["refused"]
    assert not found["currency"]["changes"]


def test_the_same_policy_has_no_difference(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the command is to fail on."""
    assert "nothing differs" in run_text(capsys, "policy", "diff", files[0], files[0], "--fail-on", "any")
    assert [] == run_json(capsys, "policy", "diff", files[0], files[0])["effects"]


@pytest.mark.parametrize(
    ("fail_on", "code"),
    [
        ("", 0),
        ("currency", 0),
        ("currency, weaker", 1),
        ("stronger", 1),
        ("refused", 1),
        ("answerable", 1),
        ("cheaper", 1),
        ("paid_again", 1),
        ("other", 0),
        ("any", 1),
    ],
)
def test_what_it_fails_on_is_a_choice(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], fail_on: str, code: int
) -> None:
    """A gate stops at what its keeper names, and at nothing else."""
    run_json(capsys, "policy", "diff", *files, "--fail-on", fail_on, code=code)


def test_another_currency_fails_by_default(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Even if more is promised: until each root account has begun it, nothing is answered."""
    old, new = files
    new.write_text(EXAMPLE.replace("epsilon_per: 0.15", "epsilon_per: 0.1"))
    found = run_json(capsys, "policy", "diff", old, new, code=1)
    assert ["currency"] == found["failed_on"]
    assert found["currency"]["changes"]
    unit = parse_policy(new.read_text()).currency.unit_id
    assert f"gris budget new-currency --root ROOT --unit {unit}" in run_text(
        capsys, "policy", "diff", old, new, code=1
    )


def test_an_effect_that_there_is_not_is_refused(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """A gate with a slip in its name would let everything pass."""
    error = run_json(capsys, "policy", "diff", *files, "--fail-on", "weeker", code=2)["error"]
    assert error["code"] == "usage"
    assert "--fail-on: expected some of weaker, stronger" in error["message"]
    assert error["message"].endswith("or any, got weeker")


def test_help_names_every_effect(capsys: pytest.CaptureFixture[str]) -> None:
    """Those that --fail-on takes."""
    assert main(["policy", "diff", "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(each in shown for each in Effect)


@pytest.mark.parametrize("faulty", [0, 1])
def test_faults_of_either_policy_are_shown_with_their_lines(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], faulty: int
) -> None:
    """As `gris policy check` shows them; nothing is compared."""
    files[faulty].write_text(EXAMPLE.replace("group_by: true", "group_by: perhaps", 1))
    error = run_json(capsys, "policy", "diff", *files, code=2)["error"]
    assert error["code"] == "policy"
    assert ["tables.cofacts_feedback.columns.article_id.group_by"] == [
        each["key"] for each in error["problems"]
    ]
    assert main(["policy", "diff", *map(str, files)]) == 2
    assert f"{files[faulty]}:{error['problems'][0]['line']}: " in capsys.readouterr().err


@pytest.mark.parametrize(("missing", "argument"), [(0, "OLD"), (1, "NEW")])
def test_a_file_that_is_not_there_is_named(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], missing: int, argument: str
) -> None:
    """With the argument that names it."""
    files[missing].unlink()
    message = run_json(capsys, "policy", "diff", *files, code=2)["error"]["message"]
    assert f"{argument}: {files[missing]}: " in message
