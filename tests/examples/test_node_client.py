"""The client in Node.js: with its locked packages it asks the gateway one question."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.rings import needs
from tests.unit.gris_gateway.stage import ACCOUNT, COUNTS, Stage

SOURCES = ROOT / "examples" / "node"
INSTALL_SECONDS = 600


def has_node() -> bool:
    """Return whether Node.js 18 or newer and npm are installed."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        return False
    reported = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    return int(reported.removeprefix("v").partition(".")[0]) >= 18


pytestmark = pytest.mark.skipif(not has_node(), reason="needs Node.js 18 or newer, with npm")


@pytest.fixture(scope="module")
@needs("process")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the locked packages in a folder of their own, without running anything of them."""
    folder = tmp_path_factory.mktemp("node")
    for name in ("package.json", "package-lock.json", "ask.js"):
        shutil.copy(SOURCES / name, folder)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    subprocess.run(command, cwd=folder, check=True, timeout=INSTALL_SECONDS)
    return folder / "ask.js"


@pytest.fixture(scope="module")
@needs("process")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Run services and gateway behind TLS."""
    with ExitStack() as opened:
        yield Stage(tmp_path_factory.mktemp("stage"), opened)


def asked(program: Path, stage: Stage, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the program with the application's certificate."""
    app = stage.app
    shown = ["--ca", app.ca_file, "--certificate", app.certificate_file, "--key", app.key_file]
    shown += ["--gateway", stage.gateway.replace("127.0.0.1", "localhost"), "--protos", ROOT / "protos"]
    command = [str(word) for word in ("node", program, *shown, *words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_it_prints_a_private_answer_and_what_is_left(program: Path, stage: Stage) -> None:
    """Both elements in their order with intervals around noisy counts; the account has been charged."""
    token = str(stage.caller().token_file)
    ended = asked(program, stage, "--token", token, "--table", "visits", "--by", "element")
    assert 0 == ended.returncode, ended.stderr
    *lines, cost, left = ended.stdout.splitlines()
    rows, said = lines[: len(COUNTS)], [line.partition(": ")[0] for line in lines[len(COUNTS) :]]
    assert {"intervals.given_shown", "method.mechanism"} <= set(said)
    assert [row.split("\t")[0] for row in rows] == list(COUNTS)
    for row, count in zip(rows, COUNTS.values(), strict=True):
        _, noisy, interval = row.split("\t")
        assert abs(int(noisy) - count) < 200
        lower, upper = map(int, interval.split(" to "))
        assert lower <= int(noisy) <= upper
    spent = int(cost.split()[1])
    assert left == f"{ACCOUNT}: {40 - spent} of 40 information, 0 of 1 calls left"


def test_a_refusal_names_its_reason(program: Path, stage: Stage) -> None:
    """Without a token nobody is asking; the policy refuses by name, and SQL that is none by its field."""
    ended = asked(program, stage)
    assert (1, "CALLER_WITHOUT_ACCOUNT" in ended.stderr) == (ended.returncode, True), ended.stderr
    token = str(stage.caller().token_file)
    ended = asked(program, stage, "--token", token, "--table", "employees")
    assert (1, "gris.app/REFUSED_BY_POLICY" in ended.stderr) == (ended.returncode, True), ended.stderr
    ended = asked(program, stage, "--token", token, "--sql", "DROP TABLE visits")
    assert (1, "gris.app/INVALID_ARGUMENT" in ended.stderr) == (ended.returncode, True), ended.stderr
