"""From a resolved question to the plan of its release."""

from __future__ import annotations

from dataclasses import dataclass

from dp_service.queries.canonical import canonical_bytes
from dp_service.queries.resolution import Resolution
from dp_service.releases.identity import query_id, release_specification
from dp_service.releases.keys import NoiseKey
from dp_service.releases.mechanism import versions
from dp_service.releases.plan import Plan
from dp_service.terms import Consistency

FRESH_BYTES = 32


@dataclass(frozen=True)
class IssueContext:
    """What translation takes from the outside: the time in seconds since 1970 (UTC), and 32 fresh random bytes."""

    seconds: int
    fresh: bytes


def plan_for(
    resolution: Resolution,
    engine_data_version: str,
    key: NoiseKey,
    issue_context: IssueContext,
    *,
    policy_statement: str = "",
) -> Plan:
    """Return the plan of a resolved question on one version of the data.

    Where the policy fixes the version of the data, that one enters the noise: two engines that hold the same data give
    the same answer, and rows of a period that is not closed change nothing. The engine's own version then only shows
    whether the data changed meanwhile. `policy_statement` is that of the policy that the question was resolved under.
    """
    parameters = resolution.parameters
    drawn_by = versions(parameters)
    specification = release_specification(canonical_bytes(resolution.query), parameters, drawn_by=drawn_by)
    data_version = resolution.fixed_data_version or engine_data_version
    # In fresh mode the question's id is drawn anew each time: no question is ever a known, paid one.
    fresh = issue_context.fresh if parameters.consistency is Consistency.FRESH else b""
    return Plan(
        table=resolution.query.table,
        columns=resolution.columns,
        parameters=parameters,
        row_limit=resolution.row_limit,
        unit_id=resolution.unit_id,
        specification=specification,
        data_version=data_version,
        engine_data_version=engine_data_version,
        query_id=query_id(key, specification, data_version, fresh),
        issued_at=issue_context.seconds,
        drawn_by=drawn_by,
        fresh=fresh,
        policy_statement=policy_statement,
    )
