"""Segments that a server of Pinot is slow to load, for as long as a test wants."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread

from deploy.pinot.cluster import PinotCluster
from tests.engines.pinot.loading import plain_rows, upload
from tests.engines.pinot.plain_http import HTTP
from tests.engines.pinot.waiting import wait_until

SEGMENT = "s0"


class HeldSegment:
    """A place that Pinot downloads one segment from: the controller gets it at once, servers once they are allowed to.

    A segment may be slow to load for many reasons: its size, indexes that are built on the server, a queue of others.
    To a caller, all of them look like this one.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._changed = Condition()
        self._allowed = 0
        self._is_broken = False
        self.asked = 0
        handler = type("Handler", (_Handler,), {"segment": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self.url = f"http://localhost:{self._server.server_port}/{SEGMENT}.tar.gz"

    @contextmanager
    def offered(self) -> Iterator[HeldSegment]:
        """Offer the segment until the block ends; then all who wait get it."""
        thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield self
        finally:
            self.let(1000)
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def let(self, downloads: int) -> None:
        """Let this many servers more have the segment."""
        with self._changed:
            self._allowed += downloads
            self._changed.notify_all()

    def break_downloads(self) -> None:
        """Fail every download of a server from now on."""
        with self._changed:
            self._is_broken = True
            self._changed.notify_all()

    def content(self) -> bytes | None:
        """Return the segment once the caller may have it, None if the download is to fail."""
        with self._changed:
            self.asked += 1
            if self.asked == 1:
                return self._content
            self._changed.wait_for(lambda: self._is_broken or self._allowed > 0)
            if self._is_broken:
                return None
            self._allowed -= 1
            return self._content


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing when a server was killed while it waited."""


class _Handler(BaseHTTPRequestHandler):
    segment: HeldSegment

    def do_GET(self) -> None:
        content = self.segment.content()
        self.send_response(500 if content is None else 200)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def create_table(cluster: PinotCluster, *, replication: int = 1) -> str:
    """Make a table of members and names with this many replicas of each segment; return its name, which is new."""
    table = f"held_{uuid.uuid4().hex[:8]}"
    texts = [{"name": name, "dataType": "STRING"} for name in ("member_id", "name")]
    config = {
        "tableName": table,
        "tableType": "OFFLINE",
        "segmentsConfig": {"schemaName": table, "replication": str(replication)},
        "tenants": {},
        "tableIndexConfig": {},
        "metadata": {},
    }
    url = cluster.controller_url
    schema = {"schemaName": table, "dimensionFieldSpecs": texts}
    HTTP.post(f"{url}/schemas", json=schema).raise_for_status()
    HTTP.post(f"{url}/tables", json=config).raise_for_status()
    return table


def names(content: str) -> list[dict[str, object]]:
    """Return four members who all have one name."""
    return [{"member_id": f"m{i}", "name": content} for i in range(4)]


def load_names(cluster: PinotCluster, table: str, content: str) -> None:
    """Put a segment of four rows into the table, and return once every query sees it."""
    upload(cluster, table, SEGMENT, names(content))
    sql = f"SELECT COUNT(*) FROM {table} WHERE name = '{content}'"  # noqa: S608
    wait_until(lambda: plain_rows(cluster, sql) == [[4]])
    wait_until(lambda: _are_loaded(cluster, table))


def segment_of(cluster: PinotCluster, table: str) -> HeldSegment:
    """Return the segment that the table has now."""
    url = f"{cluster.controller_url}/segments/{table}/{SEGMENT}"
    return HeldSegment(HTTP.get(url).raise_for_status().content)


def push(cluster: PinotCluster, table: str, segment: HeldSegment) -> None:
    """Replace the segment by the one that is offered; Pinot then tells the servers to download it from there."""
    headers = {"UPLOAD_TYPE": "URI", "DOWNLOAD_URI": segment.url}
    answer = HTTP.post(
        f"{cluster.controller_url}/segments",
        params={"tableName": table, "tableType": "OFFLINE"},
        headers=headers | {"Content-Type": "application/json"},
        content="{}",
        timeout=30,
    )
    answer.raise_for_status()


def loaded(cluster: PinotCluster, table: str) -> list[str]:
    """Return the checksum of the segment on each server that has it, as the servers themselves say."""
    found = []
    for server in cluster.ports.servers:
        answer = HTTP.get(f"http://localhost:{server.admin}/tables/{table}_OFFLINE/segments/crc")
        if answer.is_success and SEGMENT in answer.json():
            found.append(str(answer.json()[SEGMENT]))
    return found


def _are_loaded(cluster: PinotCluster, table: str) -> bool:
    crc = HTTP.get(f"{cluster.controller_url}/segments/{table}_OFFLINE/crc").json()[SEGMENT]
    return set(loaded(cluster, table)) == {str(crc)}
