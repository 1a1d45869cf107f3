"""Four scripts of 40 questions each, over two data sets that are in the repository with their licences."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from random import Random

import duckdb

from research.privolap.questions import Data, Kind, Question

QUESTIONS = 40
EXAMPLES = Path(__file__).parents[2] / "examples"
COFACTS = (
    EXAMPLES / "cofacts" / "feedback.parquet",
    "article_id AS item, year(since) || ' ' || (month(since) + 5) // 6 AS slice, "
    "CASE score WHEN 1 THEN 'useful' ELSE 'not' END AS tag, day, (score = 1)::DOUBLE AS amount",
)
RETAIL = (
    EXAMPLES / "online_retail" / "purchases.parquet",
    "stock_code AS item, year(since) || ' ' || quarter(since) AS slice, "
    "CASE WHEN quantity < 0 THEN 'returned' ELSE 'bought' END AS tag, day, quantity::DOUBLE AS amount",
)
_DAY = datetime.timedelta(1)


def cofacts(folder: Path) -> Data:
    """Opinions on articles: 24,587 members, half of them with one; the amount is 1 for a useful answer."""
    slices = ("2018 2", "2019 1", "2018 1", "2017 2", "2017 1")
    path = _written(folder / "cofacts.parquet", *COFACTS)
    days = datetime.date(2017, 3, 2), datetime.date(2019, 4, 14)
    return Data(path, *days, slices, ("useful", "not"), items=8, months=4, rows=64, row=1, total=64)


def retail(folder: Path) -> Data:
    """Purchases from a shop: 4,372 customers with 61 products each; the amount is of pieces."""
    slices = ("2011 1", "2010 4", "2011 2", "2011 4", "2011 3")
    path = _written(folder / "retail.parquet", *RETAIL)
    days = datetime.date(2010, 12, 1), datetime.date(2011, 12, 9)
    return Data(
        path, *days, slices, ("bought", "returned"), items=64, months=6, rows=1024, row=4096, total=32768
    )


def _written(path: Path, source: Path, columns: str) -> Path:
    with_since = f"SELECT *, min(day) OVER (PARTITION BY member_id) AS since FROM '{source}'"  # noqa: S608
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT member_id AS member, {columns} FROM ({with_since})) TO '{path}'")  # noqa: S608
    return path


def audience(data: Data, random: Random) -> list[Question]:
    """Which articles engage whom: lists of 10 and 50, a third of them of the largest slice."""

    def drawn(place: int) -> Question:
        of_slice = data.slices[0] if place % 3 == 2 else ""
        return Question(Kind.TOP, *_span(data, random), of_slice=of_slice, k=50 if place % 2 else 10)

    return _distinct(drawn)


def dashboard(data: Data, random: Random) -> list[Question]:
    """Eight panels on each of the last five days."""
    found = []
    for ago in range(QUESTIONS // 8):
        end = data.last - ago * _DAY
        quarter, half = end - 90 * _DAY, end - 180 * _DAY
        found += [
            Question(Kind.MEMBERS, data.first, end),
            Question(Kind.MEMBERS, quarter, end, of_slice=data.slices[0]),
            Question(Kind.ROWS, data.first, end),
            Question(Kind.ROWS, quarter, end),
            Question(Kind.SUM, half, end),
            Question(Kind.SERIES, half, end),
            Question(Kind.TOP, quarter, end, k=10),
            Question(Kind.TOP, data.first, end, k=10),
        ]
    return random.sample(found, len(found))


def shop(data: Data, random: Random) -> list[Question]:
    """Pieces, purchases and customers, of all and by slice, with top products."""
    kinds = (Kind.SUM, Kind.ROWS, Kind.MEMBERS, Kind.SERIES, Kind.TOP)

    def drawn(place: int) -> Question:
        kind, span = kinds[place % len(kinds)], _span(data, random)
        of_slice = random.choice(("", *data.slices[:2]))
        return Question(kind, *span, of_slice=of_slice, k=10 if kind is Kind.TOP else 0)

    return _distinct(drawn)


def funnel(data: Data, random: Random) -> list[Question]:
    """Who buys and who returns, of all and by slice, beside customers and customers by month."""
    kinds = (Kind.FUNNEL, Kind.FUNNEL, Kind.MEMBERS, Kind.SERIES)

    def drawn(place: int) -> Question:
        span = _span(data, random)
        return Question(kinds[place % len(kinds)], *span, of_slice=random.choice(("", data.slices[0])))

    return _distinct(drawn)


def _distinct(drawn: Callable[[int], Question]) -> list[Question]:
    """Return a question for each place, drawn again where it is there already."""
    found: dict[Question, None] = {}
    while len(found) < QUESTIONS:
        found[drawn(len(found))] = None
    return [*found]


def _span(data: Data, random: Random) -> tuple[datetime.date, datetime.date]:
    """Return nearly all days."""
    tenth = (data.last - data.first).days // 10
    start, end = (random.randrange(tenth) for _ in range(2))
    return data.first + start * _DAY, data.last - end * _DAY


SCRIPTS: dict[str, tuple[Callable[[Path], Data], Callable[[Data, Random], list[Question]]]] = {
    "audience": (cofacts, audience),
    "dashboard": (cofacts, dashboard),
    "retail": (retail, shop),
    "funnel": (retail, funnel),
}
