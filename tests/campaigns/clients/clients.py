"""The clients: how each is started, what it has no call for, and what has to be installed for it."""

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

HERE = Path(__file__).parent
SECONDS = 120
"""How long a client may take for everything: it needs some ten."""
METADATA, PARAMETERS = frozenset(("tables", "columns")), frozenset(("parameter",))


@dataclass(frozen=True)
class Client:
    """A client in one of its ways to connect.

    Attributes:
        name: What the table calls it.
        caller: Whose account it uses.
        command: The command line, without the file of what is asked.
        lacks: Steps for which it has no call.
        is_plain: Whether it forgets the scheme of the brokers that a controller names, and so knows no TLS.
    """

    name: str
    caller: str
    command: tuple[object, ...]
    lacks: frozenset[str] = frozenset()
    is_plain: bool = False

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
        folder: What `make clients-check` has installed.
    """
    yield from _of_pinotdb(folder / "python")
    yield from _of_java(folder / "java")
    yield from _of_node(folder / "node/node_modules")
    yield from _curl()
    yield Client(
        "requests of pinot-client-go",
        "go",
        (sys.executable, HERE / "by_go.py"),
        lacks=frozenset(("columns",)) | PARAMETERS,
    )


def _of_pinotdb(folder: Path) -> Iterator[Client | str]:
    found = sorted(folder.glob("lib/*/site-packages/pinotdb-*.dist-info"))
    if not found:
        yield "pinotdb: make clients-check installs it"
        return
    name = found[0].stem.replace("-", " ")
    command = (folder / "bin/python", HERE / "by_pinotdb.py")
    yield Client(name, "pinotdb", (*command, "dbapi"), lacks=METADATA)
    yield Client(f"{name}, SQLAlchemy, pandas", "sqlalchemy", (*command, "sqlalchemy"))


def _of_java(folder: Path) -> Iterator[Client | str]:
    found = sorted(folder.glob("pinot-jdbc-client-*.jar"))
    if not found or shutil.which("javac") is None:
        yield "pinot-jdbc-client, pinot-java-client: make test-servers installs Java and Maven"
        return
    version = found[0].stem.rpartition("-")[2]
    command = ("java", "-cp", f"{folder}/*", HERE / "Main.java")
    yield Client(f"pinot-jdbc-client {version}", "jdbc", (*command, "jdbc"))
    for way in ("fromController", "fromHostList"):
        yield Client(f"pinot-java-client {version}, {way}", f"java-{way}", (*command, way), lacks=METADATA)


def _of_node(folder: Path) -> Iterator[Client | str]:
    package = folder / "pinot-client/package.json"
    if not package.exists() or shutil.which("node") is None:
        yield "pinot-client: make test-servers installs npm"
        return
    version = json.loads(package.read_text())["version"]
    for way in ("fromController", "fromHostList"):
        yield Client(
            f"pinot-client {version} of npm, {way}",
            f"node-{way}",
            ("env", f"NODE_PATH={folder}", "node", HERE / "client.cjs", way),
            lacks=METADATA | PARAMETERS,
            is_plain=way == "fromController",
        )


def _curl() -> Iterator[Client | str]:
    if shutil.which("curl") is None:
        yield "curl: install it"
        return
    said = subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True).stdout
    (version,) = re.findall(r"^curl (\S+)", said)
    yield Client(f"curl {version}", "curl", (sys.executable, HERE / "by_curl.py"), lacks=PARAMETERS)
