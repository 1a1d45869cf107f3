"""The client in Go: built from the protos, it asks the gateway one question and the ledger what is left."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dp_service.queries.policy import read_policy
from tests.support.paths import ROOT
from tests.support.rings import needs
from tests.unit.gris_gateway.stage import ACCOUNT, COUNTS, Stage

SOURCES = ROOT / "examples" / "go"
BUF = ROOT / "node_modules" / ".bin" / "buf"
BUILD_SECONDS = 1200


def go_version() -> tuple[int, ...]:
    """Return the version of Go that is installed, as two numbers; none where there is no Go."""
    if shutil.which("go") is None:
        return ()
    reported = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=True).stdout
    return tuple(int(number) for number in re.findall(r"\d+", reported)[:2])


pytestmark = pytest.mark.skipif(
    go_version() < (1, 24) or not BUF.exists(),
    reason="needs Go 1.24 or newer, and buf, which `make check` installs",
)


@pytest.fixture(scope="module")
@needs("process")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate the code and build the program, in a folder of its own."""
    folder = tmp_path_factory.mktemp("go")
    for name in ("go.mod", "go.sum", "main.go", "buf.gen.yaml"):
        shutil.copy(SOURCES / name, folder)
    for command in ([str(BUF), "generate", str(ROOT / "protos")], ["go", "build", "-o", "ask", "."]):
        subprocess.run(command, cwd=folder, check=True, timeout=BUILD_SECONDS)
    return folder / "ask"


@pytest.fixture(scope="module")
@needs("process")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Run services and gateway behind TLS."""
    with ExitStack() as opened:
        yield Stage(tmp_path_factory.mktemp("stage"), opened)


def asked(program: Path, stage: Stage, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the program with the application's certificate."""
    app = stage.app
    shown = ["-ca", app.ca_file, "-certificate", app.certificate_file, "-key", app.key_file]
    asked_of = ["-gateway", stage.gateway, "-table", "visits", "-by", "element", *words]
    command = [str(word) for word in (program, *shown, *asked_of)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_it_prints_a_private_answer_and_what_is_left(program: Path, stage: Stage) -> None:
    """Both elements in their order with intervals around noisy counts; the ledger has been charged."""
    token = str(stage.caller().token_file)
    ended = asked(program, stage, "-token", token, "-budget", stage.budget, "-account", ACCOUNT)
    assert 0 == ended.returncode, ended.stderr
    *lines, cost, left = ended.stdout.splitlines()
    rows, said = lines[: len(COUNTS)], [line.partition(": ")[0] for line in lines[len(COUNTS) :]]
    assert {"intervals.given_shown", "method.mechanism"} <= set(said)
    assert [row.split("\t")[0] for row in rows] == list(COUNTS)
    for row, count in zip(rows, COUNTS.values(), strict=True):
        assert abs(int(row.split("\t")[1]) - count) < 200
    spent = int(cost.split()[1])
    assert left == f"{ACCOUNT}: {40 - spent} of 40 information, 0 of 1 calls left"


def test_a_refusal_names_its_reason(program: Path, stage: Stage) -> None:
    """Without a token nobody is asking, and with a forged one too."""
    ended = asked(program, stage)
    assert (1, "CALLER_WITHOUT_ACCOUNT" in ended.stderr) == (ended.returncode, True), ended.stderr
    ended = asked(program, stage, "-token", str(stage.caller(exp=1).token_file))
    assert (1, "gris.app/TOKEN_REFUSED" in ended.stderr) == (ended.returncode, True), ended.stderr


def test_the_table_that_is_asked_by_default_is_one_of_the_example_policy(program: Path) -> None:
    """A reader who follows the guide and names no table gets an answer."""
    usage = subprocess.run([str(program), "-h"], capture_output=True, text=True, check=False).stderr
    (table,) = re.findall(r'a table of the policy \(default "(\w+)"\)', usage)
    policy = read_policy(
        (ROOT / "examples" / "policy.yaml").read_bytes(), str(ROOT / "examples" / "policy.yaml")
    )
    assert table in {each.name for each in policy.policy.tables}
