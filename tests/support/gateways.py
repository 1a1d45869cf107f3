"""A gateway as a process, before both services, for everybody who may and may not call it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.app.v1 import app_pb2_grpc

from pinot_connector.channels import open_channel
from pinot_connector.endpoints import Credentials, Endpoint
from tests.support.catalogues import catalogue_programs
from tests.support.pki import ISSUER, Authority, Issuer, email, uri
from tests.support.processes import process
from tests.support.programs import is_hidden
from tests.support.rings import needs
from tests.support.world import COFACTS, World, write_growing, write_small

AUDIENCE = "gris-gateway"

CONFIGURATION = """
listen: 127.0.0.1:0
reflection: true
tls: {{certificate: {certificate}, key: {key}, client_ca: {ca}}}
dp: {{address: "{dp}"}}
budget: {{address: "{budget}"}}
engine:
  duckdb: {{feedback: {feedback}, small: {small}, wide: {wide}, growing: {growing}}}
identity:
  certificates:
    "uri:spiffe://example.org/ana": [app, acme, ana]
    "uri:spiffe://example.org/acme": {{account: [app, acme], accounts_below: true}}
    "email:hasty@example.org": [app, hasty]
    "email:poor@example.org": [alone, one]
    "email:unknown@example.org": [nowhere]
    "uri:spiffe://example.org/wide": [app, acme]
    "uri:spiffe://example.org/two": [app, two]
    "email:two@example.org": [app, three]
  jwt:
    key_file: {issuer}
    algorithms: [ES256]
    issuer: {iss}
    audience: {audience}
    accounts:
      - {{claim: org, equals: acme, prefix: [app, acme], append: sub}}
      - {{claim: org, equals: globex, prefix: [app, globex]}}
      - {{claim: org, equals: notebooks, prefix: [app, notebooks], append: sub, accounts_below: true}}
history: {{per_account: 50}}
mcp: {{listen: 127.0.0.1:0, tls: {{certificate: {certificate}, key: {key}}}, origins: ["https://pages.example.org"]}}
broker: {{listen: 127.0.0.1:0, tls: false}}
postgres: {{listen: 127.0.0.1:0, tls: {{certificate: {certificate}, key: {key}}}{catalogue}}}
limits: {{per_second: 200, burst: 400, concurrent: 64}}
timeouts: {{budget_silence: 10, budget_attempt: 6}}
"""

_names = itertools.count()


@dataclass(frozen=True)
class GatewayWorld:
    """A running gateway and who calls it."""

    address: str
    authority: Authority
    issuer: Issuer
    folder: Path
    services: World
    metrics_address: str = ""
    mcp_address: str = ""
    broker_address: str = ""
    postgres_address: str = ""
    _nobody: list[Credentials] = field(default_factory=list)

    @property
    def dp(self) -> str:
        """The address of dp_service."""
        return self.services.dp

    @property
    def budget(self) -> str:
        """The address of budget_service."""
        return self.services.budget

    @property
    def nobody(self) -> Credentials:
        """A certificate that the handshake accepts and no rule knows."""
        if not self._nobody:
            self._nobody.append(self.authority.client(email("nobody@example.org"), file="nobody"))
        return self._nobody[0]

    def by_token(self, *, audience: str = AUDIENCE, **claims: Any) -> Credentials:
        """Return credentials with a token of these claims."""
        path = self.issuer.token_file(audience, f"token-{next(_names)}", **claims)
        return self.with_token(path)

    def with_token(self, path: Path) -> Credentials:
        """Return credentials with the token in a file."""
        known = self.nobody
        return Credentials(known.ca_file, known.certificate_file, known.key_file, path)

    def analyst(self, name: str = "") -> Credentials:
        """Return credentials of an analyst of acme; a new one unless named."""
        return self.by_token(org="acme", sub=name or f"analyst-{next(_names)}")

    def channel(self, credentials: Credentials) -> grpc.aio.Channel:
        """Open a channel."""
        return open_channel(Endpoint(self.address, credentials))


def stub_of(channel: grpc.aio.Channel) -> Any:
    """Return a stub."""
    return app_pb2_grpc.PrivateQueryServiceStub(channel)


@pytest.fixture(scope="session")
@needs("process")
def gateway(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayWorld]:
    """Run a gateway to the services of all tests, with a table of its own that no other test changes."""
    folder = tmp_path_factory.mktemp("gateway")
    write_small(folder / "small.parquet", 1000)
    (folder / "wide.parquet").symlink_to(world.tables["wide"])
    authority, issuer = Authority.new(folder), Issuer(folder)
    config = write_configuration(
        folder, authority, issuer, world.dp, world.budget, catalogue=not is_hidden("postgres")
    )
    options = ["--config", config, "--metrics-listen", "127.0.0.1:0"]
    with process("gris_gateway", options, folder / "gateway.log") as ready:
        yield GatewayWorld(
            *(ready["address"], authority, issuer, folder, world),
            metrics_address=ready["metrics_address"],
            mcp_address=ready["mcp_address"],
            broker_address=ready["broker_address"],
            postgres_address=ready["postgres_address"],
        )


def write_configuration(
    folder: Path, authority: Authority, issuer: Issuer, dp: str, budget: str, *, catalogue: bool = False
) -> Path:
    """Write the gateway's configuration; a catalogue is a PostgreSQL that starts with it."""
    certificate, key = authority.server()
    write_growing(folder / "growing.parquet", members=1000)
    path = folder / "gateway.yaml"
    path.write_text(
        CONFIGURATION.format(
            certificate=certificate,
            key=key,
            ca=authority.ca_file,
            dp=dp,
            budget=budget,
            feedback=COFACTS,
            small=folder / "small.parquet",
            wide=folder / "wide.parquet",
            growing=folder / "growing.parquet",
            issuer=issuer.key_file,
            iss=ISSUER,
            audience=AUDIENCE,
            catalogue="" if catalogue else ", catalogue: false",
        )
    )
    return path


@pytest.fixture
def ana(gateway: GatewayWorld) -> Credentials:
    """Return Ana's certificate."""
    return gateway.authority.client(uri("spiffe://example.org/ana"), file="ana")


@pytest.fixture(scope="session")
@needs("postgres")
def programs_of_postgres() -> None:
    """Skip where there is no PostgreSQL for a catalogue."""
    if catalogue_programs() is None:
        pytest.skip("PostgreSQL is missing: deploy/test-servers")
