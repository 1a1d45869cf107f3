"""From a resolved question to the plan of its release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dp_service.queries.canonical_bytes import canonical_bytes
from dp_service.queries.resolution import Resolution
from dp_service.releases.keys import NoiseKey
from dp_service.releases.kinds import kind_of, versions
from dp_service.releases.plan import LooksPlan, Plan
from dp_service.releases.release_ids import query_id, release_specification
from dp_service.terms import Consistency

FRESH_BYTES = 32


@dataclass(frozen=True)
class IssueContext:
    """When a plan is made, in seconds since 1970 (UTC), and 32 fresh random bytes for it."""

    seconds: int
    fresh: bytes


def plan_for(
    resolution: Resolution,
    engine_data_version: str,
    key: NoiseKey,
    issue_context: IssueContext,
    *,
    policy_statement: str = "",
    dialects: Sequence[str] = (),
) -> Plan:
    """Return the plan of a resolved question on one version of the data.

    If the policy fixes the version of the data, that version enters the noise: two engines with the same data give the
    same answer, and rows of a period that is not closed change nothing. The engine's own version then only shows
    whether the data changed during the query.

    Args:
        resolution: The question as the policy resolves it.
        engine_data_version: The engine's own version of the data.
        key: The current key.
        issue_context: The time, and fresh random bytes.
        policy_statement: That of the policy that the question was resolved under.
        dialects: The engines that a second query would be written for.
    """
    parameters = resolution.parameters
    drawn_by = versions(parameters)
    specification = release_specification(canonical_bytes(resolution.query), parameters, drawn_by=drawn_by)
    data_version = resolution.fixed_data_version or engine_data_version
    # With fresh consistency the question's id is new each time, so no question has been paid for already.
    fresh = issue_context.fresh if parameters.consistency is Consistency.FRESH else b""
    return Plan(
        table=resolution.query.table,
        columns=resolution.columns,
        parameters=parameters,
        row_limit=resolution.row_limit,
        paid_by=resolution.paid_by,
        specification=specification,
        data_version=data_version,
        engine_data_version=engine_data_version,
        query_id=query_id(key, specification, data_version, fresh),
        issued_at=issue_context.seconds,
        drawn_by=drawn_by,
        fresh=fresh,
        policy_statement=policy_statement,
        looks=_looks(resolution, dialects),
        requested_k=resolution.requested_k,
        forced=resolution.forced,
        without_far_times=resolution.query.without_far_times,
    )


def _looks(resolution: Resolution, dialects: Sequence[str]) -> LooksPlan | None:
    if kind_of(resolution.parameters).first_look is None:
        return None
    return LooksPlan(resolution.query, resolution.member_type, tuple(dialects), copy=resolution.copy)
