"""A new question over each protocol of a gateway beside its own Ask: its time, and the CPU that the gateway spends.

    python -m bench faces

One text, changed in a literal each time, is asked by gRPC, of the broker that Pinot's clients know, and over
PostgreSQL's protocol in simple and in extended queries, at one gateway, whose engine answers at once. Each question of
a kind is asked next to one of every other, in an order that changes, so that a slow moment of the machine meets all;
the CPU is counted over blocks of questions of one kind, which take turns. Clients are as small as they come; their own
time is in the first figure, and not in the second.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeAlias

import grpc
import psycopg
from gris_api.app.v1 import app_pb2, app_pb2_grpc
from gris_api.dp.v1 import question_pb2

from bench.cpu import cpu_seconds
from bench.gateways import running_gateway
from bench.tables import BUDGET, EXAMPLES, feedback
from pinot_connector.embedded import EmbeddedServices
from tests.support.pki import Issuer
from tests.unit.gris_gateway.token_world import AUDIENCE

WARM_UP = 50
BLOCK = 25
TARGET = 1.1
OWN = "gRPC"

Ask: TypeAlias = Callable[[str], object]
_numbers = itertools.count()


def main() -> None:
    """Measures, and prints a table for people or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=500, help="of each kind, for each figure")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with _kinds() as kinds:
        for _ in range(WARM_UP):
            for ask in kinds.values():
                ask(_new_text())
        p50, cpu = _medians(kinds, options.questions), _cpu(kinds, options.questions)
    found = {
        kind: {
            "p50_ms": round(1e3 * p50[kind], 3),
            "p50_ratio": round(p50[kind] / p50[OWN], 3),
            "gateway_cpu_ms": round(1e3 * cpu[kind], 3),
            "cpu_ratio": round(cpu[kind] / cpu[OWN], 3),
        }
        for kind in kinds
    }
    if options.json:
        print(json.dumps({"target": TARGET, "faces": found, "load": os.getloadavg()[0]}))
        return
    print(f"a new question, beside the gateway's own Ask: at most {TARGET}; load {os.getloadavg()[0]:.1f}")
    for kind, each in found.items():
        print(
            f"{kind:>20}: p50 {each['p50_ms']:6.2f} ms ({each['p50_ratio']:.2f}), "
            f"gateway's CPU {each['gateway_cpu_ms']:6.2f} ms ({each['cpu_ratio']:.2f}): "
            f"{'met' if max(each['p50_ratio'], each['cpu_ratio']) <= TARGET else 'MISSED'}"
        )


def _new_text() -> str:
    """Returns a private top 10 that nobody has asked before."""
    return (
        "SELECT article_id, COUNT(DISTINCT member_id) AS members FROM cofacts_feedback "  # noqa: S608
        f"WHERE article_id <> 'no article {next(_numbers)}' GROUP BY article_id ORDER BY members DESC LIMIT 10"
    )


def _medians(kinds: dict[str, Ask], questions: int) -> dict[str, float]:
    """Returns the median of the seconds of a question of each kind."""
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    for order in itertools.islice(itertools.cycle(itertools.permutations(kinds)), questions):
        for kind in order:
            text = _new_text()
            began = time.perf_counter()
            kinds[kind](text)
            seconds[kind].append(time.perf_counter() - began)
    return {kind: statistics.median(each) for kind, each in seconds.items()}


def _cpu(kinds: dict[str, Ask], questions: int) -> dict[str, float]:
    """Returns the seconds of CPU that the gateway spends on a question of each kind, medians of blocks."""
    spent: dict[str, list[float]] = {kind: [] for kind in kinds}
    for order in itertools.islice(itertools.cycle(itertools.permutations(kinds)), max(1, questions // BLOCK)):
        for kind in order:
            before = cpu_seconds()["gateway"]
            for _ in range(BLOCK):
                kinds[kind](_new_text())
            spent[kind].append((cpu_seconds()["gateway"] - before) / BLOCK)
    return {kind: statistics.median(each) for kind, each in spent.items()}


@contextmanager
def _kinds() -> Iterator[dict[str, Ask]]:
    """Gives what asks a text over each protocol of one gateway."""
    table = feedback()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "policy.yaml").write_text((EXAMPLES / "policy.yaml").read_text())
        (folder / "budget.yaml").write_text(BUDGET)
        token = Issuer(folder).token(AUDIENCE, sub="caller")
        with (
            EmbeddedServices(
                policy=folder / "policy.yaml", budget_config=folder / "budget.yaml", directory=folder
            ) as services,
            running_gateway(
                "gateway",
                folder,
                table,
                dp=services.dp_address,
                budget=services.budget_address,
                faces=("broker", "postgres"),
            ) as gateway,
            grpc.insecure_channel(gateway["address"]) as channel,
            closing(http.client.HTTPConnection(gateway["broker_address"])) as broker,
            _connected(gateway["postgres_address"], token) as postgres,
        ):
            yield {
                OWN: _asking_grpc(channel, token),
                "broker": _asking_broker(broker, token),
                "PostgreSQL, simple": lambda text: postgres.execute(text).fetchall(),
                "PostgreSQL, extended": lambda text: postgres.execute(
                    text, prepare=False, binary=True
                ).fetchall(),
            }


def _asking_grpc(channel: grpc.Channel, token: str) -> Ask:
    stub = app_pb2_grpc.PrivateQueryServiceStub(channel)
    metadata = (("authorization", f"Bearer {token}"),)

    def ask(text: str) -> object:
        request = app_pb2.AskRequest(question=question_pb2.Question(sql=text))
        return list(stub.Ask(request, metadata=metadata, timeout=60))

    return ask


def _asking_broker(broker: http.client.HTTPConnection, token: str) -> Ask:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(text: str) -> object:
        broker.request("POST", "/query/sql", json.dumps({"sql": text}), headers)
        answer = json.load(broker.getresponse())
        if answer["exceptions"]:
            raise RuntimeError(f"the broker refused: {answer['exceptions']}")
        return answer

    return ask


def _connected(address: str, token: str) -> psycopg.Connection:
    host, _, port = address.rpartition(":")
    return psycopg.connect(
        host=host, port=port, user="-", password=token, dbname="gris", autocommit=True, prepare_threshold=None
    )


if __name__ == "__main__":
    main()
