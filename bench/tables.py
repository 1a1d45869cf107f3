"""The tables that the whole path is measured on: a real one of the examples, and made-up ones of any size."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from examples.generate import Engagement, generate
from examples.load import TABLES, data_version

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
EVENTS_OF_A_MEMBER, ARTICLES, ZIPF, SEED = 10, 100_000, 1.1, 7
FEWEST_SEGMENTS, ROWS_OF_A_SEGMENT = 4, 1_000_000
ENGAGEMENT_POLICY = """
epsilon_per: 0.15
delta: 1e-11
tables:
  engagement:
    member: member_id
    consistency: fresh
    data_version: {version}
    measures: {{distinct_members: true}}
    columns:
      member_id: {{type: int64}}
      article_id: {{type: string, group_by: true}}
"""


@dataclass(frozen=True)
class Table:
    """Who reacted to which `article_id`: the file, the policy by which it is asked, always with fresh noise.

    Pinot holds it in so many `segments`.
    """

    name: str
    parquet: Path
    policy: str
    segments: int


def feedback() -> Table:
    """Return the opinions of readers: real, 74,000 rows."""
    policy = (EXAMPLES / "policy.yaml").read_text()
    fresh = policy.replace("    member: member_id\n", "    member: member_id\n    consistency: fresh\n")
    return Table("cofacts_feedback", TABLES["cofacts_feedback"], fresh, FEWEST_SEGMENTS)


def engagement(events: int, folder: Path) -> Table:
    """Make a table of so many events, the same one every time.

    Raises:
        ValueError: there cannot be so many events.
    """
    parquet = folder / "engagement.parquet"
    generate(Engagement(events, max(1, events // EVENTS_OF_A_MEMBER), ARTICLES, ZIPF, SEED), parquet)
    policy = ENGAGEMENT_POLICY.format(version=data_version(parquet))
    return Table("engagement", parquet, policy, max(FEWEST_SEGMENTS, events // ROWS_OF_A_SEGMENT))
