"""The history as a view of the release store: what is noted of repeats."""

from __future__ import annotations

from gris_api.app.v1 import app_pb2

from gris_gateway.kept_history import DAY_SECONDS, KeptHistory
from pinot_connector.release_store import MemoryReleaseStore, Receipt
from tests.support.release_stores import kept, receipt

ANA = ("app", "acme", "ana")


class Counting(MemoryReleaseStore):
    """A store that counts what is written."""

    written = 0

    async def add_receipt(self, account: tuple[str, ...], receipt: Receipt) -> None:
        """Counts, and notes it."""
        self.written += 1
        await super().add_receipt(account, receipt)


def shown(*, k: int = 1, request_id: str = "", days_ago: int = 0) -> app_pb2.PastRelease:
    """Return a result of a release that is kept, shown so many days ago."""
    past = app_pb2.PastRelease()
    past.CopyFrom(receipt("q", request_id=request_id, k=k).shown)
    past.result.shown.release_id = "r"
    past.released_at.GetCurrentTime()
    past.released_at.seconds -= days_ago * DAY_SECONDS
    return past


async def test_a_repeat_is_noted_once_a_day() -> None:
    """It adds nothing to the list, and waits for no disk; the next day it is the newest again."""
    store = Counting()
    await store.keep("q", kept())
    history = KeptHistory(store)
    for _ in range(3):
        await history.add(ANA, shown(days_ago=1))
    assert 1 == store.written
    await history.add(ANA, shown(k=2, days_ago=1))
    await history.add(("app", "acme", "bob"), shown(days_ago=1))
    assert 3 == store.written
    await history.add(ANA, shown())
    assert 4 == store.written
    listed = (await history.page(ANA, 10, None)).releases
    assert [1, 2] == [each.result.shown.element_count for each in listed]


async def test_a_request_with_an_id_is_always_noted() -> None:
    """Its caller may have lost the answer, and comes back for it by the id."""
    store = Counting()
    await store.keep("q", kept())
    history = KeptHistory(store)
    for name in ("", "one", "two"):
        await history.add(ANA, shown(request_id=name))
    assert None is not await history.find(ANA, "one")
    assert None is not await history.find(ANA, "two")
    assert 3 == store.written


async def test_only_what_was_shown_of_a_kept_release_is_noted() -> None:
    """The elements come from the release; a result of another release has its own."""
    store = Counting()
    await store.keep("q", kept())
    history = KeptHistory(store)
    await history.add(ANA, shown(k=2, request_id="x"))
    found = await history.find(ANA, "x")
    assert found is not None
    assert ["secret-element-0", "secret-element-1"] == list(found.elements.columns[0].strings.values)
    other = shown(k=2, request_id="other")
    other.result.shown.release_id = "another"
    await history.add(ANA, other)
    assert other == await history.find(ANA, "other")
