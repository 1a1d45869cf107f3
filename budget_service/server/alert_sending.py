"""The ways that an alert takes: JSON that is posted to an address, and a mail. Each has an end, whatever answers it."""

from __future__ import annotations

import json
import smtplib
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid
from functools import partial
from pathlib import Path
from typing import Any

from budget_service.configuration.alerts import Alerts, Mail
from budget_service.server.share_alerts import Way
from gris_serving.https_client import FetchError, FetchLimits, SentForm, fetch, hung_up_after, trust
from gris_serving.key_files import KeyFileError, read_private
from gris_serving.reloading_files import SecurityError

LIMITS = FetchLimits(seconds=5.0, most_bytes=64 * 1024)


def ways(alerts: Alerts) -> Mapping[str, Way]:
    """Return what sends an alert, by name; each raises FetchError with a word for what failed."""
    found: dict[str, Way] = {}
    if alerts.url:
        found["url"] = partial(_post, alerts.url)
    if alerts.mail is not None:
        found["mail"] = partial(send_mail, alerts.mail)
    return found


def _post(url: str, alert: Mapping[str, Any]) -> None:
    sent = SentForm(json.dumps(alert), {"Content-Type": "application/json"}, answers=range(200, 300))
    fetch(url, trust(None), LIMITS, sent)


def send_mail(mail: Mail, alert: Mapping[str, Any]) -> None:
    """Send a mail.

    Raises:
        FetchError: `password_file`, `unreachable`, `tls`, `timeout`, `log_in`, or `status`: the server refuses the
            mail, or one of those who should get it. No text of the server is in it.
    """
    ends = time.monotonic() + LIMITS.seconds
    try:
        _deliver(mail, message(mail, alert))
    except (KeyFileError, UnicodeDecodeError):
        raise FetchError("password_file") from None
    except (OSError, ValueError, SecurityError, smtplib.SMTPException) as error:
        late = isinstance(error, TimeoutError) or time.monotonic() >= ends
        raise FetchError("timeout" if late else _word_for(error)) from None


def _word_for(error: Exception) -> str:
    match error:
        case smtplib.SMTPServerDisconnected() | smtplib.SMTPConnectError():
            return "unreachable"
        case ssl.SSLError() | smtplib.SMTPNotSupportedError() | SecurityError():
            return "tls"
        case smtplib.SMTPException():
            return "status"
        case _:
            return "unreachable"


def message(mail: Mail, alert: Mapping[str, Any]) -> EmailMessage:
    """Return an alert for people. Who spent is in its text alone: servers log what a mail is about."""
    made = EmailMessage()
    made["From"], made["To"] = mail.sender, ", ".join(mail.to)
    made["Subject"] = f"Gris: {100 * alert['share']:g} % of a limit is spent"
    made["Date"], made["Message-ID"] = format_datetime(datetime.now(UTC)), make_msgid(domain=mail.domain)
    made["Auto-Submitted"] = "auto-generated"
    refreshed = alert["refreshes_at"]
    purpose = f"\nPurpose: {alert['purpose']}" if "purpose" in alert else ""
    text = (
        f"Account: {alert['account']}{purpose}\n"
        f"Spent: {alert['spent']:,} of {alert['limit']:,} ({alert['unit']})\n"
        f"Refreshed: {'never' if refreshed is None else refreshed}\n"
    )
    # Not every server takes other bytes than ASCII's.
    made.set_content(text, cte="quoted-printable")
    return made


def _deliver(mail: Mail, made: EmailMessage) -> None:
    password = read_private(Path(mail.password_file)).decode("ascii").rstrip("\r\n") if mail.user else ""
    host, _, port = mail.server.rpartition(":")
    host = host.strip("[]")
    with _bounded(mail, host) as (server, context):
        server.connect(host, int(port))
        if mail.tls == "starttls":
            server.starttls(context=context)
        if mail.user:
            _log_in(server, mail.user, password)
        if server.send_message(made, mail.sender, mail.to):
            raise FetchError("status")
        # It has the mail, however it says goodbye.
        with suppress(OSError, smtplib.SMTPException):
            server.quit()


class _Replies:
    """What a server says, up to a size: a reply may have any number of lines."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._left = LIMITS.most_bytes

    def readline(self, most: int) -> bytes:
        line: bytes = self._file.readline(most)
        self._left -= len(line)
        if self._left < 0:
            raise smtplib.SMTPServerDisconnected
        return line

    def close(self) -> None:
        self._file.close()


class _Server(smtplib.SMTP):
    def getreply(self) -> tuple[int, bytes]:
        if self.file is None and self.sock is not None:
            self.file = _Replies(self.sock.makefile("rb"))
        return super().getreply()


class _SecureServer(_Server, smtplib.SMTP_SSL):
    """The same, by TLS from the first byte on."""


@contextmanager
def _bounded(mail: Mail, host: str) -> Iterator[tuple[smtplib.SMTP, ssl.SSLContext]]:
    """Give a server that is not connected yet, and what verifies it; whatever it does, its connection ends in time."""
    secured: list[ssl.SSLSocket] = []

    class Noted(ssl.SSLSocket):
        # During the handshake nobody else has the socket.
        def do_handshake(self, block: bool = False) -> None:
            secured.append(self)
            super().do_handshake(block)

    context = trust(mail.ca_file or None)
    context.sslsocket_class = Noted
    # The name of this machine, which would be looked up else, is nobody's business.
    own: Any = {"timeout": LIMITS.seconds, "local_hostname": mail.domain}
    server = _SecureServer(context=context, **own) if mail.tls == "implicit" else _Server(**own)
    # The name in the server's certificate: `connect` does not set it, and without one no TLS begins.
    server._host = host  # type: ignore[attr-defined]
    with hung_up_after(LIMITS.seconds, lambda: secured[-1] if secured else server.sock):
        try:
            yield server, context
        finally:
            server.close()


def _log_in(server: smtplib.SMTP, user: str, password: str) -> None:
    try:
        server.login(user, password)
    except smtplib.SMTPServerDisconnected:
        raise
    except smtplib.SMTPException:
        raise FetchError("log_in") from None
