"""Admits who looks at the page: by the header of a proxy that is known, or by a link that works once."""

from __future__ import annotations

import hmac
import re
import secrets
from http import HTTPStatus
from typing import Any

from gris_gateway.accounts import AccountError, Caller, checked_segment
from gris_gateway.callers import NoAccountError
from gris_gateway.face_admission import FaceAdmission
from gris_gateway.page_settings import PageSettings, ProxySettings
from gris_serving.admitting import Sender
from gris_serving.identity import certificate_names
from gris_serving.refusals import HttpRefusalError

_SECRET_BYTES = 32
# Visible ASCII without a comma, by which proxies join two headers into one.
_NAME = re.compile(r"[!-+\--~]{1,128}")


class PageAdmission(FaceAdmission):
    """Admits requests of the page. Tokens and certificates of callers mean nothing here.

    Args:
        settings: How people are known.
        more: As for `FaceAdmission`.
    """

    def __init__(self, settings: PageSettings, *more: Any) -> None:
        super().__init__(*more)
        self._settings = settings
        self._token: str | None = secrets.token_urlsafe(_SECRET_BYTES)
        self._cookie = secrets.token_urlsafe(_SECRET_BYTES)

    @property
    def header(self) -> str | None:
        """The header by which the proxy says who asks; None: there is a link instead."""
        return None if self._settings.proxy is None else self._settings.proxy.header

    def link(self, address: str, *, is_secure: bool) -> str | None:
        """Return the link that works once, for a page that is served at HOST:PORT; None: there is a proxy instead."""
        if self._settings.link is None:
            return None
        return f"{'https' if is_secure else 'http'}://{address}/link/{self._token}"

    def redeemed(self, token: str) -> str | None:
        """Return the cookie for the browser of the one who opened the link; None: it is not the link."""
        if self._settings.link is None or self._token is None:
            return None
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self._token.encode()):
            return None
        self._token = None
        return self._cookie

    def require_known(self, sender: Sender) -> Caller:
        """Return who looks at the page.

        Raises:
            HttpRefusalError: Nobody who is known.
        """
        proxy, link = self._settings.proxy, self._settings.link
        if proxy is not None:
            account = (*proxy.account, self._name_by(proxy, sender))
        elif link is not None and self._opened_link(sender):
            account = tuple(link)
        else:
            raise self._unknown("Open the link that the gateway has shown; it works once.")
        try:
            return self._callers.named(f"page:{'/'.join(account)}", account)
        except NoAccountError:
            message = "no audience of the policy belongs to this account"
            raise self._refused(HTTPStatus.FORBIDDEN, "CALLER_WITHOUT_ACCOUNT", message) from None

    def _opened_link(self, sender: Sender) -> bool:
        shown = [each.encode("utf-8", "replace") for each in sender.shown]
        return len(shown) == 1 and hmac.compare_digest(shown[0], self._cookie.encode())

    def _name_by(self, proxy: ProxySettings, sender: Sender) -> str:
        """Return the name that the proxy states.

        Raises:
            HttpRefusalError: It is not the proxy that says so, or what it says is not one name.
        """
        names = certificate_names(sender)
        if proxy.certificate is not None and proxy.certificate not in names:
            raise self._unknown("expected the proxy that the gateway knows")
        if len(sender.shown) != 1 or not _NAME.fullmatch(sender.shown[0]):
            raise self._unknown("expected one header of the proxy that names who asks")
        try:
            return checked_segment(sender.shown[0])
        except AccountError:
            raise self._unknown("expected a name that can be an account") from None

    def _unknown(self, message: str) -> HttpRefusalError:
        return self._refused(HTTPStatus.FORBIDDEN, "CALLER_UNKNOWN", message)
