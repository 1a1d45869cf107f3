"""What a kind says of itself is all that its message has room for, and it arrives in the one field that is its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from gris_api.dp.v1 import dp_pb2

from dp_service.parameters.release import ReleaseParameters
from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import resolve
from dp_service.queries.sql import parse_sql
from dp_service.releases.kinds import kind_of
from dp_service.server.parameter_messages import parameters_message
from tests.unit.dp_service.asked_plans import KINDS, plans

SAMPLES = json.loads((Path(__file__).parent / "sample_questions.json").read_text())
NOW = 1_700_000_000


def parameters() -> Iterator[ReleaseParameters]:
    """Yield those of releases of every kind."""
    for question in SAMPLES["questions"]:
        policy = parse_policy(SAMPLES["policies"][question["policy"]])
        yield resolve(parse_sql(question["sql"], policy), policy, now=NOW).parameters
    for asked in KINDS.values():
        yield next(plans(asked, ["a", "b", "c"])).parameters


def unsaid(said: Mapping[str, Any], described: Any, path: str) -> Iterator[str]:
    """Yield what a message has room for and nothing is said of; of a choice one is said, and no more."""
    for field in described.fields:
        if field.containing_oneof is None or field.name in said:
            if field.name not in said:
                yield path + field.name
            elif field.message_type is not None and said[field.name] is not None:
                parts = said[field.name] if field.is_repeated else [said[field.name]]
                for part in parts:
                    yield from unsaid(part, field.message_type, f"{path}{field.name}.")
    for choice in described.oneofs:
        names = [field.name for field in choice.fields]
        # One field that may be unset is a choice to protobuf, too.
        if len(names) > 1 and sum(name in said for name in names) != 1:
            yield f"{path}{choice.name}"


EVERY = {f"{type(kind_of(each)).__name__} {number}": each for number, each in enumerate(parameters())}


@pytest.mark.parametrize("name", EVERY)
def test_a_kind_says_every_field_of_its_message(name: str) -> None:
    """None that stays unset by oversight: what is not there is said to be None."""
    kind = kind_of(EVERY[name])
    (field,) = kind.said
    described = dp_pb2.MechanismParameters.DESCRIPTOR.fields_by_name[field]
    may_be_left_out = {"sums"}
    assert set(unsaid(kind.said[field], described.message_type, "")) <= may_be_left_out
    message = parameters_message(EVERY[name])
    assert message.WhichOneof("kind") == field


def test_every_kind_is_tried() -> None:
    """And every way of looking at data."""
    found = {parameters_message(each).WhichOneof("kind") for each in EVERY.values()}
    assert found == {
        each.name for each in dp_pb2.MechanismParameters.DESCRIPTOR.oneofs_by_name["kind"].fields
    }
    looks = {parameters_message(each).bounded.WhichOneof("looks") for each in EVERY.values()} - {None}
    assert looks == {each.name for each in dp_pb2.Bounded.DESCRIPTOR.oneofs_by_name["looks"].fields}
