"""Options of the production deployment, with files that a test makes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.deploy.manifests import text_of
from tests.support.pki import Authority

# Each ConfigMap and its file.
FILES = {"gris-policy": "policy.yaml", "gris-budget": "budget.yaml", "gris-access": "access.yaml"}


def located(folder: Path, arguments: Sequence[str]) -> list[str]:
    """Return a service's options with the files of its pod, which are made here."""
    authority = Authority.new(folder)
    authority.server("service")
    for name, content in (("noise.key", b"k" * 32), ("address", b"redis://store:6379/0")):
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o400)
    for configuration, name in FILES.items():
        text = text_of("production", configuration, name).replace("/run/tickets", str(folder))
        (folder / name).write_text(text)
    write_ticket_key(folder)
    return [re.sub(r"=/[a-z/]+/([^/]+)$", rf"={folder}/\1", each) for each in arguments]


def write_ticket_key(folder: Path) -> None:
    """Make the key that tickets are checked with, as docs/deploying.md does."""
    content, mode = ticket_key((folder / "noise.key").read_bytes())
    (folder / "ticket.key").write_bytes(content)
    (folder / "ticket.key").chmod(mode)


@cache
def ticket_key(noise_key: bytes) -> tuple[bytes, int]:
    """Return what the command makes of a noise key, and the file's mode."""
    with TemporaryDirectory() as folder:
        given, made = Path(folder, "noise.key"), Path(folder, "ticket.key")
        given.write_bytes(noise_key)
        given.chmod(0o400)
        words = ["budget", "ticket-key", "--key-file", str(given), "--out", str(made)]
        subprocess.run([sys.executable, "-m", "gris_cli", *words], check=True, capture_output=True)
        return made.read_bytes(), made.stat().st_mode
