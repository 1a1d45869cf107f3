"""Reads a catalogue page by page, from dp_service or from a gateway."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from gris_api.dp.v1 import dp_pb2

from pinot_connector.catalog import Catalog, catalog_of
from pinot_connector.errors import ServiceRefused

TRIES = 3

Pages: TypeAlias = Callable[[dp_pb2.GetCatalogRequest], Awaitable[dp_pb2.GetCatalogResponse]]


async def whole_catalog(page: Pages, table: str) -> Catalog:
    """Returns the whole catalogue; starts again if the policy changes meanwhile.

    Args:
        page: fetches one page.
        table: the only table to describe; empty for all.

    Raises:
        ServiceRefused: the policy changed each time (`reason` CATALOG_CHANGED).
        IntegrityError: the pages do not belong together.
    """
    for _ in range(TRIES - 1):
        try:
            return catalog_of(await _all_pages(page, table))
        except ServiceRefused as error:
            if error.reason != "CATALOG_CHANGED":
                raise
    return catalog_of(await _all_pages(page, table))


async def _all_pages(page: Pages, table: str) -> list[dp_pb2.GetCatalogResponse]:
    request = dp_pb2.GetCatalogRequest(table=table)
    pages = [await page(request)]
    while pages[-1].next_page_token:
        request.page_token = pages[-1].next_page_token
        pages.append(await page(request))
    return pages
