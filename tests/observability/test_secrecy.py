"""Metrics, spans and logs show how the services do, and nothing of who asks, what is asked, or what was counted."""

from __future__ import annotations

import json

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.observability.world import MEMBERS, REQUEST_ID, SECRETS, Seen, look
from tests.support.rings import needs
from tests.support.some import some

LABELS = {
    "gris_rpc_duration_seconds": {"grpc_service", "grpc_method", "le"},
    "gris_rpc_failures": {"grpc_service", "grpc_method", "code", "reason"},
    "gris_component_serving": {"component"},
    "gris_budget_units": {"operation", "outcome", "unit"},
    "gris_lending_events": {"event"},
    "gris_lending_reclaimed": {"unit"},
    "gris_budget_administrator_acts": {"act", "outcome"},
    "gris_budget_open_reservations": set(),
    "gris_budget_time_stands_still_seconds": set(),
    "gris_budget_commit_requests": {"le"},
    "gris_budget_commit_seconds": {"le"},
}
VALUES = {
    "grpc_service": {
        "gris.dp.v1.DpService",
        "gris.budget.v1.BudgetService",
        "gris.budget.v1.BudgetAdminService",
        "gris.budget.v1.RegionService",
    },
    "component": {"server", "store", "ledger", "policy_file"},
    "operation": {"reserve", "charge", "release"},
    "act": {"set_limits", "refund", "close", "reopen", "move", "forget"},
    "outcome": {"granted", "refused", "held", "replayed", "already_paid", "done"},
    "unit": {"information", "calls"},
    "reason": {"BUDGET_EXHAUSTED", "INVALID_ARGUMENT", "REFUSED_BY_POLICY", ""},
}
ATTRIBUTES = {
    "rpc.system",
    "rpc.service",
    "rpc.method",
    "rpc.grpc.status_code",
    "gris.reason",
    "gris.outcome",
    "gris.engine",
}
LOG_FIELDS = {
    "time",
    "level",
    "logger",
    "message",
    "event",
    "rpc",
    "code",
    "reason",
    "milliseconds",
    "request_id",
    "answers",
    "is_serving",
    "is_sound",
    # Where the ledger stands at the end, by which a lost mark is renewed.
    "ledger",
    "count",
}


@pytest.fixture(scope="module")
@needs("process")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """What can be seen of some traffic."""
    return look(tmp_path_factory.mktemp("sight"))


def test_metrics_have_only_labels_and_values_that_are_foreseen(seen: Seen) -> None:
    """Each metric its own labels, each label its own words; and the traffic is in them."""
    found = set()
    for text in some(seen.metrics.values()):
        for family in some(text_string_to_metric_families(text)):
            found.add(family.name)
            for sample in family.samples:
                assert set(sample.labels) <= LABELS[family.name]
                assert all(sample.labels[name] in VALUES[name] for name in set(sample.labels) & set(VALUES))
    assert found == set(LABELS)
    granted = 'gris_budget_units_total{operation="charge",outcome="granted",unit="calls"} 1.0'
    assert granted in seen.metrics["budget_service"]
    assert 'operation="reserve",outcome="refused",unit="calls"} 1.0' in seen.metrics["budget_service"]


def test_spans_have_only_attributes_that_are_foreseen(seen: Seen) -> None:
    """In all three processes; no events, which would hold exceptions, and no words about an error."""
    assert set(seen.spans) == {"application", "dp_service", "budget_service"}
    for span in some(each for spans in seen.spans.values() for each in spans):
        assert {each.key for each in span.attributes} <= ATTRIBUTES
        assert (list(span.events), list(span.links), span.status.message, span.trace_state) == (
            [],
            [],
            "",
            "",
        )


def test_a_question_is_one_trace_through_all_processes(seen: Seen) -> None:
    """Every span of a service has its parent in the application, and the first question has all its steps."""
    parents = {each.span_id: each for each in seen.spans["application"]}
    served = [*seen.spans["dp_service"], *seen.spans["budget_service"]]
    assert all(parents[each.parent_span_id].trace_id == each.trace_id for each in some(served))
    first = min((each for each in parents.values() if each.name == "gris question"), key=_start)
    names = [each.name for each in served if each.trace_id == first.trace_id]
    assert sorted(names) == [
        "gris.budget.v1.BudgetService/ReserveBudget",
        "gris.budget.v1.BudgetService/UpdateBudget",
        "gris.dp.v1.DpService/AddNoiseUnary",
        "gris.dp.v1.DpService/TranslateQuery",
        "gris.dp.v1.DpService/TranslateQuery",
    ]


def test_a_question_has_one_id_in_both_logs(seen: Seen) -> None:
    """The application's own, where it gives one; else one that the connector makes."""
    lines = [json.loads(line) for line in seen.log.splitlines() if line.startswith("{")]
    ended = [line for line in lines if line.get("event") == "rpc.finished"]
    assert all(set(line) <= LOG_FIELDS for line in some(lines))
    named = {line["rpc"].partition("/")[0] for line in ended if line["request_id"] == REQUEST_ID}
    assert named == {"gris.dp.v1.DpService", "gris.budget.v1.BudgetService"}
    assert all(line["request_id"] for line in ended)
    assert len({line["request_id"] for line in ended}) == 6


def test_the_connector_counts_how_questions_and_engine_calls_end(seen: Seen) -> None:
    """Kinds of errors, and an engine's answer that is not whole among them."""
    outcomes = {each["outcome"] for each in seen.numbers["gris.questions"]}
    assert outcomes == {"answered", "refused_by_policy", "budget_exhausted", "incomplete_answer"}
    incomplete = {"engine": "duckdb", "step": "run", "outcome": "incomplete_answer"}
    assert incomplete in seen.numbers["gris.engine.calls"]
    assert set(seen.numbers) == {
        "gris.questions",
        "gris.question.duration",
        "gris.engine.calls",
        "gris.release.lookups",
    }


def test_nothing_tells_who_asked_what_or_what_was_counted(seen: Seen) -> None:
    """No account, element, literal, true count, table or SQL, wherever one looks."""
    spans = "".join(str(each) for found in seen.spans.values() for each in found)
    everything = "".join((*seen.metrics.values(), seen.log, spans, json.dumps(seen.numbers)))
    assert len(everything) > 10_000
    assert SECRETS.findall(everything) == []


@pytest.mark.parametrize(
    ("text", "tells"),
    [
        (f"counted {MEMBERS} members", True),
        (f'{{"count": {MEMBERS}.0}}', True),
        (f"-{MEMBERS}", True),
        (f"rows...{MEMBERS}", True),
        ("FROM Engagement", True),
        (f"start_time_unix_nano: 17957{MEMBERS}00123456", False),
        (f"process_resident_memory_bytes 1.{MEMBERS}e+08", False),
    ],
)
def test_a_count_that_is_told_would_be_found(text: str, tells: bool) -> None:
    """And a time that has the same digits somewhere tells nothing."""
    assert bool(SECRETS.search(text)) is tells


def _start(span: object) -> int:
    return int(span.start_time_unix_nano)  # type: ignore[attr-defined]
