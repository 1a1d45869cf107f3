"""Records what Gris says, and compares.

python -m tests.referee write FILE       the record of this checkout: ten minutes, 50 MB
python -m tests.referee compare OLD NEW  what differs between two records, by surface and place
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .recording import WHOLE, differences, read, record, write


def _write(file: Path) -> int:
    write(file, record(WHOLE))
    return 0


def _compare(old: Path, new: Path) -> int:
    found = differences(read(old), read(new))
    sys.stdout.write("".join(f"{each}\n" for each in found) or "no difference\n")
    return bool(found)


def main() -> int:
    """Run a command; the exit code is 1 if something differs."""
    parser = argparse.ArgumentParser(
        "python -m tests.referee", description="Records what Gris says, and compares."
    )
    commands = parser.add_subparsers(required=True)
    for run, names in ((_write, ("file",)), (_compare, ("old", "new"))):
        command = commands.add_parser(run.__name__.strip("_"))
        command.set_defaults(run=run)
        for name in names:
            command.add_argument(name, type=Path)
    given = vars(parser.parse_args())
    return int(given.pop("run")(**given))


if __name__ == "__main__":
    sys.exit(main())
