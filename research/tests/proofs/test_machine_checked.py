"""Coq accepts the proofs, with the axioms of the reals alone, and none of their wrong forms."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from research.proofs import check
from research.tests.proofs.mutants import MUTANTS

CASES = [(file, name) for file, mutants in MUTANTS.items() for name in mutants]
PRINTED = "printed"
RESEARCH = Path(check.__file__).parents[1]
WRONG = """\
Axiom wrong : forall P : Prop, P.
Theorem all : 0 = 1.
Proof. apply wrong. Qed.
Check all.
Print Assumptions all.
"""
UNGUARDED = """\
Unset Guard Checking.
Fixpoint bad (n : nat) : False := bad n.
Set Guard Checking.
Theorem all : 0 = 1.
Proof. destruct (bad O). Qed.
Print Assumptions all.
"""
LISTED = """\
Axioms:
ClassicalDedekindReals.sig_forall_dec
  : forall P : nat -> Prop,
    (forall n : nat, {P n} + {~ P n}) ->
    {n : nat | ~ P n} + {forall n : nat, P n}
Closed under the global context
Axioms:
wrong : forall P : Prop, P
"""


# The others are tried by `make test-long`.
QUICK = {
    "a unit costs nothing",
    "the recursion holds at its ends",
    "calls are not counted",
    "the index is forgotten",
    "nothing is counted",
    "a choice has no factor",
    "only the ends of cells are checked",
    "a number is smaller",
}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all files, compiled."""
    if shutil.which("coqc") is None:
        pytest.skip(check.MISSING)
    folder = tmp_path_factory.mktemp("proofs")
    (folder / PRINTED).write_text(check.checked(folder))
    return folder


def test_strangers_see_statements_and_their_axioms(compiled: Path) -> None:
    """The theorems, what they take, and no other axioms than those of the reals."""
    printed = (compiled / PRINTED).read_text()
    for name in ("bounded_range =", "theorem_A\n", "theorem_C\n", "private_with_calls\n", "thirty_units\n"):
        assert f"\n{name}" in printed
    assert check.AXIOMS == check.axioms_in(printed)


def test_without_coq_a_line_says_what_to_install() -> None:
    """And nothing fails."""
    done = subprocess.run(
        [sys.executable, check.__file__],
        env={"PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{check.MISSING}\n"


def test_another_axiom_is_refused(compiled: Path, tmp_path: Path) -> None:
    """A theorem that takes one is no proof."""
    (tmp_path / "wrong.v").write_text(WRONG)
    assert {"wrong"} == check.axioms_in(check.compiled("wrong", tmp_path))


def test_what_coq_was_not_to_check_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that never ends proves that 0 is 1, and Coq says that it is assumed to end."""
    if shutil.which("coqc") is None:
        pytest.skip(check.MISSING)
    (tmp_path / "unguarded.v").write_text(UNGUARDED)
    printed = check.compiled("unguarded", tmp_path)
    assert {"bad is assumed to be guarded."} == check.axioms_in(printed)
    monkeypatch.setattr(check, "compiled", lambda _name, _folder: printed)
    with pytest.raises(check.ProofError, match="guarded"):
        check.checked(tmp_path)


def test_every_line_of_a_list_of_axioms_counts() -> None:
    """A name, or what is none: words of Coq that nobody has heard of are refused as well."""
    known = {"ClassicalDedekindReals.sig_forall_dec", "wrong"}
    assert known == check.axioms_in(f"all\n     : 0 = 1\n{LISTED}")
    for line in (
        "bad is assumed to be guarded.",
        "t is assumed to be positive.",
        "ty relies on an unsafe hierarchy.",
        "relies on something.",
    ):
        assert known | {line} == check.axioms_in(f"\n{LISTED}{line}\n")


@pytest.mark.parametrize(
    ("file", "name"),
    [pytest.param(*case, marks=[] if case[1] in QUICK else pytest.mark.long) for case in CASES],
)
def test_a_wrong_form_is_refused(file: str, name: str, compiled: Path, tmp_path: Path) -> None:
    """A proof that holds for anything proves nothing."""
    shutil.copytree(compiled, tmp_path, dirs_exist_ok=True)
    source = tmp_path / f"{file}.v"
    text, instead = MUTANTS[file][name]
    assert source.read_text().count(text) == 1
    source.write_text(source.read_text().replace(text, instead))
    with pytest.raises(check.ProofError, match=f"^{file}.v: File"):
        check.compiled(file, tmp_path)


def test_every_file_has_ten_wrong_forms() -> None:
    """Also a file that comes later."""
    assert {*check.FILES} - {"statements"} == {*MUTANTS}
    assert min(map(len, MUTANTS.values())) >= 10


def named(heading: str) -> set[str]:
    """Return what the first column of the table below a heading of the page names."""
    page = (RESEARCH / "docs" / "machine-checked.md").read_text()
    (section,) = re.findall(rf"^## {heading}$(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_the_page_names_every_theorem() -> None:
    """What is proved stands on it by its name, and nothing else; Coq checks each name when it prints."""
    statements = (RESEARCH / "proofs" / "statements.v").read_text()
    theorems = {*re.findall(r"^Check (\w+)\.$", statements, re.MULTILINE)}
    assert theorems == named("What is proved")
    # Of all of them the axioms are asked for.
    (together,) = re.findall(r"^Definition all_theorems := \(([^)]*)\)", statements, re.MULTILINE)
    assert theorems == {*re.findall(r"\w+", together)}


def test_the_page_names_no_assumption_that_is_none() -> None:
    """Each is a name in one of the files."""
    files = "".join((RESEARCH / "proofs" / f"{file}.v").read_text() for file in check.FILES)
    assert named("What is assumed, and where it is met") <= {*re.findall(r"[\w']+", files)}
