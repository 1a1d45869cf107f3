"""PrivOLAP's command: what it refuses, in words, and a system of one's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from research.privolap import __main__ as command

LINE = {"system": "Mine", "script": "funnel", "run": 0, "epsilon": 10, "delta": 1e-6, "most": 40, "useful": 7}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--most -3", "argument --most: expected a whole number of 1 to 40, got '-3'"),
        ("--most 0", "argument --most: expected a whole number of 1 to 40, got '0'"),
        ("--most 41", "argument --most: expected a whole number of 1 to 40, got '41'"),
        ("--runs -1", "argument --runs: expected a whole number of 0 or more, got '-1'"),
        ("--runs two", "argument --runs: expected a whole number of 0 or more, got 'two'"),
        ("--epsilon 0", "argument --epsilon: expected a number above 0, got '0'"),
        ("--epsilon nan", "argument --epsilon: expected a number above 0, got 'nan'"),
        ("--epsilon inf", "argument --epsilon: expected a number above 0, got 'inf'"),
        ("--delta 2", "argument --delta: expected a number between 0 and 1, got '2'"),
        ("--picture made.bmp", "argument --picture: expected a file that ends with .pdf, .png, .svg, got"),
        ("--system Mine", "argument --system: expected module:Class, got 'Mine'"),
        ("--system json:None_", "argument --system: expected a class that is made without arguments"),
        ("--system builtins:dict", "argument --system: expected a system with a name, open and close"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(
    arguments: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what was expected, and what was there."""
    with pytest.raises(SystemExit):
        command.main(arguments.split())
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "expected a file of scores"),
        ("scores", "expected a score as JSON in line 1 of"),
        (json.dumps({**LINE, "useful": None}), "expected a score as JSON in line 1 of"),
        (json.dumps(LINE) + "\n" + json.dumps(LINE)[:30], "expected a score as JSON in line 2 of"),
        (json.dumps(LINE), "expected a new line at the end"),
    ],
    ids=["a folder", "no JSON", "no number", "cut", "no end"],
)
def test_what_holds_no_scores_is_refused(
    text: str | None, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A line that was cut off would take the next score with it."""
    kept = tmp_path / "kept"
    kept.mkdir() if text is None else kept.write_text(text)
    with pytest.raises(SystemExit):
        command.main(["--runs", "0", "--only", "scores", "--kept", str(kept)])
    assert (
        (error := capsys.readouterr().err)
        .rstrip()
        .splitlines()[-1]
        .startswith("research.privolap: error: arg")
    )
    assert f"argument --kept: {said}" in error


def test_what_holds_no_verdicts_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A verdict is a word of the page."""
    (tmp_path / "kept").write_text(json.dumps({"system": "Mine", "trap": "NaN", "verdict": "perhaps"}) + "\n")
    with pytest.raises(SystemExit):
        command.main(["--runs", "0", "--only", "traps", "--kept-traps", str(tmp_path / "kept")])
    assert "argument --kept-traps: expected a verdict as JSON in line 1 of" in capsys.readouterr().err


def test_a_system_of_ones_own_is_measured(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """By the name of its module and class, beside the others or alone."""
    common = ["--runs", "1", "--most", "2", "--scripts", "funnel", "--only", "scores", "--systems", "k >= 50"]
    own = ["--system", "research.tests.privolap.test_traps:Laplace", "--kept", str(tmp_path / "kept")]
    command.main([*common, *own])
    assert [line.split("|")[1] for line in capsys.readouterr().out.splitlines()[-2:]] == [
        " k >= 50 ",
        " Laplace ",
    ]


def test_the_system_of_the_page_is_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its answers are 0, and none of them is useful."""
    page = (Path(__file__).parents[2] / "docs/privolap-adapters.md").read_text()
    (tmp_path / "adapter_of_the_page.py").write_text(page.split("```python\n")[1].split("```")[0])
    monkeypatch.syspath_prepend(tmp_path)
    common = ["--runs", "1", "--most", "2", "--scripts", "funnel", "--only", "scores", "--systems", "k >= 50"]
    command.main([*common, "--system", "adapter_of_the_page:Mine", "--kept", str(tmp_path / "kept")])
    assert capsys.readouterr().out.splitlines()[-1] == "| mine | 0 | 1 |"
