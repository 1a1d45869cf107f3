"""Random questions in SQL about the tables of `worlds`: of every kind, most of them sound."""

# ruff: noqa: S608  (the SQL is the referee's own)

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from .worlds import ARTICLES, COUNTRIES, DAYS, FIRST_DAY, SHOPS, World

_DIMENSIONS = ("country", "article", "shop", "stars", "again", "day")
_SUMMING, _OF_QUANTILES, _WITH_TOTALS = (
    ("sums", "looks", "cells"),
    ("looks", "cells"),
    ("counts", "sums", "looks"),
)
_LENGTHS = ("day", "week", "month", "quarter", "year")


@dataclass(frozen=True)
class Asked:
    """A question, and the units of sharpenings of its release."""

    sql: str
    sharpen: tuple[int, ...] = ()


def questions(world: World, count: int, seed: int) -> Iterator[Asked]:
    """Yield as many questions as are wanted; the same seed gives the same, and a smaller count the first of them."""
    chosen = Random(f"{world.name} {seed}")
    for _ in range(count):
        table = chosen.choice(world.tables)
        yield Asked(_sql(table, chosen), _sharpenings(table, chosen))


def _sharpenings(table: str, chosen: Random) -> tuple[int, ...]:
    return chosen.choice(((), (), (10,), (10, 20))) if table in ("counts", "looks") else ()


def _sql(table: str, chosen: Random) -> str:
    if table == "pairs" and chosen.random() < 0.8:
        return _of_pairs(table, chosen)
    kinds = ["counts", "counts", "having"]
    kinds += ["sums", "ranked sums"] * (table in _SUMMING)
    kinds += ["quantiles"] * 2 * (table in _OF_QUANTILES)
    kinds += ["totals"] * (table in _WITH_TOTALS)
    kinds += ["series"] * 2 * (table == "sums")
    kinds += ["functions"] * (table in ("few", "counts", "sums", "chosen"))
    kinds += ["of times", "bins"] * 2 * (table == "sums")
    return _WRITERS[chosen.choice(kinds)](table, chosen)


def _by(table: str, chosen: Random, *, most: int = 2) -> list[str]:
    names = [*_DIMENSIONS, *(["topic"] * 3 if table == "topics" else [])]
    return list(dict.fromkeys(chosen.choice(names) for _ in range(chosen.choice((0, 1, 1, 1, 1, most)))))


def _measure(table: str, chosen: Random) -> str:
    members, rows = "COUNT(DISTINCT member)", "COUNT(*)"
    return chosen.choice((*[rows] * 9, members) if table == "shown" else (members, members, rows))


def _text(chosen: Random, values: Sequence[str]) -> str:
    return "'" + chosen.choice((*values, "of nobody")).replace("'", "''") + "'"


def _date(chosen: Random) -> str:
    return f"'{FIRST_DAY + datetime.timedelta(chosen.randrange(-3, DAYS))}'"


def _condition(table: str, chosen: Random) -> str:
    conditions = [
        lambda: f"country = {_text(chosen, COUNTRIES)}",
        lambda: f"country NOT IN ({_text(chosen, COUNTRIES)}, {_text(chosen, COUNTRIES)})",
        lambda: f"article <> {_text(chosen, ARTICLES)}",
        lambda: f"shop IN ({_text(chosen, SHOPS)}, {_text(chosen, ('none', *SHOPS))})",
        lambda: f"stars >= {chosen.randrange(-1, 7)}",
        lambda: f"stars BETWEEN {chosen.randrange(3)} AND {chosen.randrange(3, 7)}",
        lambda: f"again = {chosen.choice(('TRUE', 'FALSE'))}",
        lambda: f"day >= {_date(chosen)}",
        lambda: f"day < {_date(chosen)}",
    ]
    if table == "topics":
        conditions += [lambda: f"topic = {_text(chosen, ('health', 'money'))}"] * 2
    return chosen.choice(conditions)()


def _where(table: str, chosen: Random, *needed: str) -> str:
    conditions = [*needed, *(_condition(table, chosen) for _ in range(chosen.choice((0, 0, 1, 1, 2))))]
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _grouped(by: Sequence[str]) -> str:
    return f" GROUP BY {', '.join(by)}" if by else ""


def _limited(by: Sequence[str], chosen: Random) -> str:
    return f" LIMIT {chosen.choice((1, 3, 5, 10, 25, 1000))}" if by and chosen.random() < 0.8 else ""


def _counts(table: str, chosen: Random, *more: str) -> str:
    by = _by(table, chosen, most=4 if chosen.random() < 0.1 else 2) or ["country"] * len(more)
    measure = chosen.choice(("", " AS n")) if not more else " AS n"
    selected = ", ".join([*by, f"{_measure(table, chosen)}{measure}"])
    order = chosen.choice(("", f" ORDER BY {len(by) + 1} DESC"))
    filtered = f"{_where(table, chosen)}{_grouped(by)}{''.join(more)}"
    return f"SELECT {selected} FROM {table}{filtered}{order}{_limited(by, chosen)}"


def _having(table: str, chosen: Random) -> str:
    return _counts(
        table, chosen, f" HAVING n {chosen.choice(('>=', '<', '>', '<='))} {chosen.randrange(0, 400, 20)}"
    )


def _aggregates(chosen: Random) -> list[str]:
    numbers = [f"{function}({column})" for function in ("SUM", "AVG") for column in ("paid", "owed")]
    numbers += [
        "SUM(owed) / SUM(paid)",
        "SUM(paid) - SUM(owed)",
        "SUM(paid) FILTER (WHERE stars < 4) / SUM(paid)",
        "VARIANCE(paid)",
        "STDDEV(owed) FILTER (WHERE again)",
    ]
    return chosen.sample(numbers, chosen.randrange(1, 4))


def _summed(table: str, chosen: Random) -> str:
    by, aggregates = _by(table, chosen), _aggregates(chosen)
    selected = ", ".join([*by, _measure(table, chosen), *aggregates])
    return f"SELECT {selected} FROM {table}{_where(table, chosen)}{_grouped(by)}{_limited(by, chosen)}"


def _ranked(table: str, chosen: Random) -> str:
    by, aggregates = _by(table, chosen) or ["country"], _aggregates(chosen)
    selected = ", ".join([*by, _measure(table, chosen), f"{aggregates[0]} AS first", *aggregates[1:]])
    return (
        f"SELECT {selected} FROM {table}{_where(table, chosen)}{_grouped(by)} ORDER BY first DESC"
        f"{_limited(by, chosen)}"
    )


def _quantiles(table: str, chosen: Random) -> str:
    known = chosen.choice(("country", "country", "stars", "shop"))
    by, column = _by(table, chosen, most=1) if table == "looks" else [known], chosen.choice(("paid", "owed"))
    numbers = [f"PERCENTILE({column}, {q})" for q in (25, 50, 90)] + [f"MIN({column})", f"MAX({column})"]
    selected = ", ".join([*by, *chosen.sample(numbers, chosen.randrange(1, 4))])
    return f"SELECT {selected} FROM {table}{_where(table, chosen)}{_grouped(by)}"


def _totals(table: str, chosen: Random) -> str:
    first, second = chosen.sample(("country", "article", "shop", "stars"), 2)
    sums = [", SUM(paid)"] * (table in _SUMMING and chosen.random() < 0.4)
    return (
        f"SELECT {first}, {second}, {_measure(table, chosen)}{''.join(sums)} FROM {table}{_where(table, chosen)} "
        f"GROUP BY GROUPING SETS (({first}, {second}), ({chosen.choice((first, second))}))"
        f"{' LIMIT 5' if chosen.random() < 0.05 else ''}"
    )


def _series(table: str, chosen: Random) -> str:
    length, by = chosen.choice(_LENGTHS), chosen.choice(("", "", "country, ", "shop, "))
    start = FIRST_DAY + datetime.timedelta(chosen.randrange(DAYS // 2))
    end = start + datetime.timedelta(chosen.randrange(1, DAYS // 2))
    needed = f"day >= '{start}' AND day < '{end}'"
    aggregates = "".join(f", {each}" for each in _aggregates(chosen)) if chosen.random() < 0.3 else ""
    return (
        f"SELECT DATE_TRUNC('{length}', day) AS period, {by}{_measure(table, chosen)}{aggregates} FROM {table}"
        f"{_where(table, chosen, needed)} GROUP BY {by}period{chosen.choice(('', ' ORDER BY period'))}"
        f"{chosen.choice(('', ' LIMIT 5'))}"
    )


def _functions(table: str, chosen: Random) -> str:
    """Return a question by a condition, a part of a text, or the deepest step of a funnel."""
    first, second, third = (_condition(table, chosen) for _ in range(3))
    function = chosen.choice(
        (
            f"IF({first}, 'it''s', '{chosen.choice(('', 'no'))}')",
            f"CASE WHEN {first} THEN 1 WHEN {second} AND {third} THEN -2 ELSE 0 END",
            f"NOT ({first} OR {second})",
            f"{chosen.choice(('LOWER', 'UPPER'))}({chosen.choice(('country', 'article'))})",
            f"LEFT(article, {chosen.randrange(8, 11)})",
            f"SPLIT_PART({chosen.choice(('country', 'article'))}, '{chosen.choice(' e@')}', 2)",
        )
    )
    by = chosen.choice(("", "", "country, "))
    grouped = f" GROUP BY {by.rstrip(', ')}" if by else ""
    if chosen.random() < 0.4:
        funnel = f"FUNNEL_COUNT(STEPS({first}, {second}, {third}), CORRELATE_BY(member))"
        return f"SELECT {by}{funnel} FROM {table}{_where(table, chosen)}{grouped}"
    order = chosen.choice((" ORDER BY 2 DESC LIMIT 5", " ORDER BY 2 DESC LIMIT 20", ""))
    return (
        f"SELECT {function}, {_measure(table, chosen)} FROM {table}{_where(table, chosen)} GROUP BY 1{order}"
    )


def _of_times(table: str, chosen: Random) -> str:
    """Return a question by first times, later ones, or a part of the time."""
    length = chosen.choice(_LENGTHS[1:])
    first, later = f"DATE_TRUNC('{length}', MIN(day))", f"DATE_DIFF('{length}', MIN(day), day)"
    part = f"EXTRACT({chosen.choice(('ISODOW', 'WEEK', 'MONTH'))} FROM day)"
    by = chosen.choice(
        (first, later, f"{first}, {later}", f"country, {first}", part, f"{part} > 3", f"shop, {part}")
    )
    start = FIRST_DAY + datetime.timedelta(chosen.randrange(DAYS // 2))
    needed = f"day >= '{start}' AND day < '{start + datetime.timedelta(chosen.randrange(1, DAYS // 2))}'"
    more = [f"({part} < 3 OR {_condition(table, chosen)})"] * (chosen.random() < 0.2)
    where = _where(table, chosen, needed, *more)
    return f"SELECT {by}, COUNT(DISTINCT member) FROM {table}{where} GROUP BY ALL"


def _bins(table: str, chosen: Random) -> str:
    bins = chosen.choice(
        (
            "FLOOR(paid / 5) * 5",
            "FLOOR(owed / 0.75)",
            "WIDTH_BUCKET(owed, -2, 3.5, 3)",
            "WIDTH_BUCKET(stars, 1, 6, 2)",
        )
    )
    aggregates = "".join(f", {each}" for each in _aggregates(chosen)) if chosen.random() < 0.3 else ""
    return (
        f"SELECT {bins}, {_measure(table, chosen)}{aggregates} FROM {table}{_where(table, chosen)} GROUP BY 1"
    )


def _of_pairs(table: str, chosen: Random) -> str:
    end = chosen.choice(("2023-12-01", "2024-01-01", "2024-02-01"))
    conditions = [f"day < '{end}'"]
    if chosen.random() < 0.5:
        conditions.append(f"shop = {_text(chosen, SHOPS)}")
    if chosen.random() < 0.3:
        conditions.append("day >= '2023-12-01'")
    return (
        f"SELECT article, COUNT(DISTINCT member) FROM {table} WHERE {' AND '.join(conditions)} "
        f"GROUP BY article{_limited(['article'], chosen)}"
    )


_WRITERS = {
    "counts": _counts,
    "having": _having,
    "sums": _summed,
    "ranked sums": _ranked,
    "quantiles": _quantiles,
    "totals": _totals,
    "series": _series,
    "functions": _functions,
    "of times": _of_times,
    "bins": _bins,
}
