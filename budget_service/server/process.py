"""Starts the budget service: the one place that puts configuration, store and server together.

    python -m budget_service --config budget.yaml --store sqlite:ledger.db --listen 127.0.0.1:0

When it can serve, it prints one line of JSON, `{"service": "budget_service", "address": "127.0.0.1:PORT"}`, with
`admin_address`, `health_address` and `metrics_address` if these are asked for. Its log goes to stderr. The exit code is
2 if the configuration, the options or the store cannot be used.

A store that cannot be reached ends nothing: the process runs, its health is NOT_SERVING, calls are refused with
UNAVAILABLE, and it tries to open the store again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import grpc

from budget_service.configuration.budget_file import Configuration, ConfigurationError
from budget_service.configuration.region_file import RegionConfiguration, load_region
from budget_service.server.actors import local_actor
from budget_service.server.admin_service import MAX_REQUEST_BYTES as ADMIN_REQUEST_BYTES
from budget_service.server.hosting import METHODS, ListenError, administering, cancelled, new_server, serving
from budget_service.server.ledger import Ledger
from budget_service.server.options import parser, require_reason, store_address
from budget_service.server.regional_process import RegionParts, require_possible, running
from budget_service.server.service import MAX_REQUEST_BYTES
from budget_service.server.settings import LiveSettings, load_settings
from budget_service.stores.interface import (
    Store,
    StoreError,
    StoreUnavailableError,
    StoreUnusableError,
    uncounted,
)
from budget_service.stores.opening import confirm_restored, open_store, renew_mark, require_readable
from budget_service.tuning import DEFAULTS, Tuning
from gris_serving import health, logs
from gris_serving.garbage_collection import spared_collector
from gris_serving.key_files import KeyFileError
from gris_serving.options import OperatingError, operating_of
from gris_serving.parents import stop_event, stop_with_parent
from gris_serving.reloading_files import SecurityError
from gris_serving.security import Security, SecurityOptions
from gris_serving.telemetry import Telemetry, start_telemetry
from gris_serving.unfinished_requests import UnfinishedRequests

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from budget_service.server.metrics import LedgerMetrics

EXIT_UNREACHABLE = 1
EXIT_MISCONFIGURED = 2
QUIET_START_SECONDS = 1.0
"""How long a start waits for the store before it listens."""


def main(arguments: list[str] | None = None) -> int:
    """Run the service until it is stopped; return the exit code."""
    options = parser().parse_args(arguments)
    options.operating = operating_of(options)
    logs.configure(options.operating.log_format, options.operating.log_level)
    try:
        store = store_address(options)
        is_region = options.region is not None

        def check(configuration: Configuration) -> None:
            require_usable(configuration, store, is_region=is_region)

        settings = LiveSettings(load_settings(options.config, check), check=check)
        security = Security(SecurityOptions.of(options), METHODS)
        require_backups(options.backups, store)
        if options.spend_every_budget and not options.confirm_restored:
            raise ConfigurationError("--spend-every-budget says how --confirm-restored is meant: give both")
        require_reason(options, settings.current.configuration)
        options.region = None if options.region is None else _region_of(options)
        require_readable(store)
        for listen in filter(None, (options.listen, options.admin_listen)):
            security.require_safe(listen)
        if options.validate:
            return 0
        if options.confirm_restored or options.renew_mark is not None:
            work = _confirm_restored if options.confirm_restored else _renew_mark
            return asyncio.run(work(options, store, settings.current.configuration))
        with start_telemetry("budget_service", options.operating) as seen:
            asyncio.run(_run(options, settings, security, store, seen))
    except (
        ConfigurationError,
        KeyFileError,
        StoreUnusableError,
        ListenError,
        OperatingError,
        SecurityError,
    ) as error:
        return _fail(error, EXIT_MISCONFIGURED)
    except StoreUnavailableError as error:
        return _fail(error, EXIT_UNREACHABLE)
    return 0


def require_usable(configuration: Configuration, store: str, *, is_region: bool) -> None:
    """Raise why a valid configuration cannot be that of a service with this store, at its start or later."""
    if is_region:
        require_possible(configuration, store)
    if configuration.leases is not None and store.startswith("redis"):
        raise ConfigurationError(
            "leases: expected none: a ledger in Redis lends nothing to regions, take SQLite or PostgreSQL"
        )


def require_backups(folder: Path | None, store: str) -> None:
    """Return if a ledger in this store can be backed up to this folder. Raises ConfigurationError."""
    if folder is None:
        return
    if not store.startswith("sqlite:"):
        raise ConfigurationError(
            "--backups is for a ledger in SQLite; other stores are backed up by their own tools"
        )
    if not folder.is_dir():
        raise ConfigurationError(f"{folder} is not a folder to keep backups in")


def _region_of(options: argparse.Namespace) -> RegionConfiguration:
    """Return the configuration of the region that this is, or raise why it cannot be one."""
    if options.confirm_restored or options.renew_mark is not None:
        raise ConfigurationError(
            "--confirm-restored and --renew-mark are not for a region: what it has lost, only its home knows. Give a "
            "restored region another name and a new ledger"
        )
    if any(each is not None for each in (options.admin_listen, options.backups)):
        raise ConfigurationError(
            "--admin-listen and --backups are for the home ledger: a region keeps no balances"
        )
    return load_region(options.region)


async def _confirm_restored(options: argparse.Namespace, address: str, configuration: Configuration) -> int:
    count = await confirm_restored(
        address,
        configuration.limit_of,
        configuration.named_levels(),
        actor=local_actor(),
        reason=options.reason,
        allow_volatile=configuration.allow_volatile,
        mark=options.mark,
        though_nothing_is_lost=options.spend_every_budget,
    )
    sys.stderr.write(f"budget_service: what was left of {count} budgets counts as spent\n")
    return 0


async def _renew_mark(options: argparse.Namespace, address: str, configuration: Configuration) -> int:
    await renew_mark(
        address, options.renew_mark, allow_volatile=configuration.allow_volatile, mark=options.mark
    )
    sys.stderr.write(f"budget_service: {options.mark} is written anew; nothing was changed in the ledger\n")
    return 0


async def _run(
    options: argparse.Namespace, settings: LiveSettings, security: Security, address: str, seen: Telemetry
) -> None:
    stop = stop_event()
    if options.stop_with_stdin:
        stop_with_parent(stop.set)
    ledger = Ledger()
    program = _Program(options, settings, security, seen, ledger_metrics(seen.registry), ledger)
    if seen.registry is not None:
        count_regions(seen.registry, program)
    async with program.opening(address) as opened:
        # Mostly the store opens at once, or cannot be used: then the health need not say that it cannot be reached.
        await _ended(opened, stop, timeout_seconds=QUIET_START_SECONDS)
        async with (
            AsyncExitStack() as stack,
            program.followed(),
            AsyncExitStack() as servers,
        ):
            if options.region is not None:
                path = require_possible(settings.current.configuration, address)
                program.region = await stack.enter_async_context(running(options.region, ledger, path))
            servers.enter_context(spared_collector())
            addresses = await program.started(servers)
            if await _ended(opened, stop) and await _ended(
                asyncio.create_task(ledger.detector.reached()), stop
            ):
                _say_ready(addresses)
            await stop.wait()


async def _ended(
    task: asyncio.Task[None], stop: asyncio.Event, *, timeout_seconds: float | None = None
) -> bool:
    """Wait for a task until `stop` is set or time is up; return whether it has ended, or raise its exception."""
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((task, stopped), timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
    if not task.done():
        return False
    await task
    return True


@dataclass(slots=True)
class _Program:
    """The parts of one process, put together."""

    options: argparse.Namespace
    settings: LiveSettings
    security: Security
    telemetry: Telemetry
    metrics: LedgerMetrics | None
    ledger: Ledger
    tuning: Tuning = DEFAULTS
    region: RegionParts | None = None
    lending_counts: Counter[str] = field(default_factory=Counter)

    @asynccontextmanager
    async def opening(self, address: str) -> AsyncIterator[asyncio.Task[None]]:
        """Yield the task that opens the store, however long that takes; in the end, close it."""
        task = asyncio.create_task(self.ledger.open(lambda: self._open(address)))
        try:
            yield task
        finally:
            await cancelled(task)
            if not task.cancelled() and task.exception() is None:
                # The high-water mark does not have the last charges yet. Without them, an older backup would be
                # accepted.
                with suppress(StoreError):
                    await self.ledger.check()
                await self.ledger.close()

    async def _open(self, address: str) -> Store:
        return await open_store(
            address,
            allow_volatile=self.settings.current.configuration.allow_volatile,
            mark=self.options.mark,
            is_unguarded=self.options.no_mark,
            committed=uncounted if self.metrics is None else self.metrics.committed,
            tuning=self.tuning,
        )

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        """Reload the settings when their files change, and keep the ledger's metrics up to date."""
        tasks = [asyncio.create_task(self.settings.follow(self.options.config))]
        if self.metrics is not None:
            tasks.append(asyncio.create_task(self.metrics.follow(self.ledger)))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def started(self, servers: AsyncExitStack) -> Mapping[str, str]:
        """Start the servers and return their addresses by name."""
        addresses = dict(self.telemetry.addresses)
        if self.options.admin_listen is not None:
            administering_ = administering(
                self.ledger,
                self.settings,
                self.options.admin_listen,
                self.options.backups,
                server=self._server(request_bytes=ADMIN_REQUEST_BYTES),
                security=self.security,
                instrumentation=self.telemetry.instrumentation,
                recorders={} if self.metrics is None else self.metrics.administrator_recorders(),
                tuning=self.tuning,
            )
            addresses["admin_address"] = await servers.enter_async_context(administering_)
        health_service = health.Health()
        if self.options.health_listen is not None:
            alone = health.serving_health(health_service, self.options.health_listen)
            addresses["health_address"] = await servers.enter_async_context(alone)
        drain_seconds = self.options.operating.drain_seconds
        serving_ = serving(
            self.ledger,
            self.settings,
            self.options.listen,
            with_reflection=self.options.reflection,
            server=self._server(request_bytes=MAX_REQUEST_BYTES, drain_seconds=drain_seconds),
            security=self.security,
            instrumentation=self.telemetry.instrumentation,
            recorders={} if self.metrics is None else self.metrics.recorders(),
            drain_seconds=drain_seconds,
            health_service=health_service,
            tuning=self.tuning,
            region=self.region,
            lending_counts=self.lending_counts,
        )
        addresses["address"] = await servers.enter_async_context(serving_)
        return addresses

    def _server(self, *, request_bytes: int, drain_seconds: float = 0.0) -> grpc.aio.Server:
        # Requests are small, and a charge that is read only once its caller is known would take longer.
        interceptors = self.security.interceptors(self.telemetry.instrumentation, reads_first=True)
        unfinished = UnfinishedRequests(
            METHODS.domain,
            self.telemetry.instrumentation,
            most=self.tuning.unfinished_bytes // request_bytes,
            seconds=self.tuning.unfinished_seconds,
        )
        return new_server(
            interceptors=(unfinished, *interceptors),
            drain_seconds=drain_seconds,
            request_bytes=request_bytes,
        )


def ledger_metrics(registry: CollectorRegistry | None) -> LedgerMetrics | None:
    """Return the ledger's own metrics, None without a registry: then their library is not needed."""
    if registry is None:
        return None
    from budget_service.server.metrics import LedgerMetrics  # noqa: PLC0415 - see above

    return LedgerMetrics(registry)


def count_regions(registry: CollectorRegistry, program: _Program) -> None:
    """Show what is lent and borrowed among the metrics."""
    from budget_service.server.region_metrics import LendingMetrics, RegionMetrics  # noqa: PLC0415 - see above

    if program.options.region is None:
        LendingMetrics(registry, program.lending_counts)
    else:
        RegionMetrics(registry, lambda: None if program.region is None else program.region.maintenance.region)


def _say_ready(addresses: Mapping[str, str]) -> None:
    # Callers that start this process rely on this line, and only this one, on stdout.
    sys.stdout.write(json.dumps({"service": "budget_service", **addresses}) + "\n")
    sys.stdout.flush()


def _fail(error: Exception, code: int) -> int:
    sys.stderr.write(f"budget_service: {error}\n")
    return code
