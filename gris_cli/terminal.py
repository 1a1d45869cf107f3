"""What every command prints with: lines with a label and tables for people, one JSON object for programs."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from pinot_connector.notebooks.cells import isolated, visible

MAX_WIDTH = 100


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object on standard output, in one line of printable characters."""
    # A message may repeat an argument that is no text; it must not become an error of its own.
    text = json.dumps(value, ensure_ascii=False).encode(errors="replace").decode()
    # Elements come from data: as they are, some of their characters would drive a terminal or end the line.
    sys.stdout.write("".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text) + "\n")


def print_done(done: str, facts: Mapping[str, Any], *, as_json: bool) -> None:
    """Print what was done: a line for people, or its facts as JSON."""
    if as_json:
        print_json(facts)
    else:
        sys.stdout.write(f"{done}\n")


def say(label: str, text: str, *, width: int = 12, is_whole: bool = False) -> None:
    """Print a line with a label; nothing if the text is empty.

    Args:
        label: What stands before it, in a column of `width` characters.
        text: What is said.
        width: In characters.
        is_whole: Whether the text is never broken, however narrow the terminal is: it is to be copied.
    """
    if text and is_whole:
        line_of_it = Text.assemble((printable(label).ljust(width), "dim"), "  ", printable(text))
        Console(width=terminal_width(), highlight=False).print(line_of_it, soft_wrap=True)
    elif text:
        line = Table.grid(padding=(0, 2))
        line.add_column(min_width=width, style="dim")
        line.add_column()
        line.add_row(label, Text(printable(text)))
        show(line)


def say_all(label: str, texts: Iterable[str]) -> None:
    """Print a line for each text, the first of them with the label."""
    for number, text in enumerate(texts):
        say("" if number else label, text)


def show(*shown: RenderableType) -> None:
    """Print a table or a text as wide as the terminal, up to a width that is good to read; nothing: an empty line."""
    Console(width=terminal_width(), highlight=False).print(*shown)


def terminal_width() -> int:
    """Return how many characters fit beside each other, up to a width that is good to read.

    A terminal that says 0 does not know.
    """
    return min(shutil.get_terminal_size((MAX_WIDTH, 24)).columns or MAX_WIDTH, MAX_WIDTH)


def head(text: str) -> None:
    """Print the head of a part, below an empty line."""
    show()
    show(Rule(f"[bold]{text}", align="left"))


def grid(heads: Sequence[str], rows: Iterable[Iterable[str]], *, numbers: Collection[int] = ()) -> Table:
    """Return a table of texts; `numbers` are the positions of columns that end at their right."""
    table = Table(show_edge=False, header_style="bold")
    for position, title in enumerate(heads):
        head = Text(printable(title), overflow="fold")
        table.add_column(head, justify="right" if position in numbers else "left")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table


def printable(text: str) -> str:
    """Return a text without characters that drive a terminal, and that does not turn what is beside it around."""
    # Elements come from data; a control character among them must not drive the terminal.
    return isolated(visible(text))
