"""Orders with two days, and in which bin the days between them are, said in plain Python."""

from __future__ import annotations

import datetime
from typing import NamedTuple

import pyarrow as pa

from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.sql import parse_sql

POLICY = """
epsilon_per: 1
delta: 1e-6
count_noise: gaussian
tables:
  orders:
    member: customer
    contributions: {{bound: {bound}, delta_0: {delta_0}, units: 20}}
    measures: {{distinct_members: true}}
    columns:
      customer: {{type: string}}
      ordered: {{type: date, group_by: true, null_value: 1970-01-01}}
      sent: {{type: date, group_by: true, null_value: 1970-01-01}}
      city: {{type: string, group_by: true}}
"""
DAYS = "WIDTH_BUCKET(DATE_DIFF('day', ordered, sent), 0, 7, 2)"
SQL = "SELECT {}, COUNT(DISTINCT customer) FROM orders GROUP BY 1"
NULL = datetime.date(1970, 1, 1)
"""What stands for a day that is missing."""


class Order(NamedTuple):
    """A row."""

    customer: str
    ordered: datetime.date | None
    sent: datetime.date | None


def resolved(function: str = DAYS, *, delta_0: int = 4, bound: str = "in_query") -> Resolution:
    """Return what a question for the customers of each bin resolves to."""
    under = parse_policy(POLICY.format(delta_0=delta_0, bound=bound))
    return resolve(parse_sql(SQL.format(function), under), under, now=0)


def arrow_table(rows: list[Order]) -> pa.Table:
    """Return rows as a file has them."""
    columns = {name: [getattr(row, name) for row in rows] for name in Order._fields}
    kinds = {"customer": pa.string(), "ordered": pa.date32(), "sent": pa.date32()}
    return pa.table({name: pa.array(columns[name], kind) for name, kind in kinds.items()})


def bin_of(row: Order) -> int | None:
    """Return the bin of a row: below 0, to 3.5, to 7, above; None: it has none."""
    if row.ordered is None or row.sent is None or NULL in (row.ordered, row.sent):
        return None
    days = (row.sent - row.ordered).days
    return sum(days >= edge for edge in (0, 3.5, 7))


def counted(rows: list[Order]) -> dict[int, int]:
    """Return how many customers are in each bin that has some."""
    pairs = {(row.customer, bin_of(row)) for row in rows}
    bins = [found for _, found in pairs if found is not None]
    return {each: bins.count(each) for each in bins}


def some_rows() -> list[Order]:
    """Return rows with every number of days around the edges."""
    start = datetime.date(2024, 2, 27)
    ends = [start + datetime.timedelta(days=days) for days in range(-3, 12)]
    return [Order(f"m{place}", start, end) for place, end in enumerate(ends)] + [
        Order("ada", datetime.date(1, 1, 1), datetime.date(9999, 12, 31)),
        Order("bob", datetime.date(9999, 12, 31), datetime.date(1, 1, 1)),
        Order("cyd", NULL, start),
        Order("cyd", start, NULL),
    ]
