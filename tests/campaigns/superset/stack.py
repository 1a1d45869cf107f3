"""Services, a gateway over some tables, and a Superset in an environment of its own, all as processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import httpx

from pinot_connector.dbapi.urls import CREDENTIALS_DIR, GATEWAYS
from pinot_connector.embedded import EmbeddedServices
from tests.support.pki import ISSUER, Authority, Issuer
from tests.support.ports import free_port
from tests.support.processes import process

AUDIENCE = "gris-gateway"
# A second user, who may use SQL Lab too.
USER = "bea"
PASSWORD = "of this check alone"  # noqa: S105 - of a Superset that lives for minutes, on this machine

BUDGET = """
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
  duckdb: {tables}
broker: {face}
postgres: {face}
timeouts: {{budget_silence: 10, budget_attempt: 6}}
identity:
  jwt:
    key_file: {issuer}
    algorithms: [ES256]
    issuer: {iss}
    audience: {audience}
    accounts:
      - {{claim: org, equals: bi, prefix: [bi], append: sub, accounts_below: true}}
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
    broker_url: str
    postgres_address: str
    issuer: Issuer
    credentials: Path

    @property
    def ca_file(self) -> Path:
        """Whom callers trust."""
        return self.credentials / "ca.pem"

    @property
    def trusting(self) -> dict[str, str]:
        """The environment by which clients in Python and Node.js, and curl, trust the gateway."""
        names = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE")
        return dict.fromkeys(names, str(self.ca_file))

    def url(self, caller: str, options: str = "") -> str:
        """Return SQLAlchemy's URL for a caller, who gets a token."""
        self.write_token(caller)
        return f"gris://{self.address}/?ca_file=ca.pem&token_file={caller}.jwt{options}"

    def pinot_url(self, caller: str) -> str:
        """Return the URL of SQLAlchemy's dialect for Pinot, for a caller whose token is in it."""
        scheme, _, place = self.broker_url.partition("://")
        user = f"{quote(f'bi/{caller}', safe='')}:{self.token(caller)}"
        return f"pinot+{scheme}://{user}@{place}/query/sql?controller={self.broker_url}"

    def postgres_url(self, caller: str, scheme: str = "postgresql") -> str:
        """Return the URL of a database of PostgreSQL, for a caller whose token is in it."""
        tls = self.broker_url.startswith("https")
        trusting = f"verify-full&sslrootcert={self.ca_file}" if tls else "disable"
        user = f"{quote(f'bi/{caller}', safe='')}:{self.token(caller)}"
        return f"{scheme}://{user}@{self.postgres_address}/gris?sslmode={trusting}"

    def token(self, caller: str, *, expires_at: int | None = None) -> str:
        """Return a caller's token; by default it holds for two hours."""
        end = int(time.time()) + 7200 if expires_at is None else expires_at
        return self.issuer.token(AUDIENCE, org="bi", sub=caller, exp=end)

    def write_token(self, caller: str, *, expires_at: int | None = None) -> None:
        """Write a caller's token."""
        (self.credentials / f"{caller}.jwt").write_text(self.token(caller, expires_at=expires_at))

    def engine_queries(self) -> int:
        """Return how many queries the engine has run."""
        with urllib.request.urlopen(f"http://{self.metrics_address}/metrics") as answer:
            text = answer.read().decode()
        counted = re.findall(r'gris_engine_calls_total\{[^}]*step="run"[^}]*\} (\d+)', text)
        return sum(int(each) for each in counted)


@contextmanager
def running_stack(
    folder: Path, write_tables: Callable[[Path], dict[str, Path]], *, with_tls: bool = False
) -> Iterator[Stack]:
    """Run the services and the gateway.

    Args:
        folder: Where all of it goes; it is made.
        write_tables: Writes policy.yaml into a folder, and returns the files of its tables.
        with_tls: Whether clients of Pinot and PostgreSQL are served with TLS.
    """
    folder.mkdir()
    (folder / "budget.yaml").write_text(BUDGET)
    authority, issuer = Authority.new(folder), Issuer(folder)
    certificate, key = authority.server()
    credentials = folder / "credentials"
    credentials.mkdir()
    (credentials / "ca.pem").write_bytes(authority.ca_file.read_bytes())
    tables = {name: str(path) for name, path in write_tables(folder).items()}
    face = {"listen": "127.0.0.1:0"} | ({} if with_tls else {"tls": False})
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
                # JSON is YAML.
                tables=json.dumps(tables),
                face=json.dumps(face),
                issuer=issuer.key_file,
                iss=ISSUER,
                audience=AUDIENCE,
            )
        )
        options = ["--config", config, "--metrics-listen", "127.0.0.1:0"]
        with process("gris_gateway", options, folder / "gateway.log") as ready:
            url = f"http{'s' * with_tls}://{ready['broker_address']}"
            addresses = (ready["address"], ready["metrics_address"], url, ready["postgres_address"])
            yield Stack(*addresses, issuer, credentials)


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
        **stack.trusting,
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


def draw(programs: Path, chromium: Path, pictures: Path, url: str, charts: dict[str, int]) -> None:
    """Have a Chromium draw charts of a running Superset, by their ids, into a folder."""
    pictures.mkdir(parents=True, exist_ok=True)
    drawing = Path(__file__).with_name("screenshots.py")
    subprocess.run(
        [programs / "python", drawing, chromium, url, pictures, json.dumps(charts)],
        env={**os.environ, "SUPERSET_PASSWORD": PASSWORD},
        check=True,
    )
