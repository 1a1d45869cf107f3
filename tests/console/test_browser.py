"""The console in a real browser, without JavaScript unless a test says otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.console.stage import HOSTILE, Stage
from tests.support.browser import log_in, price, running_browser
from tests.support.rings import needs

WAIT = 60_000
AXE = Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js"
SERIES = (
    "SELECT DATE_TRUNC('year', day) AS year, COUNT(DISTINCT member_id) FROM feedback "
    "WHERE day >= '2018-01-01' AND day < '2020-01-01' GROUP BY 1"
)


FORMS = {
    "funnel": {"Steps, a condition on each line": "score >= 0\napp = 'WEBSITE'"},
    "retention": {
        "By a member's first time": "retention quarter",
        "From": "2018-01-01",
        "Until, not included": "2020-01-01",
    },
}


@pytest.fixture(scope="module")
@needs("process")
def site(stage: Stage) -> Iterator[str]:
    """A console as a process."""
    with stage.serving() as url:
        yield url


@pytest.fixture(scope="module")
@needs("process")
def browser() -> Iterator[Any]:
    """A headless Chromium."""
    with running_browser() as running:
        yield running


@pytest.fixture
def page(browser: Any, site: str) -> Iterator[Any]:
    """A page of a browser of its own, without scripts."""
    context = browser.new_context(base_url=site, java_script_enabled=False)
    context.set_default_timeout(WAIT)
    yield context.new_page()
    context.close()


def ask(page: Any) -> None:
    """Ask and pay."""
    page.get_by_role("button", name="Ask and pay").click()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()


def left(page: Any) -> int:
    """Return how many information units are left of the person's own limit."""
    page.goto("/budget")
    text = page.get_by_role("main").inner_text()
    return int(re.findall(r"Information units\s+([\d,]+) of", text)[-1].replace(",", ""))


def test_an_analyst_asks_reads_and_sees_again(page: Any, stage: Stage) -> None:
    """From the log-in to bars, numbers, history and budget; no script runs."""
    log_in(page, stage.token("browser-ana"))
    before = left(page)
    price(page)
    assert page.get_by_text("Costs at most", exact=True).is_visible()
    ask(page)
    assert page.locator("svg.bar rect.value").count() == 3
    widths = [page.locator("svg.bar rect.value").nth(place).bounding_box()["width"] for place in range(3)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 0
    assert left(page) < before
    page.goto("/history")
    page.get_by_role("link", name=re.compile("Top 3 of app in feedback")).first.click()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()


def test_two_tabs_of_one_form_pay_once(page: Any, stage: Stage) -> None:
    """The second tab gets the answer of the first, though answers of the table do not repeat."""
    log_in(page, stage.token("browser-bea"))
    before = left(page)
    price(page, table="fresh", by="name")
    fields = {
        each.get_attribute("name"): each.get_attribute("value")
        for each in page.locator('form[action="/answer"] input').all()
    }
    ask(page)
    once = left(page)
    other = page.context.new_page()
    answered = other.request.post("/answer", form=fields, headers={"sec-fetch-site": "same-origin"})
    assert answered.ok
    assert once < before
    assert left(page) == once
    other.close()


def test_the_button_back_and_again_pays_once(page: Any, stage: Stage) -> None:
    """Going back to the price and asking again leads to the same answer."""
    log_in(page, stage.token("browser-cid"))
    price(page, table="fresh", by="name")
    ask(page)
    first, paid = page.url, left(page)
    page.go_back()
    page.go_back()
    page.get_by_role("button", name="Ask and pay").click()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()
    assert page.url == first
    assert left(page) == paid


def test_a_log_in_that_ends_in_the_middle_keeps_what_was_entered(page: Any, stage: Stage) -> None:
    """The text of a question goes through the log-in."""
    log_in(page, stage.token("browser-dov"))
    page.goto("/ask")
    page.get_by_label("Question in SQL").fill("SELECT COUNT(DISTINCT member_id) FROM feedback")
    kept = page.context.cookies()
    other = page.context.new_page()
    other.goto("/budget")
    other.get_by_role("button", name="Log out").click()
    other.get_by_label("Token").wait_for()
    other.close()
    page.context.add_cookies(kept)
    page.get_by_role("button", name="See the price").click()
    page.get_by_text("What you had entered is kept").wait_for()
    page.get_by_label("Token").fill(stage.token("browser-dov"))
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("button", name="Go on").click()
    page.get_by_text("SELECT COUNT(DISTINCT member_id) FROM feedback").wait_for()
    assert page.get_by_role("button", name="Ask and pay").is_visible()


def test_a_form_of_another_site_does_nothing(page: Any, stage: Stage, browser: Any) -> None:
    """The browser brings the cookie of nobody, and says where the form comes from."""
    context = browser.new_context()
    attacker = context.new_page()
    log_in_url = page.goto("/sign-in").url
    address = log_in_url.replace("/sign-in", "/sign-out").replace("127.0.0.1", "localhost")
    attacker.goto("data:text/html,<form method=post action=" + address + "><button>win</button></form>")
    with attacker.expect_navigation():
        attacker.get_by_role("button", name="win").click()
    assert "sent by another site" in attacker.content()
    context.close()


def test_hostile_names_stay_texts_even_with_scripts_allowed(browser: Any, site: str, stage: Stage) -> None:
    """Nothing runs, nothing is loaded from elsewhere, and the policy of the page would forbid both."""
    context = browser.new_context(base_url=site)
    context.set_default_timeout(WAIT)
    page = context.new_page()
    asked, dialogs, errors = [], [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    page.on("console", lambda message: errors.append(message.text))
    log_in(page, stage.token("browser-eli"))
    page.goto("/ask/hostile")
    page.get_by_role("checkbox", name=re.compile("^name ")).check()
    page.get_by_label("At most so many elements").fill("")
    page.get_by_role("button", name="See the price").click()
    ask(page)
    assert page.get_by_role("rowheader", name=HOSTILE[0], exact=True).is_visible()
    assert page.title() == "Answer · Gris"
    assert not dialogs
    assert not errors
    assert {url for url in asked if not url.startswith(site)} == set()
    context.close()


def test_the_keyboard_alone_is_enough(page: Any, stage: Stage) -> None:
    """Tab reaches the link past the navigation first, and a question is asked without a mouse."""
    log_in(page, stage.token("browser-fay"))
    page.goto("/ask")
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Skip to the content"
    page.keyboard.press("Enter")
    page.get_by_label("Question in SQL").focus()
    page.keyboard.type("SELECT COUNT(DISTINCT member_id) FROM feedback")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Before you ask").wait_for()
    while page.locator(":focus").count() == 0 or page.locator(":focus").inner_text() != "Ask and pay":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Answer", exact=True).wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_phone_and_are_labelled(browser: Any, site: str, stage: Stage, scheme: str) -> None:
    """No page is wider than a phone, every field has a name, and texts stand out from their ground."""
    context = browser.new_context(
        base_url=site, viewport={"width": 375, "height": 700}, color_scheme=scheme, is_mobile=True
    )
    context.set_default_timeout(WAIT)
    page = context.new_page()
    log_in(page, stage.token(f"browser-gil-{scheme}", owner=True))
    price(page)
    wide = []
    for path in ("", "/ask", "/ask/feedback", "/history", "/budget", "/owner/usage", "/owner/policy"):
        if path:
            page.goto(path)
        width = page.evaluate("document.documentElement.scrollWidth")
        wide += [(path, width)] * (width > 375)
        unnamed = page.evaluate(
            "[...document.querySelectorAll('input:not([type=hidden]),select,textarea,meter')]"
            ".filter(each => !each.labels.length).length"
        )
        assert unnamed == 0, path
        assert page.get_by_role("main").count() == 1
        assert page.evaluate(_CONTRAST) >= 4.5, path
    assert wide == []
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_pages_are_accessible(browser: Any, site: str, stage: Stage, scheme: str, width: int) -> None:
    """Axe finds nothing on any of them."""
    if not AXE.exists():
        pytest.skip("needs axe: make test-servers installs it")
    context = browser.new_context(
        base_url=site, viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True
    )
    context.set_default_timeout(WAIT)
    page = context.new_page()
    found = {}

    def look(name: str) -> None:
        page.evaluate(AXE.read_text())
        found[name] = page.evaluate(
            "axe.run().then(found => found.violations.map(each => [each.id, each.nodes.map(node => node.html)]))"
        )

    log_in(page, stage.token(f"browser-ida-{scheme}-{width}", owner=True))
    price(page)
    look("price")
    ask(page)
    look("bars")
    page.goto("/ask")
    page.get_by_label("Question in SQL").fill(SERIES)
    page.get_by_role("button", name="See the price").click()
    ask(page)
    look("series")
    for name, fields in FORMS.items():
        page.goto("/ask/feedback")
        for each in page.locator("details").all():
            each.locator("summary").click()
        look(f"form of {name}")
        for label, value in fields.items():
            field = page.get_by_label(label, exact=True)
            if field.evaluate("each => each.tagName") == "SELECT":
                field.select_option(value)
            else:
                field.fill(value)
        page.get_by_role("button", name="See the price").click()
        ask(page)
        look(name)
    for path in (
        "/ask",
        "/ask/feedback",
        "/history",
        "/budget",
        "/owner/usage",
        "/owner/policy",
        "/owner/plan",
    ):
        page.goto(path)
        look(path)
    page.goto("/owner/accounts")
    page.get_by_label("Account or level").fill("acme")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("heading", name="Who spent it").wait_for()
    look("accounts")
    assert [(name, each) for name, each in found.items() if each] == []
    context.close()


# The contrast of the page's text and its links with their ground, by the formula of WCAG 2.
_CONTRAST = """() => {
  const light = text => {
    const [r, g, b] = text.match(/[0-9.]+/g).slice(0, 3).map(part => {
      const share = part / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = light(getComputedStyle(document.body).backgroundColor);
  const texts = [...document.querySelectorAll('main p, main a:not(.button), main h1, main .hint')];
  return Math.min(...texts.map(each => {
    const [low, high] = [ground, light(getComputedStyle(each).color)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  }));
}"""


def test_an_owner_sets_a_limit_and_checks_a_policy(page: Any, stage: Stage) -> None:
    """Both by the pages alone; the fault has its line."""
    log_in(page, stage.token("browser-hal", owner=True))
    page.get_by_role("link", name="Accounts").click()
    page.get_by_label("Account or level").fill("acme/browser-ian")
    page.get_by_role("button", name="Show").click()
    page.get_by_label("Information units", exact=True).last.fill("70")
    page.get_by_label("Calls", exact=True).last.fill("7")
    page.get_by_role("button", name="Set this limit").click()
    page.get_by_text("The limit is set").wait_for()
    assert page.get_by_text("70 of 70 left").is_visible()
    page.get_by_role("link", name="Policy").click()
    page.get_by_label("Policy (YAML)").fill("epsilon_per: 0.1\ndelta: much\n")
    page.get_by_role("button", name="Check").click()
    assert page.get_by_role("row", name=re.compile("^2 delta")).is_visible()
