"""Services, a gateway over the example data, and a Superset in an environment of its own, all as processes."""

from __future__ import annotations

import os
import re
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq

from pinot_connector.embedded import EmbeddedServices
from pinot_connector.sqlalchemy.urls import CREDENTIALS_DIR, GATEWAYS
from tests.support.pki import ISSUER, Authority, Issuer
from tests.support.processes import process
from tests.support.world import COFACTS, free_port

AUDIENCE = "gris-gateway"
EXAMPLES = COFACTS.parents[1]
# A second user, who may use SQL Lab too.
USER = "bea"
PASSWORD = "of this check alone"  # noqa: S105 - of a Superset that lives for minutes, on this machine

BUDGET = """
create_at_first_use: true
accounts:
  - path: [bi]
    limit: {information: 100000, calls: 1000}
  - path: [bi, poor]
    limit: {information: 5, calls: 1}
  - path: [bi, "*"]
    limit: {information: 3000, calls: 30}
  - path: [bi, "*", "*"]
    limit: {information: 300, calls: 5}
"""
GATEWAY = """
listen: 127.0.0.1:0
tls: {{certificate: {certificate}, key: {key}}}
dp: {{address: "{dp}"}}
budget: {{address: "{budget}"}}
engine:
  duckdb: {{cofacts_feedback: {examples}/cofacts/feedback.parquet,
            online_retail: {examples}/online_retail/purchases.parquet,
            strangers: {strangers}}}
identity:
  jwt:
    key_file: {issuer}
    algorithms: [ES256]
    issuer: {iss}
    audience: {audience}
    accounts:
      - {{claim: org, equals: bi, prefix: [bi], append: sub, accounts_below: true}}
"""
# What strangers may have called an element: markup, formulas of spreadsheets, marks that turn the direction of writing.
STRANGERS = (
    '<img src="https://stranger.invalid/seen.png" alt="a stranger">',
    "<script>document.title = 'a stranger'</script>",
    '=HYPERLINK("http://stranger.invalid")',
    "@SUM(1)",
    "-2+3",
    "abc\N{RIGHT-TO-LEFT OVERRIDE}gpj.exe",
    "\N{HEBREW LETTER ALEF}\N{HEBREW LETTER BET} 12",
    "$\\frac{1}{$ {{ 7 * 7 }}",
)
OF_STRANGERS = """
  strangers:
    member: member_id
    measures: {distinct_members: true}
    columns:
      member_id: {type: int64}
      name: {type: string, group_by: true, delta: 1}
"""
CONFIGURATION = """
SECRET_KEY = "a key of this check alone, which nothing else uses"
SQLALCHEMY_DATABASE_URI = "sqlite:///{folder}/superset.db"
WTF_CSRF_ENABLED = False
TALISMAN_ENABLED = False
RATELIMIT_ENABLED = False
# The check may take longer than the quarter of an hour that a session of the REST API lasts by default.
JWT_ACCESS_TOKEN_EXPIRES = 86400
FEATURE_FLAGS = {{"ESTIMATE_QUERY_COST": True, "CACHE_IMPERSONATION": True}}
"""


@dataclass(frozen=True)
class Stack:
    """A gateway whose callers' tokens are in one folder, and what its engine has been asked."""

    address: str
    metrics_address: str
    issuer: Issuer
    credentials: Path

    def url(self, caller: str, options: str = "") -> str:
        """Return SQLAlchemy's URL for a caller, who gets a token."""
        self.write_token(caller)
        return f"gris://{self.address}/?ca_file=ca.pem&token_file={caller}.jwt{options}"

    def write_token(self, caller: str, *, expires_at: int | None = None) -> None:
        """Write a caller's token; by default it holds for two hours."""
        end = int(time.time()) + 7200 if expires_at is None else expires_at
        token = self.issuer.token(AUDIENCE, org="bi", sub=caller, exp=end)
        (self.credentials / f"{caller}.jwt").write_text(token)

    def engine_queries(self) -> int:
        """Return how many queries the engine has run."""
        with urllib.request.urlopen(f"http://{self.metrics_address}/metrics") as answer:
            text = answer.read().decode()
        counted = re.findall(r'gris_engine_calls_total\{[^}]*step="run"[^}]*\} (\d+)', text)
        return sum(int(each) for each in counted)


@contextmanager
def running_stack(folder: Path) -> Iterator[Stack]:
    """Run the services and the gateway."""
    folder.mkdir()
    (folder / "budget.yaml").write_text(BUDGET)
    authority, issuer = Authority.new(folder), Issuer(folder)
    certificate, key = authority.server()
    credentials = folder / "credentials"
    credentials.mkdir()
    (credentials / "ca.pem").write_bytes(authority.ca_file.read_bytes())
    _write_strangers(folder)
    with EmbeddedServices(
        policy=folder / "policy.yaml", budget_config=folder / "budget.yaml", directory=folder / "state"
    ) as services:
        config = folder / "gateway.yaml"
        config.write_text(
            GATEWAY.format(
                certificate=certificate,
                key=key,
                dp=services.dp_address,
                budget=services.budget_address,
                examples=EXAMPLES,
                strangers=folder / "strangers.parquet",
                issuer=issuer.key_file,
                iss=ISSUER,
                audience=AUDIENCE,
            )
        )
        options = ["--config", config, "--metrics-listen", "127.0.0.1:0"]
        with process("gris_gateway", options, folder / "gateway.log") as ready:
            yield Stack(ready["address"], ready["metrics_address"], issuer, credentials)


def _write_strangers(folder: Path) -> None:
    """Write a table of hostile names, each of 400 members or more, and a policy that has it too."""
    (folder / "policy.yaml").write_text((EXAMPLES / "policy.yaml").read_text() + OF_STRANGERS)
    rows = [(member, name) for place, name in enumerate(STRANGERS) for member in _members(place)]
    columns = {"member_id": [member for member, _ in rows], "name": [name for _, name in rows]}
    pq.write_table(pa.table(columns), folder / "strangers.parquet")


def _members(place: int) -> range:
    return range(place * 10_000, place * 10_000 + 400 + 100 * (len(STRANGERS) - place))


@contextmanager
def running_superset(programs: Path, folder: Path, stack: Stack) -> Iterator[str]:
    """Run a new Superset with an administrator, and give its URL.

    Args:
        programs: The folder of the programs of the environment that has Superset.
        folder: Where its metadata and its log go.
        stack: Whose gateway is the only one, and whose folder of tokens the only one, that URLs may name.
    """
    folder.mkdir()
    (folder / "superset_config.py").write_text(CONFIGURATION.format(folder=folder))
    environment = {
        **os.environ,
        "SUPERSET_CONFIG_PATH": str(folder / "superset_config.py"),
        "FLASK_APP": "superset",
        CREDENTIALS_DIR: str(stack.credentials),
        GATEWAYS: stack.address,
    }
    superset, log, port = programs / "superset", folder / "superset.log", free_port()
    admin, user = _named("admin"), [*_named(USER), "--role", "Admin"]
    steps = (["db", "upgrade"], ["fab", "create-admin", *admin], ["init"], ["fab", "create-user", *user])
    with log.open("ab") as output:
        for command in steps:
            subprocess.run([superset, *command], env=environment, stdout=output, stderr=output, check=True)
        serving = subprocess.Popen(
            [superset, "run", "--port", str(port), "--with-threads"],
            env=environment,
            stdout=output,
            stderr=output,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_for(url, log)
            yield url
        finally:
            serving.terminate()
            serving.wait(timeout=30)


def _named(name: str) -> list[str]:
    """Return the options that name a user of Superset."""
    named = {"username": name, "firstname": "a", "lastname": "b", "email": f"{name}@example.org"}
    return [word for option, value in named.items() for word in (f"--{option}", value)] + [
        "--password",
        PASSWORD,
    ]


def _wait_for(url: str, log: Path) -> None:
    for _ in range(240):
        try:
            if httpx.get(f"{url}/health").status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            time.sleep(0.5)
    raise TimeoutError(f"Superset does not answer; see {log}")
