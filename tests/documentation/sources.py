"""The files of the repository, and their texts taken apart."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from subprocess import run

from tests.support.packages import PACKAGES
from tests.support.pages import ROOT

# Python's own tokenizer takes seconds for all files.
STRING_OR_COMMENT = re.compile(
    r"""
    (?:\b[a-zA-Z]{1,2})?
    (?:\"{3}(?:\\.|[^\\])*?\"{3} | '{3}(?:\\.|[^\\])*?'{3} | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*')
    | (?P<comment>\#[^\n]*)
    """,
    re.DOTALL | re.VERBOSE,
)


@cache
def tracked() -> tuple[Path, ...]:
    """Return the files of the repository; without git, those that are there."""
    listed = run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        return tuple(
            path for package in (*PACKAGES, "tests", "docs") for path in (ROOT / package).rglob("*.*")
        )
    return tuple(path for path in map(ROOT.joinpath, listed.stdout.split("\n")[:-1]) if path.is_file())


def python_files() -> list[Path]:
    """Return every file of Python that people write."""
    return [path for path in tracked() if path.suffix == ".py" and "generated" not in path.parts]
