"""The long campaign: `python -m tests.campaigns tenants --questions 100000 --seed 1`.

It fails with the first thing that a tenant learns of others.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from .campaign import asking

PART = 5000


def main() -> None:
    """Ask so many questions and print what was looked at, part by part."""
    parser = argparse.ArgumentParser("python -m tests.campaigns tenants", description=__doc__)
    parser.add_argument("--questions", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, asking(Path(folder)) as campaign:
        for part in range(0, arguments.questions, PART):
            print(
                campaign.run(min(PART, arguments.questions - part), seed_=arguments.seed + part), flush=True
            )


if __name__ == "__main__":
    main()
