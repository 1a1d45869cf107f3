"""Traces on their way to a collector, by the standard environment variables."""

from __future__ import annotations

import pytest

from gris_serving.instrumentation import Instrumentation
from gris_serving.tracing import exporting_traces
from tests.support.collector import ENDPOINT, collecting
from tests.support.echo import SERVICE, observed_echo


async def test_spans_reach_the_collector_under_the_service_s_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the latest when the service ends."""
    with collecting() as collector:
        monkeypatch.setenv(ENDPOINT, collector.address)
        with exporting_traces("some_service") as traces:
            async with observed_echo(Instrumentation(traces=traces)) as echo:
                await echo.one("a")
    assert [f"{SERVICE}/One"] == [span.name for span in collector.spans("some_service")]


@pytest.mark.slow
async def test_a_dead_collector_changes_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service answers, and ends."""
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    with exporting_traces("some_service") as traces:
        async with observed_echo(Instrumentation(traces=traces)) as echo:
            assert await echo.one("a") == "a"
