"""What of results and balances the audience of the caller may see."""

from __future__ import annotations

from collections.abc import Iterable, MutableSequence, Sequence
from contextlib import suppress

from gris_api.app.v1 import app_pb2
from gris_api.budget.v1 import budget_pb2
from gris_api.dp.v1 import dp_pb2

from pinot_connector.audiences import Audience
from pinot_connector.budgets import Level
from pinot_connector.client import AsyncPrivateClient
from pinot_connector.errors import GrisError
from pinot_connector.views import message_of


async def offered(
    client: AsyncPrivateClient, past: Sequence[app_pb2.PastRelease], audience: Audience | None
) -> list[bool]:
    """Return of each result whether the audience of a client may see it: whether it could ask the question now."""
    known: dict[tuple[bytes, str], bool] = {}
    keys = [
        (each.question.SerializeToString(deterministic=True), each.result.shown.audience_rows)
        for each in past
    ]
    if past and audience is None:
        is_open = await client.offers_all()
        return [is_open and not rows for _, rows in keys]
    for key, each in zip(keys, past, strict=True):
        if key not in known:
            known[key] = await client.can_ask(each.question, each.result.shown)
    return [known[key] for key in keys]


async def remaining(client: AsyncPrivateClient, audience: Audience | None) -> list[budget_pb2.Level]:
    """Return what is left, as the audience of the client finds it: of blocks that pay for its questions, and no others.

    Raises:
        GrisError: the ledger does not answer, or dp_service, which knows what the audience is offered.
    """
    levels = _messages(await client.remaining())
    if not _names_others(levels, audience):
        return levels
    offered = await _offered_to(client)
    blocks = _blocks_of(offered)
    pay_alone = bool(blocks) and not offered.blocks.all_may_pay
    if pay_alone and any(each.remaining_of_blocks for each in levels):
        # A level as it is for everybody would say what other blocks have spent.
        levels = _messages(await client.remaining_of(sorted(blocks)))
    _leave_out(levels, offered)
    for level in levels:
        if pay_alone and not any(each.blocks for each in level.remaining_of_blocks):
            # Nothing of theirs differs; what is left here would say that others have paid.
            level.ClearField("remaining_of_blocks")
    return levels


async def without_others(
    client: AsyncPrivateClient, levels: MutableSequence[budget_pb2.Level], audience: Audience | None
) -> None:
    """Leave out of a charge's levels what the audience of the client is not offered; where nobody says, all of it.

    They are as the blocks find them that have paid.
    """
    if not _names_others(levels, audience):
        return
    offered = dp_pb2.GetCatalogResponse()
    # What is paid for is answered all the same.
    with suppress(GrisError):
        offered = await _offered_to(client)
    _leave_out(levels, offered)


def _messages(levels: Iterable[Level]) -> list[budget_pb2.Level]:
    return [message_of(budget_pb2.Level, each) for each in levels]


def _names_others(levels: Iterable[budget_pb2.Level], audience: Audience | None) -> bool:
    """Return whether levels may say something that an audience is not offered."""
    is_plain = not any(each.remaining_of_blocks for each in levels)
    return audience is not None and not is_plain


async def _offered_to(client: AsyncPrivateClient) -> dp_pb2.GetCatalogResponse:
    return await client.catalog_page(dp_pb2.GetCatalogRequest(page_size=1))


def _blocks_of(offered: dp_pb2.GetCatalogResponse) -> set[str]:
    return {*offered.blocks.ids, *filter(None, [offered.blocks.rest])}


def _leave_out(levels: MutableSequence[budget_pb2.Level], offered: dp_pb2.GetCatalogResponse) -> None:
    """Leave out what is left of blocks that are not offered."""
    known = _blocks_of(offered)
    for level in levels:
        kept = [each for each in level.remaining_of_blocks if known.issuperset(each.blocks)]
        del level.remaining_of_blocks[:]
        level.remaining_of_blocks.extend(kept)


def without_numbers(past: app_pb2.PastRelease) -> app_pb2.PastRelease:
    """Return what is listed of a result that the audience of the caller is not offered: that there was one."""
    named = app_pb2.PastRelease(
        request_id=past.request_id, elements_omitted=True, not_offered=True, confidence=past.confidence
    )
    named.released_at.CopyFrom(past.released_at)
    named.question.CopyFrom(past.question)
    named.result.shown.CopyFrom(past.result.shown)
    # The price may be one of each element.
    for field in ("element_count", "ended_in_bottom", "bottom", "cost", "total", "statements"):
        named.result.shown.ClearField(field)
    return named
