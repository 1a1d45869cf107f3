"""A hostile agent at a real gateway: `python -m tests.campaigns agents --questions 500 --games 200`.

The exit code is 1 if it learns more than is promised, spends more than its limit, spends another's budget, or has a
stranger's text in an error; or if the game would not notice a service without noise.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.campaigns.agents.campaign import run_campaign
from tests.campaigns.agents.game import Games, play


def main() -> int:
    """Run the session and the games, and print what came of them."""
    parser = argparse.ArgumentParser("python -m tests.campaigns agents", description=__doc__)
    parser.add_argument("--questions", type=int, default=500, help="how many questions the agent asks")
    parser.add_argument("--games", type=int, default=200, help="how many games of each kind")
    parser.add_argument("--seed", type=int, default=1, help="of the script")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = run_campaign(Path(folder), options.questions, options.seed)
    for line in (*report.lines(), *(f"FAULT: {fault}" for fault in report.faults())):
        print(line, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        games = play(Path(folder), options.games)
    _print("whether one member is in the data, with the whole budget", games)
    with tempfile.TemporaryDirectory() as folder:
        without = play(Path(folder), options.games, epsilon_per="10", promised=games.promised)
    _print("the same with hardly any noise, which has to be noticed", without)
    is_well = not report.faults() and games.keeps_its_promise and not without.keeps_its_promise
    return 0 if is_well else 1


def _print(what: str, games: Games) -> None:
    print(
        f"{what}: {games.won} of {games.played} guesses right, {games.paid_answers} answers paid; epsilon "
        f"{games.finding.proven_epsilon:.3f} proven, {games.promised.epsilon:.4g} promised",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
