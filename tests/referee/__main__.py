"""Compares what the services answer with `cases.txt`.

python -m tests.referee check    print what differs
python -m tests.referee accept   write what is answered now; the commit states what differs and why
"""

from __future__ import annotations

import sys
from difflib import unified_diff

from .cases import KEPT, answers


def main() -> int:
    """Run the command of the command line; return 1 if something differs."""
    match sys.argv[1:]:
        case ["check"]:
            changes = list(
                unified_diff(KEPT.read_text().splitlines(), answers(), "kept", "now", n=0, lineterm="")
            )
            print("\n".join(changes) or "no difference")
            return 1 if changes else 0
        case ["accept"]:
            KEPT.write_text("".join(f"{each}\n" for each in answers()))
            return 0
        case _:
            print(__doc__)
            return 2


if __name__ == "__main__":
    sys.exit(main())
