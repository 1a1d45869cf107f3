"""Charges of the ledger beside two yardsticks on the same server, in the same run, turn by turn.

    python -m bench budget                                  # every store, 10^3 and 10^6 accounts, 1, 16 and 64 callers
    python -m bench budget --store sqlite --accounts 1000 --uvloop

A charge is one UpdateBudget that deducts directly on three levels, its outcome and its line in the journal included, on
an account chosen at random. The yardsticks are an empty echo, and one row that is written to this disk as durably as a
charge, by a commit of its own: no lone call that keeps anything in SQLite takes less. In the end a lone charge is
measured beside a crowd of another root account, on one connection and on several. Callers and server share the
machine. Rates and ratios are medians over rounds, latencies quantiles over all calls. Where other work keeps the
machine or its disk busy, the ratios say little too: an echo waits for no disk. `postgres-pair` are two servers of
PostgreSQL, of which one follows the other synchronously, on one disk here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import grpc
from gris_api.budget.v1 import budget_pb2 as pb
from gris_api.budget.v1 import budget_pb2_grpc
from gris_api.common.v1 import cost_pb2

from bench.budget.crowd import ROOT as CROWD_ROOT
from bench.budget.crowd import Beside, beside_crowd
from bench.budget.fill import ROOT, TEMPLATE, account_of, fill
from bench.budget.load import UNIT, Plan, Sample, Target
from bench.budget.table import Figure, figure_of, print_crowds, print_table, print_targets
from tests.support.postgres_pair import REQUIRED, postgres_pair
from tests.support.postgres_server import postgres_server
from tests.support.redis_server import redis_server

REPOSITORY = Path(__file__).resolve().parents[2]
STORES = ("sqlite", "redis", "postgres", "postgres-pair")
PLENTY = 10**15
# An ordinary client has one.
CROWD_CONNECTIONS = (1, 8)
CONFIGURATION = f"""
accounts:
  - {{path: [{ROOT}], limit: {{information: {PLENTY}, calls: {PLENTY}}}}}
  - {{path: [{ROOT}, "*"], limit: {{information: {PLENTY}, calls: {PLENTY}}}}}
  - {{path: [{ROOT}, "*", "*"], limit: {{information: {PLENTY}, calls: {PLENTY}}}}}
  - {{path: [{CROWD_ROOT}], limit: {{information: {PLENTY}, calls: {PLENTY}}}}}
  - {{path: [{CROWD_ROOT}, "*"], limit: {{information: {PLENTY}, calls: {PLENTY}}}}}
"""


def main() -> None:
    """Measure, and print a table or JSON."""
    options = _parser().parse_args()
    figures: list[Figure] = []
    crowds: list[Beside] = []
    for store in options.store:
        measure(store, options, figures, crowds)
    if options.json:
        print(json.dumps([*map(asdict, figures), *map(asdict, crowds)]))
    else:
        print_table(figures)
        print_targets(figures)
        print_crowds(crowds)


def measure(store: str, options: argparse.Namespace, figures: list[Figure], crowds: list[Beside]) -> None:
    """Measure one store."""
    loops = (False, True) if options.uvloop else (False,)
    with ExitStack() as stack:
        targets = [
            stack.enter_context(_target(store, accounts, uvloop))
            for accounts in dict.fromkeys(options.accounts)
            for uvloop in loops
        ]
        for callers in options.callers:
            figures += _figures(store, Plan(targets, callers, options.seconds, options.rounds))
        rounds = {"seconds": options.seconds, "rounds": options.rounds}
        for target, connections in product(targets, CROWD_CONNECTIONS) if options.crowd else ():
            print(f"{store} {target.name}: beside {options.crowd} on {connections}", file=sys.stderr)
            crowds.append(beside_crowd(store, target, options.crowd, connections, **rounds))


@contextmanager
def _target(store: str, accounts: int, uvloop: bool) -> Iterator[Target]:
    """Run a server on a ledger of so many accounts."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gris-bench-")))
        (folder / "budget.yaml").write_text(CONFIGURATION)
        address = stack.enter_context(_store(store, folder))
        with _server(folder, address, uvloop=False) as server:
            asyncio.run(_charge_template(server))
        fill(address, accounts)
        server = stack.enter_context(_server(folder, address, uvloop))
        asyncio.run(_require_filled(server, accounts))
        yield Target(f"{accounts:,}{' uvloop' if uvloop else ''}", server, accounts)


@contextmanager
def _store(store: str, folder: Path) -> Iterator[str]:
    match store:
        case "sqlite":
            yield f"sqlite:{folder}/ledger.db"
        case "redis":
            with redis_server(folder) as redis:
                yield redis.address
        case "postgres-pair":
            with postgres_pair() as pair:
                yield pair.address + REQUIRED
        case _:
            with postgres_server() as postgres:
                yield postgres.address


@contextmanager
def _server(folder: Path, store: str, uvloop: bool) -> Iterator[str]:
    command = [sys.executable, "-m", "bench.budget.server", "--config", str(folder / "budget.yaml")]
    command += ["--store", store, *(["--uvloop"] if uvloop else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY) as process:
        assert process.stdout is not None  # noqa: S101 - for the type checker
        try:
            yield json.loads(process.stdout.readline())["address"]
        finally:
            process.terminate()


async def _charge_template(address: str) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        stub: Any = budget_pb2_grpc.BudgetServiceStub(channel)
        cost = cost_pb2.Cost(information=1, calls=1, unit_id=UNIT)
        account = pb.Account(path=account_of(TEMPLATE))
        await stub.UpdateBudget(pb.UpdateBudgetRequest(account=account, cost=cost, request_id="template"))


async def _require_filled(address: str, accounts: int) -> None:
    """See that the last account has what the template has, and that its request is remembered."""
    async with grpc.aio.insecure_channel(address) as channel:
        stub: Any = budget_pb2_grpc.BudgetServiceStub(channel)
        account = pb.Account(path=account_of(accounts - 1))
        levels = (await stub.GetBudget(pb.GetBudgetRequest(account=account))).levels
        if [level.spent.calls for level in levels] != [1, 1, 1]:
            raise RuntimeError(f"the ledger has no {accounts} accounts")


def _figures(store: str, plan: Plan) -> Iterator[Figure]:
    for target in plan.targets:
        print(f"{store} {target.name}: {plan.callers} callers", file=sys.stderr)
    samples = _samples(plan)
    for target in plan.targets:
        found = {
            kind: [each for each in samples if (each.target, each.kind) == (target.name, kind)]
            for kind in dict.fromkeys(sample.kind for sample in samples)
        }
        for each in found.values():
            yield figure_of(store, plan.callers, each, found["echo"], found["one row"])


def _samples(plan: Plan) -> list[Sample]:
    command = [sys.executable, "-m", "bench.budget.load"]
    reported = json.dumps(asdict(plan))
    done = subprocess.run(
        command, input=reported, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY, check=True
    )
    return [Sample(**each) for each in json.loads(done.stdout)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m bench budget", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", nargs="+", choices=STORES, default=list(STORES))
    parser.add_argument("--accounts", nargs="+", type=int, default=[10**3, 10**6])
    parser.add_argument("--callers", nargs="+", type=int, default=[1, 16, 64])
    parser.add_argument("--seconds", type=float, default=1.0, help="of each kind of call in each round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--crowd", type=int, default=1000, help="calls in flight beside a lone one; 0: none")
    parser.add_argument("--uvloop", action="store_true", help="measure each server on uvloop too")
    parser.add_argument("--json", action="store_true")
    return parser


if __name__ == "__main__":
    main()
