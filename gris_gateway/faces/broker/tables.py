"""The catalogue as a controller tells it: tables, the columns that questions may use, and where brokers are."""

from __future__ import annotations

from typing import Any

from pinot_connector.catalog import TableEntry
from pinot_connector.engines.base import ColumnType

_TYPES = {ColumnType.STRING: "STRING", ColumnType.INT64: "LONG", ColumnType.BOOL: "BOOLEAN"}


def schema_of(table: TableEntry) -> dict[str, Any]:
    """Return a table's schema: columns of times by themselves, and as metrics those that may only be summed."""
    # Its type is not in the catalogue, and does not matter: it stands only inside of COUNT(DISTINCT ..).
    columns = {table.member: "STRING"} | {
        each.name: _TYPES.get(each.type, "TIMESTAMP") for each in table.columns
    }
    times = [name for name, kind in columns.items() if kind == "TIMESTAMP"]
    return {
        "schemaName": table.name,
        "dimensionFieldSpecs": [_spec(name, kind) for name, kind in columns.items() if name not in times],
        "metricFieldSpecs": [_spec(each.name, "DOUBLE") for each in table.values if each.name not in columns],
        "dateTimeFieldSpecs": [
            _spec(name, "TIMESTAMP") | {"format": "TIMESTAMP", "granularity": "1:DAYS"} for name in times
        ],
    }


def _spec(name: str, kind: str) -> dict[str, str]:
    return {"name": name, "dataType": kind}


def broker_at(address: str, *, is_secure: bool) -> dict[str, Any]:
    """Return what a controller says of a broker, whose address may be without a port."""
    host, colon, port = address.rpartition(":")
    if not (colon and port.isdecimal()):
        host, port = address, "443" if is_secure else "80"
    return {"host": host, "port": int(port), "instanceName": f"Broker_{host}_{port}"}
