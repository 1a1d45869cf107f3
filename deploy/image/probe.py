"""Checks the health of a gRPC server on this machine; the exit code is the answer, 0 for serving.

    python /opt/gris/image/probe.py localhost:50051

For Docker and compose, which can only run a command; Kubernetes sends health checks itself. If the server does not
serve, one line on standard error says why.
"""

import sys
from collections.abc import Sequence
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

STORE = "gris.budget.v1.BudgetService/store"
_TIMEOUT_SECONDS = 2.0
_NO, _USAGE = 1, 2


def main(arguments: Sequence[str]) -> int:
    """Return 0 if the server at the one argument HOST:PORT says within two seconds that it serves."""
    if len(arguments) != 1:
        print("probe: expected one argument, HOST:PORT", file=sys.stderr)
        return _USAGE
    fault = _fault(arguments[0])
    if fault:
        print(f"probe: {arguments[0]}: {fault}", file=sys.stderr)
    return _NO if fault else 0


def _fault(address: str) -> str:
    """Return why the server does not serve, and nothing if it does."""
    # What asks about itself asks no proxy of the environment.
    with grpc.insecure_channel(address, (("grpc.enable_http_proxy", 0),)) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        try:
            if _serves(stub, ""):
                return ""
        except grpc.RpcError as error:
            return f"no answer about its health: {error.code().name}: {error.details()}"
        try:
            store_serves = _serves(stub, STORE)
        except grpc.RpcError:
            store_serves = True  # Only budget_service has one.
    return "NOT_SERVING: it is about to end" if store_serves else f"NOT_SERVING, and so is {STORE}"


def _serves(stub: Any, name: str) -> bool:
    answer = stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=_TIMEOUT_SECONDS)
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
