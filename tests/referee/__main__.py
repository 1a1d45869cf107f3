"""Records what Gris says, and compares.

python -m tests.referee write FILE       the whole record of this checkout, ten minutes on two processors
python -m tests.referee compare OLD NEW  what differs between two whole records, by surface and place
python -m tests.referee check            what differs from the cases that stand in full beside the tests
python -m tests.referee accept           write those as they are now
python -m tests.referee accept FILE      write the digests of a whole record
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from .cases import accept, accept_whole, changes, found, kept_digests, moved, read_texts
from .recording import answer, differences, read, record, whole, write


def _write(file: Path) -> int:
    said = record(whole())
    write(file, said)
    return _print(moved(kept_digests(), said))


def _check() -> int:
    return _print(changes(read_texts(), found()))


def _accept(file: Path | None) -> int:
    if file is None:
        accept()
    else:
        accept_whole(read(file))
    return 0


def _print(lines: Sequence[str]) -> int:
    sys.stdout.write("".join(f"{each}\n" for each in lines) or "no difference\n")
    return bool(lines)


def _compare(old: Path, new: Path) -> int:
    return _print(differences(read(old), read(new)))


def _answer(asked: Path, said: Path) -> int:
    answer(asked, said)
    return 0


def main() -> int:
    """Run a command; the exit code is 1 if something differs."""
    parser = argparse.ArgumentParser("python -m tests.referee", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    for run, names in (
        (_write, ("file",)),
        (_compare, ("old", "new")),
        (_check, ()),
        (_answer, ("asked", "said")),
    ):
        command = commands.add_parser(run.__name__.strip("_"))
        command.set_defaults(run=run)
        for name in names:
            command.add_argument(name, type=Path)
    command = commands.add_parser("accept")
    command.set_defaults(run=_accept)
    command.add_argument("file", type=Path, nargs="?")
    given = vars(parser.parse_args())
    return int(given.pop("run")(**given))


if __name__ == "__main__":
    sys.exit(main())
