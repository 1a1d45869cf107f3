"""Refuses tables whose rows replace others in a way that a closed period would not survive.

Of rows with one key Pinot counts the newest (upsert) or the first (dedup). Then a row of today could remove one of
January, and the rows of one member those of any number of others. The first is left to a promise of the policy. The
second cannot happen if the member is part of the key, which the schema says.
"""

from __future__ import annotations

from collections.abc import Collection

from pinot_connector.engines.base import ClosedStream
from pinot_connector.engines.pinot.configuration import TableParts
from pinot_connector.errors import EngineRefused


def require_closed_rows(parts: TableParts, key: Collection[str], stream: ClosedStream) -> None:
    """Refuses a table whose closed periods may change, or in which members may replace the rows of others.

    Args:
        parts: the configurations of the table.
        key: the columns of its key.
        stream: what the question needs, and what the policy promises.

    Raises:
        EngineRefused: they may, and the policy promises nothing else; or Pinot answers from a state of some time ago.
    """
    if not parts.replaces_rows:
        return
    if not stream.replaced_until_closed:
        raise EngineRefused(
            "rows of the table replace others with their key (upsertConfig, dedupConfig), so that a closed period "
            "could change; a policy that states time.replaced_rows: until_closed promises that rows of closed "
            "periods are not replaced"
        )
    if not stream.replaced_by_same_member and stream.member not in key:
        raise EngineRefused(
            f"rows of the table replace others with their key, and the member column {stream.member} is not part of it "
            "(primaryKeyColumns of the schema), so that rows of one member could take those of others out of the "
            "counts; a policy that states time.replaced_rows: until_closed_by_same_member promises that "
            "rows with one key are of one member"
        )
    if parts.forgets_keys is not None:
        raise EngineRefused(
            f"Pinot forgets keys of the table ({parts.forgets_keys}) some time before the latest row of a partition, "
            "so that one row with a time far ahead would let rows of others count twice; expected none"
        )
    if parts.answers_from_views:
        raise EngineRefused(
            "Pinot answers questions about the table from a view that is some seconds old "
            "(upsertConfig.consistencyMode: SNAPSHOT), in which the last rows of a period may be missing; expected "
            "SYNC, or none"
        )
