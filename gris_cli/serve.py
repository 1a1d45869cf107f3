"""`gris serve`."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

from gris_cli.flags import DEFAULT_DIRECTORY, JsonFlag

LOOK_SECONDS = 0.5


def serve(
    policy: Annotated[
        Path | None, typer.Option(help="The policy of dp_service; by default that of the examples.")
    ] = None,
    budget_config: Annotated[
        Path | None,
        typer.Option(help="The configuration of budget_service; by default that of the examples."),
    ] = None,
    directory: Annotated[
        Path, typer.Option(help="Where noise key, ledger and logs are kept.")
    ] = DEFAULT_DIRECTORY,
    examples: Annotated[Path | None, typer.Option(help="The directory of the examples.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Run both services in the foreground until Ctrl-C."""
    from gris_cli.caching import cache_directory  # noqa: PLC0415 - `gris --help` should not load gRPC
    from gris_cli.examples import find_examples  # noqa: PLC0415
    from pinot_connector.embedded import EmbeddedServices  # noqa: PLC0415

    if policy is None or budget_config is None:
        found = find_examples(examples)
        policy, budget_config = policy or found.policy, budget_config or found.budget
    stopped = threading.Event()
    with EmbeddedServices(
        policy=policy, budget_config=budget_config, directory=directory, adaptive_tables=cache_directory()
    ) as services:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopped.set())
        _announce(services.dp_address, services.budget_address, as_json=as_json)
        while not stopped.wait(LOOK_SECONDS):
            services.ensure_running()


def _announce(dp: str, budget: str, *, as_json: bool) -> None:
    from gris_cli.printing import console_of_width, print_json, say  # noqa: PLC0415

    if as_json:
        print_json({"dp": dp, "budget": budget})
        return
    console = console_of_width()
    say(console, "dp_service", f"{dp}  (export GRIS_DP={dp})")
    say(console, "budget", f"{budget}  (export GRIS_BUDGET={budget})")
    say(console, "", "Ctrl-C stops both.")
