"""What an account's budget is worth."""

from __future__ import annotations

from dataclasses import dataclass

from pinot_connector import Level, PrivateClient
from pinot_connector.guarantees import Bound


@dataclass(frozen=True)
class Worth:
    """Everything shown within a budget's limit is (epsilon, delta)-differentially private for every member."""

    account: str
    information: int
    calls: int
    epsilon: float
    delta: float
    bound: Bound


def worth_of(client: PrivateClient, level: Level) -> Worth:
    """Returns what the limit of a level is worth, as dp_service says under its policy."""
    limit = level.limit
    found = client.guarantee(limit)
    return Worth(
        "/".join(level.path), limit.information, limit.calls, found.epsilon, found.delta, found.bound
    )
