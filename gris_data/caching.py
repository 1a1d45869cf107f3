"""Where tables of the adaptive bound are kept: they can be made again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """Return where tables are kept: the directory gris of XDG_CACHE_HOME, by default ~/.cache."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    # The standard says that a relative path is to be ignored.
    return (Path(named) if Path(named).is_absolute() else Path.home() / ".cache") / "gris"
