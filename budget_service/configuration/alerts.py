"""The section `alerts` of `budget.yaml`: who hears that a level has spent a share of its limit."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from gris_serving.documents import Strict
from gris_serving.https_client import checked_url
from gris_serving.options import checked_address
from gris_serving.tls import is_loopback

MOST_RECIPIENTS = 20
# No blank, angle bracket or comma: it is put into commands of SMTP as it is.
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_MAILBOX = re.compile(rf"(?=.{{1,254}}$){_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*")


def _mailbox(text: str) -> str:
    if not _MAILBOX.fullmatch(text):
        raise ValueError("expected an address such as ops@example.org")
    return text


def _server(text: str) -> str:
    host, _, port = checked_address(text).rpartition(":")
    if not host.strip("[]") or port == "0":
        raise ValueError("expected HOST:PORT")
    return text


Mailbox = Annotated[str, AfterValidator(_mailbox)]


class Mail(Strict):
    """A server that takes mail, by STARTTLS or by TLS from the first byte, and who gets it.

    The `user` logs in with what `password_file` holds. No TLS is for a server on this machine, and for no password.
    """

    server: Annotated[str, AfterValidator(_server)]
    tls: Literal["starttls", "implicit", "none"] = "starttls"
    ca_file: str = ""
    user: str = Field(default="", pattern="^[!-~]*$")
    password_file: str = ""
    sender: Mailbox = Field(alias="from")
    to: list[Mailbox] = Field(min_length=1, max_length=MOST_RECIPIENTS)

    @property
    def domain(self) -> str:
        """The domain of who sends."""
        return self.sender.partition("@")[2]

    @model_validator(mode="after")
    def _passwords_are_hidden(self) -> Mail:
        if bool(self.user) != bool(self.password_file):
            raise ValueError("expected user and password_file, or neither")
        if self.tls == "none" and (self.user or not is_loopback(self.server)):
            raise ValueError(
                "expected tls: starttls or implicit; none is for this machine, without a password"
            )
        return self


class Alerts(Strict):
    """Whom the service calls once a level has spent a `share` of its limit: JSON goes to `url`, and mail by `mail`."""

    share: float = Field(default=0.8, gt=0, le=1)
    url: Annotated[str, AfterValidator(checked_url)] = ""
    mail: Mail | None = None

    @property
    def are_wanted(self) -> bool:
        """Whether anybody hears of it."""
        return bool(self.url) or self.mail is not None
