"""Records a session of a terminal as a picture: types lines into a shell, and draws what the terminal then shows.

    python deploy/site/terminal.py docs/figures/session.svg 'gris shell --embedded' 'SELECT ..' y quit

Each line is typed once the program before it waits for one: at the prompt of the shell, of `gris shell`, or of a
question. What is drawn is what programs wrote, in their own colours; nothing is added.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 100
SECONDS = 180.0
PROMPTS = ("$ ", "gris> ", "[y/N] ")
# What moves the cursor or switches modes of a terminal, and is no colour.
_MODES = re.compile(r"\x1b\[\?[0-9;]*[a-z]|\x1b\[[0-9;]*[A-HJKST]|\x1b[=>]|\x07")
_FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


def main() -> None:
    """Record the session that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("typed", nargs="+", metavar="LINE")
    options = parser.parse_args()
    shown = recorded(options.typed)
    options.out.write_text(drawn(shown, options.out.stem))


def recorded(typed: list[str]) -> str:
    """Return what a terminal shows while these lines are typed into a shell."""
    screen, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 200, WIDTH, 0, 0))
    environment = {**os.environ, "PS1": "$ ", "TERM": "xterm-256color", "COLUMNS": str(WIDTH)}
    shell = subprocess.Popen(
        ["/bin/sh", "-i"], stdin=inner, stdout=inner, stderr=inner, env=environment, start_new_session=True
    )
    os.close(inner)
    try:
        shown = _until_prompt(screen, "")
        # What an interactive shell says at its start is no part of the session.
        shown = shown[shown.rfind("$ ") :]
        for line in typed:
            os.write(screen, line.encode() + b"\n")
            shown = _until_prompt(screen, shown)
    finally:
        shell.kill()
        shell.wait()
        os.close(screen)
    return shown.rstrip().removesuffix("$").rstrip()


def _until_prompt(screen: int, shown: str) -> str:
    """Return what is shown once a program waits for the next line.

    Raises:
        TimeoutError: nothing waits for a line.
    """
    before, end = len(shown), time.monotonic() + SECONDS
    while time.monotonic() < end:
        if select.select([screen], [], [], 0.5)[0]:
            shown += _MODES.sub("", os.read(screen, 65536).decode(errors="replace")).replace("\r", "")
        elif len(shown) > before and shown.endswith(PROMPTS):
            return shown
    raise TimeoutError(f"no prompt behind {shown[-200:]!r}")


def drawn(shown: str, name: str) -> str:
    """Return what a terminal shows as SVG, in fonts of the reader's machine."""
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere)
        console.print(Text.from_ansi(shown))
        return _FONTS.sub("", console.export_svg(title="gris", unique_id=name))


if __name__ == "__main__":
    main()
