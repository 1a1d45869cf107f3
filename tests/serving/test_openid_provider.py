"""Tokens of a real OpenID provider, npm's oidc-provider: found by discovery, and followed when its keys change."""

from __future__ import annotations

import base64
import json
import ssl
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from gris_serving.published_keys import RefreshLimits
from gris_serving.tokens import JwtSettings, TokenError, TokenVerifier
from tests.support.key_server import until
from tests.support.openid_provider import running
from tests.support.pki import Authority, Issuer

CREDENTIALS = base64.b64encode(b"ana:secret").decode()


def issued(authority: Authority, issuer: str) -> str:
    """Return a token of the provider."""
    request = urllib.request.Request(  # noqa: S310 - the test's own server
        f"{issuer}/token",
        b"grant_type=client_credentials&scope=ask",
        {"Authorization": f"Basic {CREDENTIALS}"},
    )
    context = ssl.create_default_context(cafile=authority.ca_file)
    with urllib.request.urlopen(request, context=context) as answer:  # noqa: S310 - as above
        return str(json.load(answer)["access_token"])


@pytest.mark.usefixtures("starts_processes")
def test_the_keys_of_a_real_provider_are_followed(tmp_path: Path) -> None:
    """While it is down the last ones count; a new key is believed and an old one is not, once it publishes them so."""
    authority = Authority.new(tmp_path)
    files = authority.server()
    first, second = Issuer(tmp_path, key_id="first"), Issuer(tmp_path, key_id="second")
    with running(authority, files, first) as issuer:
        stated = {"discover": True, "ca_file": str(authority.ca_file), "algorithms": ["ES256"]}
        settings = JwtSettings.model_validate({**stated, "issuer": issuer, "audience": "gris"})
        verifier = TokenVerifier(settings, limits=RefreshLimits(early_seconds=0.1, retry_seconds=0.1))
        verifier.start()

        def accepts(token: str) -> bool:
            try:
                return bool("ana" == verifier.claims(token)["sub"])
            except TokenError:
                return False

        old = issued(authority, issuer)
        until(lambda: accepts(old))
    assert accepts(old)
    with running(authority, files, second, port=urlsplit(issuer).port or 0) as same:
        assert issuer == same
        new = issued(authority, issuer)
        until(lambda: accepts(new))
        assert not accepts(old)
