"""Alerts by mail, against real servers of SMTP: who gets it, by which TLS, and what is said where it fails."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

from budget_service.configuration.alerts import Alerts, Mail
from budget_service.configuration.budget_file import ConfigurationError
from budget_service.server import alert_sending
from budget_service.server.alert_sending import send_mail, ways
from budget_service.server.settings import load_settings
from gris_serving.https_client import FetchError, FetchLimits
from tests.budget.memory_store import MemoryStore
from tests.budget.test_share_alerts import Hook, hooked, served, settings_of, spend
from tests.support.budget_samples import SteppedClock
from tests.support.pki import Authority

ALERT = {
    "account": "acme/Zoë",
    "purpose": "payroll",
    "unit": "information",
    "spent": 2400,
    "limit": 3000,
    "share": 0.8,
    "refreshes_at": "2026-12-01T00:00:00+00:00",
}
PASSWORD = "a password with a space"  # noqa: S105 - of a server that the test starts


@dataclass
class Mailbox:
    """What a server has taken: of each mail the recipients, the text and whether it came by TLS."""

    refused: str = ""
    taken: list[tuple[list[str], EmailMessage, bool]] = field(default_factory=list)
    passwords: list[tuple[bytes, bool]] = field(default_factory=list)

    async def handle_RCPT(  # noqa: N802 - the library's name
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        """Take a recipient, or refuse one."""
        if address == self.refused:
            return "550 no such user SECRET"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        """Take a mail."""
        made = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(made, EmailMessage)
        self.taken.append((envelope.rcpt_tos, made, _is_hidden(server)))
        return "250 OK"

    def __call__(
        self, server: Any, _session: Any, _envelope: Any, _mechanism: str, data: LoginPassword
    ) -> AuthResult:
        """Check a password."""
        self.passwords.append((data.password, _is_hidden(server)))
        return AuthResult(success=(data.login, data.password) == (b"gris", PASSWORD.encode()), handled=False)


def _is_hidden(server: Any) -> bool:
    return server.transport.get_extra_info("ssl_object") is not None


@contextmanager
def listening(mailbox: Mailbox, authority: Authority, tls: str, **options: Any) -> Iterator[str]:
    """Run a server that takes mail; give its address."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.server())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    if tls == "starttls":
        options |= {"tls_context": context, "require_starttls": True}
    elif tls == "implicit":
        # The library does not know that there is TLS already.
        options["auth_require_tls"] = False
    server = Controller(
        mailbox,
        "127.0.0.1",
        port,
        ssl_context=context if tls == "implicit" else None,
        **options,
    )
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return who signs the certificates of servers."""
    return Authority.new(tmp_path_factory.mktemp("authority"))


def mail_of(address: str, authority: Authority, tls: str, **more: Any) -> Mail:
    """Return the section of a server."""
    to = ["ops@example.org", "owner@example.org"]
    content = {
        "server": address,
        "tls": tls,
        "ca_file": str(authority.ca_file),
        "from": "gris@example.org",
        "to": to,
    }
    return Mail.model_validate(content | more)


def password_of(folder: Path, text: str = PASSWORD, mode: int = 0o400) -> dict[str, str]:
    """Write a password; return the keys for it."""
    path = folder / f"password-{mode:o}"
    path.write_text(f"{text}\n")
    path.chmod(mode)
    return {"user": "gris", "password_file": str(path)}


@pytest.mark.parametrize("tls", ["starttls", "implicit", "none"])
def test_everybody_named_gets_one_mail(authority: Authority, tls: str) -> None:
    """Its text has what the hook has; what a server logs, the subject, has no account."""
    mailbox = Mailbox()
    with listening(mailbox, authority, tls) as address:
        send_mail(mail_of(address, authority, tls), ALERT)
    ((recipients, made, is_hidden),) = mailbox.taken
    assert (["ops@example.org", "owner@example.org"], tls != "none") == (recipients, is_hidden)
    assert ("gris@example.org", "Gris: 80 % of a limit is spent") == (made["From"], made["Subject"])
    assert made["Message-ID"].endswith("@example.org>")
    assert abs((datetime.now(UTC) - made["Date"].datetime).total_seconds()) < 60
    assert bytes(made).isascii()
    assert made.get_content().splitlines() == [
        "Account: acme/Zoë",
        "Purpose: payroll",
        "Spent: 2,400 of 3,000 (information)",
        "Refreshed: 2026-12-01T00:00:00+00:00",
    ]


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
def test_who_logs_in_does_so_behind_tls(authority: Authority, tmp_path: Path, tls: str) -> None:
    """With what the file holds when the mail is sent."""
    mailbox = Mailbox()
    secret = password_of(tmp_path)
    with listening(mailbox, authority, tls, authenticator=mailbox) as address:
        send_mail(mail_of(address, authority, tls, **secret), ALERT)
        Path(secret["password_file"]).chmod(0o600)
        Path(secret["password_file"]).write_text("another")
        assert "log_in" == failure(mail_of(address, authority, tls, **secret))
    assert 1 == len(mailbox.taken)
    assert {(PASSWORD.encode(), True), (b"another", True)} == {*mailbox.passwords}


def failure(mail: Mail) -> str:
    """Return the word for what fails."""
    with pytest.raises(FetchError) as failed:
        send_mail(mail, ALERT)
    return str(failed.value)


def test_a_server_without_tls_gets_neither_password_nor_mail(authority: Authority, tmp_path: Path) -> None:
    """Nor does one whose certificate nobody vouches for, or that is of another name."""
    mailbox, secret = Mailbox(), password_of(tmp_path)
    with listening(mailbox, authority, "none", authenticator=mailbox, auth_require_tls=False) as address:
        assert "tls" == failure(mail_of(address, authority, "starttls", **secret))
        assert "tls" == failure(mail_of(address, authority, "implicit", **secret))
    for tls in ("starttls", "implicit"):
        with listening(mailbox, authority, tls, authenticator=mailbox) as address:
            assert "tls" == failure(mail_of(address, authority, tls, **secret, ca_file=""))
            other = address.replace("127.0.0.1", "127.1")
            assert "tls" == failure(mail_of(other, authority, tls, **secret))
    assert ([], []) == (mailbox.taken, mailbox.passwords)


def test_what_fails_is_one_word_without_the_server_s_text(authority: Authority, tmp_path: Path) -> None:
    """A password that others may read is not sent."""
    mailbox = Mailbox(refused="owner@example.org")
    with listening(mailbox, authority, "starttls", authenticator=mailbox) as address:
        assert "status" == failure(mail_of(address, authority, "starttls"))
        assert "status" == failure(mail_of(address, authority, "starttls", to=["owner@example.org"]))
        assert "password_file" == failure(
            mail_of(address, authority, "starttls", **password_of(tmp_path, mode=0o444))
        )
        odd = password_of(tmp_path, text="größe")
        assert "password_file" == failure(mail_of(address, authority, "starttls", **odd))
        gone = {"user": "gris", "password_file": str(tmp_path / "gone")}
        assert "password_file" == failure(mail_of(address, authority, "starttls", **gone))
        assert "tls" == failure(mail_of(address, authority, "starttls", ca_file=str(tmp_path / "gone")))
    assert "unreachable" == failure(mail_of(address, authority, "starttls"))
    # One where nobody can log in.
    with listening(mailbox, authority, "starttls", auth_exclude_mechanism=["LOGIN", "PLAIN"]) as address:
        assert "log_in" == failure(
            mail_of(address, authority, "starttls", **password_of(tmp_path, mode=0o440))
        )
    assert [] == mailbox.passwords
    # Who can be reached has got it.
    assert [["ops@example.org"]] == [recipients for recipients, _, _ in mailbox.taken]


@contextmanager
def scripted(authority: Authority, *script: str) -> Iterator[str]:
    """Run a server that does one thing after the other; `...` is without end, ten times a second."""
    ended = threading.Event()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.server())

    def play(connection: socket.socket) -> None:
        said = b""
        for step in script:
            if step.endswith("TLS"):
                ended.wait(1.2 if step == "slow TLS" else 0)
                connection = closed.enter_context(context.wrap_socket(connection, server_side=True))
            elif step == "?":
                while not connection.recv(4096).endswith(b"\n"):
                    pass
            elif step == "...":
                while not ended.wait(0.1):
                    connection.sendall(said)
            else:
                said = step.encode()
                connection.sendall(said)
        ended.wait(20)

    def play_to_the_end() -> None:
        with suppress(OSError):
            play(closed.enter_context(listener.accept()[0]))

    with ExitStack() as closed, socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=play_to_the_end, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        ended.set()
        thread.join()


HELLO = ("220 here\r\n", "?", "250-here\r\n250 STARTTLS\r\n", "?", "220 go on\r\n")
TAKEN = ("?", "250 here\r\n", *("?", "250 OK\r\n") * 3, "?", "354 go on\r\n", "?", "250 taken\r\n", "?")


@pytest.mark.parametrize(
    ("tls", "script"),
    [
        ("starttls", ("",)),
        ("starttls", ("2", "...")),
        ("starttls", ("220-hello\r\n", "...")),
        ("starttls", (*HELLO, "nonsense")),
        ("starttls", HELLO),
        ("starttls", (*HELLO, "slow TLS", "?", "250-more\r\n", "...")),
        ("implicit", ()),
        ("implicit", ("slow TLS", "220-hello\r\n", "...")),
    ],
)
def test_a_server_that_never_ends_is_left(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, tls: str, script: Sequence[str]
) -> None:
    """Whatever it sends meanwhile, before TLS, in its handshake or after it."""
    monkeypatch.setattr(alert_sending, "LIMITS", FetchLimits(seconds=1.0))
    with scripted(authority, *script) as address:
        began = time.monotonic()
        assert failure(mail_of(address, authority, tls)) in ("timeout", "tls")
        assert time.monotonic() - began < 8


@pytest.mark.parametrize("tls", ["starttls", "implicit"])
def test_a_reply_without_end_fills_no_memory(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, tls: str
) -> None:
    """It is left once it is as long as no reply is."""
    monkeypatch.setattr(alert_sending, "LIMITS", FetchLimits(seconds=20.0, most_bytes=1000))
    script = [*(["TLS"] if tls == "implicit" else []), *["220-" + 400 * "x" + "\r\n"] * 5]
    with scripted(authority, *script) as address:
        began = time.monotonic()
        assert "unreachable" == failure(mail_of(address, authority, tls))
        assert time.monotonic() - began < 10


def test_files_that_cannot_be_used_are_named_at_the_start(tmp_path: Path) -> None:
    """And not when the first mail is due."""
    path = tmp_path / "budget.yaml"
    mail = {"server": "h:25", "from": "a@b", "to": ["a@b"]}
    secret = password_of(tmp_path, mode=0o444)
    for wrong, name in ((secret, "password_file"), ({"ca_file": str(tmp_path / "gone.pem")}, "ca_file")):
        accounts = [{"path": ["a"], "limit": {"information": 1, "calls": 1}}]
        path.write_text(json.dumps({"accounts": accounts, "alerts": {"mail": mail | wrong}}))
        with pytest.raises(ConfigurationError) as refused:
            load_settings(path)
        assert f"alerts.mail.{name}" in str(refused.value)
        assert PASSWORD not in str(refused.value)
        assert [f"alerts.mail.{name}"] == [each.field for each in refused.value.faults]


@pytest.mark.parametrize("goodbye", [("250 later\r\n",), ("221-bye\r\n", "..."), ()])
def test_a_mail_that_was_taken_is_sent(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, goodbye: Sequence[str]
) -> None:
    """However the server says goodbye, and that has an end too."""
    monkeypatch.setattr(alert_sending, "LIMITS", FetchLimits(seconds=1.5))
    with scripted(authority, *HELLO, "TLS", *TAKEN, *goodbye) as address:
        began = time.monotonic()
        send_mail(mail_of(address, authority, "starttls"), ALERT)
        assert time.monotonic() - began < 8


async def test_a_mail_server_that_hangs_keeps_the_hook_from_nothing(
    authority: Authority, clock: SteppedClock
) -> None:
    """Each way waits for itself."""
    with ExitStack() as stack:
        hook: Hook = stack.enter_context(hooked())
        mail = mail_of(stack.enter_context(scripted(authority)), authority, "starttls").model_dump(
            by_alias=True
        )
        accounts = [
            {
                "path": ["acme", "ann"],
                "limit": {"information": 20, "calls": 10},
                "purposes": {"p": {"information": 20, "calls": 10}},
            },
        ]
        settings = settings_of(hook, accounts=accounts, alerts={"url": hook.url, "mail": mail})
        async with served(MemoryStore(clock), settings) as stub:
            began = time.monotonic()
            await spend(stub, 16, purpose="p")
            await hook.until(lambda: len(hook.posted) == 2)
            assert time.monotonic() - began < alert_sending.LIMITS.seconds


async def test_a_charge_sends_both_and_one_that_fails_keeps_the_other_from_nothing(
    authority: Authority, clock: SteppedClock
) -> None:
    """The hook that fails comes first."""
    mailbox = Mailbox()
    with ExitStack() as stack:
        hook: Hook = stack.enter_context(hooked())
        hook.status = 500
        address = stack.enter_context(listening(mailbox, authority, "starttls"))
        mail = mail_of(address, authority, "starttls").model_dump(by_alias=True)
        settings = settings_of(hook, alerts={"share": 0.8, "url": hook.url, "mail": mail})
        async with served(MemoryStore(clock), settings) as stub:
            await spend(stub, 16)
            await hook.until(lambda: bool(hook.posted and mailbox.taken))
    assert ["acme/ann"] == [each["account"] for each in hook.posted]
    assert "Account: acme/ann" in mailbox.taken[0][1].get_content().splitlines()


def test_without_a_way_nothing_is_sent() -> None:
    """And there are as many ways as are named."""
    address = {"server": "h:25", "from": "a@b", "to": ["a@b"]}
    for content, count in (({}, 0), ({"url": "https://h"}, 1), ({"mail": address}, 1)):
        assert count == len([*ways(Alerts.model_validate(content))])
