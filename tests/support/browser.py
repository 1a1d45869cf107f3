"""A real headless Chromium, by Playwright, and what everybody does in a console with it."""

from __future__ import annotations

import re
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
        pytest.skip("needs Chromium: make test-servers")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=_OPTIONS)
        try:
            yield browser
        finally:
            browser.close()


def log_in(page: Any, token: str) -> None:
    """Log in by the page."""
    page.goto("/sign-in")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("heading", name="Ask a private question").wait_for()


def price(page: Any, table: str = "feedback", by: str = "app", k: str = "3") -> None:
    """Go to the price of a question."""
    page.goto(f"/ask/{table}")
    page.get_by_role("checkbox", name=re.compile(f"^{by} ")).check()
    page.get_by_label("At most so many elements").fill(k)
    page.get_by_role("button", name="See the price").click()
    page.get_by_role("heading", name="Before you ask").wait_for()
