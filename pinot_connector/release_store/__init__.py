"""The release store: releases that were drawn, kept whole, and given again from what was kept.

A repeated question is answered from here and not from the data. Otherwise its answer would say, without noise and as
often as asked, whether the rows behind it are what they were: the digest of the rows is in the seed of the noise.

- A release is kept under its `query_id`, for all accounts. The first one that is kept stays: every account, in every
  window, is given that one.
- A second list says which account paid for it, and until when its window lasts.
- A third list, the receipts, is the history of what each account was shown.

Clients that are given no store share one for each pair of services: see `default_store`. That is a
`MemoryReleaseStore`, or for embedded services the file in their folder. `sqlite` and `postgres` keep releases
encrypted.
"""

from pinot_connector.release_store.default_store import ReleaseFile
from pinot_connector.release_store.interface import (
    Found,
    KeptRelease,
    Payment,
    Receipt,
    ReceiptPage,
    ReleaseStore,
    StoreStatistics,
)
from pinot_connector.release_store.memory import MemoryReleaseStore

__all__ = [
    "Found",
    "KeptRelease",
    "MemoryReleaseStore",
    "Payment",
    "Receipt",
    "ReceiptPage",
    "ReleaseFile",
    "ReleaseStore",
    "StoreStatistics",
]
