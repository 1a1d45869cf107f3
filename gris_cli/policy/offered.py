"""What a policy lets analysts ask: the catalogue that dp_service would serve of it."""

from __future__ import annotations

import time

from gris_api.dp.v1 import dp_pb2

from dp_service.queries.policy import Policy
from dp_service.server.catalog import catalog_page
from dp_service.server.served_policy import PolicyContent
from pinot_connector.catalog import Catalog, catalog_of

# Only a service, which has a key, names the content of a policy.
_UNNAMED = "0" * 16


def offered_by(policy: Policy) -> Catalog:
    """Return the catalogue of a policy as it would be served at this moment."""
    content, now = PolicyContent(policy, _UNNAMED, ""), int(time.time())
    request, pages = dp_pb2.GetCatalogRequest(), list[dp_pb2.GetCatalogResponse]()
    while not pages or request.page_token:
        pages.append(catalog_page(request, content, now=now))
        request.page_token = pages[-1].next_page_token
    return catalog_of(pages)
