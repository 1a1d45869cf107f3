"""Write shop/orders.parquet: 200,000 made-up orders of 20,000 customers, the same ones each time.

Usage: python -m examples.orders.make [FILE]. A file that this did not make is left as it is.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

ORDERS = """
  SELECT 'c' || i % 20000 AS customer, 'P-' || floor(600 * power(hash(i) % 10007 / 10007, 4))::INTEGER AS product,
         ['books', 'garden', 'music', 'toys'][1 + (hash(i + 1) % 4)::INTEGER] AS category,
         ['app', 'shop', 'web'][1 + (hash(i + 2) % 3)::INTEGER] AS channel,
         ['AT', 'CH', 'DE', 'FR'][1 + (hash(i % 20000) % 4)::INTEGER] AS country, hash(i + 3) % 5 = 0 AS coupon,
         (1 + hash(i + 4) % 6)::INTEGER AS pieces, (499 + hash(i + 5) % 30011) / 100 AS amount,
         CASE WHEN i % 4 = 0 THEN (1 + hash(i + 6) % 5)::INTEGER END AS stars,
         DATE '2025-07-01' + (hash(i + 7) % 365)::INTEGER AS ordered_on
  FROM range(200000) AS rows(i)
"""

MADE_BY = "examples.orders.make"


def make(path: Path) -> None:
    """Write the orders.

    Raises:
        FileExistsError: The file is there, and somebody else's.
    """
    if path.exists() and not _is_made_here(path):
        raise FileExistsError(
            f"{path} is there and was not made here; to write another: python -m {MADE_BY} FILE"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    target = str(path).replace("'", "''")
    duckdb.execute(f"COPY ({ORDERS}) TO '{target}' (FORMAT parquet, KV_METADATA {{made_by: '{MADE_BY}'}})")


def _is_made_here(path: Path) -> bool:
    try:
        kept = duckdb.execute("SELECT decode(value) FROM parquet_kv_metadata(?)", [str(path)]).fetchall()
    except duckdb.Error:
        return False
    return (MADE_BY,) in kept


if __name__ == "__main__":
    try:
        make(Path((sys.argv[1:] or ["shop/orders.parquet"])[0]))
    except FileExistsError as error:
        sys.exit(str(error))
