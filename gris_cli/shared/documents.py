"""The text of `gateway.yaml`, in the folder of an identity."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from gris_cli.shared.identity import ALGORITHM, ANALYST, AUDIENCE, ISSUER, ROLES

GATEWAY = "gateway.yaml"
# On a machine that does other things, a ledger that is slow for a moment is not one that is gone.
SILENCE_SECONDS = 5.0


@dataclass(frozen=True)
class Ports:
    """Where others listen: ports of this machine, 0 for any.

    Attributes:
        faces: Those of what a gateway serves beside gRPC, by the keys of its configuration.
    """

    gateway: int
    faces: Mapping[str, int]


@dataclass(frozen=True)
class Upstream:
    """Where the services are: HOST:PORT."""

    dp: str
    budget: str


@dataclass(frozen=True)
class Shared:
    """What a gateway shares with this machine.

    Attributes:
        tables: The file of each table.
        account: The account that pays.
        faces: What is served beside gRPC, by the keys of the configuration.
    """

    tables: Mapping[str, Path]
    account: tuple[str, ...]
    faces: Collection[str]


def gateway_text(head: str, shared: Shared, upstream: Upstream, ports: Ports) -> str:
    """Return a `gateway.yaml` that begins with a comment."""
    tables = "\n".join(f"    {_text(name)}: {_text(str(path))}" for name, path in shared.tables.items())
    return f"""{head}listen: 127.0.0.1:{ports.gateway}
tls: {{certificate: gateway.pem, key: gateway.key}}
dp: {{address: "{upstream.dp}"}}
budget: {{address: "{upstream.budget}"}}
engine:
  duckdb:
{tables}
identity:
  jwt:
    key_file: issuer.pem
    algorithms: [{ALGORITHM}]
    issuer: {ISSUER}
    audience: {AUDIENCE}
    # Whose budget pays: that of the account that the token's claims lead to.
    accounts:
      - {{claim: {ROLES}, equals: {ANALYST}, prefix: {_text(list(shared.account))}}}
releases: {{file: releases.sqlite, key_file: releases.key}}
timeouts: {{budget_silence: {SILENCE_SECONDS}}}
{"".join(_face(name, shared, port) for name, port in ports.faces.items() if name in shared.faces)}"""


def _face(name: str, shared: Shared, port: int) -> str:
    # Programs of others trust no authority of ours, and nothing leaves this machine.
    link = f", link: {_text(list(shared.account))}" if name == "page" else ""
    return f"{name}: {{listen: 127.0.0.1:{port}, tls: false{link}}}\n"


def _text(value: object) -> str:
    """Return a text or a list of texts as YAML reads it: JSON is YAML."""
    return json.dumps(value, ensure_ascii=False)
