"""Whether the tables of a Pinot are what a policy says, by their schemas: for `gris check --pinot`.

A question that names another column than Pinot has is refused when it is asked; this says so before anybody asks.
"""

from __future__ import annotations

from collections.abc import Iterator

from dp_service.queries.tables import Policy
from gris_cli.data.engines import PinotAccess
from gris_cli.data.policy.reads import reads_of
from gris_cli.data.table_schema import pinot_columns
from pinot_connector.engines.pinot.columns import require_readable
from pinot_connector.errors import EngineRefused


def faults_of_schemas(policy: Policy, controller: str, access: PinotAccess) -> Iterator[str]:
    """Yield what the schemas of a policy's tables are otherwise than the policy says; no row is read.

    Raises:
        InputError: The controller cannot be reached, or lacks a table.
    """
    for table in policy.tables:
        held = pinot_columns(controller, table.name, access)
        for read in reads_of(table):
            try:
                require_readable(held, [read])
            except EngineRefused as error:
                yield f"{table.name}: {error}"
