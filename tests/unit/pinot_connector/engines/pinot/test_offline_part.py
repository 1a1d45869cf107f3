"""A table that takes in data in real time is asked by its offline part, and by no other name."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import DataChanged, EngineRefused
from tests.engines.pinot.queries import confirmed
from tests.support.fake_pinot import QUERY, FakePinot

OFFLINE = replace(QUERY, table="t_OFFLINE")
CONSUMING = {"r": {"server": "CONSUMING"}}


@pytest.fixture
def pinot() -> Iterator[FakePinot]:
    """A fake Pinot whose table `t` has an offline part with seven rows, and a real-time part beside it."""
    with FakePinot().serving() as fake:
        for path in (
            "/tables/{}",
            "/tables/{}/schema",
            "/tables/{}/idealstate",
            "/segments/{}",
            "/tables/{}/externalview",
        ):
            fake.replies[path.format("t_OFFLINE")] = fake.replies[path.format("t")]
        # Under its plain name the controller tells of both parts, under a name with a type of that part alone.
        real_time = {"REALTIME": {"tableName": "t_REALTIME"}}
        fake.replies["/tables/t"] = fake.replies["/tables/t_OFFLINE"] | real_time
        fake.replies["/tables/t_REALTIME"] = real_time
        fake.replies["/tables/t/idealstate"] = fake.replies["/tables/t/idealstate"] | {"REALTIME": CONSUMING}
        yield fake


@pytest.fixture
def engine(pinot: FakePinot) -> Iterator[PinotEngine]:
    """An engine for the fake Pinot."""
    engine = PinotEngine(controller=pinot.url, broker=pinot.url)
    yield engine
    engine.close()


def test_the_offline_part_is_asked_beside_a_real_time_part(engine: PinotEngine) -> None:
    """Its segments have checksums, so that it has a version and a whole answer is known."""
    assert [5] == confirmed(engine, OFFLINE).counts


def test_nothing_but_the_offline_part_is_asked_about(pinot: FakePinot, engine: PinotEngine) -> None:
    """Configuration, schema, segments and checksums are those of the part that answers."""
    confirmed(engine, OFFLINE)
    of_tables = {path for path in pinot.paths if path.startswith(("/tables/", "/segments/"))}
    assert of_tables == {
        "/tables/t_OFFLINE",
        "/tables/t_OFFLINE/schema",
        "/tables/t_OFFLINE/idealstate",
        "/segments/t_OFFLINE",
        "/segments/t_OFFLINE/zkmetadata",
        "/tables/t_OFFLINE/externalview",
        "/segments/t_OFFLINE/metadata",
    }


def test_a_bucket_that_is_moved_in_during_the_query_is_noticed(pinot: FakePinot, engine: PinotEngine) -> None:
    """A new offline segment is a new version, and the answer was on the one before."""
    both = {name: {"server": "ONLINE"} for name in ("s", "moved")}
    moved = {
        "/tables/t_OFFLINE/idealstate": {"OFFLINE": both, "REALTIME": None},
        "/segments/t_OFFLINE": [{"OFFLINE": ["s", "moved"]}],
        "/segments/t_OFFLINE/zkmetadata": {
            name: {"segment.crc": "1", "segment.total.docs": "7"} for name in ("s", "moved")
        },
    }
    pinot.before_answer = lambda: pinot.replies.update(moved)
    with pytest.raises(DataChanged):
        confirmed(engine, OFFLINE)


def test_rows_of_the_real_time_part_do_not_change_the_version(pinot: FakePinot, engine: PinotEngine) -> None:
    """What only the stream has is not asked, and so the same question is the same release."""
    before = engine.data_version("t_OFFLINE")
    pinot.replies["/tables/t/idealstate"]["REALTIME"] = {"r2": {"server": "CONSUMING"}}
    later = PinotEngine(controller=pinot.url, broker=pinot.url)
    assert before == later.data_version("t_OFFLINE")
    later.close()


@pytest.mark.parametrize("table", ["t", "t_REALTIME"])
def test_any_name_that_takes_in_the_real_time_part_is_refused(
    pinot: FakePinot, engine: PinotEngine, table: str
) -> None:
    """Data that arrive all the time have no version; the refusal names the table, and what to ask instead."""
    with pytest.raises(EngineRefused, match=r"the table t takes in data in real time.* names t_OFFLINE "):
        confirmed(engine, replace(QUERY, table=table))
    assert pinot.queries == []


def test_a_real_time_part_without_segments_is_refused_too(pinot: FakePinot, engine: PinotEngine) -> None:
    """While the stream has not begun, Pinot's broker already leaves the last day of the offline part out."""
    pinot.replies["/tables/t/idealstate"]["REALTIME"] = {}
    pinot.replies["/tables/t"] = {"OFFLINE": {"tableName": "t_OFFLINE"}}
    with pytest.raises(EngineRefused, match="in real time"):
        engine.data_version("t")


def test_a_table_without_an_offline_part_is_refused(pinot: FakePinot, engine: PinotEngine) -> None:
    """There is nothing to name so while no bucket has been moved out of the real-time part."""
    pinot.replies["/tables/t_OFFLINE"] = {}
    with pytest.raises(EngineRefused, match="no such table"):
        engine.data_version("t_OFFLINE")
