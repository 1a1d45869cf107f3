"""What of results and balances the audience of the caller may see."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from contextlib import suppress

from gris_api.app.v1 import app_pb2
from gris_api.budget.v1 import budget_pb2
from gris_api.dp.v1 import dp_pb2

from gris_gateway.callers import current_caller
from pinot_connector.client import AsyncPrivateClient
from pinot_connector.errors import GrisError


async def offered(client: AsyncPrivateClient, past: Sequence[app_pb2.PastRelease]) -> list[bool]:
    """Return of each result whether the audience of the caller may see it: whether it could ask the question now."""
    known: dict[tuple[bytes, str], bool] = {}
    keys = [
        (each.question.SerializeToString(deterministic=True), each.result.shown.audience_rows)
        for each in past
    ]
    if past and current_caller.get().audience is None:
        is_open = await client.offers_all()
        return [is_open and not rows for _, rows in keys]
    for key, each in zip(keys, past, strict=True):
        if key not in known:
            known[key] = await client.can_ask(each.question, each.result.shown)
    return [known[key] for key in keys]


async def without_others(client: AsyncPrivateClient, levels: MutableSequence[budget_pb2.Level]) -> None:
    """Leave out what is left of blocks and for purposes that the audience of the caller is not offered.

    Where nobody says, of all.
    """
    is_plain = not any(each.purpose or each.remaining_of_blocks for each in levels)
    if current_caller.get().audience is None or is_plain:
        return
    offered = dp_pb2.GetCatalogResponse()
    # What is paid for is answered all the same.
    with suppress(GrisError):
        offered = await client.catalog_page(dp_pb2.GetCatalogRequest(page_size=1))
    known = {*offered.blocks.ids, *filter(None, [offered.blocks.rest])}
    for level in levels:
        kept = [each for each in level.remaining_of_blocks if known.issuperset(each.blocks)]
        del level.remaining_of_blocks[:]
        level.remaining_of_blocks.extend(kept)
    for index in reversed(range(len(levels))):
        if levels[index].purpose not in ("", *offered.purposes):
            del levels[index]


def without_numbers(past: app_pb2.PastRelease) -> app_pb2.PastRelease:
    """Return what is listed of a result that the audience of the caller is not offered: that there was one."""
    named = app_pb2.PastRelease(
        request_id=past.request_id, elements_omitted=True, not_offered=True, confidence=past.confidence
    )
    named.released_at.CopyFrom(past.released_at)
    named.question.CopyFrom(past.question)
    named.result.shown.CopyFrom(past.result.shown)
    # The price may be one of each element.
    for field in ("element_count", "ended_in_bottom", "bottom", "cost", "total", "totals", "statements"):
        named.result.shown.ClearField(field)
    return named
