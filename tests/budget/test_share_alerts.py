"""A hook is called once when a level has spent a share of its limit, and what becomes of it changes no answer."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from budget_service.configuration.budget_file import Configuration, ConfigurationError, load_configuration
from budget_service.ledger.outcomes import Charged, LevelStatus
from budget_service.ledger.values import NOTHING, Account, Cost, Mode
from budget_service.ledger.windows import Window
from budget_service.server import share_alerts
from budget_service.server.hosting import serving
from budget_service.server.settings import LiveSettings, Settings
from budget_service.server.share_alerts import ShareAlerts
from budget_service.stores.interface import Store
from tests.budget.memory_store import MemoryStore
from tests.support.budget_client import charging, connected, cost, new_id
from tests.support.budget_samples import ANALYST, SteppedClock
from tests.support.log_events import everything_logged, logged_events


@dataclass
class Hook:
    """What was posted, and with what status that is answered, after how long."""

    url: str
    posted: list[dict[str, Any]] = field(default_factory=list)
    status: int = 204
    seconds: float = 0.0

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        async with asyncio.timeout(20):
            while not holds():  # noqa: ASYNC110 - a thread of the hook makes it hold
                await asyncio.sleep(0.02)


@contextmanager
def hooked() -> Iterator[Hook]:
    """Run a real server that takes what is posted to it."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(found.seconds)
            found.posted.append(json.loads(content))
            self.send_response(found.status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.block_on_close = False
        found = Hook(f"http://127.0.0.1:{server.server_port}/gris")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield found
        server.shutdown()
        thread.join()


@pytest.fixture
def hook() -> Iterator[Hook]:
    """Run a hook."""
    with hooked() as found:
        yield found


def settings_of(hook: Hook, **changes: Any) -> LiveSettings:
    """Return limits of 100 units and 10 calls above 20 and 10, and an alert at four fifths."""
    content = {
        "accounts": [
            {"path": ["acme"], "limit": {"information": 100, "calls": 10}, "window": "never"},
            {"path": ["acme", "ann"], "limit": {"information": 20, "calls": 10}},
        ],
        "alerts": {"share": 0.8, "url": hook.url},
    }
    return LiveSettings(Settings(Configuration.model_validate(content | changes)))


@asynccontextmanager
async def served(store: Store, settings: LiveSettings) -> AsyncIterator[Any]:
    """Serve a ledger, and give what calls it."""
    async with serving(store, settings, "127.0.0.1:0") as address, connected(address) as stub:
        yield stub


async def spend(stub: Any, information: int, id_: str = "", purpose: str = "") -> None:
    """Charge information units."""
    name, of = id_ or new_id(), cost(information, 0)
    of.purpose = purpose
    await stub.UpdateBudget(charging(of, request_id=name, release_id=name, query_id=name))


async def test_a_hook_is_called_once_when_the_share_is_reached(hook: Hook, clock: SteppedClock) -> None:
    """By the charge that reaches it; neither before, nor by a retry, nor by later ones, nor by another process."""
    store = MemoryStore(clock)
    async with served(store, settings_of(hook)) as stub, served(store, settings_of(hook)) as other:
        await spend(stub, 15)
        await spend(other, 1, "the sixteenth")
        await hook.until(lambda: len(hook.posted) == 1)
        await spend(stub, 1, "the sixteenth")
        await spend(stub, 2)
        await spend(other, 1)
        # Whatever else is due would have come before this.
        await asyncio.sleep(0.3)
    (alert,) = hook.posted
    assert ("acme/ann", "information", 16, 20) == tuple(
        alert[each] for each in ("account", "unit", "spent", "limit")
    )
    assert (0.8, "2026-11-01T00:00:00+00:00") == (alert["share"], alert["refreshes_at"])


async def test_a_share_of_what_a_purpose_may_take_is_an_alert_of_its_own(
    hook: Hook, clock: SteppedClock
) -> None:
    """It names the purpose, and is sent where the level's own was sent before."""
    limit = {"information": 20, "calls": 10}
    accounts = [{"path": ["acme", "ann"], "limit": limit, "purposes": {"payroll": limit}}]
    async with served(MemoryStore(clock), settings_of(hook, accounts=accounts)) as stub:
        await spend(stub, 2)
        await spend(stub, 15, purpose="payroll")
        await spend(stub, 2, purpose="payroll")
        await hook.until(lambda: len(hook.posted) == 2)
    found = [(each["account"], each.get("purpose", ""), each["spent"]) for each in hook.posted]
    assert [("acme/ann", "", 17), ("acme/ann", "payroll", 17)] == found


@pytest.mark.parametrize(("status", "seconds"), [(500, 0.0), (204, 1.5)])
async def test_a_hook_that_fails_or_hangs_changes_no_answer(
    hook: Hook, clock: SteppedClock, caplog: pytest.LogCaptureFixture, status: int, seconds: float
) -> None:
    """Charges are answered before it is; what fails is logged without a number or an account."""
    hook.status, hook.seconds = status, seconds
    async with served(MemoryStore(clock), settings_of(hook)) as stub:
        began = time.monotonic()
        await spend(stub, 18)
        await spend(stub, 1)
        took = time.monotonic() - began
        await hook.until(lambda: len(hook.posted) == 1)
        if status == 500:
            await hook.until(lambda: "alert.not_sent" in dict(logged_events(caplog)))
    assert took < 1.2
    assert "acme" not in everything_logged(caplog)


def charged(*spent: int, paid: int = 1) -> Charged:
    """Return a charge after which levels have spent so much."""
    levels = tuple(
        LevelStatus(depth, Cost(20, 10), Mode.ENFORCE, Window(0, None), Cost(each, 0), NOTHING)
        for depth, each in enumerate(spent, 1)
    )
    return Charged(Cost(paid, 0), False, levels)


async def noted(settings: LiveSettings, *charges: Charged) -> list[Any]:
    """Return what is sent for charges."""
    sent: list[Any] = []
    alerts = ShareAlerts(settings, lambda _: {"url": sent.append})
    running = asyncio.create_task(alerts.run())
    for each in charges:
        alerts.note(ANALYST, each)
    await asyncio.sleep(0.2)
    running.cancel()
    return sent


async def test_a_refund_makes_no_second_alert(hook: Hook) -> None:
    """Nor does a limit of nothing make any."""
    settings = settings_of(hook)
    assert 1 == len(await noted(settings, charged(0, 16), charged(0, 17), charged(0, 15), charged(0, 16)))


async def test_a_level_that_counts_worst_cases_is_compared_with_what_was_seen(hook: Hook) -> None:
    """What a charge adds there may be more than the charge."""
    settings = settings_of(hook, shared_levels="worst_case")
    (alert,) = await noted(settings, charged(10, 1), charged(18, 2), charged(19, 3))
    assert ("acme", 18) == (alert["account"], alert["spent"])


async def test_what_waits_when_the_process_ends_is_logged(
    hook: Hook, clock: SteppedClock, caplog: pytest.LogCaptureFixture
) -> None:
    """No later process sends it: the charge that reached the share is over."""
    hook.seconds = 1.0
    accounts = [
        {"path": ["acme"], "limit": {"information": 20, "calls": 10}},
        {"path": ["acme", "ann"], "limit": {"information": 20, "calls": 10}},
    ]
    async with served(MemoryStore(clock), settings_of(hook, accounts=accounts)) as stub:
        await spend(stub, 16)
    assert 2 * [("alert.not_sent", {"way": "url", "problem": "stopped"})] == [
        each for each in logged_events(caplog) if each[0] == "alert.not_sent"
    ]


async def test_what_waits_is_bounded(
    hook: Hook, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A hook that hangs costs alerts, and no memory."""
    monkeypatch.setattr(share_alerts, "MOST_WAITING", 2)
    alerts = ShareAlerts(settings_of(hook), lambda _: {"url": len})
    for number in range(5):
        alerts.note(Account(("acme", f"a-{number}")), charged(0, 16))
    assert 3 * [("alert.not_sent", {"way": "url", "problem": "queue"})] == logged_events(caplog)


@pytest.mark.parametrize(
    ("alerts", "said"),
    [
        ("{share: 0, url: https://example.org}", "alerts.share"),
        ("{share: 1.5, url: https://example.org}", "alerts.share"),
        ("{share: 0.8, url: http://example.org}", "alerts.url"),
        ("{share: 0.8, url: file:///etc/passwd}", "alerts.url"),
        ("{share: 0.8}", "alerts: expected url, mail or both"),
        ("{}", "alerts: expected url, mail or both"),
        ("", "alerts"),
        ("{mail: {server: h, from: a@b, to: [a@b]}}", "alerts.mail.server"),
        ("{mail: {server: ':25', from: a@b, to: [a@b]}}", "alerts.mail.server"),
        ("{mail: {server: 'h:0', from: a@b, to: [a@b]}}", "alerts.mail.server"),
        ("{mail: {server: 'h:25', to: [a@b]}}", "alerts.mail.from"),
        ("{mail: {server: 'h:25', from: a@b, to: []}}", "alerts.mail.to"),
        ("{mail: {server: 'h:25', from: a@b, to: ['a@b>']}}", "alerts.mail.to.0"),
        ("{mail: {server: 'h:25', from: a@.., to: [a@b]}}", "alerts.mail.from"),
        ("{mail: {server: 'h:25', from: a..b@c, to: [a@b]}}", "alerts.mail.from"),
        ("{mail: {server: 'h:25', from: a@b-, to: [a@b]}}", "alerts.mail.from"),
        ('{mail: {server: "h:25", from: "a@b\\nBcc: c@d", to: [a@b]}}', "alerts.mail.from"),
        (
            "{mail: {server: 'h:25', from: a@b, to: [a@b], user: u}}",
            "alerts.mail: expected user and password_file",
        ),
        ("{mail: {server: 'h:25', from: a@b, to: [a@b], tls: none}}", "alerts.mail: expected tls"),
        (
            "{mail: {server: '127.0.0.1:25', from: a@b, to: [a@b], tls: none, user: u, password_file: f}}",
            "alerts.mail: expected tls",
        ),
    ],
)
def test_a_wrong_configuration_names_the_key(tmp_path: Any, alerts: str, said: str) -> None:
    """And the service does not start with it."""
    path = tmp_path / "budget.yaml"
    path.write_text(f"accounts: [{{path: [a], limit: {{information: 1, calls: 1}}}}]\nalerts: {alerts}\n")
    with pytest.raises(ConfigurationError) as refused:
        load_configuration(path)
    assert said in str(refused.value)
