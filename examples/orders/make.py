"""Write orders.parquet: 200,000 made-up orders of 20,000 customers, the same ones each time.

Usage: python -m examples.orders.make [FILE]
"""

from __future__ import annotations

import sys

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


if __name__ == "__main__":
    path = (sys.argv[1:] or ["orders.parquet"])[0].replace("'", "''")
    duckdb.execute(f"COPY ({ORDERS}) TO '{path}' (FORMAT parquet)")
