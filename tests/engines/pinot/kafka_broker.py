"""An Apache Kafka beside a Pinot cluster, out of the jars of an old Pinot, for tables that take in a stream."""

import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from deploy.pinot.cluster import DEFAULT_VERSION, FOLDER, PinotCluster, collect_jars
from tests.engines.pinot.facts import facts_of, version_of
from tests.engines.pinot.waiting import wait_until
from tests.support.java_options import QUICK_JAVA

_FLUSH_SECONDS = 60


@dataclass(frozen=True)
class Kafka:
    """A running broker."""

    address: str
    plugin: str
    """The package of Pinot's consumers for it."""

    def send(self, topic: str, rows: Sequence[Mapping[str, object]]) -> None:
        """Put rows into a topic, which is there from then on; return when the broker has them."""
        producer = Producer({"bootstrap.servers": self.address})
        for row in rows:
            producer.produce(topic, json.dumps(row))
        assert 0 == producer.flush(_FLUSH_SECONDS), "Kafka did not take every row"

    def stream_of(self, topic: str) -> Mapping[str, Any]:
        """Return what a table's configuration says to take in a topic from its beginning."""
        plugin = "org.apache.pinot.plugin.stream"
        return {
            "streamType": "kafka",
            "stream.kafka.consumer.type": "lowlevel",
            "stream.kafka.topic.name": topic,
            "stream.kafka.broker.list": self.address,
            "stream.kafka.consumer.factory.class.name": f"{plugin}.{self.plugin}.KafkaConsumerFactory",
            "stream.kafka.decoder.class.name": f"{plugin}.kafka.KafkaJSONMessageDecoder",
            "stream.kafka.consumer.prop.auto.offset.reset": "smallest",
            "realtime.segment.flush.threshold.rows": "1000000",
        }


@contextmanager
def running_kafka(cluster: PinotCluster, folder: Path) -> Iterator[Kafka]:
    """Start a broker on the cluster's ZooKeeper; stop it, and remove what it wrote, when the block ends."""
    port, log = _free_port(), folder / "kafka.log"
    with (folder / "kafka.out").open("wb") as output:
        process = subprocess.Popen(
            [
                *("java", "-Xms64M", "-Xmx256M", *QUICK_JAVA, "-Dpinot.admin.system.exit=true"),
                f"-Djava.io.tmpdir={folder}",
                *(f"-Dlog4j2.configurationFile={FOLDER / 'log4j2.xml'}", f"-Dgris.log={log}"),
                # Newer ones start a Kafka in a container.
                *("-cp", f"{collect_jars(DEFAULT_VERSION)}/*"),
                *("org.apache.pinot.tools.admin.PinotAdministrator", "StartKafka"),
                # A place of its own there: one that was just stopped is remembered for a minute under the other.
                *("-port", str(port), "-zkAddress", f"localhost:{cluster.ports.zookeeper}/kafka-{port}"),
            ],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        # It listens before it answers.
        wait_until(lambda: process.poll() is not None or (_listens(port) and _answers(port)), 120)
        assert process.poll() is None, f"Kafka did not start; {folder}/kafka.out says why"
        version = version_of({"pinot-controller": cluster.version})
        yield Kafka(f"localhost:{port}", facts_of(version).kafka_plugin)
    finally:
        process.kill()
        process.wait()
        # Pinot's command chooses this directory by itself, names it nowhere else and leaves it behind.
        said = log.read_text() if log.exists() else ""
        for written in set(re.findall(r"under dir (\S+)/meta\.properties", said)):
            shutil.rmtree(written, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _answers(port: int) -> bool:
    try:
        return bool(AdminClient({"bootstrap.servers": f"localhost:{port}"}).list_topics(timeout=10).brokers)
    except KafkaException:
        return False


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
