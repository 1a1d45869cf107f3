"""The texts of `gateway.yaml` and `console.yaml`, in the folder of an identity, and what is read of them again."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from gris_cli.shared.identity import ALGORITHM, ANALYST, AUDIENCE, ISSUER, OWNER, ROLES

POLICY, BUDGET, GATEWAY, CONSOLE = "policy.yaml", "budget.yaml", "gateway.yaml", "console.yaml"
LOCALHOST = "localhost"
OVER_HTTP = ("mcp", "broker")
# On a machine that does other things, a ledger that is slow for a moment is not one that is gone.
SILENCE_SECONDS = 5.0
_PRACTICE = 'notice: "Practice: all rows are made up."\n'


@dataclass(frozen=True)
class Ports:
    """Where others listen: ports of this machine, 0 for any.

    Attributes:
        faces: Those of what a gateway serves beside gRPC, by the keys of its configuration.
    """

    gateway: int
    console: int
    faces: Mapping[str, int]


@dataclass(frozen=True)
class Upstream:
    """Where the services are: HOST:PORT."""

    dp: str
    budget: str
    admin: str


@dataclass(frozen=True)
class Shared:
    """What a gateway shares.

    Attributes:
        host: The name under which others reach this machine; `localhost`: nobody else does.
        tables: The file of each table, and of each pairs copy.
        account: The account of all analysts; with `each`, the part of it before an analyst's name.
        each: Whether each analyst has an account.
        faces: What is served beside gRPC, by the keys of the configuration.
        keeps: Whether releases outlive the gateway; those of practice do not.
    """

    host: str
    tables: Mapping[str, Path]
    account: tuple[str, ...]
    each: bool
    faces: Collection[str]
    keeps: bool = True

    @property
    def is_local(self) -> bool:
        """Whether only this machine is served."""
        return self.host == LOCALHOST

    def listen(self, port: int) -> str:
        """Return the address to listen on."""
        return f"{'127.0.0.1' if self.is_local else '0.0.0.0'}:{port}"  # noqa: S104 - the owner has named a host


def gateway_text(head: str, shared: Shared, upstream: Upstream, ports: Ports) -> str:
    """Return a `gateway.yaml` that begins with a comment."""
    account = "" if not shared.each else ", append: sub"
    tables = "\n".join(f"    {_text(name)}: {_text(str(path))}" for name, path in shared.tables.items())
    return f"""{head}listen: {shared.listen(ports.gateway)}
tls: {{certificate: gateway.pem, key: gateway.key}}
dp: {{address: "{upstream.dp}"}}
budget: {{address: "{upstream.budget}"}}
engine:
  duckdb:
{tables}
identity:
{_jwt()}    # Whose budget pays: that of the account that the token's claims lead to.
    accounts:
      - {{claim: {ROLES}, equals: {ANALYST}, prefix: {_text(list(shared.account))}{account}}}
{_releases(shared)}timeouts: {{budget_silence: {SILENCE_SECONDS}}}
{"".join(_face(name, shared, port) for name, port in ports.faces.items() if name in shared.faces)}"""


def console_text(head: str, shared: Shared, upstream: Upstream, ports: Ports, gateway: str) -> str:
    """Return a `console.yaml` that begins with a comment; `gateway` is the gateway's URL."""
    public = f"""public_url: https://{shared.host}:{ports.console}
tls: {{certificate: gateway.pem, key: gateway.key}}
"""
    return f"""{head}listen: {shared.listen(ports.console)}
{"" if shared.is_local else public}gateway: {{address: "{gateway}", ca_file: credentials/ca.pem}}
identity:
{_jwt()}  owners: {{claim: {ROLES}, equals: {OWNER}}}
owner:
  dp: {{address: "{upstream.dp}"}}
  budget: {{address: "{upstream.budget}"}}
  budget_admin: {{address: "{upstream.admin}"}}
{"" if shared.keeps else _PRACTICE}"""


def _jwt() -> str:
    return f"""  jwt:
    key_file: issuer.pem
    algorithms: [{ALGORITHM}]
    issuer: {ISSUER}
    audience: {AUDIENCE}
"""


def _releases(shared: Shared) -> str:
    return "releases: {file: releases.sqlite, key_file: releases.key}\n" if shared.keeps else ""


def _face(name: str, shared: Shared, port: int) -> str:
    listen = shared.listen(port)
    if shared.is_local:
        # Programs of others trust no authority of ours, and nothing leaves this machine.
        return f"{name}: {{listen: {listen}, tls: false}}\n"
    hosts = f", hosts: [{_text(shared.host)}]" if name in OVER_HTTP else ""
    return f"{name}: {{listen: {listen}{hosts}}}\n"


def _text(value: object) -> str:
    """Return a text or a list of texts as YAML reads it: JSON is YAML."""
    return json.dumps(value, ensure_ascii=False)
