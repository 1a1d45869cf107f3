"""The table that the whole path is measured on, and the budget that never ends."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from examples.load import TABLES

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
BUDGET = """
accounts:
  - path: [bench]
    limit: {information: 1000000000000, calls: 1000000000000}
  - path: [bench, "*"]
    limit: {information: 1000000000, calls: 1000000000}
"""


@dataclass(frozen=True)
class Table:
    """Who reacted to which `article_id`: the file, and the policy by which it is asked, always with fresh noise."""

    name: str
    parquet: Path
    policy: str


def feedback() -> Table:
    """Return the opinions of readers: real, 74,000 rows."""
    policy = (EXAMPLES / "policy.yaml").read_text()
    fresh = policy.replace("    member: member_id\n", "    member: member_id\n    consistency: fresh\n")
    return Table("cofacts_feedback", TABLES["cofacts_feedback"], fresh)
