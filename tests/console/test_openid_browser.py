"""Logging in at a real OpenID provider with a real browser, from the button to an answer of the gateway."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.console.stage import Stage, running_gateway
from tests.support.browser import price, running_browser
from tests.support.openid_provider import CLIENT, SECRET, running
from tests.support.pki import Issuer
from tests.support.rings import needs
from tests.support.world import free_port

AUDIENCE = "https://gateway.example.org"


@pytest.fixture(scope="module")
@needs("process")
def site(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A console by TLS whose people log in at the provider, which is another site to a browser, and its gateway."""
    folder = tmp_path_factory.mktemp("openid")
    (folder / "secret").write_text(SECRET)
    certificate, key = stage.authority.server("openid")
    address = f"127.0.0.1:{free_port()}"
    url = f"https://{address.replace('127.0.0.1', 'localhost')}"
    issuer_key = Issuer(folder, key_id="first")
    with running(stage.authority, (certificate, key), issuer_key, console=url) as issuer:
        tokens = {"discover": True, "ca_file": str(stage.authority.ca_file), "issuer": issuer}
        tokens |= {"algorithms": ["ES256"], "audience": AUDIENCE}
        accounts = [{"claim": "org", "equals": "acme", "prefix": ["acme"], "append": "sub"}]
        people = {"jwt": tokens | {"accounts": accounts}}
        login = {
            "client_id": CLIENT,
            "client_secret_file": str(folder / "secret"),
            "name": "Acme",
            "scopes": ["openid", "ask"],
            "resource": AUDIENCE,
        }
        with (
            running_gateway(folder, "openid-gateway", stage, identity=people) as gateway,
            stage.serving(
                listen=address,
                public_url=url,
                tls={"certificate": str(certificate), "key": str(key)},
                gateway={"address": f"gris://{gateway}", "ca_file": str(stage.authority.ca_file)},
                identity={
                    "jwt": tokens,
                    "login": login,
                    "owners": {"claim": "gris_roles", "equals": "admin"},
                },
            ),
        ):
            yield url


@pytest.fixture
def page(site: str) -> Iterator[Any]:
    """A page of a browser without scripts."""
    with running_browser() as browser:
        context = browser.new_context(base_url=site, java_script_enabled=False, ignore_https_errors=True)
        context.set_default_timeout(60_000)
        yield context.new_page()


def log_in(page: Any, name: str) -> None:
    """Log in at the provider, where anybody is who they say they are."""
    page.get_by_role("button", name="Log in with Acme").click()
    page.get_by_placeholder("Enter any login").fill(name)
    page.get_by_placeholder("and password").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()


def test_an_analyst_logs_in_at_the_provider_asks_and_logs_out(page: Any, stage: Stage) -> None:
    """The gateway knows whose account pays, no token is in the browser, and logging out there too ends both log-ins."""
    page.goto("/history")
    log_in(page, "ana")
    page.get_by_role("heading", name="History").wait_for()
    assert page.url.endswith("/history")
    price(page)
    page.get_by_role("button", name="Ask and pay").click()
    page.get_by_role("heading", name="Answer", exact=True).wait_for()
    page.goto("/budget")
    assert "acme/ana" in page.get_by_role("main").inner_text().replace(" ", "")
    kept = page.context.cookies(page.url)
    assert {each["name"].startswith("__Host-gris-") for each in kept if each["domain"] == "localhost"} == {
        True
    }
    assert not any("eyJ" in each["value"] for each in kept)
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("button", name="Log in with Acme").wait_for()
    page.goto("/budget")
    page.get_by_role("link", name="log out there too").click()
    page.get_by_role("button", name=re.compile("Yes")).click()
    page.get_by_role("button", name="Log in with Acme").wait_for()
    assert page.url.endswith("/sign-in")
    log_in(page, "olga")
    page.get_by_role("link", name="Accounts").wait_for()
    log = Path(stage.folder / "console.log").read_text()
    assert not re.search(r"eyJ|code=|state=", log)


def test_what_was_entered_is_there_after_the_log_in(page: Any) -> None:
    """Though the browser was at another site meanwhile."""
    page.goto("/sign-in")
    log_in(page, "bea")
    page.get_by_label("Question in SQL").fill("SELECT COUNT(DISTINCT member_id) FROM feedback")
    other = page.context.new_page()
    kept = page.context.cookies()
    other.goto("/budget")
    other.get_by_role("button", name="Log out").click()
    other.get_by_role("button", name="Log in with Acme").wait_for()
    page.context.add_cookies(kept)
    page.get_by_role("button", name="See the price").click()
    page.get_by_text("What you had entered is kept").wait_for()
    page.get_by_role("button", name="Log in with Acme").click()
    page.get_by_role("button", name="Go on").click()
    page.get_by_role("button", name="Ask and pay").wait_for()


def test_who_refuses_at_the_provider_is_not_let_in(page: Any) -> None:
    """The page says so, and its address has nothing of the provider's answer."""
    page.goto("/ask")
    page.get_by_role("button", name="Log in with Acme").click()
    page.get_by_role("link", name=re.compile("Cancel")).click()
    page.get_by_text("has let nobody in").wait_for()
    assert page.url.endswith("/sign-in?failed=refused")
