"""Every field of what dp_service says of a release reaches the client of a gateway.

Messages are filled by reflection, so a field that is new is missed here until the gateway sends it too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from gris_api.app.v1 import app_pb2
from gris_api.dp.v1 import dp_pb2, question_pb2

from gris_gateway import messages, service
from pinot_connector.gateway_client import result_of
from pinot_connector.parameter_messages import parameters_of
from pinot_connector.release_store.receipts import with_elements, without_elements

_IN_A_CATALOGUE = "dp_service sends it in a catalogue alone, which the gateway passes on as it is"
PARAMETERS_LEFT_OUT = {
    "sums.columns.row_lower": _IN_A_CATALOGUE,
    "sums.columns.row_upper": _IN_A_CATALOGUE,
    "sums.columns.published.rho": _IN_A_CATALOGUE,
    "sums.columns.published.delta": _IN_A_CATALOGUE,
}
_WHOLE = "of the whole release, which is kept; a result has what the question shows"
_LEDGER = "for the ledger alone"
RELEASE_LEFT_OUT = {
    "charge_ticket": _LEDGER,
    "policy_statement": _LEDGER,
    "shown_count": _WHOLE,
    "shown_rows": _WHOLE,
    "names_tag": _WHOLE,
    "kept_totals": _WHOLE,
}
ELEMENTS_LEFT_OUT = {"sums": _WHOLE, "cells": _WHOLE}
ESTIMATE_LEFT_OUT = {"engine_queries": "SQL and the names of tables stay with the operator"}

_FOR_THE_GUARANTEE = "only in what DescribeGuarantee is made from"
RESULT_LEFT_OUT = {
    "remaining.worst_case": _FOR_THE_GUARANTEE,
    "remaining.policy_statements": _FOR_THE_GUARANTEE,
    "remaining.largest_limit.information": _FOR_THE_GUARANTEE,
    "remaining.largest_limit.calls": _FOR_THE_GUARANTEE,
    "remaining.largest_limit.unit_id": _FOR_THE_GUARANTEE,
    "remaining.unlimited_before": _FOR_THE_GUARANTEE,
    "remaining.previous_currency": "only in GetBudgetResponse, and no charge is made in two currencies",
    "replayed": "the gateway sets it where it gives an earlier result, and a client's value does not say it",
}

_KINDS: dict[int, Any] = {
    FieldDescriptor.TYPE_STRING: "3",
    FieldDescriptor.TYPE_BYTES: b"x",
    FieldDescriptor.TYPE_BOOL: True,
    FieldDescriptor.TYPE_DOUBLE: 0.5,
}


def filled(message: Message, without: frozenset[str] = frozenset()) -> None:
    """Sets every field to something else than its default, of a choice the first one, and every list to one entry."""
    for field in message.DESCRIPTOR.fields:
        group = field.containing_oneof
        if field.name in without or (group is not None and group.fields[0].name != field.name):
            continue
        if field.message_type is not None:
            part = getattr(message, field.name)
            filled(part.add() if field.is_repeated else part, without)
            continue
        # The services' times are in microseconds.
        value = 1000 if field.name == "nanos" else _KINDS.get(field.type, 1)
        if field.is_repeated:
            getattr(message, field.name).append(value)
        else:
            setattr(message, field.name, value)


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


def names_of(kind: type[Message]) -> set[str]:
    """Returns the names of a message's fields."""
    return {field.name for field in kind.DESCRIPTOR.fields}


def test_a_client_of_a_gateway_is_told_every_parameter_of_a_release() -> None:
    """Only what is listed with a reason is missing, and all of that is."""
    sent = dp_pb2.MechanismParameters()
    filled(sent)
    assert set(lost(sent, messages.parameters_message(parameters_of(sent)))) == set(PARAMETERS_LEFT_OUT)


@pytest.mark.parametrize("shown", ["counts", "combined counts", "quantiles"])
def test_a_client_of_a_gateway_is_told_everything_of_a_result(shown: str) -> None:
    """Every field of the end and of the rows makes the same message again; quantiles come without counts and sums."""
    unlisted, denominator = set(ELEMENTS_LEFT_OUT), 2 if shown == "combined counts" else 1
    unlisted |= {"noisy_numerators", "noisy_denominator"} if denominator == 1 else {"noisy_counts"}
    if shown == "quantiles":
        unlisted |= {"aggregates", "noisy_counts", "interval_lower", "interval_upper"}
    else:
        unlisted |= {"quantiles"}
    elements, end = dp_pb2.ReleasedElements(), app_pb2.Result()
    filled(elements, frozenset(unlisted))
    filled(end)
    left_out = set(RESULT_LEFT_OUT)
    if shown == "quantiles":
        for part, name in ((end.parameters, "sums"), (end.totals, "sums"), (end.totals, "other_sums")):
            part.ClearField(name)
    else:
        end.parameters.ClearField("quantiles")
        left_out |= {f"parameters.{name}" for name in PARAMETERS_LEFT_OUT}
    if denominator > 1:
        elements.noisy_denominator = end.parameters.contributions.sharpened.denominator = denominator
    result = result_of([elements], end)
    assert set(lost(end, messages.result_message(result))) == left_out
    assert set(lost(elements, messages.all_elements(result))) == set()


@pytest.mark.parametrize("request_kind", [app_pb2.AskRequest, app_pb2.ExplainRequest])
def test_a_question_goes_through_a_gateway_as_it_is(request_kind: type[Message]) -> None:
    """It is the message of dp_service itself and copied by nobody, so no field of it can be left behind."""
    sent = request_kind.DESCRIPTOR.fields_by_name["question"].message_type
    assert sent is question_pb2.Question.DESCRIPTOR
    question = question_pb2.Question()
    filled(question)
    assert service._question(question) is question


def test_every_field_of_a_release_has_a_place_in_a_result() -> None:
    """A field that is new in dp.v1 is sent under the same name, or listed with a reason."""
    assert names_of(dp_pb2.Release) - names_of(app_pb2.Result) == set(RELEASE_LEFT_OUT)


def test_every_field_of_an_estimate_has_a_place_in_an_explanation() -> None:
    """A field that is new in dp.v1 is sent under the same name, or listed with a reason."""
    assert names_of(dp_pb2.EstimateCostResponse) - names_of(app_pb2.ExplainResponse) == set(ESTIMATE_LEFT_OUT)


@pytest.mark.parametrize(
    "parameters",
    [dp_pb2.MechanismParameters(in_element_order=True), dp_pb2.MechanismParameters(having="5f")],
    ids=["in_element_order", "having"],
)
def test_a_receipt_of_rows_that_are_not_the_first_keeps_them(parameters: dp_pb2.MechanismParameters) -> None:
    """A series, and a list with conditions on what was released, are listed in the history as they were shown."""
    past = app_pb2.PastRelease(result=app_pb2.Result(element_count=1, parameters=parameters))
    filled(past.elements, frozenset(ELEMENTS_LEFT_OUT))
    assert with_elements(without_elements(past), None) == past
