"""A zone that Python knows and no engine does: what an engine says of it, it says by the numbers that it was given."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

UNKNOWN = "Gris/Somewhere"


@contextmanager
def unknown_zone(folder: Path, like: str = "America/New_York") -> Iterator[str]:
    """Give the name of a zone whose clocks show what those of another one do."""
    place = folder / "zones" / UNKNOWN
    place.parent.mkdir(parents=True)
    place.write_bytes(files("tzdata").joinpath("zoneinfo", *like.split("/")).read_bytes())
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath(to=[str(folder / "zones"), *before])
    try:
        yield UNKNOWN
    finally:
        zoneinfo.reset_tzpath(to=before)
