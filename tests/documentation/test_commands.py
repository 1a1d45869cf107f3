"""The commands of the pages run as they stand, in a folder of their own with the examples in it."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from tests.documentation.commands import run
from tests.support.pages import blocks, section
from tests.support.paths import ROOT
from tests.support.ports import free_port


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that looks like a checkout to who asks for the examples."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


@pytest.mark.usefixtures("starts_processes")
def test_an_installation_is_checked_as_the_guide_says(folder: Path) -> None:
    """Policy, key and budgets are looked at, and nothing is served."""
    (commands,) = blocks(section("operating.md", "## Installing"), "sh")
    assert "cofacts_feedback" in run(commands, folder)
    assert (folder / "noise.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.usefixtures("starts_processes")
def test_a_ticket_key_is_made_as_the_page_says(folder: Path) -> None:
    """Of the noise key that is to become current, readable for nobody else."""
    (folder / "new.key").write_text(secrets.token_hex(32))
    (folder / "new.key").chmod(0o400)
    (commands,) = blocks(section("keys.md", "## Ticket keys"), "sh")
    run(commands, folder)
    assert (folder / "new-ticket.key").stat().st_mode & 0o077 == 0


@pytest.mark.usefixtures("starts_processes")
def test_the_gateway_is_tried_as_its_page_says(folder: Path) -> None:
    """One command serves, and another asks as it is printed, on ports that are free."""
    serve, ask = blocks(section("gateway.md", "## Try it"), "sh")
    gateway, *others = (str(free_port()) for _ in range(8))
    flags = zip(("dp", "budget", "admin", "mcp", "page", "broker", "postgres"), others, strict=True)
    ports = " ".join(f"--{name}-port {port}" for name, port in (*flags, ("gateway", gateway)))
    assert "50054" in ask
    ready = "until grep -q address .gris/gateway.ready; do sleep 0.1; done 2>/dev/null"
    printed = run(f"{serve.strip()} {ports} &\n{ready}\n{ask.replace('50054', gateway)}", folder)
    assert "left" in printed
    assert "demo/ana" in printed
