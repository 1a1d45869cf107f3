"""What an application's charges add up to in the journals of a home, in PostgreSQL, and of its regions, on volumes."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tests.kubernetes.cluster import Namespace, pod

# The region's own account of a lease begins with the root and its currency.
_IN_REGION = """
import json, sqlite3
ledger = sqlite3.connect("/ledger/ledger.db")
print(json.dumps(ledger.execute(
    "SELECT coalesce(sum(json_extract(text, '$.cost[0]')), 0), coalesce(sum(json_extract(text, '$.cost[1]')), 0) "
    "FROM journal WHERE json_extract(text, '$.kind') IN ('direct', 'settled') AND root LIKE 'load@%'").fetchone()))
"""
_AT_HOME = """
SELECT coalesce(sum(information) FILTER (WHERE is_charge AND is_lent), 0),
       coalesce(sum(calls) FILTER (WHERE is_charge AND is_lent), 0),
       coalesce(sum(calls) FILTER (WHERE NOT is_charge), 0),
       coalesce(sum(calls), 0)
FROM (SELECT (text::json #>> '{cost,0}')::bigint AS information, (text::json #>> '{cost,1}')::bigint AS calls,
             text::json ->> 'kind' IN ('direct', 'settled') AS is_charge,
             text::json ->> 'request_id' LIKE 'lease:%' AS is_lent
      FROM gris.journal WHERE root = 'load') AS entries
"""
_ASKED = (
    'PGPASSWORD="$POSTGRES_PASSWORD" psql -h 127.0.0.1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" -AtF " " -c "$1"'
)


@dataclass(frozen=True)
class RegionSums:
    """What a region has granted from its leases."""

    information: int
    calls: int


@dataclass(frozen=True)
class HomeSums:
    """What a home has recorded of such charges, what counts as spent because a lease was lost, and all together."""

    information: int
    calls: int
    lost: int
    all_calls: int


def of_region(gris: Namespace, region: str) -> RegionSums:
    """Read the journal of a region that does not run, from its volume."""
    name = f"reading-{region}"
    made = json.loads(pod(name, "reading", "-c", _IN_REGION))
    made["spec"]["securityContext"]["fsGroup"] = 10001
    claim = {"claimName": f"ledger-{region}"}
    made["spec"]["volumes"].append({"name": "ledger", "persistentVolumeClaim": claim})
    made["spec"]["containers"][0]["volumeMounts"].append({"name": "ledger", "mountPath": "/ledger"})
    gris.kubectl("apply", "--filename=-", given=json.dumps(made))
    try:
        gris.wait_for("--for=jsonpath={.status.phase}=Succeeded", f"pod/{name}")
        return RegionSums(*json.loads(gris.kubectl("logs", name)))
    finally:
        gris.kubectl("delete", f"pod/{name}")


def of_home(gris: Namespace, database: str) -> HomeSums:
    """Read the journal of the home, in its database."""
    found = gris.kubectl("exec", f"deployment/{database}", "--", "sh", "-c", _ASKED, "psql", _AT_HOME)
    return HomeSums(*(int(each) for each in found.split()))
