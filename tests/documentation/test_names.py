"""What comments, docstrings and pages name is there: pages, decisions, files, modules, functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path

import pytest

from tests.documentation.sources import STRING_OR_COMMENT, python_files, tracked
from tests.support.packages import PACKAGES
from tests.support.pages import DOCS, ROOT

# Whatever else may hold a name that a comment speaks of.
OTHER_SOURCES = {
    ".proto",
    ".sql",
    ".lua",
    ".yaml",
    ".yml",
    ".toml",
    ".go",
    ".java",
    ".json",
    ".sh",
    ".html",
    ".v",
}

PAGE = re.compile(r"[\w./-]+\.md\b")
DECISION = re.compile(r"\b[Dd]ecisions?[ /](\d{4})\b")
QUOTED = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?:\(\))?")
FILE = re.compile(r"(?:[\w.-]+/)*[\w.-]+\.(?:py|sql|lua|proto|md|yaml|yml|toml|sh)")
WORD = re.compile(r"[A-Za-z_]\w*")


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Give a tree and the statements inside it; most of a tree is expressions, which have no docstrings."""
    waiting = [tree]
    while waiting:
        yield (node := waiting.pop())
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, part, ())


@cache
def prose_and_code(path: Path) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the comments and docstrings of a file, and the words of everything else in it."""
    source = path.read_text()
    lines = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
    docstrings = {
        lines[node.lineno - 1] + node.col_offset
        for parent in statements(ast.parse(source))
        if isinstance(parent, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for node in parent.body
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }
    prose: list[str] = []

    def without_prose(text: re.Match[str]) -> str:
        if text["comment"] is None and text.start() not in docstrings:
            return text[0]
        prose.append(text[0])
        return " "

    words = frozenset(WORD.findall(STRING_OR_COMMENT.sub(without_prose, source)))
    return tuple(prose), words


@cache
def known_words() -> frozenset[str]:
    """Return every word that stands somewhere else than in comments, docstrings and pages."""
    words: set[str] = set()
    for path in tracked():
        if path.suffix == ".py" and "generated" not in path.parts:
            words |= prose_and_code(path)[1]
        elif path.suffix in OTHER_SOURCES or path.name in ("Makefile", "Dockerfile"):
            words.update(WORD.findall(path.read_text(errors="ignore")))
        words.update(WORD.findall(str(path.relative_to(ROOT))))
    return frozenset(words)


def missing(text: str, path: Path) -> Iterator[str]:
    """Give whatever a text names and is not there."""
    for page in PAGE.findall(text):
        if not any((base / page).exists() for base in (ROOT, DOCS, path.parent, *path.parents)):
            yield page
    for number in DECISION.findall(text):
        if not list((DOCS / "decisions").glob(f"{number}-*.md")):
            yield f"decision {number}"
    for quoted in QUOTED.findall(text):
        if FILE.fullmatch(quoted) and "/" in quoted:
            if not any((base / quoted).exists() for base in (ROOT, *path.parents)):
                yield quoted
        elif NAME.fullmatch(quoted) and not set(WORD.findall(quoted)) <= known_words():
            yield quoted


@pytest.mark.parametrize("package", [*PACKAGES, "tests", "bench", "deploy", "examples", "protos"])
def test_what_comments_and_docstrings_name_is_there(package: str) -> None:
    """A page, a decision, a file or a name in backticks that was renamed or removed is found."""
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in python_files()
        if path.relative_to(ROOT).parts[0] == package
        for text in prose_and_code(path)[0]
        for name in missing(text, path)
    }
    assert sorted(found) == []


def is_there(dotted: str) -> bool:
    """Return whether a dotted name is a module of ours, or a word of the code inside one."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            spec = find_spec(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        if spec is not None and spec.origin is not None:
            # A folder of tests or of the project alone would accept anything.
            source = WORD.findall(Path(spec.origin).read_text())
            return set(parts[length:]) <= set(source)
    return False


@pytest.mark.parametrize(
    "page", [path for path in tracked() if path.suffix == ".md"], ids=lambda page: str(page.relative_to(ROOT))
)
def test_modules_and_files_that_a_page_names_are_there(page: Path) -> None:
    """Dotted names that begin with a package of ours, and paths that begin with a folder of ours."""
    text = page.read_text()
    folders = "|".join((*PACKAGES, "tests", "bench", "deploy", "docs", "examples", "protos"))
    names = set(re.findall(rf"(?<![\w./:-])(?:{'|'.join(PACKAGES)})(?:\.[A-Za-z_]\w*)+(?![\w/])", text))
    paths = set(
        re.findall(rf"(?<![\w./:-])(?:{folders})(?:/[\w.-]+)+\.(?:py|sql|lua|proto|yaml|yml|sh)\b", text)
    )
    assert sorted(name for name in names if not is_there(name)) == []
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []
