"""Checks what a policy says of tables that take in a stream.

Such a table can be asked in closed periods alone, and its rows are in by a time that nobody but its owner can state. So
nothing here has a default.
"""

from __future__ import annotations

from collections.abc import Set

from dp_service.queries.policy_faults import Fault
from dp_service.queries.policy_types import OFFLINE_SUFFIX, REALTIME_SUFFIX
from dp_service.queries.tables import Policy
from gris_serving.yaml_texts import KeyPath


def check_streams(policy: Policy, fault: Fault) -> None:
    """Refuse streams without closed periods and a stated delay, and names that mean a part of such a table."""
    names = {table.name for table in policy.tables}
    for table in policy.tables:
        if table.time is None:
            continue
        path = ("tables", table.name, "time")
        if table.time.complete_by is None:
            for key in ("replaced_rows", "offline_part"):
                if getattr(table.time, key) is not None:
                    fault(
                        (*path, key),
                        "expected complete_by as well: it is about a table that takes in a stream",
                    )
            continue
        if table.time.refresh is None:
            fault(
                (*path, "complete_by"),
                "expected a refresh period as well: what takes in a stream is asked in closed periods",
            )
        elif "delay_minutes" not in table.time.model_fields_set:
            fault(
                (*path, "delay_minutes"),
                "expected how many minutes after the end of a period its last rows are in the stream; for a table with "
                "complete_by there is no default",
            )
        _refuse_parts(table.name, names, path, fault)


def _refuse_parts(name: str, names: Set[str], path: KeyPath, fault: Fault) -> None:
    for suffix in (OFFLINE_SUFFIX, REALTIME_SUFFIX):
        if name.endswith(suffix):
            fault(
                (*path, "complete_by"),
                f"expected the name of the whole table, {name.removesuffix(suffix)}: one part of a Pinot table is not "
                "asked as one that takes in a stream",
            )
        elif name + suffix in names:
            fault(
                ("tables", name + suffix),
                f"expected one of {name} and {name + suffix}: {name} states complete_by, so it has the rows of its "
                "parts, and the same question about both would be paid for twice",
            )
