"""Words that were retired stay retired: in names, in comments and docstrings, in texts for people and on pages.

What is stored or sent keeps its name: `SealJournal`, `gris budget seal`, `--mark`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from tests.documentation.sources import STRING_OR_COMMENT, python_files, tracked
from tests.support.packages import PACKAGES
from tests.support.pages import DOCS, ROOT

GLOSSARY = DOCS / "glossary.md"
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"\b[^\W\d]\w*")
CODE = re.compile(r"`[^`\n]*`")

# Parts of names, as told is part of as_told and told_of; several words are refused only together.
RETIRED_IN_NAMES = frozenset(
    (
        "dice",
        "entrance",
        "foreseen",
        "gathering",
        "keeper",
        "moment",
        "patience",
        "patient",
        "peer lines",
        "pulse",
        "reception",
        "saboteur",
        "seal",
        "sealed",
        "sealing",
        "sight",
        "starter",
        "told",
        "tour",
        "touring",
        "unforeseen",
        "unseal",
        "upkeep",
        "wording",
    )
)
SENT = re.compile(r"SealJournal\w*|seal")

RETIRED_IN_PROSE = re.compile(
    r"\b(?:(?:un)?seal(?:s|ed|ing)?|signs? of life|pulse|sight|patient(?:ly)?|patience|unforeseen|at hand|told|"
    r"whoever|comes? away|touring|reception)\b",
    re.IGNORECASE,
)
# An interval covers the number before noise, which counts no more of each member than the policy allows.
FALSE_OF_INTERVALS = re.compile(
    r"of\s+the\s+truth\b|\bcovers?\s+the\s+true\b|\bcontains?\s+the\s+true\b|"
    r"\btrue\s+numbers?\s+(?:\w+\s+){0,3}lies?\b|\bright\s+to\s+within\b|\btheir\s+true\s+order\b",
    re.IGNORECASE,
)
# What tests send, or expect to be sent: two request ids, an account and a key that no configuration has.
SENT_BY_TESTS = frozenset(
    (
        """tests/budget/test_postgres.py: sealed: "DELETE FROM gris.journal WHERE request_id = 'sealed'\"""",
        'tests/budget/test_refunds.py: sealed: "of a sealed one"',
        'tests/cli/test_guarantee.py: told: "nothing bounds what t/told is shown: delta reaches 1 for"',
        'tests/gateway/test_process.py: patience: "timeouts.patience: there is no such key"',
    )
)


@cache
def parts(name: str) -> frozenset[str]:
    """Return the words that a name is made of."""
    return frozenset(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_"))


@cache
def code_and_texts(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return a file of Python without its strings and comments, and these."""
    source = path.read_text()
    found = list(STRING_OR_COMMENT.finditer(source))
    ends = [0, *(each.end() for each in found)]
    starts = [*(each.start() for each in found), len(source)]
    code = " ".join(source[end:start] for end, start in zip(ends, starts, strict=True))
    return code, tuple(each[0] for each in found)


def is_retired(name: str) -> bool:
    """Return whether a name has a retired word among its parts."""
    made_of = parts(name)
    return any(made_of.issuperset(words.split()) for words in RETIRED_IN_NAMES)


def names_in(path: Path) -> set[str]:
    """Return the names in a file of Python; a test's own name is a sentence, and is left out."""
    names = NAME.findall(code_and_texts(path)[0])
    return {each for each in names if not each.startswith("test_")}


def test_no_name_is_made_of_a_retired_word() -> None:
    """Modules, classes, functions, arguments and variables."""
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in python_files()
        for name in (*names_in(path), *path.relative_to(ROOT).with_suffix("").parts)
        if is_retired(name) and not SENT.fullmatch(name) and not name.startswith("test_")
    }
    # The client's example of the RPC is called as the RPC is.
    assert sorted(found - {"examples/rpc/seal_journal.py: seal_journal"}) == []


@pytest.mark.parametrize("package", [*PACKAGES, "tests", "bench", "deploy", "examples", "protos"])
def test_nothing_that_people_read_uses_a_retired_word(package: str) -> None:
    """Comments, docstrings, help texts, logs and errors, wherever they are written in the code; code in it is not."""
    found = {
        f"{path.relative_to(ROOT)}: {match[0]}: {text.strip()[:60]}"
        for path in python_files()
        if path.relative_to(ROOT).parts[0] == package and path != Path(__file__)
        for text in code_and_texts(path)[1]
        if " " in text
        for match in RETIRED_IN_PROSE.finditer(CODE.sub("", text))
    }
    assert sorted(found) == sorted(each for each in SENT_BY_TESTS if each.startswith(f"{package}/"))


@pytest.mark.parametrize(
    "page", [path for path in tracked() if path.suffix == ".md"], ids=lambda page: str(page.relative_to(ROOT))
)
def test_no_page_uses_a_retired_word(page: Path) -> None:
    """Outside of code, and but for the list of those words itself."""
    text = page.read_text()
    if page == GLOSSARY:
        text = text[: text.index("## Retired words")]
    found = [match[0] for match in RETIRED_IN_PROSE.finditer(CODE.sub("", FENCED.sub("", text)))]
    assert found == []


def test_no_text_says_that_an_interval_covers_what_the_data_hold() -> None:
    """Contributions are bounded, events clipped and values clamped before there is noise."""
    sources = [each for each in tracked() if each.suffix in (".md", ".html", ".proto")]
    sources += [each for each in python_files() if each.relative_to(ROOT).parts[0] in PACKAGES]
    # To a mechanism the counts that it is given are the true ones.
    inside = {ROOT / "dp_service" / "mechanisms", ROOT / "dp_service" / "noise"}
    found = {
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in sources
        if inside.isdisjoint(path.parents)
        for match in FALSE_OF_INTERVALS.finditer(path.read_text())
    }
    assert sorted(found) == []


def test_the_glossary_lists_what_is_refused_here() -> None:
    """So that somebody whose name is refused finds the word to use."""
    listed = GLOSSARY.read_text().partition("## Retired words")[2].lower()
    assert sorted(word for word in RETIRED_IN_NAMES if not re.search(rf"\b{word}\b", listed)) == []
