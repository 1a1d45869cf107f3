"""`gris ask` of services that run keeps what was paid for: the next run gives the same release, to any account."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gris_cli.__main__ import main
from tests.support.release_stores import key_file
from tests.support.world import World, new_account, write_growing

QUESTION = ("--table", "growing", "--by", "element")


def words(world: World, folder: Path, account: str) -> list[str]:
    """Return a question about a table whose periods are closed."""
    services = ["--dp", world.dp, "--budget", world.budget, "--account", account]
    return ["ask", *QUESTION, *services, "--data", f"growing={folder / 'growing.parquet'}", "--json"]


def run(world: World, folder: Path, account: str, *more: str) -> dict[str, Any]:
    """Ask in a process of its own in a folder, and return what it reports."""
    command = [sys.executable, "-m", "gris_cli", *words(world, folder, account), *more]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GRIS_")}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    reported: dict[str, Any] = json.loads(done.stdout)
    return reported


@pytest.mark.parametrize("more", [(), ("--releases", "kept/mine.sqlite")])
def test_runs_cannot_see_that_a_member_was_deleted(
    world: World, tmp_path: Path, more: tuple[str, ...], starts_processes: None
) -> None:
    """Neither by one account that asks again, nor by two that compare their answers."""
    ana, bob = new_account(), new_account()
    write_growing(tmp_path / "growing.parquet", members=1000)
    paid = run(world, tmp_path, ana, *more)
    write_growing(tmp_path / "growing.parquet", members=999)
    again, other = run(world, tmp_path, ana, *more), run(world, tmp_path, bob, *more)
    assert [paid["rows"]] * 2 == [again["rows"], other["rows"]]
    assert {paid["release_id"]} == {again["release_id"], other["release_id"]}
    charged = [each["charged"]["information"] for each in (paid, again, other)]
    assert [1, 0, 1] == charged
    kept = tmp_path / (more[1] if more else ".gris/releases.sqlite")
    for each in (kept, kept.with_suffix(".key")):
        assert stat.S_IMODE(each.stat().st_mode) == 0o600
    assert [kept.with_suffix(".key").name, kept.name] == sorted(each.name for each in kept.parent.iterdir())


def asked(world: World, folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str]:
    """Ask in this process, and return the exit code and what is wrong."""
    write_growing(folder / "growing.parquet", members=1000)
    code = main([*words(world, folder, new_account()), *more])
    reported = json.loads(capsys.readouterr().out)
    return code, reported["error"]["message"] if "error" in reported else ""


def test_a_key_of_ones_own_is_used_and_not_made(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As for a store that a gateway on the same machine has."""
    key, file = key_file(tmp_path, name="own.key"), tmp_path / "releases.sqlite"
    shared = ("--releases", str(file), "--releases-key-file", str(key))
    assert asked(world, tmp_path, capsys, *shared) == (0, "")
    assert not file.with_suffix(".key").exists()
    other = key_file(tmp_path, b"o" * 32, "other.key")
    code, said = asked(world, tmp_path, capsys, "--releases", str(file), "--releases-key-file", str(other))
    assert (code, said) == (5, "the release store was written with a key that is not given")
    missing = ("--releases", str(file), "--releases-key-file", str(tmp_path / "missing.key"))
    code, said = asked(world, tmp_path, capsys, *missing)
    assert code == 5
    assert "missing.key: No such file" in said


def test_the_key_of_a_store_is_not_made_anew(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under another one nothing that is kept could be read; nothing is charged."""
    file = ("--releases", str(tmp_path / "releases.sqlite"))
    assert asked(world, tmp_path, capsys, *file) == (0, "")
    (tmp_path / "releases.key").unlink()
    code, said = asked(world, tmp_path, capsys, *file)
    assert (code, "releases.key: No such file" in said) == (5, True)
    assert not (tmp_path / "releases.key").exists()


def test_a_place_that_cannot_be_written_is_named_with_its_flag(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is asked without a store: each run would draw its own release."""
    (tmp_path / "file").write_text("")
    code, said = asked(world, tmp_path, capsys, "--releases", str(tmp_path / "file" / "releases.sqlite"))
    assert code == 2
    assert "--releases or GRIS_RELEASES:" in said


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--embedded", "--releases", "x"), "--releases has no meaning with --embedded"),
        (("--gateway", "gris://h:1", "--releases", "x"), "--releases has no meaning with --gateway"),
        (("--embedded", "--releases-key-file", "x"), "--releases-key-file has no meaning with --embedded"),
    ],
)
def test_a_store_that_would_be_ignored_is_refused(
    flags: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Embedded services and gateways have stores of their own."""
    assert main(["ask", "--account", "demo/ana", *QUESTION, *flags]) == 2
    assert expected in capsys.readouterr().err
