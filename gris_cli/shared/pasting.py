"""What somebody pastes: the address for SQLAlchemy, a link to the page, an agent's configuration, and a command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from gris_cli.shared.identity import Identity, Person


@dataclass(frozen=True)
class Pasted:
    """Where everything is, for somebody with a token.

    Attributes:
        person: Whose token programs and agents send.
        gateway: The gateway, gris://HOST:PORT.
        faces: HOST:PORT of what is served beside gRPC, by the keys of the gateway's configuration.
        page: The link that opens the page once; empty: there is none.
        question: A first question: options of `gris ask`.
    """

    identity: Identity
    person: Person
    gateway: str
    faces: Mapping[str, str]
    page: str
    question: str

    @property
    def sqlalchemy(self) -> str:
        """The URL; its files are names in the folder of credentials."""
        return f"{self.gateway}/?ca_file={self.identity.authority.name}&token_file={self._token.name}"

    @property
    def agent(self) -> dict[str, Any] | None:
        """What an agent's program is configured by; None: agents are not served."""
        if (face := self.faces.get("mcp")) is None:
            return None
        url = f"http://{face}/mcp"
        server = {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {self._written_token}"}}
        return {"mcpServers": {"gris": server}}

    @property
    def pinot(self) -> str:
        """The URL for Pinot's dialect of SQLAlchemy; empty: its clients are not served."""
        if (face := self.faces.get("broker")) is None:
            return ""
        # "-" is the account that the token leads to.
        user = f"-:{self._written_token}"
        return f"pinot+http://{user}@{face}/query/sql?controller=http://{face}"

    @property
    def postgres(self) -> str:
        """The URL for clients of PostgreSQL; empty: they are not served."""
        if (face := self.faces.get("postgres")) is None:
            return ""
        return f"postgresql://-:{self._written_token}@{face}/gris"

    @property
    def ask(self) -> str:
        """A first question, from any directory."""
        files = f"--ca-file {_word(self.identity.authority)} --token-file {_word(self._token)}"
        return f"gris {files} ask --gateway {self.gateway} {self.question}"

    @property
    def _written_token(self) -> str:
        return self._token.read_text(encoding="ascii").strip()

    @property
    def _token(self) -> Path:
        return self.identity.token(self.person)

    def plain(self) -> dict[str, Any]:
        """Return all of it in terms of JSON."""
        return {
            "gateway": self.gateway,
            "sqlalchemy": {
                "url": self.sqlalchemy,
                "GRIS_CREDENTIALS_DIR": str(self.identity.credentials.resolve()),
            },
            "page": self.page or None,
            "mcp": self.agent,
            "pinot": self.pinot or None,
            "postgres": self.postgres or None,
            "ask": self.ask,
        }

    def print(self) -> None:
        """Print it; no line is broken, for each is to be copied."""
        typer.echo("\nPaste:")
        for label, text in self._lines():
            typer.echo(f"  {label:<12}{text}")

    def _lines(self) -> Iterator[tuple[str, str]]:
        yield "SQLAlchemy", self.sqlalchemy
        yield "", f"with GRIS_CREDENTIALS_DIR={_word(self.identity.credentials)}"
        missing = "not served: pip install 'gris-dp[{}]'"
        yield "a browser", self.page or missing.format("page")
        if self.page:
            yield "", "a link that works once"
        yield "agents", json.dumps(self.agent) if self.agent else missing.format("mcp")
        yield "Pinot", self.pinot or missing.format("broker")
        yield "PostgreSQL", self.postgres or missing.format("postgres-wire")
        yield "a shell", self.ask


def _word(path: Path) -> str:
    return shlex.quote(str(path.resolve()))
