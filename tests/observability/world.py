"""Both services as processes that are watched in every way there is, under traffic that is full of markers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.support.leaked_numbers import number_pattern
from tests.support.world import copy

ACCOUNT, POOR = "markeraccount/markeranalyst", "markerpoor/markeranalyst"
ELEMENT, LITERAL = "markerelement", "markerliteral"
MEMBERS = 98_765
REQUEST_ID = "request-of-the-application"
SECRETS = re.compile(f"marker|select|engagement|{number_pattern(MEMBERS)}", re.IGNORECASE)

POLICY = """
epsilon_per: 8
delta: 1e-10
tables:
  engagement:
    member: member_id
    measures: {distinct_members: true}
    columns:
      member_id: {type: int64}
      element: {type: string, group_by: true}
      kind: {type: string, filter: [in, not_in]}
"""
BUDGET = """
accounts:
  - path: [markeraccount]
    limit: {information: 1000000000000, calls: 1000000000000}
  - path: [markeraccount, "*"]
    limit: {information: 3000, calls: 300}
  - path: [markerpoor]
    limit: {information: 1000000000000, calls: 1000000000000}
  - path: [markerpoor, "*"]
    limit: {information: 1, calls: 0}
"""


@dataclass(frozen=True)
class Seen:
    """What can be seen of the traffic: metrics of each service, the log of both, spans by process, and numbers."""

    metrics: dict[str, str]
    log: str
    spans: dict[str, list[Span]]
    numbers: dict[str, list[dict[str, str]]]


@contextmanager
def collecting() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """Run a collector of traces; give its address and what it receives."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            """Take what is sent."""
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    received: list[ExportTraceServiceRequest] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def look(folder: Path) -> Seen:
    """Run the services, let an application ask its questions, and return what can be seen of them."""
    _prepare(folder)
    with ExitStack() as stack:
        address, received = stack.enter_context(collecting())
        environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": address}
        log = stack.enter_context((folder / "log").open("w"))
        dp_command = ["dp_service", "--policy", f"{folder}/policy.yaml", "--key-file", f"{folder}/noise.key"]
        budget_command = ["budget_service", "--config", f"{folder}/budget.yaml"]
        budget_command += ["--store", f"sqlite:{folder}/ledger.db"]
        processes = [_started(stack, command, environment, log) for command in (dp_command, budget_command)]
        addresses = [each[1] for each in processes]
        arguments = [addresses[0]["address"], addresses[1]["address"], str(folder)]
        done = subprocess.run(
            [sys.executable, "-m", "tests.observability.application", *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        metrics = {each["service"]: scraped(each["metrics_address"]) for each in addresses}
        for process, _ in processes:
            process.terminate()
            assert process.wait(30) == 0
        return Seen(metrics, (folder / "log").read_text(), _by_process(received), json.loads(done.stdout))


def scraped(address: str) -> str:
    """Return what Prometheus would read."""
    with urllib.request.urlopen(f"http://{address}/metrics") as answer:
        return str(answer.read().decode())


def _prepare(folder: Path) -> None:
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "budget.yaml").write_text(BUDGET)
    key = folder / "noise.key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o400)
    columns = f"range AS member_id, '{ELEMENT}' AS element, '{LITERAL}' AS kind"
    rows = f"SELECT {columns} FROM range({MEMBERS})"  # noqa: S608 - our own
    copy(rows, folder / "engagement.parquet")


def _started(
    stack: ExitStack, command: list[str], environment: dict[str, str], log: object
) -> tuple[subprocess.Popen[str], dict[str, str]]:
    watched = ["--metrics-listen", "127.0.0.1:0", "--log-format", "json", "--log-level", "debug"]
    process = subprocess.Popen(
        [sys.executable, "-m", *command, "--listen", "127.0.0.1:0", *watched],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,  # type: ignore[call-overload]
    )
    stack.callback(process.wait)
    stack.callback(process.kill)
    stack.callback(process.stdout.close)
    return process, json.loads(process.stdout.readline())


def _by_process(received: list[ExportTraceServiceRequest]) -> dict[str, list[Span]]:
    spans: dict[str, list[Span]] = {}
    for resource in (each for request in received for each in request.resource_spans):
        names = {each.key: each.value.string_value for each in resource.resource.attributes}
        found = spans.setdefault(names["service.name"], [])
        found += [span for scope in resource.scope_spans for span in scope.spans]
    return spans
