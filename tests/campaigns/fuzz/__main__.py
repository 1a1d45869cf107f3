"""Mutated SQL texts, seeded; says how many were accepted, and every reason for which others were not."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from random import Random

from tests.campaigns.fuzz.checking import checked, work_allowed, work_of
from tests.campaigns.fuzz.mutating import mutated

# Counting calls makes a text ten times as slow.
_WORK_OF_EVERY = 100


def fuzz(texts: int, seed: int) -> Counter[str | None]:
    """Check so many texts; return how often each reason was given (None: accepted).

    Raises AssertionError, with the text, if something that must hold does not.
    """
    random, reasons = Random(seed), Counter[str | None]()
    for number in range(texts):
        text = mutated(random)
        try:
            reasons[checked(text)] += 1
            if number % _WORK_OF_EVERY == 0:
                assert work_of(text) <= work_allowed(text), "too much work"
        except Exception as error:
            raise AssertionError(
                f"{type(error).__name__}: {error}: text {number} of seed {seed}: {text!r}"
            ) from error
    return reasons


def main() -> int:
    """Run, and print one line for each reason."""
    parser = argparse.ArgumentParser("python -m tests.campaigns fuzz")
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    reasons = fuzz(options.texts, options.seed)
    for reason, times in reasons.most_common():
        sys.stdout.write(f"{times:8}  {reason or 'accepted'}\n")
    sys.stdout.write(f"{reasons.total():8}  in all; {len(reasons) - (None in reasons)} reasons\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
