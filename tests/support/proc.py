"""What only Linux says of a process."""

from __future__ import annotations

from pathlib import Path

import pytest


def require_proc() -> None:
    """Skip the test where there is no /proc."""
    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc, which only Linux has")
