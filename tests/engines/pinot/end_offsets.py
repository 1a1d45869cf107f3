"""A controller of an old Pinot that also reports where streams end, as those from 0.12 on do.

Pinot 0.11 reports how far a server has taken in each partition, and not where the partition ends. Everything is passed
on to the real controller; to its answer about consuming segments the real ends are added, as Kafka tells them, in the
form of Pinot 1.5.1 (ConsumingSegmentInfoReader in its source).
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
from confluent_kafka import Consumer, TopicPartition

from tests.engines.pinot.facts import facts_of, version_of
from tests.engines.pinot.plain_http import HTTP


@contextmanager
def reporting_ends(controller_url: str, kafka: str) -> Iterator[str]:
    """Serve such a controller in front of a real one; the URL is where. Each table takes in the topic of its name.

    A controller that reports them by itself is left alone.
    """
    if facts_of(version_of(HTTP.get(f"{controller_url}/version", timeout=30).json())).ends_are_reported:
        yield controller_url
        return
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "ends"})
    client = httpx.Client(base_url=controller_url, timeout=30)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                reply = client.get(self.path)
            except httpx.HTTPError:
                self.send_error(httpx.codes.BAD_GATEWAY)
                return
            content = reply.content
            if self.path.endswith("/consumingSegmentsInfo") and reply.status_code == httpx.codes.OK:
                topic = self.path.split("/")[2]
                content = json.dumps(_with_ends(reply.json(), consumer, topic)).encode()
            self.send_response(reply.status_code)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Say nothing when a client has stopped waiting."""

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        client.close()
        consumer.close()


def _with_ends(report: dict, consumer: Consumer, topic: str) -> dict:  # type: ignore[type-arg]
    for replicas in report["_segmentToConsumingInfoMap"].values():
        for shown in replicas:
            current = shown["partitionToOffsetMap"]
            ends = {
                each: str(consumer.get_watermark_offsets(TopicPartition(topic, int(each)), timeout=10)[1])
                for each in current
            }
            shown["partitionOffsetInfo"] = {"currentOffsetsMap": current, "latestUpstreamOffsetMap": ends}
    return report
