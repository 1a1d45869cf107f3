"""Every field of what dp_service says of a release reaches the client of a gateway.

Messages are filled by reflection, so a field that is new is missed here until the gateway sends it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from gris_api.app.v1 import app_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2

from gris_gateway import messages, questions
from gris_gateway.faces.mcp.results import answer_of
from gris_gateway.rpc_errors import RequestError
from pinot_connector.element_messages import cut, merged
from pinot_connector.errors import IntegrityError
from pinot_connector.gateway_client import result_of
from pinot_connector.release_store import KeptRelease
from pinot_connector.release_store.receipts import with_elements, without_elements
from pinot_connector.results import PrivateResult, explanation_of
from tests.support.filled_messages import filled

# What the messages of the gateway are made of besides its own: nothing else of a service reaches a caller.
SHOWN_TO_CALLERS = {
    "google.protobuf.Timestamp",
    "gris.budget.v1.Account",
    "gris.budget.v1.Level",
    "gris.common.v1.BoolValues",
    "gris.common.v1.Column",
    "gris.common.v1.Cost",
    "gris.common.v1.DateValues",
    "gris.common.v1.ElementColumn",
    "gris.common.v1.Int64Values",
    "gris.common.v1.StringValues",
    "gris.dp.v1.AggregateValues",
    "gris.dp.v1.Audience",
    "gris.dp.v1.AudienceValue",
    "gris.dp.v1.Blocks",
    "gris.dp.v1.Bound",
    "gris.dp.v1.Bounded",
    "gris.dp.v1.BudgetWorth",
    "gris.dp.v1.CatalogColumn",
    "gris.dp.v1.CatalogContributions",
    "gris.dp.v1.CatalogMeasure",
    "gris.dp.v1.CatalogFunction",
    "gris.dp.v1.CatalogTable",
    "gris.dp.v1.CatalogTime",
    "gris.dp.v1.CatalogValue",
    "gris.dp.v1.Contributions",
    "gris.dp.v1.Estimate",
    "gris.dp.v1.ExpectedAccuracy",
    "gris.dp.v1.ExpectedPrice",
    "gris.dp.v1.ExactNumbers",
    "gris.dp.v1.Filter",
    "gris.dp.v1.GetCatalogResponse",
    "gris.dp.v1.Gumbel",
    "gris.dp.v1.HistogramQuery",
    "gris.dp.v1.Laplace",
    "gris.dp.v1.MechanismParameters",
    "gris.dp.v1.NamesLook",
    "gris.dp.v1.NoisyTotal",
    "gris.dp.v1.OneLook",
    "gris.dp.v1.OwnCount",
    "gris.dp.v1.PublishedDomain",
    "gris.dp.v1.QuantileColumn",
    "gris.dp.v1.QuantileValues",
    "gris.dp.v1.Quantiles",
    "gris.dp.v1.Question",
    "gris.dp.v1.RankCut",
    "gris.dp.v1.Shift",
    "gris.dp.v1.Shown",
    "gris.dp.v1.ShownElements",
    "gris.dp.v1.ShownNumber",
    "gris.dp.v1.ShownQuantile",
    "gris.dp.v1.SumSteps",
    "gris.dp.v1.SummedColumn",
    "gris.dp.v1.Statement",
    "gris.dp.v1.Sums",
    "gris.dp.v1.TimeRange",
    "gris.dp.v1.Value",
    "gris.dp.v1.ValueRange",
    "gris.dp.v1.ValueSet",
    "gris.dp.v1.TwoSided",
    "gris.dp.v1.AtLeast",
    "gris.dp.v1.NoiseAlone",
}

_FOR_THE_GUARANTEE = "only in what DescribeGuarantee is made from"
RESULT_LEFT_OUT = {
    "remaining.worst_case": _FOR_THE_GUARANTEE,
    "remaining.policy_statements": _FOR_THE_GUARANTEE,
    "remaining.largest_limit.information": _FOR_THE_GUARANTEE,
    "remaining.largest_limit.calls": _FOR_THE_GUARANTEE,
    "remaining.largest_limit.unit_id": _FOR_THE_GUARANTEE,
    "remaining.largest_limit.blocks": _FOR_THE_GUARANTEE,
    "remaining.previous_currency": "only in GetBudgetResponse, and no charge is made in two currencies",
    "replayed": "the gateway sets it where it gives an earlier result, and a client's value does not say it",
}


def lost(sent: Message, arrived: Message, path: str = "") -> Iterator[str]:
    """Yields the names of the fields that arrived otherwise than they were sent."""
    for field in sent.DESCRIPTOR.fields:
        before, after, name = getattr(sent, field.name), getattr(arrived, field.name), f"{path}{field.name}"
        if field.message_type is None:
            if before != after:
                yield name
        elif not field.is_repeated:
            yield from lost(before, after, f"{name}.")
        elif len(before) != len(after):
            yield name
        else:
            for one, other in zip(before, after, strict=True):
                yield from lost(one, other, f"{name}.")


def reachable(kind: Any, found: set[str]) -> None:
    """Adds the full names of a message and of all messages in its fields; plans and tickets alone are bytes."""
    if kind.full_name not in found:
        found.add(kind.full_name)
        for field in kind.fields:
            assert field.type != FieldDescriptor.TYPE_BYTES, field.full_name
            if field.message_type is not None:
                reachable(field.message_type, found)


def test_nothing_of_the_trusted_side_is_in_a_message_of_the_gateway() -> None:
    """Whole releases, true counts, plans, tickets and queries are in no field of any message, however deep."""
    found: set[str] = set()
    for message in app_pb2.DESCRIPTOR.message_types_by_name.values():
        reachable(message, found)
    of_others = {name for name in found if not name.startswith(f"{app_pb2.DESCRIPTOR.package}.")}
    assert of_others == SHOWN_TO_CALLERS


def shown_by(kind: str) -> tuple[dp_pb2.ShownElements, app_pb2.Result]:
    """Returns a result of one row with every field that this kind of result has."""
    elements, end = dp_pb2.ShownElements(), app_pb2.Result()
    denominator = 2 if kind == "counts relative to a total" else 1
    unlisted = {"noisy_numerators", "noisy_denominator"} if denominator == 1 else {"noisy_counts"}
    counted = {"aggregates", "noisy_counts", "noise_lower", "noise_upper"}
    filled(elements, frozenset(unlisted | (counted if kind == "quantiles" else {"quantiles"})))
    filled(end, chosen=CHOSEN[kind])
    end.shown.interval_kind = dp_pb2.INTERVAL_KIND_PLAIN
    if kind == "quantiles":
        end.shown.interval_kind = dp_pb2.INTERVAL_KIND_NONE
    if denominator > 1:
        elements.noisy_denominator = end.shown.parameters.bounded.shift.denominator = denominator
    return elements, end


CHOSEN = {
    "counts": frozenset({"bounded"}),
    "counts relative to a total": frozenset({"bounded", "shift"}),
    "quantiles": frozenset({"quantiles"}),
}
KINDS = list(CHOSEN)


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_of_a_gateway_is_told_everything_of_a_result(kind: str) -> None:
    """Every field of the end and of the rows makes the same message again; quantiles come without counts and sums."""
    elements, end = shown_by(kind)
    result = result_of([elements], end)
    assert set(lost(end, messages.result_message(result))) == set(RESULT_LEFT_OUT)
    (chunk,) = messages.element_chunks(result)
    assert set(lost(elements, chunk)) == set()


@pytest.mark.parametrize("kind", KINDS)
def test_a_receipt_has_everything_of_a_result(kind: str) -> None:
    """Whether the release store keeps the elements or the receipt does."""
    elements, end = shown_by(kind)
    past = app_pb2.PastRelease(result=end, elements=elements)
    receipt = app_pb2.PastRelease.FromString(without_elements(past).SerializeToString())
    kept = dp_pb2.KeptElements(
        columns=elements.columns,
        noisy_counts=elements.noisy_counts,
        noisy_numerators=elements.noisy_numerators,
        noisy_denominator=elements.noisy_denominator,
    )
    assert with_elements(receipt, KeptRelease(dp_pb2.Kept(elements=kept), True)) == past


def leaves(message: Any, path: str = "") -> Iterator[tuple[str, Any, FieldDescriptor]]:
    """Yields every field that is set and holds no message, with its path and the message that it is in."""
    for field, value in message.ListFields():
        if field.message_type is None:
            yield f"{path}{field.name}", message, field
            continue
        for each in value if field.is_repeated else [value]:
            yield from leaves(each, f"{path}{field.name}.")


def change(message: Any, field: FieldDescriptor) -> None:
    """Gives a field another value."""
    value = getattr(message, field.name)
    now = value[0] if field.is_repeated else value
    if field.type == FieldDescriptor.TYPE_BOOL:
        other: Any = not now
    elif field.type == FieldDescriptor.TYPE_STRING:
        other = "7"
    else:
        other = now / 2 if field.type == FieldDescriptor.TYPE_DOUBLE else now + 1
    if field.is_repeated:
        value[0] = other
    else:
        setattr(message, field.name, other)


def unnoticed(kind: str, said: Callable[[PrivateResult], object]) -> set[str]:
    """Returns the fields of what is shown of which nobody who reads a result sees another value."""
    original = said(result_of(*as_sent(kind)))
    found = set()
    for place in range(len(list(fields_of(*shown_by(kind))))):
        elements, end = shown_by(kind)
        path, message, field = list(fields_of(elements, end))[place]
        change(message, field)
        with suppress(IntegrityError):
            if said(result_of([elements], end)) == original:
                found.add(path)
    return found


def as_sent(kind: str) -> tuple[list[dp_pb2.ShownElements], app_pb2.Result]:
    """Returns the chunks and the end of a result."""
    elements, end = shown_by(kind)
    return [elements], end


def fields_of(
    elements: dp_pb2.ShownElements, end: app_pb2.Result
) -> Iterator[tuple[str, Any, FieldDescriptor]]:
    """Yields every field of what is shown."""
    yield from leaves(elements)
    yield from leaves(end.shown)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("said", [lambda result: result, PrivateResult.to_dict], ids=["values", "json"])
def test_every_field_of_what_is_shown_is_seen(kind: str, said: Callable[[PrivateResult], object]) -> None:
    """In Python and in JSON another value of it is another result, or is refused."""
    assert unnoticed(kind, said) == set()


_FOR_PROGRAMS = "for programs; an agent can do nothing with it"
AGENTS_LEFT_OUT = {
    "audience_rows": "that rows are restricted is said; which ones follows from who asks",
    "bottom": "that the list ended there is said; the threshold is no number about members",
    "cost.unit_id": _FOR_PROGRAMS,
    "cost.blocks": _FOR_PROGRAMS,
    "count_alias": "what a count is called in SQL; an answer has it as `count`",
    "data_version": _FOR_PROGRAMS,
    "interval_kind": "what intervals cover is said",
    "key_id": _FOR_PROGRAMS,
    "query_id": _FOR_PROGRAMS,
    "selected": "in which order SQL selects; an answer has its numbers by name",
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_is_told_every_field_but_those_listed(kind: str) -> None:
    """Of the parameters it has sentences; every other field of what is shown is in the answer itself."""
    missing = {path for path in unnoticed(kind, answer_of) if not path.startswith("parameters.")}
    # Of quantiles another kind of intervals is no result.
    expected = set(AGENTS_LEFT_OUT) - ({"interval_kind"} if kind == "quantiles" else set())
    assert missing == expected


def estimated() -> dp_pb2.Estimate:
    """Returns an estimate with every field set."""
    estimate = dp_pb2.Estimate()
    filled(estimate)
    estimate.parameters.ClearField("quantiles")
    return estimate


def test_every_field_of_an_estimate_is_passed_on_and_seen() -> None:
    """The gateway passes it on without the engines' queries, and another value of a field is another explanation."""
    sent = messages.explanation_message(explanation_of(estimated(), [dp_pb2.EngineQuery(sql="SELECT")]))
    assert sent.estimate == estimated()
    original, unseen = explanation_of(estimated()), set()
    for place in range(len(list(leaves(estimated())))):
        estimate = estimated()
        path, message, field = list(leaves(estimate))[place]
        change(message, field)
        with suppress(IntegrityError):
            changed = explanation_of(estimate)
            if changed == original or changed.to_dict() == original.to_dict():
                unseen.add(path)
    assert unseen == set()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("most_bytes", [1, 90, 400])
def test_chunks_put_together_are_what_was_cut(kind: str, most_bytes: int) -> None:
    """Every field of the elements, however many there are; and a chunk of other columns is refused."""
    first, _ = shown_by(kind)
    for rows in (1, 2, 7):
        whole = dp_pb2.ShownElements()
        for _ in range(rows):
            whole = merged(dp_pb2.ShownElements(), [whole, first] if whole.ByteSize() else [first])
        chunks = list(cut(whole, rows, most_bytes))
        assert len(chunks) == 1 or all(each.ByteSize() < whole.ByteSize() for each in chunks)
        assert merged(dp_pb2.ShownElements(), chunks) == whole
    other = dp_pb2.ShownElements()
    other.CopyFrom(first)
    other.columns.add(name="another")
    with pytest.raises(IntegrityError):
        merged(dp_pb2.ShownElements(), [first, other])


@pytest.mark.parametrize("request_kind", [app_pb2.AskRequest, app_pb2.ExplainRequest])
def test_a_question_goes_through_a_gateway_as_it_is(request_kind: type[Message]) -> None:
    """It is the message of dp_service itself and copied by nobody, so no field of it can be left behind.

    As whom it is asked is no field for a caller to set.
    """
    sent = request_kind.DESCRIPTOR.fields_by_name["question"].message_type
    assert sent is question_pb2.Question.DESCRIPTOR
    question = question_pb2.Question()
    filled(question, frozenset({"audience"}))
    assert questions._question(question) is question
    question.audience.name = "staff"
    with pytest.raises(RequestError, match="who asks"):
        questions._question(question)


@pytest.mark.parametrize(
    "parameters",
    [
        dp_pb2.MechanismParameters(in_element_order=True),
        dp_pb2.MechanismParameters(smallest_first=True),
        dp_pb2.MechanismParameters(having="5f"),
        dp_pb2.MechanismParameters(quantiles=dp_pb2.Quantiles(ordered_by=0)),
    ],
    ids=["in_element_order", "smallest_first", "having", "quantiles"],
)
def test_a_receipt_of_rows_that_are_not_the_first_keeps_them(parameters: dp_pb2.MechanismParameters) -> None:
    """A series, and a list with conditions on what was released, are listed in the history as they were shown."""
    shown = dp_pb2.Shown(element_count=1, parameters=parameters)
    past = app_pb2.PastRelease(result=app_pb2.Result(shown=shown))
    filled(past.elements)
    assert with_elements(without_elements(past), None) == past
