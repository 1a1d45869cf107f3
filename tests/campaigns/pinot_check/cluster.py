"""A running Pinot, and tables in it that nobody else has."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import Any, Self

import httpx

from gris_cli.data.engines import PinotAccess
from pinot_connector.engines.pinot import PinotEngine
from tests.engines.pinot.facts import version_of
from tests.engines.pinot.waiting import wait_until

DAY = {"name": "day", "dataType": "INT", "format": "1:DAYS:EPOCH", "granularity": "1:DAYS"}
_SECONDS = 60.0


class CannotTryError(Exception):
    """A row cannot be tried on this cluster or from this place; the text says why."""


@dataclass
class CheckedCluster:
    """The cluster at these addresses; as a context manager it removes the tables that were made."""

    controller_url: str
    broker_url: str
    access: PinotAccess = field(default_factory=PinotAccess)
    tenant: str = "DefaultTenant"
    options: Mapping[str, Any] = field(default_factory=dict)
    kafka: str | None = None
    """The address of a Kafka that this machine and the servers reach, for tables that take in a stream."""
    own_table: str | None = None
    """A table that takes in a stream, which is looked at and never asked."""
    tables: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.controller_url, self.broker_url = self.controller_url.rstrip("/"), self.broker_url.rstrip("/")
        self._prefix = f"gris_check_{secrets.token_hex(4)}"
        authorization = self.access.authorization()
        self._http = httpx.Client(
            headers={} if authorization is None else {"Authorization": authorization},
            verify=self.access.tls() or True,
            timeout=_SECONDS,
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for table in [*self.tables]:
                self.remove(table)
        finally:
            self._http.close()

    @property
    def version(self) -> tuple[int, int]:
        """The version that the controller is of."""
        return version_of(self.get("/version"))

    @property
    def servers(self) -> list[str]:
        """The names of the servers that tables of the tenant are put on."""
        return list(self.get(f"/tenants/{self.tenant}")["ServerInstances"])

    def require_servers(self, count: int) -> None:
        """Leave the row untried if there are fewer."""
        if len(self.servers) < count:
            raise CannotTryError(
                f"needs {count} servers, and the tenant {self.tenant} has {len(self.servers)}"
            )

    def engine(self) -> PinotEngine:
        """Return an engine that has seen nothing of the cluster yet."""
        return PinotEngine(
            controller=self.controller_url,
            broker=self.broker_url,
            authorization=self.access.authorization(),
            tls=self.access.tls(),
            **self.options,
        )

    def ask(self, sql: str) -> dict[str, Any]:
        """Return the broker's whole answer, without the connector."""
        answer = self._http.post(f"{self.broker_url}/query/sql", json={"sql": sql})
        content: dict[str, Any] = answer.json()
        return content

    def get(self, path: str) -> Any:
        """Return what the controller says."""
        return self._http.get(self.controller_url + path).raise_for_status().json()

    def status(self, path: str) -> int:
        """Return with which status the controller answers."""
        return self._http.get(self.controller_url + path).status_code

    def get_elsewhere(self, url: str) -> Any:
        """Return what another part of the cluster says."""
        return self._http.get(url, timeout=5).raise_for_status().json()

    def name_of(self, name: str) -> str:
        """Return the name of a table or a topic that the check calls so."""
        return f"{self._prefix}_{name}"

    def create(
        self,
        name: str,
        dimensions: Mapping[str, str],
        *,
        replication: int = 1,
        key: Sequence[str] = (),
        kinds: Sequence[str] = ("OFFLINE",),
        nulls: Mapping[str, object] = MappingProxyType({}),
        **config: Any,
    ) -> str:
        """Make an empty table of these columns and the time column `day`; return the name that it has.

        Args:
            name: what the check calls it.
            dimensions: the type of each column; `[]` after it stands for several values in a row.
            replication: on how many servers each segment is.
            key: the columns of its key.
            kinds: the types of its parts.
            nulls: what is stored where a value is missing, by column, if it is not Pinot's own default.
            config: what goes into the configuration of the table; by a type, into that of this part alone.
        """
        table = self.name_of(name)
        schema = {
            "schemaName": table,
            "dimensionFieldSpecs": [
                {
                    "name": column,
                    "dataType": kind.removesuffix("[]"),
                    **({"singleValueField": False} if kind.endswith("[]") else {}),
                    **({"defaultNullValue": nulls[column]} if column in nulls else {}),
                }
                for column, kind in dimensions.items()
            ],
            "dateTimeFieldSpecs": [DAY],
            **({"primaryKeyColumns": [*key]} if key else {}),
        }
        of_parts = {kind: config.pop(kind, {}) for kind in kinds}
        whole = {
            "tableName": table,
            "segmentsConfig": {
                "schemaName": table,
                "replication": str(replication),
                "replicasPerPartition": str(replication),
                "timeColumnName": "day",
            },
            "tenants": {"broker": self.tenant, "server": self.tenant},
            "tableIndexConfig": {"loadMode": "MMAP"},
            "metadata": {},
            **config,
        }
        self.create_as(
            table, schema, *({**whole, "tableType": kind, **more} for kind, more in of_parts.items())
        )
        return table

    def create_as(self, table: str, schema: Mapping[str, Any], *parts: Mapping[str, Any]) -> None:
        """Make a table of this schema with parts that are configured so; its name is one of `name_of`."""
        if table in self.tables:
            # A part of the other type would make one table of two.
            raise AssertionError(f"another row has made a table of this name: {table}")
        self.tables.append(table)
        self._http.post(f"{self.controller_url}/schemas", json=schema).raise_for_status()
        for part in parts:
            self._http.post(f"{self.controller_url}/tables", json=part).raise_for_status()

    def reconfigure(self, table: str, change: Mapping[str, Any]) -> None:
        """Change the configuration of a table of ours."""
        original = self.get(f"/tables/{table}")["OFFLINE"]
        url = f"{self.controller_url}/tables/{table}"
        self._http.put(url, json={**original, **change}).raise_for_status()

    def upload(self, table: str, segment: str, rows: Sequence[Mapping[str, object]]) -> None:
        """Add a segment to a table of ours, or replace the one of this name."""
        batch = {
            "inputFormat": "json",
            "segmentNameGenerator.type": "fixed",
            "segmentNameGenerator.configs.segment.name": f"{table}_{segment}",
        }
        self._http.post(
            f"{self.controller_url}/ingestFromFile",
            params={"tableNameWithType": f"{table}_OFFLINE", "batchConfigMapStr": json.dumps(batch)},
            files={"file": ("rows.json", "\n".join(map(json.dumps, rows)).encode())},
        ).raise_for_status()

    def wait_for_rows(self, table: str, rows: int) -> None:
        """Return when a query counts this many rows."""
        wait_until(lambda: self.rows(f'SELECT COUNT(*) FROM "{table}"') == [[rows]])  # noqa: S608

    def rows(self, sql: str) -> list[list[Any]] | None:
        """Return the rows that Pinot itself answers, None while it has no answer."""
        return (self.ask(sql).get("resultTable") or {}).get("rows")

    def remove(self, table: str) -> None:
        """Remove a table that was made here, and wait until servers have dropped it."""
        for path in (f"/tables/{table}", f"/schemas/{table}"):
            answer = self._http.delete(self.controller_url + path)
            if answer.status_code != httpx.codes.NOT_FOUND:
                answer.raise_for_status()
        wait_until(lambda: self._is_gone(table))
        self.tables.remove(table)

    def _is_gone(self, table: str) -> bool:
        answer = self._http.get(f"{self.controller_url}/tables/{table}/externalview")
        return not (answer.is_success and any(answer.json().get(kind) for kind in ("OFFLINE", "REALTIME")))
