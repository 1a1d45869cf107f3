"""Attributes of members in a pairs copy: each member has one value, in all periods.

If members had two, one of them would have a row in an element by the one and by the other, and which of them counts
under a condition would depend on the range of a question. So an input in which a member has another value is refused,
or the member keeps the first one: that of their earliest row, and of several at that time the smallest, NULL last. It
is the same whether a copy was made at once or in several runs, and depends on the member's own rows alone.
"""

from __future__ import annotations

import duckdb

from dp_service.queries.pairs_manifest import PERIOD_COLUMN, PairsManifest
from gris_data.bound.pairs_source import FIRST_TIME, FRESH, PRESENT, quoted_list
from gris_data.errors import InputError
from pinot_connector.engines.parquet import quoted

CHANGED = (
    "{where}column {name}: {members} members have more than one value; expected one for each member, in all periods, "
    "of an attribute. State --first-attributes to let each member keep the first one, correct the rows, or leave the "
    "column out of --attributes and make the copy anew in another directory"
)


def require_one_value(connection: duckdb.DuckDBPyConnection, manifest: PairsManifest) -> None:
    """Refuse an attribute of which a member has two values, NULL among them, whenever it had them."""
    member = quoted(manifest.member)
    for name in manifest.attributes:
        values = (
            f"SELECT {member} AS member, {quoted(name)} AS value, first_row FROM {FRESH} UNION ALL "  # noqa: S608
            f"SELECT {member}, {quoted(name)}, -1 FROM {PRESENT} SEMI JOIN {FRESH} USING ({member})"
        )
        found = connection.execute(
            "SELECT count(DISTINCT member), min(first_row) FILTER (place = 2) FROM (SELECT member, first_row, "  # noqa: S608
            "row_number() OVER of_member AS place, count(*) OVER (PARTITION BY member) AS number FROM "
            f"(SELECT member, value, min(first_row) AS first_row FROM ({values}) GROUP BY member, value) "
            "WINDOW of_member AS (PARTITION BY member ORDER BY first_row)) WHERE number > 1"
        ).fetchone()
        if found is not None and found[0]:
            raise InputError(CHANGED.format(where=f"row {found[1] + 1}, ", name=name, members=found[0]))


def keep_first_attributes(connection: duckdb.DuckDBPyConnection, manifest: PairsManifest) -> None:
    """Give every member of the new rows the attributes that they had first."""
    if not manifest.attributes:
        return
    member = quoted(manifest.member)
    keys = quoted_list((manifest.member, *manifest.elements))
    firsts = ", ".join(
        f"first({quoted(name)} ORDER BY is_new, {FIRST_TIME}, {quoted(name)} ASC NULLS LAST) AS {quoted(name)}"
        for name in manifest.attributes
    )
    attributes = quoted_list(manifest.attributes)
    # What the copy has comes before all that is new; there a member has one value.
    seen = (
        f"SELECT {member}, {attributes}, true AS is_new, {FIRST_TIME} FROM {FRESH} UNION ALL "  # noqa: S608
        f"SELECT DISTINCT {member}, {attributes}, false, NULL FROM {PRESENT} SEMI JOIN {FRESH} USING ({member})"
    )
    connection.execute(
        f"CREATE TEMP TABLE kept AS SELECT {keys}, {attributes}, {PERIOD_COLUMN}, min(first_row) AS first_row FROM "  # noqa: S608
        f"(SELECT * EXCLUDE ({attributes}) FROM {FRESH}) "
        f"JOIN (SELECT {member}, {firsts} FROM ({seen}) GROUP BY {member}) USING ({member}) GROUP BY ALL"
    )
    connection.execute(f"DROP TABLE {FRESH}")
    connection.execute(f"ALTER TABLE kept RENAME TO {FRESH}")
