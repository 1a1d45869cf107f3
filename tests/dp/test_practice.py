"""`dp_service --practice`: made-up rows are all that it answers about."""

from __future__ import annotations

import grpc
import pytest
from gris_api.dp.v1 import dp_pb2

from dp_service.releases.keys import KeySet
from dp_service.server.practice import PracticeServicer
from dp_service.server.served_policy import ServedPolicy, usable_policy
from dp_service.server.service import Environment
from tests.support.dp_questions import KEY, POLICY, Clock, Entropy, error_of, question, translated
from tests.support.dp_server import serving

DECLARED = POLICY.replace("    member: member_id\n", "    member: member_id\n    data_version: closed\n")


@pytest.mark.parametrize("policy", [POLICY, DECLARED], ids=["the engine's version", "a declared one"])
async def test_other_data_than_the_made_up_rows_are_refused(policy: str) -> None:
    """By the version that the engine reports, whatever the policy declares."""
    served = ServedPolicy(usable_policy(policy.encode(), "policy", KEY))
    environment = Environment(Clock(), Entropy())
    async with serving(PracticeServicer(served, KeySet(KEY), environment, versions=["v0", "v1"])) as dp:
        assert (await translated(dp, question())).query_id
        for version in ("v2", "closed"):
            request = dp_pb2.TranslateQueryRequest(question=question(), data_version=version)
            code, reason, _ = await error_of(dp.TranslateQuery(request))
            assert (code, reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NOT_MADE_UP")
