"""The clients of Pinot and PostgreSQL: how each is started, what it has no call for, and what has to be installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.campaigns.clients.questions import DRIVERS

HERE = Path(__file__).parent
SECONDS = 120
"""How long a client may take for everything: it needs some ten."""
METADATA, PARAMETERS = frozenset(("tables", "columns")), frozenset(("parameter",))
OF_POSTGRES = frozenset(("list", "days"))
"""Steps that Pinot's clients do not have: its protocol knows no lists and no times."""


@dataclass(frozen=True)
class Client:
    """A client in one of its ways to connect.

    Attributes:
        name: What the table calls it.
        caller: Whose account it uses.
        command: The command line, without the file of what is asked.
        lacks: Steps for which it has no call.
        is_plain: Whether it forgets the scheme of the brokers that a controller names, and so knows no TLS.
        is_of_postgres: Whether it is a client of PostgreSQL.
    """

    name: str
    caller: str
    command: tuple[object, ...]
    lacks: frozenset[str] = frozenset()
    is_plain: bool = False
    is_of_postgres: bool = False

    @property
    def skips(self) -> frozenset[str]:
        """The steps that it does not have."""
        return self.lacks | (frozenset() if self.is_of_postgres else OF_POSTGRES)

    def printed(self, file: Path, trusting: Mapping[str, str]) -> str:
        """Run it, and return the lines that it prints; none if it does not end.

        Args:
            file: What is asked.
            trusting: The environment by which clients trust the gateway's authority.
        """
        command, environment = [*map(str, self.command), str(file)], {**os.environ, **trusting}
        try:
            run = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            print(f"{self.name}: {error}", file=sys.stderr)
            return ""
        if run.returncode:
            print(f"{self.name}: {run.stderr}", file=sys.stderr)
        return run.stdout


def clients(folder: Path) -> Iterator[Client | str]:
    """Yield each client, or what has to be installed for it.

    Args:
        folder: What install.sh has installed.
    """
    yield from _of_python(folder / "python")
    yield from _of_java(folder / "java")
    yield from _of_node(folder / "node/node_modules")
    yield from _curl()
    yield from _psql()
    yield from _of_go(folder / "go/ask")
    yield Client(
        "requests of pinot-client-go",
        "go",
        (sys.executable, HERE / "by_go.py"),
        lacks=frozenset(("columns",)) | PARAMETERS,
    )


def _of_python(folder: Path) -> Iterator[Client | str]:
    packages = folder.glob("lib/*/site-packages/*.dist-info")
    versions = dict(each.stem.replace("_binary", "").rsplit("-", 1) for each in packages)
    if "pinotdb" not in versions:
        yield "pinotdb, psycopg, psycopg2, asyncpg: install.sh installs them"
        return
    named = {name: f"{name} {version}" for name, version in versions.items()}
    command = (folder / "bin/python", HERE / "by_python.py")
    yield Client(named["pinotdb"], "pinotdb", (*command, "pinotdb"), lacks=METADATA)
    through = f"{named['sqlalchemy'].replace('sqla', 'SQLA')}, pandas"
    yield Client(f"{named['pinotdb']}, {through}", "sqlalchemy", (*command, "sqlalchemy:pinot"))
    for driver, way in (("psycopg", "dbapi"), ("psycopg2", "dbapi"), ("asyncpg", "asyncpg")):
        yield Client(named[driver], driver, (*command, f"{way}:{driver}"), is_of_postgres=True)
    for driver in DRIVERS:
        name, caller = f"{named[driver]}, {through}", f"sqlalchemy-{driver}"
        yield Client(name, caller, (*command, f"sqlalchemy:{driver}"), is_of_postgres=True)


def _of_java(folder: Path) -> Iterator[Client | str]:
    found = {each.stem.rpartition("-")[0]: each.stem.rpartition("-")[2] for each in folder.glob("*.jar")}
    if "pinot-jdbc-client" not in found or shutil.which("javac") is None:
        yield "pinot-jdbc-client, pinot-java-client, pgjdbc: deploy/test-servers installs Java and Maven"
        return
    version = found["pinot-jdbc-client"]
    command = ("java", "-cp", f"{folder}/*", HERE / "Main.java")
    yield Client(f"pinot-jdbc-client {version}", "jdbc", (*command, "jdbc"))
    for way in ("fromController", "fromHostList"):
        yield Client(f"pinot-java-client {version}, {way}", f"java-{way}", (*command, way), lacks=METADATA)
    for way in ("extended", "simple"):
        name = f"pgjdbc {found['postgresql']}, {way} queries"
        yield Client(name, f"pgjdbc-{way}", (*command, way), is_of_postgres=True)


def _of_node(folder: Path) -> Iterator[Client | str]:
    package = folder / "pinot-client/package.json"
    if not package.exists() or shutil.which("node") is None:
        yield "pinot-client, pg, postgres.js: deploy/test-servers installs npm"
        return
    node, version = ("env", f"NODE_PATH={folder}", "node"), _version(package)
    for way in ("fromController", "fromHostList"):
        yield Client(
            f"pinot-client {version} of npm, {way}",
            f"node-{way}",
            (*node, HERE / "client.cjs", way),
            lacks=METADATA | PARAMETERS,
            is_plain=way == "fromController",
        )
    for name in ("pg", "postgres"):
        called = f"{name} {_version(folder / name / 'package.json')} of npm"
        yield Client(called, f"node-{name}", (*node, HERE / "pg.cjs", name), is_of_postgres=True)


def _version(package: Path) -> str:
    version: str = json.loads(package.read_text())["version"]
    return version


def _curl() -> Iterator[Client | str]:
    if shutil.which("curl") is None:
        yield "curl: install it"
        return
    version = _said_version("curl")
    yield Client(f"curl {version}", "curl", (sys.executable, HERE / "by_curl.py"), lacks=PARAMETERS)


def _psql() -> Iterator[Client | str]:
    psql = shutil.which("psql")
    if psql is None:
        yield "psql: deploy/test-servers installs PostgreSQL"
        return
    command = (sys.executable, HERE / "by_psql.py", psql)
    yield Client(f"psql {_said_version(psql)}", "psql", command, is_of_postgres=True)


def _of_go(program: Path) -> Iterator[Client | str]:
    if not program.exists():
        yield "pgx, lib/pq: install.sh builds them where Go is"
        return
    required = dict(re.findall(r"^\t(\S+) v(\S+)$", (HERE / "go/go.mod").read_text(), re.MULTILINE))
    for driver, module in (("pgx", "github.com/jackc/pgx/v5"), ("postgres", "github.com/lib/pq")):
        name = f"{module.removeprefix('github.com/')} {required[module]}"
        yield Client(name, f"go-{driver}", (program, driver), is_of_postgres=True)


def _said_version(program: str) -> str:
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return str(re.findall(r"\d[\d.]*", said)[0])
