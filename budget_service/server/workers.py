"""Several processes behind one port: the system gives each new connection to one of them (SO_REUSEPORT).

They share nothing but the store, so it must be one that several processes may write. This process starts them, watches
them and ends them together: if one dies all are ended, and the service manager restarts the service.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress

from budget_service.server.hosting import ListenError, split_address

DIED = 1


# The option of a worker for each address, by the address's name in its first line of output.
FLAGS = {"address": "--listen", "admin_address": "--admin-listen", "health_address": "--health-listen"}


async def supervise(
    arguments: Sequence[str],
    wanted: Mapping[str, str],
    count: int,
    stop: asyncio.Event,
    ready: Callable[[Mapping[str, str]], None],
    *,
    environment: Mapping[str, str],
) -> int:
    """Run workers until `stop` is set or one of them ends.

    Args:
        arguments: The command line of a worker, without its addresses.
        wanted: The addresses by the names of FLAGS: HOST:PORT, port 0 takes any free one.
        count: How many workers.
        stop: Ends the workers when it is set.
        ready: Called with the addresses once all workers serve.
        environment: Added to this process's environment for the workers.

    Returns:
        The exit code.

    Raises:
        ListenError: An address cannot be listened on.
    """
    with ExitStack() as held:
        addresses = {name: held.enter_context(_reserved(listen)) for name, listen in wanted.items()}
        flags = [word for name, address in addresses.items() for word in (FLAGS[name], address)]
        async with _workers((*arguments, *flags), environment, count) as workers:
            return await _end(workers, stop, lambda: ready(addresses))


@contextmanager
def _reserved(listen: str) -> Iterator[str]:
    """Reserve a free address for the workers."""
    host, port = split_address(listen)
    try:
        # Without this check, workers of another service on the same port would get some of the calls.
        _bound(host, port, socket.SO_REUSEADDR).close()
        held = _bound(host, port, socket.SO_REUSEPORT)
    except OSError:
        raise ListenError(f"cannot listen on {listen}") from None
    with held:
        yield f"{host}:{held.getsockname()[1]}"


def _bound(host: str, port: int, option: int) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(family)
    try:
        bound.setsockopt(socket.SOL_SOCKET, option, 1)
        bound.bind(address)
    except BaseException:
        bound.close()
        raise
    return bound


@asynccontextmanager
async def _workers(
    arguments: Sequence[str], environment: Mapping[str, str], count: int
) -> AsyncIterator[list[Process]]:
    command = (sys.executable, "-m", "budget_service", *arguments, "--worker")
    workers: list[Process] = []
    try:
        for _ in range(count):
            workers.append(
                await asyncio.create_subprocess_exec(
                    *command, stdin=PIPE, stdout=PIPE, env={**os.environ, **environment}
                )
            )
        yield workers
    finally:
        for worker in workers:
            with suppress(ProcessLookupError):
                worker.terminate()
        for worker in workers:
            await worker.wait()


async def _end(workers: Sequence[Process], stop: asyncio.Event, ready: Callable[[], None]) -> int:
    """Return the exit code when `stop` is set or a worker ends; call `ready` once all of them serve."""
    stopped = asyncio.create_task(stop.wait())
    # A worker serves only when its store is open, which may take for ever.
    starting = asyncio.create_task(_first_failure(workers))
    ends = [asyncio.create_task(worker.wait()) for worker in workers]
    try:
        await asyncio.wait((stopped, starting), return_when=asyncio.FIRST_COMPLETED)
        if stopped.done():
            return 0
        if (failed := starting.result()) is not None:
            return await failed.wait() or DIED
        ready()
        await asyncio.wait((stopped, *ends), return_when=asyncio.FIRST_COMPLETED)
        return 0 if stopped.done() else DIED
    finally:
        for task in (stopped, starting, *ends):
            task.cancel()
        await asyncio.gather(stopped, starting, *ends, return_exceptions=True)


async def _first_failure(workers: Sequence[Process]) -> Process | None:
    """Return the first worker that ends before it serves; None when all of them serve."""
    for waited in asyncio.as_completed(map(_failed, workers)):
        if (failed := await waited) is not None:
            return failed
    return None


async def _failed(worker: Process) -> Process | None:
    assert worker.stdout is not None, "it was started with a pipe"  # noqa: S101 - for the type checker
    line = await worker.stdout.readline()
    return None if line and "address" in json.loads(line) else worker
