"""The version that runs."""

from __future__ import annotations

from importlib import metadata


def version() -> str:
    """Return the version of the distribution; empty where only its packages are, as in an image."""
    try:
        return metadata.version("gris-dp")
    except metadata.PackageNotFoundError:
        return ""
