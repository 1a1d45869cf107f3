"""A Pinot that says what a test wants, over HTTP or HTTPS."""

import itertools
import json
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Literal, Self

from pinot_connector.engines.base import ColumnType, EngineQuery, ExpectedColumn
from pinot_connector.engines.pinot.configuration import EXACT

QUERY = EngineQuery("t", "SELECT secret", (ExpectedColumn("d0", ColumnType.STRING),), row_limit=3)
ANSWER = {
    "resultTable": {
        "dataSchema": {"columnNames": ["d0", "gris_count"], "columnDataTypes": ["STRING", "INT"]},
        "rows": [["element", 5]],
    },
    "exceptions": [],
    "numServersQueried": 1,
    "numServersResponded": 1,
    "numSegmentsQueried": 1,
    "totalDocs": 7,
}


def reported(segments: Mapping[str, str], **fields: str) -> dict[str, Any]:
    """Return what a controller tells of the table `t` whose segments have these checksums, and seven rows each.

    That they are loaded is for `loaded` to say.
    """
    described = {
        name: {"segment.crc": crc, "segment.total.docs": "7"}
        | {key.replace("_", "."): fields[key] for key in fields}
        for name, crc in segments.items()
    }
    on_server = {"OFFLINE": {name: {"server": "ONLINE"} for name in segments}, "REALTIME": None}
    return {
        "/tables/t/idealstate": on_server,
        "/tables/t/externalview": on_server,
        "/segments/t": [{"OFFLINE": [*segments]}],
        "/segments/t_OFFLINE/crc": dict(segments),
        "/segments/t_OFFLINE/zkmetadata": described,
        **{f"/segments/t_OFFLINE/{name}/metadata": each for name, each in described.items()},
    }


def loaded(segments: Mapping[str, str]) -> dict[str, Any]:
    """Return what a controller tells of what the servers have loaded."""
    return {
        "/segments/t_OFFLINE/metadata": {
            name: {"segmentName": name, "crc": int(crc), "totalDocs": 7} for name, crc in segments.items()
        }
    }


def renamed(replies: Mapping[str, Any], table: str) -> dict[str, Any]:
    """Return the replies about the table `t` as replies about another one."""
    return {re.sub(r"/t\b|/t(?=_)", f"/{table}", path): reply for path, reply in replies.items()}


@contextmanager
def refusing_server(fake: "FakePinot") -> Iterator[int]:
    """Gives the admin port of a table's only server, which refuses to say what it has loaded.

    The controller does not report the port, so only an engine that was given it gets the refusal.
    """
    with FakePinot().serving() as server:
        server.admits = False
        fake.replies["/instances/server"] = {"hostName": "127.0.0.1", "adminPort": -1}
        yield int(server.url.rpartition(":")[2])


class FakePinot:
    """A broker and a controller in one, which says what a test wants and remembers what it heard."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.queries: list[str] = []
        self.explained: list[str] = []
        self.counts: list[str] = []
        self.routes_asked: list[str] = []
        # The rows of each segment that a broker asks for, by its name, if not what the controller lists.
        self.routes_of: dict[str, dict[str, int]] = {}
        # What else a broker says of its routes.
        self.routes_say: dict[str, Any] = {}
        self.options: list[str | None] = []
        # The broker that answers next, where several stand behind the address; empty: one without a name.
        self.brokers: Iterator[str] = itertools.repeat("")
        # What a broker's count covers, by its name, if not what others say.
        self.counts_of: dict[str, dict[str, Any]] = {}
        # The largest LIMIT that a broker keeps, by its name.
        self.limits: dict[str, int] = {}
        # The largest LIMIT that a broker does not refuse.
        self.most_rows = 10**9
        # Whether there is a segment to plan for.
        self.has_plans = True
        self.headers: list[str | None] = []
        self.paths: list[str] = []
        self.delay_seconds = 0.0
        self.status = 200
        # Whether it accepts anybody's credentials.
        self.admits = True
        # Whether it keeps connections for further requests, as a real one does.
        self.keeps_connections = False
        # Whether it ends a connection when a broker is asked over it, and that it has ended one after an answer.
        self.ends: Literal["", "instead of an answer", "after an answer"] = ""
        self.ended = Event()
        # The client's end of the connection of each request to a broker.
        self.asked_by: list[tuple[str, int]] = []
        self.before_answer: Callable[[], object] = lambda: None
        self.replies: dict[str, Any] = {
            "/query/sql": ANSWER,
            "/count": {name: said for name, said in ANSWER.items() if name != "resultTable"},
            "/version": {"pinot-controller": "1.5.1"},
            "/cluster/configs": {},
            "/tables/t": {"OFFLINE": {"tableName": "t_OFFLINE"}},
            "/tables/t/schema": {"dimensionFieldSpecs": [{"name": "d", "dataType": "STRING"}]},
            **reported({"s": "1"}),
            **loaded({"s": "1"}),
        }
        handler = type("Handler", (_Handler,), {"pinot": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def serving(self) -> Iterator[Self]:
        """Serve until the block ends."""
        thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()


def _named(broker: str) -> dict[str, object]:
    return {"brokerId": broker} if broker else {}


def _plan(pinot: FakePinot, broker: str, limit: int) -> dict[str, Any]:
    """Return a broker's plan, which tells the LIMIT in force, or its refusal of so large a one."""
    if limit > pinot.most_rows:
        return {"exceptions": [{"errorCode": 700, "message": "secret"}]}
    if not pinot.has_plans:
        return {"exceptions": [], "numServersQueried": 0}
    shown = min(limit, pinot.limits.get(broker, limit))
    return {"resultTable": {"rows": [[f"BROKER_REDUCE(limit:{shown})", 1, 0], ["SCAN(docs:7)", 2, 1]]}}


def _listed(pinot: FakePinot, table: str) -> dict[str, int]:
    """Return the rows of each segment that the controller lists and keeps."""
    raw = table.removesuffix("_OFFLINE")

    def reply(path: str) -> Any:
        # Before it may stand what a test puts before all paths.
        found = next((said for known, said in pinot.replies.items() if known.endswith(path)), None)
        return found() if callable(found) else found

    kept = reply(f"/segments/{raw}") or reply(f"/segments/{table}")
    online = reply(f"/tables/{raw}/idealstate") or reply(f"/tables/{table}/idealstate")
    described = {
        name: (reply(f"/segments/{raw}_OFFLINE/zkmetadata") or {}).get(name)
        or reply(f"/segments/{raw}_OFFLINE/{name}/metadata")
        for name, replicas in online["OFFLINE"].items()
        if name in kept[0]["OFFLINE"] and "ONLINE" in replicas.values()
    }
    return {name: int(fields["segment.total.docs"]) for name, fields in described.items()}


def _routes(pinot: FakePinot, broker: str, sql: str) -> dict[str, Any]:
    """Return a broker's rows by segment; what has no rows is in no group."""
    found = re.search(r'FROM "(\w+)"', sql)
    table = found[1] if found else ""
    # A real-time part is under its own name, whichever broker it is.
    routes = pinot.routes_of.get(table, pinot.routes_of.get(broker))
    if routes is None:
        routes = _listed(pinot, table)
    schema = {"columnNames": ["segment", "gris_count"], "columnDataTypes": ["STRING", "LONG"]}
    return {
        "resultTable": {
            "dataSchema": schema,
            "rows": [[name, rows] for name, rows in routes.items() if rows][: int(sql.rpartition(" ")[2])],
        },
        "exceptions": [],
        "numServersQueried": 1,
        "numServersResponded": 1,
        "numSegmentsQueried": len(routes),
        "totalDocs": sum(routes.values()),
        **pinot.routes_say,
    }


class _Server(ThreadingHTTPServer):
    request_queue_size = 100
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing when a client has stopped waiting."""


class _Handler(BaseHTTPRequestHandler):
    # An answer is written in two parts, and the second would wait for the client over a connection that is kept.
    disable_nagle_algorithm = True
    pinot: FakePinot

    def setup(self) -> None:
        super().setup()
        self.protocol_version = "HTTP/1.1" if self.pinot.keeps_connections else "HTTP/1.0"

    def do_GET(self) -> None:
        self._reply(self.path.partition("?")[0])

    def do_POST(self) -> None:
        self.pinot.asked_by.append(self.client_address)
        time.sleep(self.pinot.delay_seconds)
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.pinot.ends != "instead of an answer":
            self._answer(asked)
        if self.pinot.ends:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            self.pinot.ended.set()

    def _answer(self, asked: dict[str, Any]) -> None:
        pinot, sql, broker = self.pinot, asked["sql"], next(self.pinot.brokers)
        pinot.options.append(asked.get("queryOptions"))
        bare = sql.removeprefix(EXACT)
        if bare.startswith("EXPLAIN PLAN FOR "):
            pinot.explained.append(sql)
            self._reply(
                "/explain", content=_plan(pinot, broker, int(sql.rpartition(" ")[2])) | _named(broker)
            )
        elif sql.rpartition("GROUP BY ")[2].startswith('"$segmentName"'):
            pinot.routes_asked.append(sql)
            self._reply("/routes", content=_routes(pinot, broker, sql) | _named(broker))
        elif bare in ('SELECT COUNT(*) FROM "t"', 'SELECT COUNT(*) FROM "t_OFFLINE"'):
            pinot.counts.append(sql)
            self._reply(
                "/count", content=pinot.counts_of.get(broker, pinot.replies["/count"]) | _named(broker)
            )
        else:
            pinot.queries.append(sql)
            pinot.before_answer()
            content = pinot.replies.get(self.path)
            self._reply(
                self.path, pinot.status, content | _named(broker) if isinstance(content, dict) else content
            )

    def _reply(self, path: str, status: int = 200, content: object = None) -> None:
        self.pinot.headers.append(self.headers["Authorization"])
        self.pinot.paths.append(path)
        known = self.pinot.replies.get(path) if content is None else content
        known = known() if callable(known) else known
        content = known if isinstance(known, bytes) else json.dumps(known).encode()
        if not self.pinot.admits:
            status = 401
        self.send_response(404 if known is None and self.pinot.admits else status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""
