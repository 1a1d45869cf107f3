"""What `gris ... --help` says of each command."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
import typer

from gris_cli.app import app


def commands(command: Any, name: str = "gris") -> Iterator[tuple[str, Any]]:
    """Yield every command below one, with its name."""
    below = getattr(command, "commands", {})
    if not below:
        yield name, command
    for word, each in below.items():
        yield from commands(each, f"{name} {word}")


SHOWN = [
    (name, parameter.opts[0], parameter.show_default, parameter.default)
    for name, command in commands(typer.main.get_command(app))
    for parameter in command.params
    if isinstance(getattr(parameter, "show_default", None), str) and parameter.default is not None
]


@pytest.mark.parametrize(("command", "flag", "shown", "default"), SHOWN)
def test_the_default_that_help_shows_is_the_default(
    command: str, flag: str, shown: str, default: Fraction
) -> None:
    """Also where the help spells a number in another way than Python would."""
    assert Fraction(shown) == default, f"{command} {flag}"


def test_comparing_and_publishing_show_deltas_of_their_own() -> None:
    """Publishing promises 1e-9; comparing repeats the setting of published comparisons, 1e-5."""
    shown = {(command, flag): text for command, flag, text, _ in SHOWN}
    assert "1e-9" == shown["gris domain publish", "--delta"]
    assert "1e-5" == shown["gris domain compare", "--delta"]
