"""What an overlay makes, rendered once for all tests of a worker."""

from __future__ import annotations

import subprocess
from copy import deepcopy
from functools import cache

from deploy.kubernetes.validate import FOLDER, Manifest, manifests_in, renderer


def made_by(overlay: str) -> list[Manifest]:
    """Return the objects of an overlay, anew for each who asks: some tests change them."""
    return deepcopy(_rendered(overlay))


@cache
def _rendered(overlay: str) -> list[Manifest]:
    command = renderer()
    assert command is not None
    path = FOLDER / "overlays" / overlay
    text = subprocess.run([*command, str(path)], capture_output=True, text=True, check=True).stdout
    return list(manifests_in(f"rendered {overlay}", text))
