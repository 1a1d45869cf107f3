"""`gris serve --gateway` shares an answer with every surface of this machine, by an identity that it makes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine
from sqlalchemy import text as statement
from sqlalchemy.pool import NullPool

from gris_cli.__main__ import main
from gris_cli.data.errors import InputError
from gris_cli.shared import running
from gris_cli.shared.identity import Identity, Person, make_identity, remove_ending
from gris_cli.shared.pasting import Pasted
from tests.support.paths import EXAMPLES
from tests.support.rings import needs
from tests.support.shared_answers import (
    GRIS,
    asked_by_an_agent,
    asked_by_sqlalchemy,
    asked_in_a_shell,
    serving,
    shown_in_a_browser,
)

PORTS = tuple(
    word
    for name in ("dp", "budget", "admin", "gateway", "mcp", "page", "broker", "postgres")
    for word in (f"--{name}-port", "0")
)
SQL = "SELECT app, COUNT(DISTINCT member_id) AS n FROM cofacts_feedback GROUP BY app ORDER BY n DESC LIMIT 5"
YOU = Person("you", "analyst")


@pytest.fixture(scope="module")
@needs("process")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Any], Path]]:
    """The example tables, shared from a folder whose name is no word of a shell; what is printed, and the folder."""
    folder = tmp_path_factory.mktemp("geteilt für 'uns'")
    with serving(folder, "--gateway", *PORTS) as said:
        yield said, folder


async def test_each_surface_shows_the_same_answer_as_it_is_pasted(
    served: tuple[dict[str, Any], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is paid for once: all of them have one account and one release store."""
    said, _ = served
    shell = asked_in_a_shell(said)
    counts = {row["element"][0]: row["noisy_count"] for row in shell["rows"]}
    assert len(counts) == 4
    assert dict(map(tuple, asked_by_sqlalchemy(said, SQL, monkeypatch))) == counts
    with create_engine(said["pinot"], poolclass=NullPool).connect() as connection:
        assert dict(map(tuple, connection.execute(statement(SQL)).fetchall())) == counts
    by_agent = await asked_by_an_agent(said, SQL)
    assert [row["count"] for row in by_agent["rows"]] == list(counts.values())
    page = await shown_in_a_browser(said, SQL)
    assert page.status == 200
    assert all(element in page.text for element in counts)


def test_nobody_else_may_read_a_key_a_token_or_a_ledger(served: tuple[dict[str, Any], Path]) -> None:
    """And nobody else may look into the folder."""
    folder = served[1] / ".gris"
    for path in (folder, folder / "credentials"):
        assert path.stat().st_mode & 0o777 == 0o700
    secret = [*folder.glob("*.key"), *folder.glob("*.sqlite"), *(folder / "credentials").iterdir()]
    assert len(secret) >= 7
    assert {0o600} == {path.stat().st_mode & 0o777 for path in secret}


def test_a_second_one_beside_the_first_is_refused_and_disturbs_nothing(
    served: tuple[dict[str, Any], Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder's ledger has one owner, and the first one's files stay as they are."""
    said, folder = served
    monkeypatch.chdir(folder)
    before = (folder / ".gris" / "gateway.yaml").read_bytes()
    assert main(["serve", "--gateway", *PORTS]) == 5
    assert "one process owns a ledger" in capsys.readouterr().err
    assert (folder / ".gris" / "gateway.yaml").read_bytes() == before
    assert asked_in_a_shell(said)["rows"]


def test_the_next_start_has_the_same_identity_and_a_killed_one_leaves_nothing_running(
    tmp_path: Path, starts_processes: None
) -> None:
    """What was pasted goes on to work; all four programs end with the one that has started them."""
    with serving(tmp_path, "--gateway", *PORTS) as said:
        first = said["mcp"]["mcpServers"]["gris"]["headers"]
    command = [*GRIS, "serve", "--gateway", *PORTS, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stdout is not None
        again = json.loads(process.stdout.readline())
        assert again["mcp"]["mcpServers"]["gris"]["headers"] == first
        process.send_signal(signal.SIGKILL)
    urls = (again["gateway"], again["page"], again["mcp"]["mcpServers"]["gris"]["url"])
    ports = [int(url.split(":")[2].partition("/")[0]) for url in urls]
    ports += [int(again[name].rpartition(":")[2]) for name in ("dp", "budget", "admin")]
    _wait_until(lambda: not any(map(_listens, ports)))


def test_a_hangup_that_another_program_sends_ends_nothing(tmp_path: Path, starts_processes: None) -> None:
    """Neither `gris serve` nor the services and the gateway that it runs."""
    command = [*GRIS, "serve", "--gateway", *PORTS, "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=tmp_path, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            said = json.loads(process.stdout.readline())
            os.killpg(process.pid, signal.SIGHUP)
            assert asked_in_a_shell(said)["rows"]
        finally:
            process.terminate()
        assert process.wait(30) == 0


@pytest.mark.parametrize("name", ["gateway", "mcp", "page"])
def test_a_port_that_is_taken_is_named_before_anything_starts(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the flag that sets it."""
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = (*PORTS, f"--{name}-port", str(taken.getsockname()[1]))
        assert main(["serve", "--gateway", *ports]) == 2
    assert f"--{name}-port: 127.0.0.1:" in capsys.readouterr().err
    assert not (tmp_path / ".gris").exists()


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--gateway-port", "0"), "--gateway-port has no meaning without --gateway"),
        (("--gateway", "--policy", "{policy}"), "--data TABLE=PATH says where the data are"),
    ],
)
def test_flags_that_do_not_go_together_are_refused_by_name(
    flags: tuple[str, ...],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before anything starts."""
    policy = EXAMPLES / "policy.yaml"
    monkeypatch.chdir(tmp_path)
    assert main(["serve", *(flag.format(policy=policy) for flag in flags)]) == 2
    assert expected in capsys.readouterr().err


def test_a_configuration_that_is_kept_is_not_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message says how it is served."""
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o755)
    (tmp_path / "gateway.yaml").write_text("# mine\n")
    assert main(["serve", "--gateway", *PORTS, "--directory", "."]) == 2
    assert "python -m gris_gateway --config" in capsys.readouterr().err
    assert (tmp_path / "gateway.yaml").read_text() == "# mine\n"


def _readable(identity: Identity) -> None:
    identity.issuer_key.chmod(0o640)


def _linked(identity: Identity) -> None:
    identity.key.rename(identity.folder / "elsewhere")
    identity.key.symlink_to(identity.folder / "elsewhere")


def _dangling(identity: Identity) -> None:
    identity.token(YOU).unlink()
    identity.token(YOU).symlink_to(identity.folder / "nowhere")


def _halved(identity: Identity) -> None:
    identity.certificate.unlink()


def _unsigned(identity: Identity) -> None:
    identity.issuer.unlink()
    identity.issuer_key.unlink()


def _open(identity: Identity) -> None:
    identity.folder.chmod(0o777)


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (_readable, "issuer.key: others may have read it"),
        (_linked, "gateway.key: expected a file of your own, and no link"),
        (_dangling, "analyst.token: expected a file of your own, and no link"),
        (_halved, "without gateway.pem; they are made together"),
        (_unsigned, "without issuer.key, which has signed it"),
        (_open, "others may write there"),
    ],
)
def test_an_identity_that_others_may_have_is_not_used(
    spoil: Callable[[Identity], None], expected: str, tmp_path: Path
) -> None:
    """It is named, and nothing of it is changed."""
    identity = Identity(tmp_path / "state")
    written, _ = make_identity(identity, (YOU,), 30)
    assert len(written) == 6
    spoil(identity)
    before = sorted(identity.folder.rglob("*"))
    with pytest.raises(InputError, match=expected):
        make_identity(identity, (YOU,), 30)
    assert sorted(identity.folder.rglob("*")) == before


def test_what_ends_within_a_week_is_made_anew(tmp_path: Path) -> None:
    """The key that signs tokens is kept; what ends later stays."""
    identity = Identity(tmp_path / "state")
    make_identity(identity, (YOU,), 30)
    remove_ending(identity, (YOU,))
    assert make_identity(identity, (YOU,), 5)[0] == []
    for path in (identity.key, identity.certificate, identity.authority, identity.token(YOU)):
        path.unlink()
    make_identity(identity, (YOU,), 5)
    remove_ending(identity, (YOU,))
    renewed, kept = make_identity(identity, (YOU,), 30)
    assert set(kept) == {identity.issuer_key, identity.issuer}
    assert len(renewed) == 4


def test_what_is_not_installed_is_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A gateway is needed; what else is missing is not served, and said."""
    monkeypatch.setattr(running, "find_spec", lambda name: None if name == "jwt" else find_spec(name))
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "--gateway", *PORTS]) == 2
    assert "pip install 'gris-dp[gateway]'" in capsys.readouterr().err
    pasted = Pasted(
        Identity(tmp_path),
        YOU,
        "gris://localhost:1",
        faces={},
        page="",
        question="--table t",
    )
    pasted.print()
    said = capsys.readouterr().out
    for extra in ("page", "mcp", "broker", "postgres-wire"):
        assert f"pip install 'gris-dp[{extra}]'" in said


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
