"""What was in force, for a bundle: the digests of files, who may do and see what by them, and counts of refusals.

Only a policy is copied, with its signature: it says what may be asked, and holds no secret. Other files may hold
addresses and tokens that let somebody in, so that their digests alone are kept, and of some the fields that are named
here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from pydantic import BaseModel

from budget_service.configuration.budget_file import Configuration
from dp_service.queries.errors import PolicyError
from dp_service.queries.policy import read_policy
from dp_service.server.policy_signatures import signature_file
from gris_cli.audit.bundle import CONFIGURATION, REFUSALS
from gris_cli.shared.private_files import write_new
from gris_data.errors import InputError
from gris_gateway.configuration import GatewayConfiguration
from gris_serving.authorisation import Access
from gris_serving.documents import read_content
from gris_serving.reloading_files import SecurityError, read_bytes

_TOKENS = {"issuer": True, "audience": True}
_NOTHING = dict[str, Any]()
_OF_ACCESS = {"certificates": True, "jwt": {**_TOKENS, "roles_claim": True}}
_OF_GATEWAY = {
    "identity": {"certificates": True, "jwt": {**_TOKENS, "accounts": True}},
    "audiences": True,
}
# Counters of what was refused. No service exposes since when they count.
_COUNTERS = ("gris_rpc_failures", "gris_questions", "gris_budget_units", "gris_budget_administrator_acts")


@dataclass
class _Written:
    """What is written of the files: about each, and the counts of refusals."""

    folder: Path
    files: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[dict[str, Any]] = field(default_factory=list)


def write_configuration(folder: Path, texts: Iterable[str]) -> None:
    """Write what is kept of the files that KIND=FILE names.

    Raises:
        InputError: One is not of that form, cannot be read, or is not what its kind says.
    """
    written = _Written(folder)
    for text in texts:
        kind, equals, name = text.partition("=")
        if not equals or not name or kind not in _KINDS:
            raise InputError(f"expected KIND=FILE, where KIND is {', '.join(_KINDS)}; got {text}", "file")
        try:
            content = read_bytes(Path(name))
            kept = _KINDS[kind](written, Path(name), content)
        except (SecurityError, PolicyError) as error:
            raise InputError(str(error), "file") from None
        digest = hashlib.sha256(content).hexdigest()
        written.files.append(
            {"kind": kind, "name": Path(name).name, "size": len(content), "sha256": digest, **kept}
        )
    write_new(folder / CONFIGURATION, json.dumps(written.files, indent=1) + "\n")
    write_new(folder / REFUSALS, json.dumps(written.refusals, indent=1) + "\n")


def _policy(written: _Written, path: Path, content: bytes) -> dict[str, Any]:
    read_policy(content, str(path))
    name = f"policy.{len(written.files) + 1}.yaml"
    write_new(written.folder / name, content)
    signature = signature_file(path)
    if not signature.is_file():
        return {"copy": name, "signature": None}
    copy = signature_file(written.folder / name)
    write_new(copy, read_bytes(signature))
    return {"copy": name, "signature": copy.name}


def _fields(schema: type[BaseModel], included: Any) -> Callable[[_Written, Path, bytes], dict[str, Any]]:
    def kept(_written: _Written, path: Path, content: bytes) -> dict[str, Any]:
        return read_content(content, str(path), schema).model_dump(mode="json", include=included)

    return kept


def _console(written: _Written, path: Path, content: bytes) -> dict[str, Any]:
    # It needs libraries that nothing else here does.
    from gris_console.configuration import ConsoleConfiguration

    return _fields(ConsoleConfiguration, _NOTHING)(written, path, content)


def _metrics(written: _Written, path: Path, content: bytes) -> dict[str, Any]:
    try:
        families = list(text_string_to_metric_families(content.decode()))
    except ValueError:
        raise SecurityError(f"{path}: expected metrics") from None
    counts = [
        {"counter": each.name, "labels": each.labels, "count": each.value}
        for family in families
        if family.name in _COUNTERS
        for each in family.samples
        if each.value
    ]
    written.refusals.append({"source": path.name, "counts": counts})
    return {}


_KINDS: dict[str, Callable[[_Written, Path, bytes], dict[str, Any]]] = {
    "policy": _policy,
    "budget": _fields(Configuration, _NOTHING),
    "console": _console,
    "access": _fields(Access, _OF_ACCESS),
    "gateway": _fields(GatewayConfiguration, _OF_GATEWAY),
    "metrics": _metrics,
}
