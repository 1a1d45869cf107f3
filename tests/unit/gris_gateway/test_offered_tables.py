"""The catalogue of a gateway has what its engine has."""

from __future__ import annotations

import pytest
from gris_api.dp.v1 import dp_pb2

from gris_gateway.offered_tables import REMEMBERED_SECONDS, OfferedTables
from gris_gateway.rpc_errors import RequestError
from pinot_connector.engines.pinot import PinotEngine
from pinot_connector.errors import EngineUnavailable
from tests.support.fake_pinot import FakePinot

PAGE = dp_pb2.GetCatalogResponse(
    tables=[dp_pb2.CatalogTable(name=name) for name in ("here", "there", "parts_OFFLINE")],
    next_page_token="more",
)


def names(page: dp_pb2.GetCatalogResponse) -> list[str]:
    """Return the tables of a page."""
    return [table.name for table in page.tables]


async def test_a_table_that_the_engine_lacks_is_left_out() -> None:
    """And the rest of the page stays; asked for by its name it is refused."""
    offered = OfferedTables(lambda: frozenset({"here", "unlisted"}))
    page = await offered.of_page(PAGE, "")
    assert (["here"], "more") == (names(page), page.next_page_token)
    assert 3 == len(PAGE.tables)
    with pytest.raises(RequestError, match="expected a table of this gateway"):
        await offered.of_page(PAGE, "there")


async def test_an_engine_that_cannot_say_hides_nothing() -> None:
    """It is asked again after a while, and not by every page."""
    asked: list[float] = []
    now = 0.0

    def listed() -> frozenset[str]:
        asked.append(now)
        if len(asked) == 1:
            raise EngineUnavailable("the engine took too long")
        return frozenset({"there"})

    offered = OfferedTables(listed, clock=lambda: now)
    assert 3 == len(names(await offered.of_page(PAGE, "")))
    assert 3 == len(names(await offered.of_page(PAGE, "there")))
    now = REMEMBERED_SECONDS
    assert ["there"] == names(await offered.of_page(PAGE, ""))
    assert [0.0, REMEMBERED_SECONDS] == asked


async def test_pinot_lists_its_tables_and_their_offline_parts() -> None:
    """As its controller answers `GET /tables`; a controller that says something else is not believed."""
    pinot = FakePinot()
    pinot.replies["/tables"] = {"tables": ["here", "parts"]}
    with pinot.serving():
        engine = PinotEngine(broker=pinot.url, controller=pinot.url)
        offered = OfferedTables(engine.tables)
        assert ["here", "parts_OFFLINE"] == names(await offered.of_page(PAGE, ""))
        pinot.replies["/tables"] = ["here"]
        assert 3 == len(names(await OfferedTables(engine.tables).of_page(PAGE, "")))
        engine.close()
