"""Which programs of this machine tests may use.

`GRIS_TEST_HIDE=redis,postgres,java,docker` hides what it names, as on a machine that has none of it.
"""

from __future__ import annotations

import os
import shutil

HIDE = "GRIS_TEST_HIDE"
_OF = {
    "redis": {"redis-server", "redis-cli"},
    "postgres": {"postgres", "initdb", "psql"},
    "java": {"java", "javac", "mvn"},
    "docker": {"docker"},
}


def is_hidden(name: str) -> bool:
    """Whether tests are to do without it: one of the names above."""
    return name in os.environ.get(HIDE, "").split(",")


def found(program: str) -> str | None:
    """Return where a program is; None if there is none, or if it is hidden."""
    if any(is_hidden(name) and program in programs for name, programs in _OF.items()):
        return None
    return shutil.which(program)
