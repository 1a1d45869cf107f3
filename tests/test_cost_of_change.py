"""The count of the files that a change touches."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cost_of_change import FILES_OF_A_KIND, main

UNCOUNTED = ("tests/test_kind.py", "docs/kinds.md", "protos/generated/kind_pb2.py", "README.md")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with a commit of one file."""
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    committed(tmp_path, "product/first.py")
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    """Run git as somebody of this test."""
    who = ("-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True)


def committed(folder: Path, *names: str) -> None:
    """Commit files of one line."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("pass\n")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "a change")


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize(
    ("files", "flags", "code"),
    [
        (FILES_OF_A_KIND, (), 0),
        (FILES_OF_A_KIND + 1, (), 1),
        (3, ("--limit", "2"), 1),
        (9, ("--limit", "9"), 0),
    ],
)
def test_a_change_of_more_files_than_the_limit_fails(
    repository: Path, capsys: pytest.CaptureFixture[str], files: int, flags: tuple[str, ...], code: int
) -> None:
    """By default that of a kind; tests, pages and generated code are not counted."""
    committed(repository, *(f"product/kind{number}.py" for number in range(files)), *UNCOUNTED)
    assert main(["HEAD~1..HEAD", *flags], root=repository) == code
    printed = capsys.readouterr().out
    assert f"{files} files, of at most" in printed
    assert not any(name in printed for name in UNCOUNTED)
