"""Commands run in this process, and what they print."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gris_cli.__main__ import main


def run_json(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> Any:
    """Run a command with --json, which prints one JSON object and nothing else; return the object."""
    assert main([*map(str, words), "--json"]) == code
    printed = capsys.readouterr()
    assert printed.err == ""
    return json.loads(printed.out)


def run_text(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    """Run a command; return what it prints for people on standard output, with one blank between words."""
    assert main([*map(str, words)]) == code
    return " ".join(capsys.readouterr().out.split())


def run_plan(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """Run `gris plan` as `run_json` does; on standard error it may say how long it takes."""
    assert main(["plan", *words, "--json"]) == 0
    printed = capsys.readouterr()
    assert all(" takes about " in line for line in printed.err.splitlines())
    return json.loads(printed.out)
