"""The process of dp_service: options, one server on one address, health checks, and a graceful shutdown."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import grpc
from gris_api.dp.v1 import dp_pb2, dp_pb2_grpc
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from dp_service.queries.errors import PolicyError
from dp_service.releases.keys import KeySet
from dp_service.releases.kinds import UnusableParametersError
from dp_service.server.errors import DOMAIN
from dp_service.server.key_file import read_key_files
from dp_service.server.served_policy import PolicyFileWatch, ServedPolicy, usable_policy
from dp_service.server.service import DpServicer, Environment
from gris_serving import health, logs
from gris_serving.authorisation import Methods, Role, methods_of
from gris_serving.draining import connection_options, drain_and_stop
from gris_serving.garbage_collection import spared_collector
from gris_serving.instrumentation import Instrumentation
from gris_serving.internal_errors import log_internal_error
from gris_serving.key_files import KeyFileError
from gris_serving.listening import ListeningError
from gris_serving.options import (
    OperatingError,
    OperatingOptions,
    add_operating_options,
    address_option,
    operating_of,
)
from gris_serving.parents import stop_event, stop_with_parent
from gris_serving.reloading_files import SecurityError
from gris_serving.security import Security, SecurityOptions, add_security_options
from gris_serving.slow_callers import handshake_options
from gris_serving.telemetry import Telemetry, start_telemetry
from gris_serving.unfinished_requests import UnfinishedRequests

SERVICE_NAME = dp_pb2.DESCRIPTOR.services_by_name["DpService"].full_name
MESSAGE_LIMIT_BYTES = 16 * 2**20
QUESTION_LIMIT_BYTES = 2 * 2**20
"""No question that is accepted is as large: its texts have 200,000 characters at most, its numbers are 32,000 at most.
"""
GRACE_SECONDS = 10.0
# How many calls may wait to be accepted. By default gRPC cancels calls at random from 1000 on, without a reason.
MAX_PENDING_CALLS = 100_000
# How many calls may wait for the rest of their request, of 16 MiB each at most, and how long those that can be ended:
# as long as a client of ours waits for its answer.
UNFINISHED_CALLS = 32
UNFINISHED_SECONDS = 30.0
PING_INTERVAL_MS = 4000
POLL_SECONDS = 1.0
POLICY_FILE_SERVICE = f"{SERVICE_NAME}/policy-file"
"""The health check that is SERVING exactly while the policy file's content is served."""
EXIT_USAGE = 2
# What releasing a histogram takes. Only the application's server, which sees true counts anyway, has this role.
_SPEND = ("TranslateQuery", "AddNoise", "AddNoiseUnary", "ShowRelease")
_READ = ("EstimateCost", "DescribeGuarantee", "GetCatalog")
METHODS = Methods(
    DOMAIN,
    {**methods_of(SERVICE_NAME, _SPEND, Role.SPEND), **methods_of(SERVICE_NAME, _READ, Role.READ)},
)

# A plan with the elements of a large domain, or a histogram, takes megabytes; such requests may be as large as gRPC's
# own limit.
_WITH_PLAN = ("AddNoise", "AddNoiseUnary", "ShowRelease")
REQUEST_BYTES = {name: QUESTION_LIMIT_BYTES for name in (*_SPEND, *_READ) if name not in _WITH_PLAN}

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    policy: Path
    key_file: Path
    previous_key_file: list[Path]
    listen: str
    reflection: bool
    validate: bool
    stop_with_stdin: bool
    operating: OperatingOptions
    security: SecurityOptions


def parse_options(arguments: Sequence[str] | None = None) -> Options:
    """Return the options of the command line; argparse ends the process with code 2 if they are wrong."""
    parser = argparse.ArgumentParser(
        "python -m dp_service",
        description="Translates questions under a policy, prices them, and adds noise.",
    )
    _add_file_options(parser)
    parser.add_argument(
        "--listen",
        type=address_option,
        default="127.0.0.1:50051",
        help="address and port; port 0 picks a free one",
    )
    parser.add_argument("--reflection", action="store_true", help="offer gRPC server reflection")
    parser.add_argument("--validate", action="store_true", help="check all files and exit")
    parser.add_argument("--stop-with-stdin", action="store_true", help=argparse.SUPPRESS)
    add_operating_options(parser)
    add_security_options(parser)
    options = parser.parse_args(arguments)
    return Options(
        policy=options.policy,
        key_file=options.key_file,
        previous_key_file=options.previous_key_file,
        listen=options.listen,
        reflection=options.reflection,
        validate=options.validate,
        stop_with_stdin=options.stop_with_stdin,
        operating=operating_of(options),
        security=SecurityOptions.of(options),
    )


def _add_file_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--policy", type=Path, required=True, help="the policy file (YAML)")
    parser.add_argument(
        "--key-file",
        type=Path,
        required=True,
        help="the current key: 32 bytes, raw or as 64 hexadecimal characters",
    )
    parser.add_argument(
        "--previous-key-file",
        type=Path,
        action="append",
        default=[],
        help="another live key, whose plans are accepted: the previous one, or the next one before it becomes "
        "current; repeatable",
    )


def key_set_service(keys: KeySet) -> str:
    """Return the name of the health check that is SERVING exactly where these keys are live."""
    return f"{SERVICE_NAME}/keys/{keys.set_id}"


def policy_service(policy_id: str) -> str:
    """Return the name of the health check that is SERVING exactly where this content of the policy file is served."""
    return f"{SERVICE_NAME}/policy/{policy_id}"


async def serve(
    options: Options,
    servicer: DpServicer,
    *,
    keys: KeySet,
    served: ServedPolicy,
    watch: PolicyFileWatch,
    security: Security,
    telemetry: Telemetry,
) -> None:
    """Serve until SIGTERM or SIGINT, then drain and let calls in progress finish.

    Args:
        options: The options of the command line.
        servicer: The implementation of the RPCs.
        keys: The live keys, for the name of a health check.
        served: The policy that is served.
        watch: What reloads the policy file.
        security: TLS, authentication and roles.
        telemetry: Metrics, traces and logs.
    """
    stopped = stop_event()
    if options.stop_with_stdin:
        stop_with_parent(stopped.set)
    drain_seconds = options.operating.drain_seconds
    server = _new_server(security, telemetry, drain_seconds)
    dp_pb2_grpc.add_DpServiceServicer_to_server(
        servicer, telemetry.instrumentation.before(server, request_bytes=REQUEST_BYTES)
    )
    health_servicer = health.Health()
    health_pb2_grpc.add_HealthServicer_to_server(health_servicer, server)
    if options.reflection:
        reflected = (SERVICE_NAME, health.SERVICE_NAME, reflection.SERVICE_NAME)
        reflection.enable_server_reflection(reflected, server)
    port = security.bind(server, options.listen)
    await server.start()
    policy_id = served.content.policy_id
    names = (SERVICE_NAME, health.OVERALL)
    details = (key_set_service(keys), policy_service(policy_id), POLICY_FILE_SERVICE)
    health_servicer.report((*details, *names), serving=True)
    for component in ("server", "policy_file"):
        telemetry.instrumentation.report(component, serving=True)
    watching = [asyncio.create_task(_watch(watch, served, health_servicer, telemetry.instrumentation))]
    async with AsyncExitStack() as others:
        addresses = dict(telemetry.addresses)
        if options.security.health_listen is not None:
            alone = health.serving_health(health_servicer, options.security.health_listen)
            addresses["health_address"] = await others.enter_async_context(alone)
        others.enter_context(spared_collector())
        _announce(options.listen, port, keys, policy_id, addresses)
        await stopped.wait()
        telemetry.instrumentation.report("server", serving=False)
        await drain_and_stop(
            server, health_servicer, names, drain_seconds=drain_seconds, grace_seconds=GRACE_SECONDS
        )
    for task in watching:
        task.cancel()


def _new_server(security: Security, telemetry: Telemetry, drain_seconds: float) -> grpc.aio.Server:
    return grpc.aio.server(
        interceptors=_interceptors(security, telemetry.instrumentation),
        options=[
            ("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES),
            ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES),
            ("grpc.server.max_pending_requests", MAX_PENDING_CALLS),
            ("grpc.server.max_pending_requests_hard_limit", MAX_PENDING_CALLS),
            ("grpc.so_reuseport", 0),
            # By default gRPC disconnects clients that send keep-alive pings more often than every five minutes.
            ("grpc.http2.min_ping_interval_without_data_ms", PING_INTERVAL_MS),
            *handshake_options(),
            *connection_options(drain_seconds),
        ],
    )


def _interceptors(
    security: Security, instrumentation: Instrumentation
) -> Sequence[grpc.aio.ServerInterceptor]:
    """Return what a call goes through: where nobody is asked who they are, a bound on requests that are half sent."""
    # Otherwise a request is read only once its caller has the role.
    return security.interceptors(instrumentation) or (
        UnfinishedRequests(DOMAIN, instrumentation, most=UNFINISHED_CALLS, seconds=UNFINISHED_SECONDS),
    )


async def _watch(
    watch: PolicyFileWatch,
    served: ServedPolicy,
    health_servicer: health.Health,
    instrumentation: Instrumentation,
) -> None:
    """Check the policy file for ever. A bad file never makes the service unhealthy."""
    while True:
        await asyncio.sleep(POLL_SECONDS)
        before = served.content.policy_id
        try:
            decided = await asyncio.to_thread(watch.poll)
        except Exception as error:
            # Nothing that a file can hold may end the watch.
            log_internal_error(_log, "The policy file could not be checked.", error)
            decided = True
        if decided:
            health_servicer.report([policy_service(before)], serving=False)
            health_servicer.report([policy_service(served.content.policy_id)], serving=True)
            health_servicer.report([POLICY_FILE_SERVICE], serving=watch.is_served)
            instrumentation.report("policy_file", serving=watch.is_served)


def _announce(listen: str, port: int, keys: KeySet, policy_id: str, addresses: Mapping[str, str]) -> None:
    """Print one line of JSON when the service is ready: its address, and the names of its keys and its policy."""
    host = listen.rpartition(":")[0]
    ready = {
        "service": "dp_service",
        "address": f"{host}:{port}",
        "key_id": keys.current.key_id,
        "key_set_id": keys.set_id,
        "policy_id": policy_id,
        **addresses,
    }
    print(json.dumps(ready), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the service; the exit code is 2, with one line on standard error, if the configuration is wrong."""
    options = parse_options(arguments)
    logs.configure(options.operating.log_format, options.operating.log_level)
    try:
        content = options.policy.read_bytes()
        keys = read_key_files(options.key_file, options.previous_key_file)
        served = ServedPolicy(usable_policy(content, str(options.policy), keys.current))
        environment = Environment(time.time, os.urandom)
        servicer = DpServicer(served, keys, environment)
        security = Security(options.security, METHODS)
        security.require_safe(options.listen)
        if not options.validate:
            watch = PolicyFileWatch(options.policy, served, content, keys.current)
            with start_telemetry("dp_service", options.operating) as seen:
                serving = serve(
                    options,
                    servicer,
                    keys=keys,
                    served=served,
                    watch=watch,
                    security=security,
                    telemetry=seen,
                )
                asyncio.run(serving)
    except (PolicyError, KeyFileError, UnusableParametersError, OperatingError, SecurityError) as error:
        print(f"dp_service: {error}", file=sys.stderr)
        return EXIT_USAGE
    except OSError as error:
        print(f"dp_service: {error.filename}: {error.strerror}", file=sys.stderr)
        return EXIT_USAGE
    except ListeningError as error:
        print(f"dp_service: --listen {options.listen}: {error}", file=sys.stderr)
        return EXIT_USAGE
    except RuntimeError:
        # gRPC raises this when it cannot listen on the address; its text is about gRPC.
        problem = "the address is in use, or is none of this machine"
        print(f"dp_service: --listen {options.listen}: {problem}", file=sys.stderr)
        return EXIT_USAGE
    return 0
