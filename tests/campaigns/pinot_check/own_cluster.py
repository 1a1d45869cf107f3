"""What cannot be tried on somebody's cluster: it needs one whose parts may be killed or set up otherwise.

Each says where the tests hold it, on a cluster that they start.
"""

from __future__ import annotations

from tests.campaigns.pinot_check.cluster import CannotTryError, CheckedCluster
from tests.campaigns.pinot_check.rows import row


@row
def a_killed_server(cluster: CheckedCluster) -> str:
    """A killed server never shows in an answer."""
    raise CannotTryError(
        "kills a server: tests/engines/pinot/failures/test_engine_cluster.py, and the campaign pinot_stream"
    )


@row
def a_broker_that_is_gone(cluster: CheckedCluster) -> str:
    """A broker that is gone is said at once."""
    raise CannotTryError("stops the broker: tests/engines/pinot/failures/test_engine_cluster.py")


@row
def a_server_that_takes_in_a_stream(cluster: CheckedCluster) -> str:
    """A killed server of a table that takes in a stream never shows in an answer, nor what retention removes."""
    raise CannotTryError("kills a server: tests/engines/pinot/failures/test_stream_failures.py")


@row
def rows_that_are_hidden(cluster: CheckedCluster) -> str:
    """Rows that are hidden from the principal (rlsFiltersApplied) make a refusal (point F)."""
    raise CannotTryError("needs access control on rows")


@row
def cluster_settings(cluster: CheckedCluster) -> str:
    """A setting of the cluster that makes counts inexact is refused."""
    raise CannotTryError(
        "changes the cluster for everybody: tests/engines/pinot/failures/test_engine_cluster.py"
    )
