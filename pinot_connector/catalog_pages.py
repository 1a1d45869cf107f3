"""Reading a catalogue page by page, whoever gives the pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from gris_api.dp.v1 import dp_pb2

from pinot_connector.catalog import Catalog, catalog_of
from pinot_connector.errors import ServiceRefused

TRIES = 3

Pages: TypeAlias = Callable[[dp_pb2.GetCatalogRequest], Awaitable[dp_pb2.GetCatalogResponse]]


async def whole_catalog(page: Pages, table: str) -> Catalog:
    """Returns what may be asked, of one table or (empty) of all; begins again if the policy changes meanwhile."""
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
