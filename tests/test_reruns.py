"""What is shared by tests that are tried again: see tests/support/reruns.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHARED = """
import pytest

tries = []

@pytest.fixture(scope="session")
def unlucky():
    tries.append(1)
    if len(tries) == 1:
        raise OSError("the first try fails")
    yield
    print("session ends")

@pytest.fixture(scope="module")
def of_a_module(request):
    yield request.node.name
    print(request.node.name, "ends")

@pytest.fixture
def by_name(request):
    return request.getfixturevalue("unlucky")
"""
TESTS = """
import pytest

pytestmark = pytest.mark.flaky(reruns=1)

def test_first(by_name, of_a_module, request):
    assert of_a_module == request.node.parent.name

def test_second(by_name, of_a_module):
    pass
"""


@pytest.mark.usefixtures("starts_processes")
def test_a_fixture_that_fails_once_spoils_no_other_test(tmp_path: Path) -> None:
    """It is set up anew, though another asked for it by name, and all that the second try began ends with its scope."""
    (tmp_path / "conftest.py").write_text(SHARED)
    for name in ("test_a.py", "test_b.py"):
        (tmp_path / name).write_text(TESTS)
    plugins = ("-p", "tests.support.reruns", "-p", "no:cacheprovider", "-p", "no:xdist")
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-c", "/dev/null", *plugins, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "4 passed, 1 rerun" in done.stdout
    ended = [line.lstrip("R.") for line in done.stdout.splitlines() if line.endswith(" ends")]
    assert ["test_a.py ends", "test_b.py ends", "session ends"] == ended
