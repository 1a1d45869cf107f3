"""The ways that an alert takes: JSON that is posted to an address, and a mail. Each fails by itself."""

from __future__ import annotations

import json
import smtplib
import ssl
import time
from collections.abc import Iterator, Mapping
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from typing import Any

from budget_service.configuration.alerts import Alerts, Mail
from budget_service.server.share_alerts import Way
from gris_serving.https_client import FetchError, FetchLimits, SentForm, fetch, hung_up_after, trust
from gris_serving.key_files import KeyFileError, read_private
from gris_serving.reloading_files import SecurityError

LIMITS = FetchLimits(seconds=5.0, most_bytes=64 * 1024)


def ways(alerts: Alerts) -> Iterator[Way]:
    """Yield what sends an alert, in bounded time; it raises FetchError with a word for what failed."""
    if alerts.url:
        yield partial(_post, alerts.url)
    if alerts.mail is not None:
        yield partial(send_mail, alerts.mail)


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
    made["Subject"] = f"Gris: {alert['share']:.0%} of a limit is spent"
    refreshed = alert["refreshes_at"]
    purpose = f"\nPurpose: {alert['purpose']}" if "purpose" in alert else ""
    made.set_content(
        f"Account: {alert['account']}{purpose}\n"
        f"Spent: {alert['spent']:,} of {alert['limit']:,} ({alert['unit']})\n"
        f"Refreshed: {'never' if refreshed is None else refreshed}\n"
    )
    return made


def _deliver(mail: Mail, made: EmailMessage) -> None:
    password = read_private(Path(mail.password_file)).decode("ascii").rstrip("\r\n") if mail.user else ""
    context = trust(mail.ca_file or None)
    server = (
        smtplib.SMTP_SSL(timeout=LIMITS.seconds, context=context)
        if mail.tls == "implicit"
        else smtplib.SMTP(timeout=LIMITS.seconds)
    )
    host, _, port = mail.server.rpartition(":")
    host = host.strip("[]")
    # The name in the server's certificate: `connect` does not set it, and without one no TLS begins.
    server._host = host  # type: ignore[attr-defined]
    with server, hung_up_after(LIMITS.seconds, lambda: server.sock):
        server.connect(host, int(port))
        if mail.tls == "starttls":
            server.starttls(context=context)
        if mail.user:
            _log_in(server, mail.user, password)
        if server.send_message(made):
            raise FetchError("status")


def _log_in(server: smtplib.SMTP, user: str, password: str) -> None:
    try:
        server.login(user, password)
    except smtplib.SMTPServerDisconnected:
        raise
    except smtplib.SMTPException:
        raise FetchError("log_in") from None
