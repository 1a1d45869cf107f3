"""Draws charts of a running Superset; runs in Superset's environment, which has playwright.

python screenshots.py CHROMIUM URL FOLDER '{"name of a chart": id}'
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright


def main(chromium: str, url: str, folder: str, charts: str) -> None:
    """Log in, open each chart in Explore, and keep a picture of it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        _log_in(page, url)
        for name, number in json.loads(charts).items():
            page.goto(f"{url}/explore/?slice_id={number}", timeout=120_000)
            page.wait_for_timeout(12_000)
            page.screenshot(path=Path(folder) / f"{name.lower().replace(' ', '-')}.png")
            # What strangers call an element is a text on the page and no part of it, unless a chart renders HTML.
            images, scripts = page.locator('img[alt="a stranger"]').count(), int(page.title() == "a stranger")
            print(f"{name}: of strangers the page has {images} images and {scripts} scripts", flush=True)
            if scripts or (images and not name.endswith("as HTML")):
                raise SystemExit(1)
        browser.close()


def _log_in(page: Page, url: str) -> None:
    page.goto(f"{url}/login/", timeout=120_000)
    page.fill("#username", "admin")
    page.fill("#password", os.environ["SUPERSET_PASSWORD"])
    page.keyboard.press("Enter")
    page.wait_for_url("**/welcome/**", timeout=120_000)


if __name__ == "__main__":
    main(*sys.argv[1:])
