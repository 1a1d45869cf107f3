"""A real headless Chromium, by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

# In a container Chromium has no sandbox of its own.
_OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


def chromium() -> str | None:
    """Return the path of Chromium; None: it is not installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextmanager
def running_browser() -> Iterator[Any]:
    """Run a browser, or skip the test."""
    path = chromium()
    if path is None:
        pytest.skip("needs Chromium: deploy/test-servers")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=_OPTIONS)
        try:
            yield browser
        finally:
            browser.close()
