"""The page in a real browser, without JavaScript unless a test says otherwise."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.browser import running_browser
from tests.support.paths import ROOT
from tests.support.rings import needs
from tests.support.stage import HOSTILE, Stage, announced_gateway

WAIT = 60_000
AXE = ROOT / "node_modules/axe-core/axe.min.js"
TOP = "SELECT app, COUNT(DISTINCT member_id) FROM feedback GROUP BY app ORDER BY 2 DESC LIMIT 3"
FRESH = "SELECT name, COUNT(DISTINCT member_id) FROM fresh GROUP BY name ORDER BY 2 DESC LIMIT 2"
_names = itertools.count()


@pytest.fixture(scope="module")
@needs("process")
def browser() -> Iterator[Any]:
    """A headless Chromium."""
    with running_browser() as running:
        yield running


@contextmanager
def opened(browser: Any, stage: Stage, **options: Any) -> Iterator[Any]:
    """Open the link of a gateway of its own in a browser."""
    name = f"browser-{next(_names)}"
    page = {"listen": "127.0.0.1:0", "tls": False, "link": ["acme", name]}
    with announced_gateway(stage.folder, name, stage, page=page) as ready:
        context = browser.new_context(**{"java_script_enabled": False} | options)
        context.set_default_timeout(WAIT)
        found = context.new_page()
        found.goto(ready["page_link"])
        yield found
        context.close()


def price(page: Any, sql: str) -> None:
    """Go to the price of a question."""
    page.get_by_label("Question in SQL").fill(sql)
    page.get_by_role("button", name="See the price").click()
    page.get_by_role("heading", name="The price").wait_for()


def ask(page: Any) -> None:
    """Ask and pay."""
    page.get_by_role("button", name="Ask and pay").click()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()


def left(page: Any) -> int:
    """Return how many information units are left of the person's own limit."""
    text = page.get_by_role("main").inner_text()
    return int(re.findall(r"Information units\s+([\d,]+) of", text)[-1].replace(",", ""))


def test_somebody_asks_by_the_keyboard_alone(browser: Any, stage: Stage) -> None:
    """Tab reaches the link past the head first; no script runs."""
    with opened(browser, stage) as page:
        before = left(page)
        page.keyboard.press("Tab")
        assert page.locator(":focus").inner_text() == "Skip to the content"
        page.keyboard.press("Enter")
        page.get_by_label("Question in SQL").focus()
        page.keyboard.type(TOP)
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="The price").wait_for()
        assert left(page) == before
        while page.locator(":focus").count() == 0 or "Ask and pay" not in page.locator(":focus").inner_text():
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Answer", exact=True).wait_for()
        assert page.get_by_role("rowheader", name="RUMORS_LINE_BOT", exact=True).is_visible()
        assert left(page) < before


def test_the_button_back_and_again_pays_once(browser: Any, stage: Stage) -> None:
    """Though answers of the table do not repeat; to load the answer again does not pay again either."""
    with opened(browser, stage) as page:
        price(page, FRESH)
        ask(page)
        paid = left(page)
        page.go_back()
        ask(page)
        assert left(page) == paid
        page.reload()
        page.get_by_role("heading", name="Answer", exact=True).wait_for()
        assert left(page) == paid


def test_a_form_of_another_site_does_nothing(browser: Any, stage: Stage) -> None:
    """The browser brings no cookie, and says where the form comes from."""
    with opened(browser, stage) as page:
        address = page.url.replace("127.0.0.1", "localhost")
        attacker = page.context.new_page()
        form = f"<form method=post action={address}><input name=sql><button>win</button></form>"
        attacker.goto(f"data:text/html,{form}")
        with attacker.expect_navigation():
            attacker.get_by_role("button", name="win").click()
        assert "This form is not of this page" in attacker.content()


def test_hostile_names_stay_texts_even_with_scripts_allowed(browser: Any, stage: Stage) -> None:
    """Nothing runs, nothing is loaded from elsewhere, and the policy of the page would forbid both."""
    with opened(browser, stage, java_script_enabled=True) as page:
        asked, dialogs, errors = [], [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        page.on("console", lambda message: errors.append(message.text))
        price(page, "SELECT name, COUNT(DISTINCT member_id) FROM hostile GROUP BY name")
        ask(page)
        assert page.get_by_role("rowheader", name=HOSTILE[0], exact=True).is_visible()
        assert page.title() == "Answer · Gris"
        assert not dialogs
        assert not errors
        assert [url for url in asked if not url.startswith(page.url)] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280])
def test_the_page_is_accessible(browser: Any, stage: Stage, scheme: str, width: int) -> None:
    """Axe finds nothing, each field has a name, and nothing is wider than a phone."""
    if not AXE.exists():
        pytest.skip("needs axe: deploy/test-servers installs it")
    size = {"width": width, "height": 800}
    found: dict[str, Any] = {}
    options = {"java_script_enabled": True, "viewport": size, "color_scheme": scheme, "bypass_csp": True}
    with opened(browser, stage, **options) as page:

        def look(name: str) -> None:
            for each in page.locator("details").all():
                each.locator("summary").click()
            page.evaluate(AXE.read_text())
            found[name] = page.evaluate(
                "axe.run().then(found => found.violations.map(each => [each.id, each.nodes.map(n => n.html)]))"
            )
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            unnamed = "[...document.querySelectorAll('textarea,meter')].filter(each => !each.labels.length)"
            assert page.evaluate(f"{unnamed}.length") == 0
            assert page.get_by_role("main").count() == 1

        look("page")
        price(page, TOP)
        look("price")
        ask(page)
        look("answer")
        page.get_by_label("Question in SQL").fill("SELECT member_id\nFROM feedback WHERE")
        page.get_by_role("button", name="See the price").click()
        page.get_by_role("alert").wait_for()
        look("problem")
    assert [(name, each) for name, each in found.items() if each] == []
