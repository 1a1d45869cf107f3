"""Attributes of members in a pairs copy: each member has one value, in all periods.

If members had two, one of them would have a row in an element by the one and by the other, and which of them counts
under a condition would depend on the range of a question. So an input in which a member has another value is refused,
or the member keeps the first one: that of their earliest row, and of several at that time the smallest, NULL last. It
is the same whether a copy was made at once or in several runs, and depends on the member's own rows alone.
"""

# ruff: noqa: S608  (names are quoted)
from __future__ import annotations

from dp_service.queries.pairs_manifest import PERIOD_COLUMN, PairsManifest
from gris_data.bound.engine import CopyEngine
from gris_data.bound.pairs_source import FIRST_ROW, FIRST_TIME, FRESH, PRESENT, SEEN
from gris_data.errors import InputError


def require_one_value(engine: CopyEngine, manifest: PairsManifest) -> None:
    """Refuse an attribute of which a member has two values, NULL among them, whenever it had them."""
    member = engine.dialect.quoted(manifest.member)
    for name in manifest.attributes:
        value = engine.dialect.quoted(name)
        # What the copy has comes before all rows of the input.
        values = (
            f"SELECT {member} AS member, {value} AS value, {FIRST_ROW} FROM {FRESH} UNION ALL "
            f"SELECT {member}, {value}, -1 FROM {PRESENT} SEMI JOIN {FRESH} USING ({member})"
        )
        of_values = (
            f"SELECT member, value, min({FIRST_ROW}) AS {FIRST_ROW} FROM ({values}) GROUP BY member, value"
        )
        members, other = engine.row(
            f"SELECT count(*), min(other) FROM (SELECT member, max({FIRST_ROW}) AS other FROM ({of_values}) "
            "GROUP BY member HAVING count(*) > 1)"
        )
        if members:
            where = "" if other is None or other < 0 else f"row {other + 1}, "
            raise InputError(
                f"{where}column {name}: {members} members have more than one value; expected one for each member, in "
                "all periods, of an attribute. Let each member keep the first one, correct the rows, or leave the "
                "column out and make the copy anew in another directory",
                "attributes",
                remedy="first_attributes",
            )


def keep_first_attributes(engine: CopyEngine, manifest: PairsManifest) -> None:
    """Make of the pairs that were seen the table in which every member has the attributes that they had first."""
    quoted = engine.dialect.quoted
    member = quoted(manifest.member)
    keys = engine.dialect.listed((manifest.member, *manifest.elements))
    attributes = "".join(f", {quoted(name)}" for name in manifest.attributes)
    firsts = "".join(
        f", first_value({quoted(name)}) OVER (PARTITION BY {member} "
        f"ORDER BY is_new, {FIRST_TIME}, {quoted(name)} ASC NULLS LAST) AS {quoted(name)}"
        for name in manifest.attributes
    )
    # What the copy has comes before all that is new; there a member has one value.
    seen = (
        f"SELECT {member}{attributes}, true AS is_new, min({FIRST_TIME}) AS {FIRST_TIME} FROM {SEEN} "
        f"GROUP BY {member}{attributes} UNION ALL "
        f"SELECT DISTINCT {member}{attributes}, false, NULL FROM {PRESENT} SEMI JOIN {SEEN} USING ({member})"
    )
    held = "".join(f", firsts.{quoted(name)}" for name in manifest.attributes)
    engine.table(
        FRESH,
        f"SELECT {keys}{held}, {PERIOD_COLUMN}, min({FIRST_ROW}) AS {FIRST_ROW} FROM {SEEN} AS seen "
        f"JOIN (SELECT DISTINCT {member}{firsts} FROM ({seen})) AS firsts USING ({member}) GROUP BY ALL",
    )
    engine.drop(SEEN)
