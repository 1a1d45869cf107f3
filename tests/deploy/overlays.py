"""What an overlay makes, rendered once for all tests of a worker."""

from __future__ import annotations

import subprocess
from functools import cache

from deploy.kubernetes.validate import FOLDER, Manifest, manifests_in, renderer


def made_by(overlay: str) -> list[Manifest]:
    """Return the objects of an overlay, anew for each who asks: some tests change them."""
    return list(manifests_in(f"rendered {overlay}", _text(overlay)))


@cache
def _text(overlay: str) -> str:
    command = renderer()
    assert command is not None
    path = FOLDER / "overlays" / overlay
    return subprocess.run([*command, str(path)], capture_output=True, text=True, check=True).stdout
