"""What a shell expects of a program: its version, completion, and no error if a reader stops early."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata

import pytest

from gris_cli.__main__ import main
from tests.support.paths import ROOT

POLICY = str(ROOT / "examples" / "policy.yaml")


def ended_unread(*arguments: str) -> tuple[int, str]:
    """Run a command whose output nobody reads; return its exit code and what it says on standard error."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        command = [sys.executable, "-m", "gris_cli", *arguments]
        done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writing)
    return done.returncode, done.stderr


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("check", POLICY), 0),
        (("check", POLICY, "--json"), 0),
        (("--help",), 0),
        # A failure stays one.
        (("check", "nowhere.yaml", "--json"), 2),
        (("ask", "--json"), 2),
    ],
)
def test_a_reader_that_leaves_is_no_error(arguments: tuple[str, ...], code: int) -> None:
    """Tables and JSON alike: `gris ask .. | head` ends with 0, and complains of nothing."""
    assert (code, "") == ended_unread(*arguments)


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    """One line, whatever else is on the command line."""
    assert 0 == main(["--version"])
    assert f"gris {metadata.version('gris-dp')}\n" == capsys.readouterr().out


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize(
    ("words", "expected"),
    [("gris rem", "remaining"), ("gris budget jou", "journal"), ("gris ask --pinot-b", "--pinot-broker")],
)
def test_a_shell_completes_commands_and_options(words: str, expected: str) -> None:
    """By the script that `gris --show-completion` prints."""
    asked = {"_GRIS_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    command = [sys.executable, "-m", "gris_cli"]
    done = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, check=False)
    assert expected in done.stdout.split()
