"""Services and gateway behind TLS, all of them as loud as they can be, on data that hold markers."""

# ruff: noqa: S608  (the SQL is these tests' own)
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from pinot_connector import Credentials
from tests.support.pki import ISSUER, Authority, Issuer, uri
from tests.support.ports import free_port
from tests.support.world import copy

ACCOUNT, OTHER, ELEMENT, LITERAL = "mark-account", "mark-other", "mark-element", "mark-literal"
REQUEST, ALIAS, KEY = "mark-request", "mark_alias", "6d61726b" * 8
# Each element has a count of its own.
COUNTS = {f"{ELEMENT}-one": 98_611, f"{ELEMENT}-two": 97_143}

POLICY = """
epsilon_per: 0.5
delta: 1e-10
tables:
  visits:
    member: member_id
    measures: {distinct_members: true}
    columns:
      member_id: {type: int64}
      element: {type: string, group_by: true, delta: 1, filter: [in, not_in]}
"""
BUDGET = """
accounts:
  - path: [mark-account]
    limit: {information: 40, calls: 1}
"""
LOUD = """
import logging, runpy, sys
logging.basicConfig(level=logging.DEBUG, stream=sys.stderr, format="%(name)s %(message)s %(exc_info)s")
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


@contextmanager
def loud(module: str, words: Sequence[object], log: Path) -> Iterator[dict[str, str]]:
    """Run a server that logs all that it can, gRPC's own library too, and give what it says when it is ready."""
    command = [sys.executable, "-P", "-c", LOUD, module, *map(str, words)]
    environment = {**os.environ, "GRPC_VERBOSITY": "debug", "PYTHONASYNCIODEBUG": "1"}
    with (
        log.open("ab") as stderr,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment
        ) as running,
    ):
        assert running.stdout is not None
        try:
            yield json.loads(running.stdout.readline() or "{}")
        finally:
            running.terminate()
            rest = running.communicate(timeout=60)[0]
            log.with_suffix(".out").write_text(rest)


class Stage:
    """Services and gateway behind TLS, all of them loud, and what they and their callers say."""

    def __init__(self, folder: Path, opened: ExitStack) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.tokens: list[str] = []
        self.authority, self.issuer = Authority.new(folder), Issuer(folder)
        selected = " UNION ALL ".join(
            f"SELECT range AS member_id, '{element}' AS element FROM range({count})"
            for element, count in COUNTS.items()
        )
        copy(selected, folder / "visits.parquet")
        (folder / "policy.yaml").write_text(POLICY)
        (folder / "budget.yaml").write_text(BUDGET)
        (folder / "noise.key").write_text(KEY)
        (folder / "noise.key").chmod(0o400)
        certificate, key = self.authority.server()
        self.app = self.authority.client(uri("spiffe://x/app"), file="app")
        (folder / "access.yaml").write_text(
            f"certificates: {{'uri:spiffe://x/app': [spend, read]}}\n"
            f"jwt: {{key_file: {self.issuer.key_file}, algorithms: [ES256], issuer: {ISSUER}, audience: a}}\n"
        )
        tls = ["--tls-certificate", certificate, "--tls-key", key, "--tls-client-ca", self.authority.ca_file]
        tls += ["--access", folder / "access.yaml", "--listen", "127.0.0.1:0", "--reflection"]
        dp = ["--policy", folder / "policy.yaml", "--key-file", folder / "noise.key", *tls]
        budget = ["--config", folder / "budget.yaml", "--store", f"sqlite:{folder / 'ledger.db'}", *tls]
        self.dp = opened.enter_context(loud("dp_service", dp, folder / "dp.log"))["address"]
        self.budget = opened.enter_context(loud("budget_service", budget, folder / "budget.log"))["address"]
        ready = opened.enter_context(self._gateway("gateway", self.dp, self.budget))
        self.gateway, self.mcp = ready["address"], ready["mcp_address"]
        nowhere = f"127.0.0.1:{free_port()}"
        broken = self._gateway("broken", self.dp, nowhere)
        self.broken = opened.enter_context(broken)["address"]

    def _gateway(self, name: str, dp: str, budget: str) -> Any:
        folder, app = self.folder, self.app
        shown = f"ca_file: {app.ca_file}, certificate_file: {app.certificate_file}, key_file: {app.key_file}"
        (folder / f"{name}.yaml").write_text(f"""
listen: 127.0.0.1:0
tls: {{certificate: {folder}/server.pem, key: {folder}/server.key, client_ca: {folder}/ca.pem}}
dp: {{address: "{dp}", {shown}}}
budget: {{address: "{budget}", {shown}}}
engine: {{duckdb: {{visits: {folder}/visits.parquet}}}}
identity:
  jwt:
    {{key_file: {self.issuer.key_file}, algorithms: [ES256], issuer: {ISSUER}, audience: g,
      accounts: [{{claim: iss, equals: {ISSUER}, prefix: [{ACCOUNT}]}}]}}
mcp: {{listen: 127.0.0.1:0, tls: {{certificate: {folder}/server.pem, key: {folder}/server.key}}}}
""")
        return loud("gris_gateway", ["--config", folder / f"{name}.yaml"], folder / f"{name}.log")

    def caller(self, **claims: Any) -> Credentials:
        """Return credentials of a caller of the gateway; the token becomes a marker."""
        path = self.issuer.token_file("g", f"token-{len(self.tokens)}", sub=ACCOUNT, **claims)
        self.tokens.append(path.read_text().strip())
        return Credentials(self.app.ca_file, self.app.certificate_file, self.app.key_file, path)

    def outputs(self) -> dict[str, str]:
        """Return all that servers have written, and all that errors said to callers."""
        paths = [*self.folder.glob("*.log"), *self.folder.glob("*.out")]
        return {path.name: path.read_text(errors="replace") for path in paths} | {
            "errors": "\n".join(self.said)
        }
