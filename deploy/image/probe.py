"""Asks a gRPC server on this machine whether it serves; the exit code is the answer, 0 for yes.

    python /opt/gris/image/probe.py localhost:50051

For Docker and compose, which can only run a command. Kubernetes asks by itself.
"""

import sys
from collections.abc import Sequence
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

_TIMEOUT_SECONDS = 2.0
_NO, _USAGE = 1, 2


def main(arguments: Sequence[str]) -> int:
    """Return 0 if the server at the one argument HOST:PORT says within two seconds that it serves."""
    if len(arguments) != 1:
        print("probe: expected one argument, HOST:PORT", file=sys.stderr)
        return _USAGE
    with grpc.insecure_channel(arguments[0]) as channel:
        try:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=_TIMEOUT_SECONDS)
        except grpc.RpcError as error:
            print(f"probe: {error.code().name}", file=sys.stderr)
            return _NO
    serves = answer.status == health_pb2.HealthCheckResponse.SERVING
    return 0 if serves else _NO


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
