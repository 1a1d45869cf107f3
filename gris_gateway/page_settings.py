"""What the configuration says of the page: where it is served, and how the gateway knows who looks at it."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from gris_gateway.accounts import MAX_SEGMENTS, Prefix
from gris_gateway.face_settings import FaceSettings
from gris_serving.authorisation import CertificateName
from gris_serving.documents import Strict
from gris_serving.listening import UNIX
from gris_serving.options import checked_address
from gris_serving.tls import is_loopback


def _checked_listen(text: str) -> str:
    if text.startswith(UNIX):
        if not text.startswith(f"{UNIX}/"):
            raise ValueError("expected unix:/PATH or HOST:PORT")
        return text
    return checked_address(text)


class ProxySettings(Strict):
    """A proxy that has people log in, and says who asks by a header: an account is `account` and below it the name.

    The header is taken from a Unix socket, or from the holder of `certificate` alone.
    """

    header: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9-]{0,63}$")]
    account: Prefix
    certificate: CertificateName | None = None

    @model_validator(mode="after")
    def _leaves_room(self) -> ProxySettings:
        if len(self.account) == MAX_SEGMENTS:
            raise ValueError(f"account: an account has at most {MAX_SEGMENTS} segments, the name included")
        return self


class PageSettings(FaceSettings):
    """Where the page is served.

    People come through a `proxy`, for which browsers show `address`; or one comes from this machine by a link that
    works once, and asks for the account `link`.
    """

    listen: Annotated[str, AfterValidator(_checked_listen)] = "127.0.0.1:50056"
    address: Annotated[str, Field(pattern=r"^https://[a-z0-9_.-]+(:[0-9]{1,5})?$")] | None = None
    proxy: ProxySettings | None = None
    link: Prefix | None = None

    @property
    def is_unix(self) -> bool:
        """Whether it listens on a Unix socket."""
        return self.listen.startswith(UNIX)

    @model_validator(mode="after")
    def _knows_who_asks(self) -> PageSettings:
        if (self.proxy is None) == (self.link is None):
            raise ValueError("expected one of proxy, link")
        if (self.proxy is None) != (self.address is None):
            raise ValueError("address: expected with proxy, and only then")
        if self.link is not None and (self.is_unix or not is_loopback(self.listen)):
            raise ValueError(
                "link: expected listen to be an address of this machine, such as 127.0.0.1:50056"
            )
        if self.proxy is not None and self.is_unix != (self.proxy.certificate is None):
            raise ValueError("proxy.certificate: expected where listen is HOST:PORT, and only then")
        if self.is_unix and self.tls:
            raise ValueError("tls: a Unix socket has none")
        return self
