"""The long campaign: `python -m tests.campaigns sensitivity --worlds 10000 --seed 1`.

It fails with the smallest fault it finds.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from .audiences import audience_campaign
from .campaign import campaign, stream_campaign


def main() -> None:
    """Ask so many worlds and print what was looked at."""
    parser = argparse.ArgumentParser("python -m tests.campaigns sensitivity", description=__doc__)
    parser.add_argument("--worlds", type=int, default=10_000, help="how many tables, policies and questions")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    # A tenth of the others, and one at least: each is asked of several audiences, or of a Pinot over HTTP.
    tenth = max(1, arguments.worlds // 10)
    with tempfile.TemporaryDirectory() as folder:
        print(campaign(arguments.worlds, Path(folder), seed_=arguments.seed))
        print(audience_campaign(tenth, Path(folder), seed_=arguments.seed))
    print(stream_campaign(tenth, seed_=arguments.seed))


if __name__ == "__main__":
    main()
