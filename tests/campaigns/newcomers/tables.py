"""Four heavy-tailed tables, and the three decisions of each that a draft leaves to its owner."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

Column = NDArray[Any]
Columns = Mapping[str, Column]
COUNTRIES = ["US", "DE", "BR", "IN", "FR", "GB", "JP", "CA", "ES", "IT", "MX", "NL", "PL", "SE", "TR"]
DEVICES = ["mobile", "desktop", "tablet"]
PAGES = ["/home", "/search", "/product", "/cart", "/checkout", "/purchase", *(f"/p/{n}" for n in range(3000))]
CATEGORIES = ["toys", "books", "food", "shoes", "tools", "garden", "music", "games"]
PLANS = ["free", "plus", "pro", "enterprise"]
REGIONS = [f"region {n}" for n in range(1, 13)]


def _zipf(n: int, exponent: float = 1.0) -> NDArray[np.float64]:
    """Return how often each of n values occurs, the first most often."""
    weights = np.power(np.arange(1.0, n + 1), -exponent)
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def _names(prefix: str, numbers: Column) -> Column:
    return np.char.add(prefix, numbers.astype(str))


def _times(first: str, seconds: Column) -> Column:
    return np.datetime64(first, "us") + (seconds * 1e6).astype("timedelta64[us]")


def _events(r: np.random.Generator, scale: float) -> Columns:
    """Return visits of a site: sessions of few and of many pages, and an amount where somebody pays."""
    users, sessions = int(20_000 * scale), int(62_000 * scale)
    again = r.permutation(users)[r.choice(users, sessions - users, p=_zipf(users, 0.7))]
    user_of = np.concatenate([np.arange(users), again])
    late = (np.arange(sessions) >= users) * r.exponential(25, sessions)
    day = np.floor(np.minimum(r.beta(1, 2.2, users)[user_of] * 170 + late, 179))
    begin = day * 86400 + np.clip(r.normal(15.5, 4, sessions), 0, 22.9) * 3600
    session = np.repeat(np.arange(sessions), np.minimum(r.zipf(1.75, sessions), 60))
    user, n = user_of[session], len(session)
    often = np.concatenate([[0.14, 0.08, 0.14, 0.05, 0.03, 0.02], 0.54 * _zipf(3000, 1.05)])
    page = r.choice(PAGES, n, p=often)
    return {
        "user_id": _names("u", user),
        "ts": _times("2026-01-01", begin[session] + r.uniform(0, 3000, n)),
        "page": page,
        "country": r.choice(COUNTRIES, users, p=_zipf(15))[user],
        "device": r.choice(DEVICES, users, p=[0.58, 0.35, 0.07])[user],
        "amount": np.where(page == "/purchase", np.round(np.exp(r.normal(3.5, 0.9, n)), 2), np.nan),
        "session": _names("s", session),
    }


def _orders(r: np.random.Generator, scale: float) -> Columns:
    """Return orders of a shop: most customers have one, and a few have hundreds."""
    customers = int(9_000 * scale)
    who = np.repeat(np.arange(customers), np.minimum(r.zipf(1.7, customers), 400))
    n = len(who)
    return {
        "customer_id": _names("c", who),
        "ordered_at": _times("2025-07-01", r.integers(0, 300 * 86400, n)),
        "category": r.choice(CATEGORIES, n, p=_zipf(8, 0.8)),
        "city": _names("city", (r.zipf(1.5, customers) % 40)[who]),
        "quantity": r.integers(1, 6, n),
        "price": np.round(np.exp(r.normal(3, 0.6, n)), 2),
        "returned": r.random(n) < 0.08,
    }


def _subscriptions(r: np.random.Generator, scale: float) -> Columns:
    """Return subscriptions of companies, by days: few have many, and some have very many seats."""
    accounts = int(12_000 * scale)
    who = np.repeat(np.arange(accounts), np.minimum(r.zipf(2.3, accounts), 80))
    n = len(who)
    plan, seats = r.choice(4, n, p=[0.45, 0.3, 0.2, 0.05]), np.minimum(r.zipf(1.9, n), 2000)
    return {
        "account_id": _names("a", who),
        "started": np.datetime64("2024-01-01") + (731 * r.beta(1.6, 1, n)).astype("timedelta64[D]"),
        "plan": np.array(PLANS)[plan],
        "country": r.choice(COUNTRIES, accounts, p=_zipf(15, 0.8))[who],
        "seats": seats,
        "fee": np.round(np.array([0, 9.5, 29, 99])[plan] * seats**0.8, 2),
        "cancelled": r.random(n) < np.array([0.5, 0.3, 0.2, 0.1])[plan],
    }


def _people(r: np.random.Generator, scale: float) -> Columns:
    """Return a survey: one row for each person."""
    n = int(15_000 * scale)
    sex = r.choice(["f", "m"], n)
    return {
        "person_id": _names("p", np.arange(n)),
        "region": r.choice(REGIONS, n, p=_zipf(12, 0.6)),
        "sex": sex,
        "age": np.clip(r.normal(46, 18, n), 18, 95).astype(np.int64),
        "occupation": _names("job ", r.zipf(1.6, n) % 60),
        "income": np.round(np.exp(r.normal(10.3, 0.8, n))),
        "smoker": r.random(n) < 0.18 + 0.06 * (sex == "m"),
    }


@dataclass(frozen=True)
class Table:
    """How rows of a table are made, and what its owner decides: who the member is, and which values are public."""

    rows: Callable[[np.random.Generator, float], Columns]
    member: str
    domains: Mapping[str, list[str]]


TABLES = {
    "events": Table(_events, "user_id", {"country": COUNTRIES, "device": DEVICES}),
    "orders": Table(_orders, "customer_id", {"category": CATEGORIES}),
    "subscriptions": Table(_subscriptions, "account_id", {"plan": PLANS, "country": COUNTRIES}),
    "people": Table(_people, "person_id", {"region": REGIONS, "sex": ["f", "m"]}),
}


def write_tables(folder: Path, scale: float) -> dict[str, Path]:
    """Write the tables into a folder, the same in every run; return where they are."""
    paths = {name: folder / f"{name}.parquet" for name in TABLES}
    for seed, (name, table) in enumerate(TABLES.items(), start=2026):
        columns = table.rows(np.random.default_rng(seed), scale)
        arrays = {key: pa.array(held, from_pandas=True) for key, held in columns.items()}
        pq.write_table(pa.table(arrays), paths[name])
    return paths
