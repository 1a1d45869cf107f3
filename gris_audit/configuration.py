"""What was in force, for a bundle: the digests of files, who may do and see what by them, and counts of refusals.

Only a policy is copied, with its signature: it says what may be asked, and holds no secret. Other files may hold
addresses and tokens that let somebody in, so that their digests alone are kept, and of some the fields that are named
here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from pydantic import BaseModel

from budget_service.configuration.budget_file import Configuration
from dp_service.queries.errors import PolicyError
from dp_service.queries.policy import read_policy
from dp_service.server.policy_signatures import signature_file
from gris_audit.bundle import CONFIGURATION, METRICS, REFUSALS
from gris_data.errors import InputError
from gris_data.private_files import write_new
from gris_gateway.configuration import GatewayConfiguration
from gris_serving.authorisation import Access
from gris_serving.documents import read_content
from gris_serving.reloading_files import SecurityError, read_bytes

MOST_BYTES = 64 * 2**20
_TOKENS = {"issuer": True, "audience": True}
_NOTHING = dict[str, Any]()
_OF_ACCESS = {"certificates": True, "jwt": {**_TOKENS, "roles_claim": True}}
_OF_GATEWAY = {
    "identity": {"certificates": True, "jwt": {**_TOKENS, "accounts": True}},
    "audiences": True,
}
# Counters of what was refused. No service exposes since when they count.
_COUNTERS = ("gris_rpc_failures", "gris_questions", "gris_budget_units", "gris_budget_administrator_acts")


@dataclass(frozen=True)
class GivenFile:
    """A file of KIND=FILE, and what of it a bundle has beside its digest."""

    kind: str
    path: Path
    content: bytes
    kept: Any

    @staticmethod
    def read(text: str) -> GivenFile:
        """Read a file, and check that it is of its kind.

        Raises:
            InputError: The text is not of that form, or the file cannot be read or is not what its kind says.
        """
        kind, equals, name = text.partition("=")
        if not equals or not name or kind not in _KINDS:
            raise InputError(f"expected KIND=FILE, where KIND is {', '.join(_KINDS)}; got {text}", "file")
        path = Path(name)
        # What never ends, or is no text of anybody, is not read.
        if path.is_fifo() or path.is_char_device() or (path.is_file() and path.stat().st_size > MOST_BYTES):
            raise InputError(f"{path}: expected a file of at most {MOST_BYTES} bytes", "file")
        try:
            content = read_bytes(path)
            return GivenFile(kind, path, content, _KINDS[kind](path, content))
        except (SecurityError, PolicyError) as error:
            raise InputError(str(error), "file") from None

    @property
    def sha256(self) -> str:
        """The digest of its content."""
        return hashlib.sha256(self.content).hexdigest()


def write_configuration(folder: Path, texts: Iterable[str]) -> None:
    """Write what is kept of the files that KIND=FILE names. Raises InputError, as `GivenFile.read` does."""
    files, refusals = list[dict[str, Any]](), list[dict[str, Any]]()
    for given in map(GivenFile.read, texts):
        kept = given.kept
        if given.kind == "policy":
            kept = _copied(given, folder / f"policy.{len(files) + 1}.yaml")
        elif given.kind == METRICS:
            refusals.append({"source": given.path.name, "counts": given.kept})
            kept = {}
        said = {
            "kind": given.kind,
            "name": given.path.name,
            "size": len(given.content),
            "sha256": given.sha256,
        }
        files.append(said | kept)
    write_new(folder / CONFIGURATION, json.dumps(files, indent=1) + "\n")
    write_new(folder / REFUSALS, json.dumps(refusals, indent=1) + "\n")


def _copied(policy: GivenFile, copy: Path) -> dict[str, Any]:
    write_new(copy, policy.content)
    signature = signature_file(policy.path)
    if not signature.is_file():
        return {"copy": copy.name, "signature": None}
    beside, content = signature_file(copy), read_bytes(signature)
    write_new(beside, content)
    digest = hashlib.sha256(content).hexdigest()
    return {"copy": copy.name, "signature": beside.name, "signature_sha256": digest}


def _policy(path: Path, content: bytes) -> dict[str, Any]:
    read_policy(content, str(path))
    return {}


def _fields(schema: type[BaseModel], included: Any) -> Callable[[Path, bytes], dict[str, Any]]:
    def kept(path: Path, content: bytes) -> dict[str, Any]:
        return read_content(content, str(path), schema).model_dump(mode="json", include=included)

    return kept


def _console(path: Path, content: bytes) -> dict[str, Any]:
    from gris_console.configuration import ConsoleConfiguration  # noqa: PLC0415 - its libraries are an extra

    return _fields(ConsoleConfiguration, _NOTHING)(path, content)


def _metrics(path: Path, content: bytes) -> list[dict[str, Any]]:
    try:
        families = list(text_string_to_metric_families(content.decode()))
    except ValueError:
        raise SecurityError(f"{path}: expected metrics") from None
    return [
        {"counter": each.name, "labels": each.labels, "count": each.value}
        for family in families
        if family.name in _COUNTERS
        for each in family.samples
        if each.value
    ]


_KINDS: dict[str, Callable[[Path, bytes], Any]] = {
    "policy": _policy,
    "budget": _fields(Configuration, _NOTHING),
    "console": _console,
    "access": _fields(Access, _OF_ACCESS),
    "gateway": _fields(GatewayConfiguration, _OF_GATEWAY),
    METRICS: _metrics,
}
