"""The limits and time-outs of a gateway beside those of its callers, as one value that is passed in.

The configuration changes the time-outs (`timeouts`), and nothing else of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from gris_serving.slow_callers import HANDSHAKE_SECONDS


@dataclass(frozen=True)
class GatewayLimits:
    """How much callers may ask of a gateway, and how long it waits for them and for its upstreams.

    Attributes:
        caller_timeout_seconds: How long all of one call may wait for its caller.
        handshake_seconds: How long a new connection has for TLS and the first frame of HTTP/2.
        open_calls: How many calls of health and reflection may be under way. Anyone who reaches the gateway may watch
            its health, and each program that does so has one call open.
        open_readers: Of those calls, how many may be sending a request, of up to `request_bytes`.
        running_calls: How many calls of all known callers may be under way and not wait. A question holds a true
            histogram, and those that wait for the engine hold it longest.
        waiting_calls: How many calls of all known callers may wait, to be read or for their turn.
        waiting_request_bytes: The largest request that is held while it waits for its turn.
        remembered_callers: For how many callers the rates are remembered.
        request_bytes: The largest request. No question that dp_service accepts is as large: its texts have 200,000
            characters at most, its numbers are 32,000 at most.
        unread_bytes: What a caller may send before something waits for it.
        pending_calls: How many calls may wait to be taken up. By default gRPC cancels calls at random from 1000 on,
            from any caller.
        connection_calls: How many calls one connection may have. A refusal that is not read is kept, some 24 kB with
            its call, and strangers can have as many as calls.
        http_connections: How many connections each of its HTTP servers may have; further ones are refused.
        http_answer_seconds: How long one request over HTTP may take, its answer being read included.
        slowest_call_seconds: How long an unfinished call may outlive its connection.
        grace_seconds: How long calls that have begun may go on when the gateway stops.
        health_interval_seconds: How often the health of both services is checked.
        health_timeout_seconds: How long a service has to answer that check.
        store_interval_seconds: How often the metrics of the release store are read from it.
        receipts_interval_seconds: How often results whose days are over are removed from the history.
        default_page_size: How many results a page of the history has if the caller does not say.
        page_size: The largest page that a caller may ask for.
    """

    caller_timeout_seconds: float = 60.0
    handshake_seconds: float = HANDSHAKE_SECONDS
    open_calls: int = 2000
    open_readers: int = 64
    running_calls: int = 256
    waiting_calls: int = 1024
    waiting_request_bytes: int = 2**16
    remembered_callers: int = 10_000
    request_bytes: int = 2 * 2**20
    unread_bytes: int = 2**14
    pending_calls: int = 10_000
    connection_calls: int = 1000
    http_connections: int = 1000
    http_answer_seconds: float = 300.0
    slowest_call_seconds: float = 300.0
    grace_seconds: float = 30.0
    health_interval_seconds: float = 2.0
    health_timeout_seconds: float = 1.0
    store_interval_seconds: float = 15.0
    receipts_interval_seconds: float = 3600.0
    default_page_size: int = 20
    page_size: int = 100


DEFAULT_LIMITS = GatewayLimits()
