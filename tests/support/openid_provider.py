"""A real OpenID provider, npm's oidc-provider, as a process."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jwt
import pytest

from tests.support.pki import Authority, Issuer

PROVIDER = Path(__file__).with_name("openid_provider.mjs")
MODULES = Path(__file__).parents[2] / "node_modules"
CLIENT, SECRET = "console", "a secret/with: signs"


@contextmanager
def running(
    authority: Authority,
    files: tuple[Path, Path],
    *keys: Issuer,
    port: int = 0,
    console: str = "https://console.example.org",
) -> Iterator[str]:
    """Run the provider, which signs with the first of its keys, or skip the test; give its issuer.

    Args:
        authority: Has a folder for its keys.
        files: Its certificate and its key.
        keys: Its keys.
        port: Where it listens; 0: anywhere.
        console: The address of the console whose people log in there.
    """
    if shutil.which("node") is None or not (MODULES / "oidc-provider").is_dir():
        pytest.skip("needs Node.js and oidc-provider: make test-servers installs it")
    private = [
        json.loads(jwt.algorithms.ECAlgorithm.to_jwk(each.key)) | {"kid": each.key_id} for each in keys
    ]
    path = authority.folder / "private.jwks"
    path.write_text(json.dumps({"keys": private}))
    command = ["node", str(PROVIDER), *map(str, (*files, path, port, console))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
