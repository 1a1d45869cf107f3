"""Two replicas of dp_service and of the gateway beside one of each: how many more questions are answered in a second.

    python -m bench.replicas
    python -m bench.replicas --cores 0.15 --seconds 20

Every replica gets the same small part of a core by a quota (`bench.cpu_quotas`), so that two of each have twice as much
as one, on any machine; the one ledger, its disk and the callers have what is left. A gateway spreads its calls over
both replicas of dp_service, and callers are spread over both gateways. Every question is new and is charged; the engine
answers at once. One and two take turns, and the ratio is the median over the turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.cpu_quotas import quota
from bench.end_to_end import BUDGET
from bench.gateways import Caller, calling, running_gateway
from bench.new_questions import new_question
from bench.tables import EXAMPLES, Table, feedback
from tests.support.pki import Issuer
from tests.support.processes import process

CALLERS = 16
TURNS = 5
WARM_UP_SECONDS = 3.0
TARGET = 1.8


@dataclass(frozen=True)
class Deployment:
    """The gateways of a deployment, by address."""

    name: str
    gateways: tuple[str, ...]


def main() -> None:
    """Measures, and prints a few lines for people or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cores", type=float, default=0.2, help="what each replica gets of a core")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each turn")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        issuer = Issuer(Path(folder))
        deployments = _deployments(Path(folder), opened, options.cores)
        found = asyncio.run(_in_turns(deployments, issuer, options.seconds))
    one, two = (found[each.name] for each in deployments)
    ratio = statistics.median(b / a for a, b in zip(one, two, strict=True))
    if options.json:
        print(json.dumps({"per_second": found, "ratio": ratio, "load": os.getloadavg()[0]}))
        return
    print(f"questions a second, each replica with {options.cores} of a core; load {os.getloadavg()[0]:.1f}")
    for name, rates in found.items():
        print(f"{name:>4}: {statistics.median(rates):6.1f}   ({', '.join(f'{rate:.1f}' for rate in rates)})")
    print(f"ratio {ratio:.2f} (target >= {TARGET})")


def _deployments(folder: Path, opened: ExitStack, cores: float) -> list[Deployment]:
    """Starts everything: of dp_service two, the first of which serves both deployments, and three gateways."""
    (folder / "policy.yaml").write_text((EXAMPLES / "policy.yaml").read_text())
    (folder / "budget.yaml").write_text(BUDGET)
    key = folder / "noise.key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o400)
    dp_words = ["--policy", folder / "policy.yaml", "--key-file", key, "--listen", "127.0.0.1:0"]
    dps = [opened.enter_context(process("dp_service", dp_words, folder / f"dp{i}.log")) for i in range(2)]
    store = f"sqlite:{folder / 'ledger.db'}"
    words = ["--config", folder / "budget.yaml", "--store", store, "--listen", "127.0.0.1:0"]
    budget = opened.enter_context(process("budget_service", words, folder / "budget.log"))["address"]
    addresses = [each["address"] for each in dps]
    table, both = feedback(), f"ipv4:{','.join(addresses)}"

    def gateway(name: str, dp: str) -> dict[str, str]:
        return opened.enter_context(running_gateway(name, folder, table, dp=dp, budget=budget))

    alone, *together = gateway("alone", addresses[0]), gateway("first", both), gateway("second", both)
    for each in (*dps, alone, *together):
        opened.enter_context(quota(int(each["pid"]), cores))
    return [
        Deployment("one", (alone["address"],)),
        Deployment("two", tuple(each["address"] for each in together)),
    ]


async def _in_turns(
    deployments: Sequence[Deployment], issuer: Issuer, seconds: float
) -> dict[str, list[float]]:
    """Returns the questions a second of each deployment in each turn."""
    found: dict[str, list[float]] = {each.name: [] for each in deployments}
    for turn in range(TURNS + 1):
        for each in deployments:
            async with _callers(each, issuer, turn) as callers:
                if turn == 0:
                    # The first question of a gateway runs the query; and connections are made.
                    await _rate(callers, feedback(), WARM_UP_SECONDS)
                else:
                    found[each.name].append(await _rate(callers, feedback(), seconds))
    return found


@asynccontextmanager
async def _callers(deployment: Deployment, issuer: Issuer, turn: int) -> AsyncIterator[list[Caller]]:
    async with AsyncExitStack() as opened:
        yield [
            await opened.enter_async_context(
                calling(deployment.gateways[i % len(deployment.gateways)], issuer, f"caller {turn} {i}")
            )
            for i in range(CALLERS)
        ]


async def _rate(callers: Sequence[Caller], table: Table, seconds: float) -> float:
    """Returns how many questions all callers together get answered in a second."""
    began = time.monotonic()
    answered = 0

    async def asking(caller: Caller) -> None:
        nonlocal answered
        while time.monotonic() - began < seconds:
            await caller.ask(new_question(table.name))
            answered += 1

    await asyncio.gather(*map(asking, callers))
    return answered / (time.monotonic() - began)


if __name__ == "__main__":
    main()
