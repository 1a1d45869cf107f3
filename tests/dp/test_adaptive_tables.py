"""The table of the adaptive bound is used once its file is there, and nothing waits for it or breaks without it."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import grpc
import pytest
from gris_api.dp.v1 import dp_pb2, dp_pb2_grpc

from dp_service.accounting.composition import guarantee
from dp_service.accounting.epsilon_table import EpsilonTable, extended, file_name, new_table
from dp_service.releases.keys import KeySet
from dp_service.server.adaptive_tables import AdaptiveTables
from dp_service.server.served_policy import ServedPolicy, usable_policy
from dp_service.server.service import DpServicer, Environment
from tests.support.dp_questions import KEY, Clock, Entropy
from tests.support.dp_server import serving
from tests.support.log_events import logged_events

E = Fraction("0.15")
SLACK = Fraction("1e-9")
POLICY = (
    "epsilon_per: 0.15\ndelta: 1e-10\n"
    "tables: {t: {member: m, measures: {distinct_members: true}, columns: {c: {type: string}}}}"
)
GAUSSIAN = "count_noise: gaussian\n" + POLICY


@pytest.fixture(scope="module")
def table() -> EpsilonTable:
    """Return the table of the policy's currency for eighty units."""
    return extended(new_table(E), 80)


@pytest.fixture
def tables(tmp_path: Path, table: EpsilonTable) -> AdaptiveTables:
    """Return what has found the table in a directory."""
    (tmp_path / file_name(E)).write_bytes(table.to_bytes())
    found = AdaptiveTables(tmp_path, E)
    assert found.poll()
    return found


def servicer_of(policy: str, tables: AdaptiveTables) -> DpServicer:
    """Return a servicer that has tables."""
    served = ServedPolicy(usable_policy(policy.encode(), "policy", KEY))
    return DpServicer(served, KeySet(KEY), Environment(Clock(), Entropy()), tables=tables)


async def described(
    policy: str, tables: AdaptiveTables, information: int, **more: Any
) -> dp_pb2.DescribeGuaranteeResponse:
    """Return what so many units and two calls are worth."""
    request = dp_pb2.DescribeGuaranteeRequest(information=information, calls=2, **more)
    async with serving(servicer_of(policy, tables)) as dp:
        response: dp_pb2.DescribeGuaranteeResponse = await dp.DescribeGuarantee(request)
        return response


async def test_a_budget_within_the_table_is_worth_its_epsilon(
    tables: AdaptiveTables, table: EpsilonTable
) -> None:
    """With what calls add; a shared budget beyond the table is worth what the other bounds say."""
    found = await described(POLICY, tables, 80, shared=dp_pb2.SharedBudget(information=81, calls=2))
    assert dp_pb2.COMPOSITION_BOUND_ADAPTIVE == found.bound
    assert table.epsilon(80, SLACK) < found.epsilon <= table.epsilon(80, SLACK) + 1e-7
    assert 5 == len(found.composed)
    assert dp_pb2.COMPOSITION_BOUND_ZCDP == found.shared.bound
    assert 4 == len(found.shared.composed)


async def test_gaussian_counts_have_the_bound_of_a_table_of_their_own(
    tables: AdaptiveTables, table: EpsilonTable, tmp_path: Path
) -> None:
    """That of bounded range is not used, not even under the name of the other."""
    of_gaussian = AdaptiveTables(tmp_path, E, gaussian=True)
    path = tmp_path / file_name(E, gaussian=True)
    path.write_bytes(table.to_bytes())
    assert not of_gaussian.poll()
    found = await described(GAUSSIAN, of_gaussian, 20)
    assert [dp_pb2.COMPOSITION_BOUND_ZCDP] == [each.bound for each in found.composed]
    made = extended(new_table(E, gaussian=True), 20)
    path.write_bytes(made.to_bytes())
    assert of_gaussian.poll()
    found = await described(GAUSSIAN, of_gaussian, 20)
    assert 2 == len(found.composed)
    assert dp_pb2.COMPOSITION_BOUND_ADAPTIVE == found.bound
    assert made.epsilon(20, SLACK) < found.epsilon <= made.epsilon(20, SLACK) + 1e-7
    assert table.epsilon(20, SLACK) < found.epsilon
    assert tables.table is not None


@pytest.mark.parametrize("e", ["0.15", "0.2"])
async def test_solving_uses_the_table_of_its_own_currency_only(tables: AdaptiveTables, e: str) -> None:
    """At 0.15 more units are possible than by the other bounds, at 0.2 as many; one more would be too many."""
    request = dp_pb2.SolveParametersRequest(epsilon="3", delta="7e-9", epsilon_per=e, calls=2)
    async with serving(servicer_of(POLICY, tables)) as dp:
        found = await dp.SolveParameters(request)

    def worth(units: int, table: EpsilonTable | None) -> float:
        return guarantee(
            Fraction(e),
            Fraction(found.delta_per_call),
            information=units,
            calls=2,
            slack=Fraction(found.slack),
            table=table,
        ).epsilon

    used = tables.table if e == "0.15" else None
    assert worth(found.information, used) == found.epsilon <= 3
    assert worth(found.information + 1, used) > 3
    assert (worth(found.information, None) > 3) == (e == "0.15")


def test_without_a_file_there_is_no_table(tmp_path: Path) -> None:
    """Nor is there an error: somebody may make one later, even the directory."""
    found = AdaptiveTables(tmp_path / "later", E)
    assert not found.poll()
    assert found.table is None


def test_a_new_file_is_taken_and_a_bad_one_is_not(
    tables: AdaptiveTables, table: EpsilonTable, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The table that was in use stays; each bad content is reported once."""
    path = tmp_path / file_name(E)
    with caplog.at_level(logging.INFO):
        for content in (b"no table", replace(table, epsilon_per=Fraction(1, 5)).to_bytes()):
            path.write_bytes(content)
            assert [False, False] == [tables.poll(), tables.poll()]
            assert tables.table is not None
            assert 80 == tables.table.units
        path.unlink()
        assert not tables.poll()
        path.write_bytes(extended(table, 90).to_bytes())
        assert [True, False] == [tables.poll(), tables.poll()]
    assert tables.table is not None
    assert 90 == tables.table.units
    events = [event for event, _ in logged_events(caplog)]
    assert ["table.refused", "table.refused", "table.used"] == events


def test_a_table_of_another_currency_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Under the name of the served one its epsilons would be wrong."""
    (tmp_path / file_name(E)).write_bytes(new_table(Fraction(1, 5)).to_bytes())
    found = AdaptiveTables(tmp_path, E)
    assert not found.poll()
    assert found.table is None
    ((event, fields),) = logged_events(caplog)
    assert ("table.refused", "it is the table of another epsilon_per, or of other noise") == (
        event,
        fields["problem"],
    )


@pytest.mark.usefixtures("starts_processes")
def test_a_running_service_uses_a_table_that_is_made_later(tmp_path: Path, table: EpsilonTable) -> None:
    """It answers by the other bounds at first."""
    policy, key = tmp_path / "policy.yaml", tmp_path / "noise.key"
    policy.write_text(POLICY)
    key.write_bytes(b"k" * 32)
    key.chmod(0o400)
    options = ["--policy", str(policy), "--key-file", str(key), "--listen", "127.0.0.1:0"]
    command = [sys.executable, "-m", "dp_service", *options, "--adaptive-tables", str(tmp_path)]
    request = dp_pb2.DescribeGuaranteeRequest(information=80, calls=2)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        with grpc.insecure_channel(ready["address"]) as channel:
            dp = dp_pb2_grpc.DpServiceStub(channel)
            assert dp_pb2.COMPOSITION_BOUND_ZCDP == dp.DescribeGuarantee(request).bound
            made = tmp_path / "made"
            made.write_bytes(table.to_bytes())
            made.replace(tmp_path / file_name(E))
            for _ in range(100):
                if dp.DescribeGuarantee(request).bound == dp_pb2.COMPOSITION_BOUND_ADAPTIVE:
                    break
                time.sleep(0.1)
            assert dp_pb2.COMPOSITION_BOUND_ADAPTIVE == dp.DescribeGuarantee(request).bound
        process.terminate()
        assert process.wait(timeout=20) == 0
