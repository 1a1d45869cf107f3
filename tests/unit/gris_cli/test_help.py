"""What `gris ... --help` says of each command."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
import typer

from gris_cli.__main__ import main
from gris_cli.app import app
from tests.support.pages import quoted, rows, section


def commands(command: Any, name: str = "gris") -> Iterator[tuple[str, Any]]:
    """Yield every command below one, with its name."""
    below = getattr(command, "commands", {})
    if not below:
        yield name, command
    for word, each in below.items():
        yield from commands(each, f"{name} {word}")


COMMANDS = dict(commands(typer.main.get_command(app)))
SHOWN = [
    (name, parameter.opts[0], parameter.show_default, parameter.default)
    for name, command in COMMANDS.items()
    for parameter in command.params
    if isinstance(getattr(parameter, "show_default", None), str) and parameter.default is not None
]


@pytest.mark.parametrize(("command", "flag", "shown", "default"), SHOWN)
def test_the_default_that_help_shows_is_the_default(
    command: str, flag: str, shown: str, default: Fraction
) -> None:
    """Also where the help spells a number in another way than Python would."""
    assert Fraction(shown) == default, f"{command} {flag}"


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_every_command_has_json_and_says_its_exit_codes(command: Any) -> None:
    """Scripts need both, of whatever command they call."""
    assert "--json" in {name for parameter in command.params for name in parameter.opts}
    assert "5 unavailable" in command.epilog


def test_the_page_has_the_exit_codes_of_every_command() -> None:
    """By name, or as another command of its group."""
    table = rows(section("command-line.md", "## Exit codes"), "command")
    listed = {name for row in table for name in quoted(row[0])}
    assert listed - COMMANDS.keys() == {"gris budget"}
    assert not {name for name in COMMANDS.keys() - listed if not name.startswith("gris budget ")}


@pytest.mark.parametrize(("arguments", "lines"), [(["--help"], 40), (["ask", "--help"], 60)])
def test_help_fits_a_screen_or_two(
    arguments: list[str], lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    assert main(arguments) == 0
    assert len(capsys.readouterr().out.splitlines()) <= lines
