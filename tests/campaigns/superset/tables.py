"""What Superset asks about: the example data, and a table of hostile names."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.world import COFACTS

EXAMPLES = COFACTS.parents[1]
# What strangers may have called an element: markup, formulas of spreadsheets, marks that turn the direction of writing.
STRANGERS = (
    '<img src="https://stranger.invalid/seen.png" alt="a stranger">',
    "<script>document.title = 'a stranger'</script>",
    '=HYPERLINK("http://stranger.invalid")',
    "@SUM(1)",
    "-2+3",
    "abc\N{RIGHT-TO-LEFT OVERRIDE}gpj.exe",
    "\N{HEBREW LETTER ALEF}\N{HEBREW LETTER BET} 12",
    "$\\frac{1}{$ {{ 7 * 7 }}",
)
POLICY = """
  strangers:
    member: member_id
    measures: {distinct_members: true}
    columns:
      member_id: {type: int64}
      name: {type: string, group_by: true, delta: 1}
"""


def write_tables(folder: Path) -> dict[str, Path]:
    """Write the table of hostile names, and a policy that has the examples' too; return the files of all."""
    (folder / "policy.yaml").write_text((EXAMPLES / "policy.yaml").read_text() + POLICY)
    strangers = folder / "strangers.parquet"
    pq.write_table(_strangers(), strangers)
    retail = EXAMPLES / "online_retail/purchases.parquet"
    return {"cofacts_feedback": COFACTS, "online_retail": retail, "strangers": strangers}


def _strangers() -> pa.Table:
    """Return a table of hostile names, each of 400 members or more."""
    rows = [(member, name) for place, name in enumerate(STRANGERS) for member in _members(place)]
    return pa.table({"member_id": [member for member, _ in rows], "name": [name for _, name in rows]})


def _members(place: int) -> range:
    return range(place * 10_000, place * 10_000 + 400 + 100 * (len(STRANGERS) - place))
