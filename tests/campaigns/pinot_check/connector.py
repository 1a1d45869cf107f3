"""What the connector promises: every answer that it confirms is the truth, and what holds for all members alike."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

from pinot_connector.engines.base import ColumnType, EngineAnswer, EngineQuery, ReadColumn
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import DataChanged, EngineError, EngineRefused, IncompleteAnswer
from tests.campaigns.pinot_check.cluster import CannotTryError, CheckedCluster
from tests.campaigns.pinot_check.rows import row, slow_row
from tests.engines.pinot.facts import facts_of
from tests.engines.pinot.queries import confirmed, count_members

NAME = ("name", ColumnType.STRING)
DAY = ("day", ColumnType.DATE)
BY_DAY = (ReadColumn("day", ColumnType.DATE, None),)
FIRST_DAY = 17_000
MEMBER_AND_NAME = {"member_id": "STRING", "name": "STRING"}
_LOADED_SECONDS = 150.0


def histogram(answer: EngineAnswer) -> dict[Any, int]:
    """Return the answer as counts by element, a tuple where there are several columns."""
    keys = zip(*answer.elements, strict=True)
    return {key if len(key) > 1 else key[0]: count for key, count in zip(keys, answer.counts, strict=True)}


def answered(engine: PinotEngine, query: EngineQuery) -> EngineAnswer:
    """Return the answer once the version in use is settled; every other refusal is one at once."""
    deadline = time.monotonic() + _LOADED_SECONDS
    while True:
        try:
            return confirmed(engine, query)
        except DataChanged:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def require_equal(expected: object, found: object, what: str = "another answer than the truth") -> None:
    """Say so where two things differ; what they are stays untold."""
    if expected != found:
        raise AssertionError(what)


@contextmanager
def refused(kind: type[EngineError], what: str) -> Iterator[None]:
    """Expect a refusal of this kind."""
    try:
        yield
    except kind:
        return
    raise AssertionError(f"{what} was answered")


def filled(cluster: CheckedCluster, name: str, names: Mapping[str, int], *, replication: int = 1) -> str:
    """Return a table in two segments, in which each name has so many members."""
    table = cluster.create(name, MEMBER_AND_NAME, replication=replication)
    members = [each for each, count in names.items() for _ in range(count)]
    rows = [{"member_id": f"m{i}", "name": each, "day": FIRST_DAY} for i, each in enumerate(members)]
    for part in range(2):
        cluster.upload(table, str(part), rows[part::2])
    cluster.wait_for_rows(table, len(rows))
    return table


@row
def plain(cluster: CheckedCluster) -> str:
    """A question on a table of this cluster is answered, and is the truth."""
    table = filled(cluster, "plain", {"a": 5, "b": 3})
    with closing(cluster.engine()) as engine:
        require_equal({"a": 5, "b": 3}, histogram(answered(engine, count_members(table, NAME))))
    override = cluster.get("/cluster/configs").get("pinot.broker.enable.query.limit.override")
    return f"pinot.broker.enable.query.limit.override: {override}"


@row
def types(cluster: CheckedCluster) -> str:
    """Texts, integers of 64 bits, Booleans and days come back as the policy says."""
    table = cluster.create("types", {"member_id": "STRING", "flag": "BOOLEAN", "number": "LONG"})
    big = 2**53 + 1
    cluster.upload(table, "0", [
        {"member_id": "a", "flag": True, "number": big, "day": 17_897},
        {"member_id": "b", "flag": True, "number": big, "day": 17_897},
        {"member_id": "b", "flag": False, "number": -1, "day": 400},
    ])  # fmt: skip
    cluster.wait_for_rows(table, 3)
    kinds = (("flag", ColumnType.BOOL), DAY, ("number", ColumnType.INT64))
    with closing(cluster.engine()) as engine:
        found = histogram(answered(engine, count_members(table, *kinds)))
    require_equal({(True, 17_897, big): 2, (False, 400, -1): 1}, found)
    return ""


@row
def literals(cluster: CheckedCluster) -> str:
    """Percent signs and quotes in literals reach Pinot as they are."""
    names = ["100%", "100%%", "%(x)s", "%s", "it's", "ä😀"]
    table = filled(cluster, "literals", dict.fromkeys(names, 1))
    with closing(cluster.engine()) as engine:
        for name in names:
            literal = name.replace("'", "''")
            query = count_members(table, NAME, where=f"WHERE name = '{literal}'")
            require_equal({name: 1}, histogram(answered(engine, query)))
    return ""


@row
def trimming(cluster: CheckedCluster) -> str:
    """Where each server alone trims the true leaders away, the top ten is true."""
    cluster.require_servers(2)
    table = lopsided(cluster)
    query = count_members(table, NAME, limit=10)
    with closing(cluster.engine()) as engine:
        found = histogram(answered(engine, query))
    require_equal({f"leader-{i:02}": 6 for i in range(10)}, found)
    return "plain SQL names none of them" if _plain_is_wrong(cluster, table) else "plain SQL is right too"


def lopsided(cluster: CheckedCluster) -> str:
    """Return a table whose fifty leaders have three members on each of two servers; others have four on one."""
    table = cluster.create("lopsided", MEMBER_AND_NAME)
    for part in range(2):
        leaders = [f"leader-{i:02}" for i in range(50) for _ in range(3)]
        others = [f"other-{part}-{i:04}" for i in range(5_975) for _ in range(4)]
        few = [f"other-{1 - part}-{i:04}" for i in range(5_975)]
        names = enumerate([*leaders, *others, *few])
        rows = [{"member_id": f"m{part}-{i}", "name": name, "day": FIRST_DAY} for i, name in names]
        cluster.upload(table, str(part), rows)
    cluster.wait_for_rows(table, 2 * (150 + 5 * 5_975))
    return table


def _plain_is_wrong(cluster: CheckedCluster, table: str) -> bool:
    rows = cluster.rows(
        f"SELECT name, COUNT(*) FROM {table} GROUP BY name ORDER BY COUNT(*) DESC, name LIMIT 10"  # noqa: S608
    )
    return not any(str(name).startswith("leader") for name, _ in rows or ())


@row
def many_groups(cluster: CheckedCluster) -> str:
    """More than 100,000 groups in a segment are counted whole, or refused."""
    table, count = cluster.create("wide", {"member_id": "STRING"}), 100_001
    cluster.upload(table, "0", [{"member_id": f"m{i}", "day": FIRST_DAY} for i in range(count)])
    cluster.wait_for_rows(table, count)
    query = count_members(table, ("member_id", ColumnType.STRING), limit=count)
    with closing(cluster.engine()) as engine:
        if not facts_of(cluster.version).group_limit_can_be_raised:
            with refused(IncompleteAnswer, "a question that a limit of groups cut"):
                answered(engine, query)
            return "refused: this version does not obey numGroupsLimit"
        require_equal(count, len(answered(engine, query).counts))
    return "counted"


@row
def limit(cluster: CheckedCluster) -> str:
    """The LIMIT that was asked is in force, or the answer is refused (point A)."""
    table = cluster.create("limit", MEMBER_AND_NAME)
    rows = [{"member_id": f"m{i}", "name": f"n{i}", "day": FIRST_DAY} for i in range(1_500)]
    cluster.upload(table, "0", rows)
    cluster.wait_for_rows(table, len(rows))
    with closing(cluster.engine()) as engine:
        try:
            found = answered(engine, count_members(table, NAME, limit=1_001))
        except EngineRefused as refusal:
            if "LIMIT" not in str(refusal):
                raise
            return "refused: the broker lowers LIMIT"
    require_equal(1_001, len(found.counts), "fewer rows than asked for were confirmed")
    return "1,001 rows"


@row
def no_rows(cluster: CheckedCluster) -> str:
    """An answer without rows is as good as any other."""
    table = filled(cluster, "empty_answer", {"a": 2})
    with closing(cluster.engine()) as engine:
        require_equal({}, histogram(answered(engine, count_members(table, NAME, where="WHERE name = 'z'"))))
    return ""


def _pruned(cluster: CheckedCluster, name: str, **config: Any) -> str:
    table = cluster.create(name, MEMBER_AND_NAME, **config)
    for i in range(3):
        rows = [{"member_id": f"m{j}", "name": f"n{i}", "day": FIRST_DAY + 10 * i} for j in range(i + 1)]
        cluster.upload(table, str(i), rows)
    cluster.wait_for_rows(table, 6)
    return table


@row
def pruned_by_time(cluster: CheckedCluster) -> str:
    """Where the broker prunes by time, a range beyond all segments is answered as any other (point B)."""
    table = _pruned(cluster, "by_time", routing={"segmentPrunerTypes": ["time"]})
    expected = {
        "day >= 17010": {17_010: 2, 17_020: 3},
        "day >= 17020": {17_020: 3},
        "day >= 17021": {},
        "day < 16999": {},
    }
    with closing(cluster.engine()) as engine:
        for where, truth in expected.items():
            query = replace(count_members(table, DAY, where=f"WHERE {where}"), reads=BY_DAY)
            require_equal(truth, histogram(answered(engine, query)))
        # One more row on a later day must change the answer and nothing else.
        cluster.upload(table, "late", [{"member_id": "m9", "name": "late", "day": 17_030}])
        cluster.wait_for_rows(table, 7)
        query = replace(count_members(table, DAY, where="WHERE day >= 17021"), reads=BY_DAY)
        require_equal({17_030: 1}, histogram(answered(engine, query)))
    return ""


@row
def pruned_by_partition(cluster: CheckedCluster) -> str:
    """Where the broker prunes by partition, a value of no segment is answered as any other (point B)."""
    partitions = {"name": {"functionName": "Murmur", "numPartitions": 64}}
    table = _pruned(
        cluster,
        "by_partition",
        routing={"segmentPrunerTypes": ["partition"]},
        tableIndexConfig={"loadMode": "MMAP", "segmentPartitionConfig": {"columnPartitionMap": partitions}},
    )
    reads = (ReadColumn("name", ColumnType.STRING, "null"),)
    with closing(cluster.engine()) as engine:
        for i in range(8):
            query = replace(count_members(table, NAME, where=f"WHERE name = 'n{i}'"), reads=reads)
            require_equal({f"n{i}": i + 1} if i < 3 else {}, histogram(answered(engine, query)))
    return ""


@row
def replaced(cluster: CheckedCluster) -> str:
    """While a segment is replaced by one with as many rows, a version never has two answers (point C)."""
    table = cluster.create("replaced", MEMBER_AND_NAME)
    query, confirmed_answers = count_members(table, NAME), 0
    seen: dict[str, str] = {}
    with closing(cluster.engine()) as engine:
        for content in ("v0", "v1", "v2"):
            rows = [{"member_id": f"m{i}", "name": content, "day": FIRST_DAY} for i in range(2_000)]
            cluster.upload(table, "0", rows)
            cluster.wait_for_rows(table, len(rows))
            deadline = time.monotonic() + _LOADED_SECONDS
            while content not in seen.values():
                if time.monotonic() > deadline:
                    raise AssertionError("the new rows were never confirmed")
                for version, name in _contents(engine, query):
                    confirmed_answers += 1
                    require_equal(name, seen.setdefault(version, name), "old rows under a new version")
    return f"{confirmed_answers} answers on {len(seen)} versions"


def _contents(engine: PinotEngine, query: EngineQuery) -> Iterator[tuple[str, str]]:
    try:
        answer = confirmed(engine, query)
    except (DataChanged, IncompleteAnswer):
        time.sleep(0.1)
        return
    yield answer.data_version, ",".join(map(str, answer.elements[0]))


@slow_row
def replicas(cluster: CheckedCluster) -> str:
    """A table with two replicas is answered once a new version is loaded (point C)."""
    cluster.require_servers(2)
    table = filled(cluster, "replicas", {"a": 4, "b": 2}, replication=2)
    started = time.monotonic()
    with closing(cluster.engine()) as engine:
        require_equal({"a": 4, "b": 2}, histogram(answered(engine, count_members(table, NAME))))
    return f"after {time.monotonic() - started:.0f} s"


@row
def time_outs(cluster: CheckedCluster) -> str:
    """A question takes the connector's time-out and not the table's (point D)."""
    table = filled(cluster, "time_out", {"a": 3})
    cluster.reconfigure(table, {"query": {"timeoutMs": 1}})
    with closing(cluster.engine()) as engine:
        for _ in range(5):
            time.sleep(0.5)
            require_equal({"a": 3}, histogram(answered(engine, count_members(table, NAME))))
    return "on a table whose query.timeoutMs is 1"


@row
def made_again(cluster: CheckedCluster) -> str:
    """A table made again with the same segment names is answered right, under another version (point E)."""
    if cluster.version < (1, 0):
        raise CannotTryError("this version tells old checksums until its controller restarts: use new names")
    table = filled(cluster, "again", {"old": 4})
    query = count_members(table, NAME)
    with closing(cluster.engine()) as engine, closing(cluster.engine()) as fresh:
        before = answered(engine, query)
        cluster.remove(table)
        filled(cluster, "again", {"new": 4})
        for each in (engine, fresh):
            after = answered(each, query)
            require_equal({"new": 4}, histogram(after))
            if after.data_version == before.data_version:
                raise AssertionError("new rows under the old version")
    return "by who knew the old one, and by who did not"


@row
def inexact(cluster: CheckedCluster) -> str:
    """A table whose settings make counts inexact is refused."""
    table = filled(cluster, "inexact", {"a": 2})
    partitioned = {
        "name": "member_id",
        "encodingType": "DICTIONARY",
        "properties": {"isSegmentPartitioned": "true"},
    }
    changes: list[dict[str, Any]] = [
        {"query": {"useApproximateFunction": True}},
        {"query": {"expressionOverrideMap": {"name": "day"}}},
        {"query": {}, "fieldConfigList": [partitioned]},
    ]
    for change in changes:
        cluster.reconfigure(table, change)
        with closing(cluster.engine()) as engine, refused(EngineRefused, "an inexact table"):
            engine.data_version(table)
    return ""


@row
def odd_columns(cluster: CheckedCluster) -> str:
    """A column that is not what the policy says is refused by its name, TIMESTAMP among them."""
    kinds = {
        "member_id": "STRING",
        "several": "STRING[]",
        "small": "INT",
        "instant": "TIMESTAMP",
        "d": "DOUBLE",
    }
    table = cluster.create("odd", kinds)
    cluster.upload(
        table, "0", [{"member_id": "m", "several": ["a", "b"], "small": 1, "d": 0.5, "day": FIRST_DAY}]
    )
    cluster.wait_for_rows(table, 1)
    reads = [
        ReadColumn("several", ColumnType.STRING, "null"),
        ReadColumn("small", ColumnType.INT64, -(2**63)),
        ReadColumn("instant", ColumnType.INT64, 0),
        ReadColumn("instant", ColumnType.DATE, None),
        ReadColumn("d", ColumnType.INT64, 0),
        ReadColumn("gone", ColumnType.STRING, "null"),
    ]
    with closing(cluster.engine()) as engine:
        for read in reads:
            query = replace(count_members(table, ("member_id", ColumnType.STRING)), reads=(read,))
            try:
                answered(engine, query)
            except EngineRefused as refusal:
                require_equal(
                    True, read.name in str(refusal), f"the refusal does not name {read.name}: {refusal}"
                )
            else:
                raise AssertionError(f"a question that reads {read.name} was answered")
    return ""


@row
def silence(cluster: CheckedCluster) -> str:
    """A refusal tells nothing of the query."""
    table = filled(cluster, "silence", {"a": 1})
    with closing(cluster.engine()) as engine:
        for sql in (f"SELECT secret FROM {table}", "SELECT (((secret", "SELECT COUNT(*) FROM secret"):  # noqa: S608
            with refused(EngineRefused, "a query that Pinot cannot run") as _:
                _refusal_without_secret(engine, EngineQuery(table, sql, (), 10))
    return ""


def _refusal_without_secret(engine: PinotEngine, query: EngineQuery) -> None:
    try:
        answered(engine, query)
    except EngineError as error:
        require_equal(
            False, "secret" in str(error) or error.__cause__ is not None, "the error tells of the query"
        )
        raise
