"""`gris shell`: lines in, answers out, at a terminal and from a file."""

from __future__ import annotations

import io
import json

import pytest

from gris_cli.__main__ import main
from tests.support.world import World, new_account

ARTICLES = (
    "SELECT article_id, COUNT(DISTINCT member_id) FROM feedback GROUP BY article_id ORDER BY 2 DESC LIMIT 5"
)
TOTAL = "SELECT COUNT(DISTINCT member_id) FROM feedback"


class Terminal(io.StringIO):
    """What somebody types."""

    def isatty(self) -> bool:
        """Say that it is a terminal."""
        return True


def shell(
    monkeypatch: pytest.MonkeyPatch, world: World, typed: io.StringIO, *flags: str, account: str = ""
) -> int:
    """Run the shell on these lines; return its exit code."""
    monkeypatch.setattr("sys.stdin", typed)
    to = ["--dp", world.dp, "--budget", world.budget, "--account", account or new_account()]
    return main(["shell", *to, "--data", f"feedback={world.tables['feedback']}", *flags])


def test_a_question_is_asked_once_its_price_was_agreed_to(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error does not end the session, and a question that was not agreed to costs nothing."""
    lines = [
        ARTICLES,
        "n",
        "SELECT nonsense;",
        f"explain {ARTICLES}",
        TOTAL,
        "y",
        "help",
        "catalog feedback",
        "quit",
    ]
    account = new_account()
    assert 0 == shell(monkeypatch, world, Terminal("\n".join(lines)), account=account)
    printed = capsys.readouterr()
    assert "at most 11 information and 1 call" in printed.out
    assert "invalid question: sql:" in printed.err
    assert "noisy count" in printed.out
    assert "its members are member_id" in printed.out
    assert 0 == shell(monkeypatch, world, io.StringIO("remaining\n"), "--json", account=account)
    (left,) = (json.loads(line)["remaining"] for line in capsys.readouterr().out.splitlines())
    assert 1 == left[-1]["spent"]["information"]


def test_lines_of_a_file_are_asked_as_they_are_and_end_at_the_first_error(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One object of JSON for each, and the exit code of the error; what comes after it is not asked."""
    lines = f"{TOTAL}\nSELECT 1\nSELECT reason, COUNT(*) FROM feedback GROUP BY reason\n{ARTICLES}\n"
    assert 3 == shell(monkeypatch, world, io.StringIO(lines), "--json")
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [1, 1] == [len(each["rows"]) for each in printed[:2]]
    assert "refused_by_policy" == printed[2]["error"]["code"]
    assert 3 == len(printed)
