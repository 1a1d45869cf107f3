"""The bytes of plans and release specifications: replicas of two versions serve the same questions side by side."""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import resolve
from dp_service.queries.sql import parse_sql
from dp_service.releases.keys import NoiseKey
from dp_service.releases.plan import sign_plan, verify_plan
from dp_service.releases.translation import IssueContext, plan_for

VECTORS = json.loads((Path(__file__).parent / "plan_vectors.json").read_text())
KEY = NoiseKey(bytes(range(32)))
NOW = 1_700_000_000
ISSUED = IssueContext(NOW, bytes(range(32)))


def payload(vector: dict[str, Any]) -> bytes:
    """Return the plan of a vector's question, without its signature."""
    policy = parse_policy(VECTORS["policies"][vector["policy"]])
    resolution = resolve(parse_sql(vector["sql"], policy), policy, now=NOW)
    signed = sign_plan(plan_for(resolution, "engine-1", KEY, ISSUED), KEY)
    assert verify_plan(signed, KEY, now=NOW) is not None
    return zlib.decompress(signed[41:])


@pytest.mark.parametrize("vector", VECTORS["plans"], ids=lambda vector: vector["sql"])
def test_a_plan_has_the_bytes_that_it_always_had(vector: dict[str, Any]) -> None:
    """The JSON of a plan stays as it is to the byte; with it the specification, which the seed and the ids name."""
    found = payload(vector)
    shown = {name: value for name, value in json.loads(found).items() if name != "specification"}
    assert vector["shown"] == shown
    assert vector["sha256"] == hashlib.sha256(found).hexdigest()
