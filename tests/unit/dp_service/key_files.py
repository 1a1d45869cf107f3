"""Files that hold noise keys."""

from __future__ import annotations

from pathlib import Path


def key_file(folder: Path, content: bytes, mode: int = 0o600) -> Path:
    """Write a key file."""
    path = folder / "noise.key"
    path.write_bytes(content)
    path.chmod(mode)
    return path
