"""Makes the pictures of the console on docs/console.md and in the README: `make console-pictures`.

    python -m tests.console.screenshots docs/figures [FOLDER]

It runs services, a gateway and a console on this machine, on the example data, and photographs pages in Chromium. What
pages show goes to the first folder, everything to the second, if one is named.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from pinot_connector import Credentials, Endpoint, structured_question
from pinot_connector.gateway_client import AsyncGatewayClient
from tests.console.stage import Stage, running_stage
from tests.support.browser import log_in, price, running_browser

SIZES = {"light": (1080, 860), "dark": (1080, 860), "phone": (390, 844)}
QUESTIONS = (
    ("feedback", "article_id", "6"),
    ("feedback", "app", "4"),
    ("feedback", "score", "3"),
)
SERIES = (
    "SELECT DATE_TRUNC('month', day) AS month, COUNT(DISTINCT member_id) AS people FROM feedback "
    "WHERE day >= '2018-01-01' AND day < '2020-01-01' GROUP BY 1"
)
KEPT = ("console-answer-light", "console-series-phone", "console-price-dark", "console-usage-light")


def main(shown: Path, everything: Path | None) -> None:
    """Write the pictures that pages show to a folder, and all pictures to another one."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = everything or Path(scratch)
        _photograph_all(folder)
        for name in KEPT:
            shutil.copy(folder / f"{name}.png", shown / f"{name}.png")


def _photograph_all(folder: Path) -> None:
    with (
        tempfile.TemporaryDirectory() as scratch,
        running_stage(Path(scratch) / "stage") as stage,
        stage.serving() as site,
    ):
        # Before the browser, whose library has a running event loop.
        asyncio.run(_spend(stage))
        with running_browser() as browser:
            for kind in SIZES:
                _photograph_kind(browser, site, stage, folder, kind)


def _photograph_kind(browser: Any, site: str, stage: Stage, folder: Path, kind: str) -> None:
    width, height = SIZES[kind]
    context = browser.new_context(
        base_url=site,
        viewport={"width": width, "height": height},
        color_scheme="dark" if kind == "dark" else "light",
    )
    context.set_default_timeout(60_000)
    _photographed(context.new_page(), stage, folder, kind)
    context.close()


async def _spend(stage: Stage) -> None:
    """Let some people spend different parts of their budgets."""
    for place, name in enumerate(("ben", "chen", "dana", "emre", "fay")):
        token = stage.token(name)
        credentials = Credentials(ca_file=stage.authority.ca_file, token=partial(str, token))
        async with AsyncGatewayClient(Endpoint(stage.gateway, credentials)) as client:
            for k in range(1, place + 2):
                await client.ask(structured_question("feedback", "article_id", k=k))


def _photographed(page: Any, stage: Stage, folder: Path, kind: str) -> None:
    def photograph(name: str) -> None:
        page.screenshot(path=folder / f"console-{name}-{kind}.png", full_page=True)

    log_in(page, stage.token("ana", owner=False))
    photograph("ask")
    page.goto("/ask/feedback")
    photograph("table")
    for table, by, k in QUESTIONS[::-1]:
        price(page, table, by, k)
        if (table, by) == QUESTIONS[0][:2]:
            photograph("price")
        page.get_by_role("button", name="Ask and pay").click()
        page.get_by_role("heading", name="Answer", exact=True).wait_for()
    photograph("answer")
    page.goto("/ask")
    page.get_by_label("Question in SQL").fill(SERIES)
    page.get_by_role("button", name="See the price").click()
    page.get_by_role("button", name="Ask and pay").click()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()
    photograph("series")
    for name in ("history", "budget"):
        page.goto(f"/{name}")
        photograph(name)
    page.context.clear_cookies()
    page.goto("/sign-in")
    photograph("sign-in")
    log_in(page, stage.token("olga", owner=True))
    _of_owner(page, photograph)


def _of_owner(page: Any, photograph: Any) -> None:
    page.goto("/owner/accounts")
    page.get_by_label("Account or level").fill("acme")
    page.get_by_role("button", name="Show").click()
    photograph("accounts")
    page.goto("/owner/usage")
    page.get_by_label("Accounts below").fill("acme")
    page.get_by_label("Limits in information units").fill("5, 12, 24")
    page.get_by_label("Limits in calls").fill("1, 2")
    page.get_by_role("button", name="Show").click()
    photograph("usage")
    page.goto("/owner/plan")
    page.get_by_label("Target epsilon").fill("10")
    page.get_by_label("epsilon of one unit").fill("0.15")
    page.get_by_label("Calls", exact=True).fill("30")
    page.get_by_role("button", name="Compute").click()
    photograph("plan")
    page.goto("/owner/policy")
    page.get_by_label("Policy (YAML)").fill(
        "epsilon_per: 0.15\ndelta: 1e-10\ntables:\n  visits:\n    member: id\n"
    )
    page.get_by_role("button", name="Check").click()
    photograph("policy")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
