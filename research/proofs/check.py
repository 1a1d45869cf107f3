"""Check the proofs by Coq, and print what they say and which axioms they take: `make -C research proofs`.

Needs Python and Coq 8.16 or newer, nothing of this project.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# In the order in which they build on each other; the last one prints.
FILES = ("adaptive", "calls", "prices", "newcomers", "blocks", "convex", "table", "coarse", "statements")

# Those of the reals in Coq's standard library.
AXIOMS = frozenset(
    {
        "ClassicalDedekindReals.sig_not_dec",
        "ClassicalDedekindReals.sig_forall_dec",
        "FunctionalExtensionality.functional_extensionality_dep",
        "Classical_Prop.classic",
    }
)
# What Coq prints of a theorem that takes none.
CLOSED = "Closed under the global context"
MISSING = "coqc is missing, and nothing was checked: install Coq by apt-get, brew or conda install coq"

_FOLDER = Path(__file__).parent
_NAME = re.compile(r"([\w.']+)(?:\s*:.*)?")


class ProofError(Exception):
    """A file that Coq does not accept, or an axiom too many; the text says which and why."""


def compiled(name: str, folder: Path) -> str:
    """Compile a file that lies in a folder beside those it needs, and return what it prints.

    Raises:
        ProofError: Coq does not accept it.
    """
    command = ["coqc", "-q", "-R", ".", "Gris", f"{name}.v"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ProofError(f"{name}.v: {done.stderr.strip()}")
    return done.stdout


def checked(folder: Path) -> str:
    """Compile all files in an empty folder, and return the statements and axioms.

    Raises:
        ProofError: Coq does not accept a file, or a theorem takes an axiom that is not one of the reals, or what Coq
            was not to check, such as that a function ends.
    """
    for each in FILES:
        shutil.copy(_FOLDER / f"{each}.v", folder)
    printed = [compiled(each, folder) for each in FILES][-1]
    if unknown := axioms_in(printed) - AXIOMS:
        raise ProofError(f"expected no axioms but those of the reals, got {', '.join(sorted(unknown))}")
    return printed


def axioms_in(printed: str) -> set[str]:
    """Return what stands below `Axioms:` in the output of `Print Assumptions`, with which all output ends.

    It is the name of an axiom, without its type, or a whole line that is none, such as "bad is assumed to be guarded."
    """
    _, *lists = f"\n{printed}".split("\nAxioms:\n")
    lines = [line for each in lists for line in each.splitlines() if line and not line[0].isspace()]
    return {found[1] if (found := _NAME.fullmatch(line)) else line for line in lines if line != CLOSED}


def main() -> int:
    """Print the statements, or what is missing or wrong, and return the exit code."""
    if shutil.which("coqc") is None:
        print(MISSING)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        try:
            print(checked(Path(folder)))
        except ProofError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
