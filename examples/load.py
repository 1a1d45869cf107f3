"""Loads the example tables into an Apache Pinot.

    python examples/load.py --controller http://localhost:9000 --broker http://localhost:8099
    python examples/load.py --parquet engagement.parquet --table engagement --segments 16

A table that is there already, whole and with the same data version, is left alone; one of another version is
replaced; loading that was interrupted goes on with the segments that are missing. The data version is the hash of the
Parquet file. It is kept in the table's own configuration, with the data, so that an operator can see what a cluster
serves, and it is not printed: in a policy it would let readers verify a guess of the data.
"""

import argparse
import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import httpx
from rich.progress import track

FOLDER = Path(__file__).resolve().parent
TABLES = {
    "cofacts_feedback": FOLDER / "cofacts" / "feedback.parquet",
    "online_retail": FOLDER / "online_retail" / "purchases.parquet",
}
VERSION_KEY = "gris.data_version"

# A date is stored as its number of days since 1 January 1970, and known to Pinot as a time.
# Integers of every size become LONG, whose value for NULL is the one that a policy takes for granted.
_LONG = ("dimensionFieldSpecs", {"dataType": "LONG"})
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_FIELDS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "VARCHAR": ("dimensionFieldSpecs", {"dataType": "STRING"}),
    **dict.fromkeys(_INTEGERS, _LONG),
    "BOOLEAN": ("dimensionFieldSpecs", {"dataType": "BOOLEAN"}),
    "DATE": ("dateTimeFieldSpecs", {"dataType": "INT", "format": "1:DAYS:EPOCH", "granularity": "1:DAYS"}),
}
# By itself Pinot gives up after ten seconds, too few for ten million rows on a small machine.
QUERY_TIMEOUT_MS = 30_000
UPLOAD_SECONDS = 1800.0
FEW_SEGMENTS = 8
_READY_SECONDS = 120.0
_RESET_SECONDS = 20.0


class LoadError(RuntimeError):
    """A table cannot be loaded."""


def data_version(parquet: Path) -> str:
    """Return the data version of a table made from this file: `sha256:` and the hash in hexadecimal."""
    with parquet.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def load(parquet: Path, table: str, *, controller: str, broker: str, segments: int = 4) -> str:
    """Make the table `table` of a Pinot hold exactly the rows of `parquet`; return its data version.

    Row i goes to segment i modulo `segments`, so that every server holds a part of every element. Returns when
    all rows can be queried. Columns keep their names; types are string, integer of up to 64 bits, Boolean and date.
    """
    version = data_version(parquet)
    with _client(60.0) as http:
        pinot = _Pinot(http, controller.rstrip("/"), broker.rstrip("/"))
        with duckdb.connect() as connection:
            rows = _Rows.of(connection, parquet)
            count = rows.count()
            names = [f"{table}_{version.removeprefix('sha256:')[:8]}_{segments}_{i}" for i in range(segments)]
            if not pinot.may_go_on(table, version, names):
                pinot.remove(table)
                pinot.create(table, rows.fields(), version)
            missing = [i for i in range(segments) if names[i] not in pinot.segments(table)]
            for number in track(missing, f"Loading {table}", disable=len(missing) <= FEW_SEGMENTS):
                pinot.upload(table, names[number], rows.chunk(number, segments))
        pinot.wait_until_whole(table, segments, count)
    return version


def wait_for_pinot(controller: str, broker: str, seconds: float) -> None:
    """Return as soon as tables can be made and asked; raises LoadError if that takes longer than `seconds`."""
    tenant = f"{controller.rstrip('/')}/tenants/DefaultTenant"
    # One client: each reads all certificates of this machine when it is made.
    with _client(2.0) as http:
        is_up = _comes_true(partial(_has_servers, http, tenant, f"{broker.rstrip('/')}/health"), seconds)
    if not is_up:
        raise LoadError(f"waited {seconds:g} seconds in vain for servers at {controller} and for {broker}")


def _client(seconds: float) -> httpx.Client:
    # Rows go only to the Pinot that was named: no proxy of the environment is used.
    return httpx.Client(timeout=seconds, trust_env=False)


def _has_servers(http: httpx.Client, tenant: str, broker_health: str) -> bool:
    try:
        found = http.get(tenant)
        return (
            found.is_success and bool(found.json()["ServerInstances"]) and http.get(broker_health).is_success
        )
    except (httpx.HTTPError, ValueError, KeyError):
        return False


@dataclass(frozen=True)
class _Pinot:
    """The few requests that loading needs."""

    http: httpx.Client
    controller: str
    broker: str

    def version_of(self, table: str) -> str | None:
        """Return the data version that the table was created with, or None if there is no such table."""
        config = self._get(f"/tables/{table}").get("OFFLINE") or {}
        custom = (config.get("metadata") or {}).get("customConfigs") or {}
        version: str | None = custom.get(VERSION_KEY)
        return version

    def may_go_on(self, table: str, version: str, names: Sequence[str]) -> bool:
        """Return whether the table was made for this version, and has no segments but some of these."""
        return self.version_of(table) == version and set(self.segments(table)) <= set(names)

    def segments(self, table: str) -> Mapping[str, Any]:
        """Return each segment that should be served, with its servers."""
        return self._segments(table, "idealstate")

    def is_whole(self, table: str, segments: int, rows: int) -> bool:
        """Return whether every segment that should be online is, and every row is counted."""
        wanted = self.segments(table)
        is_online = len(wanted) == segments and wanted == self._segments(table, "externalview")
        return is_online and self._count(table) == rows

    def wait_until_whole(self, table: str, segments: int, rows: int) -> None:
        """Return when every row can be queried.

        A server may carry out the order to drop an old table of the same name after it has loaded segments of the new
        one. It then lacks what everybody believes it to have, until its segments are reset.
        """
        deadline = time.monotonic() + _READY_SECONDS
        while not _comes_true(lambda: self.is_whole(table, segments, rows), _RESET_SECONDS):
            if time.monotonic() > deadline:
                raise LoadError(
                    f"waited {_READY_SECONDS:.0f} seconds in vain until all rows of {table} can be queried"
                )
            # A reset that fails because servers are busy is tried again, or the deadline says so.
            self.http.post(f"{self.controller}/segments/{table}_OFFLINE/reset")

    def remove(self, table: str) -> None:
        """Delete the table and its schema, if they exist."""
        for path in (f"/tables/{table}", f"/schemas/{table}"):
            answer = self.http.delete(self.controller + path)
            if answer.status_code != httpx.codes.NOT_FOUND:
                _check(answer)
        # A table of the same name would inherit what the servers have not yet dropped.
        _wait_until(lambda: not self._segments(table, "externalview"), f"the old {table} is gone")

    def create(self, table: str, fields: Mapping[str, list[Mapping[str, str]]], version: str) -> None:
        """Create the schema and the empty table."""
        config = {
            "tableName": table,
            "tableType": "OFFLINE",
            "segmentsConfig": {"schemaName": table, "replication": "1"},
            "tenants": {},
            "tableIndexConfig": {"loadMode": "MMAP"},
            "query": {"timeoutMs": QUERY_TIMEOUT_MS},
            "metadata": {"customConfigs": {VERSION_KEY: version}},
        }
        self.create_as({"schemaName": table, **fields}, config)

    def create_as(self, schema: Mapping[str, Any], config: Mapping[str, Any]) -> None:
        """Create a schema and an empty table."""
        _check(self.http.post(f"{self.controller}/schemas", json=schema))
        _check(self.http.post(f"{self.controller}/tables", json=config))

    def upload(self, table: str, segment: str, content: bytes) -> None:
        """Add one segment; its name is stated, for Pinot's own names repeat within a millisecond."""
        batch = {
            "inputFormat": "json",
            "segmentNameGenerator.type": "fixed",
            "segmentNameGenerator.configs.segment.name": segment,
        }
        parameters = {"tableNameWithType": f"{table}_OFFLINE", "batchConfigMapStr": json.dumps(batch)}
        url = f"{self.controller}/ingestFromFile"
        # Pinot answers once it has made the segment and its indexes.
        file = {"file": (f"{segment}.json", content)}
        _check(self.http.post(url, params=parameters, files=file, timeout=UPLOAD_SECONDS))

    def _segments(self, table: str, view: str) -> Mapping[str, Any]:
        """Return each segment's servers and states, as they should be or as they are."""
        return self._get(f"/tables/{table}/{view}").get("OFFLINE") or {}

    def _count(self, table: str) -> int | None:
        """Return how many rows a query sees, or None while the table cannot be asked."""
        answer = self.http.post(f"{self.broker}/query/sql", json={"sql": f'SELECT COUNT(*) FROM "{table}"'})  # noqa: S608
        result = answer.json()
        if result.get("exceptions") or "resultTable" not in result:
            return None
        return int(result["resultTable"]["rows"][0][0])

    def _get(self, path: str) -> Mapping[str, Any]:
        answer = self.http.get(self.controller + path)
        if answer.status_code == httpx.codes.NOT_FOUND:
            return {}
        content: Mapping[str, Any] = _check(answer).json()
        return content


def _check(answer: httpx.Response) -> httpx.Response:
    if answer.is_error:
        raise LoadError(
            f"{answer.request.method} {answer.request.url.path}: {answer.status_code} {answer.text}"
        )
    return answer


@dataclass(frozen=True)
class _Rows:
    """The rows of a Parquet file, on the way to Pinot."""

    connection: duckdb.DuckDBPyConnection
    types: Mapping[str, str]

    @classmethod
    def of(cls, connection: duckdb.DuckDBPyConnection, parquet: Path) -> "_Rows":
        relation = connection.read_parquet(str(parquet), file_row_number=True)
        relation.create_view("numbered")
        types = {name: str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}
        del types["file_row_number"]
        for name, kind in types.items():
            if kind not in _FIELDS:
                raise LoadError(f"column {name} has the type {kind}, which is not supported")
        return cls(connection, types)

    def count(self) -> int:
        """Return how many rows there are."""
        return len(self.connection.table("numbered"))

    def fields(self) -> Mapping[str, list[Mapping[str, str]]]:
        """Return the fields of the Pinot schema."""
        fields: dict[str, list[Mapping[str, str]]] = {}
        for name, kind in self.types.items():
            group, specification = _FIELDS[kind]
            fields.setdefault(group, []).append({"name": name, **specification})
        return fields

    def chunk(self, number: int, of: int) -> bytes:
        """Return the rows of segment `number`, out of so many, as lines of JSON."""
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "rows.json"
            rest = f"file_row_number % {of} = {number}"
            chosen = f"SELECT {self._columns()} FROM numbered WHERE {rest}"  # noqa: S608 - names of the file
            self.connection.execute(f"COPY ({chosen}) TO '{target}' (FORMAT json)")
            return target.read_bytes()

    def _columns(self) -> str:
        """Return what to select, with dates as days since 1970."""
        days = '("{0}" - DATE \'1970-01-01\') AS "{0}"'
        return ", ".join(
            days.format(name) if kind == "DATE" else f'"{name}"' for name, kind in self.types.items()
        )


def _wait_until(condition: Callable[[], bool], what: str) -> None:
    if not _comes_true(condition, _READY_SECONDS):
        raise LoadError(f"waited {_READY_SECONDS:.0f} seconds in vain until {what}")


def _comes_true(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def main(arguments: Sequence[str] | None = None) -> None:
    """Load the example tables into the Pinot named on the command line."""
    parser = argparse.ArgumentParser(description="Load the example tables into an Apache Pinot.")
    parser.add_argument("--controller", default="http://localhost:9000", metavar="URL")
    parser.add_argument("--broker", default="http://localhost:8099", metavar="URL")
    parser.add_argument(
        "--table", action="append", help=f"only this one of {', '.join(TABLES)} (may be repeated)"
    )
    parser.add_argument("--parquet", type=Path, metavar="FILE", help="load this file as the --table instead")
    parser.add_argument(
        "--segments",
        type=int,
        default=4,
        help="how many segments to make of each table",
    )
    parser.add_argument(
        "--wait", type=float, default=0.0, metavar="SECONDS", help="wait so long for Pinot to answer"
    )
    chosen = parser.parse_args(arguments)
    try:
        if chosen.wait:
            wait_for_pinot(chosen.controller, chosen.broker, chosen.wait)
        for table, parquet in _chosen_tables(chosen.table, chosen.parquet).items():
            load(parquet, table, controller=chosen.controller, broker=chosen.broker, segments=chosen.segments)
            print(f"{table} is loaded")
    except (LoadError, OSError, httpx.HTTPError, duckdb.Error) as error:
        parser.exit(1, f"{_problem(error)}\n")


def _problem(error: Exception) -> str:
    """Return what went wrong, without the words of the libraries: DuckDB's may quote the data."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, httpx.HTTPError):
        return "Pinot gives no answer; --controller and --broker say where it is"
    if isinstance(error, duckdb.Error):
        return "the file cannot be read as Parquet"
    return str(error)


def _chosen_tables(names: Sequence[str] | None, parquet: Path | None) -> Mapping[str, Path]:
    """Return the file of each table to load."""
    if parquet is not None:
        if names is None or len(names) != 1:
            raise LoadError("--parquet needs one --table, the name to load it as")
        return {names[0]: parquet}
    if unknown := set(names or ()) - set(TABLES):
        raise LoadError(f"--table: there is no example {', '.join(sorted(unknown))}")
    return {name: TABLES[name] for name in names or TABLES}


if __name__ == "__main__":
    main()
