"""Run one campaign: python -m tests.campaigns NAME [options]; without a name, the list; --help behind it: its options.

`smoke` runs every campaign, every benchmark and what else people run by hand, each in its smallest form.
"""

from __future__ import annotations

import os
import sys

from tests.campaigns.names import CAMPAIGNS


def main() -> None:
    """Become the program of a name, with all further arguments; print the list if there is no such name."""
    name, *options = sys.argv[1:] or [""]
    if name not in CAMPAIGNS:
        print(__doc__)
        print("\n".join(f"  {name:16}{each.says}" for name, each in CAMPAIGNS.items()))
        sys.exit(name not in ("", "-h", "--help"))
    campaign = CAMPAIGNS[name]
    os.execve(sys.executable, (*campaign.command(name), *options), campaign.environment())  # noqa: S606 - no shell


if __name__ == "__main__":
    main()
