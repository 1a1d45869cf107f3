"""Bins of numbers and parts of texts: rows with odd values, and what Python makes of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import partial
from itertools import product

import pyarrow as pa

from dp_service.queries.policy import parse_policy
from dp_service.queries.resolution import Resolution, resolve
from dp_service.queries.sql import parse_sql
from dp_service.terms import GRID
from dp_service.values.quantum import Quantum
from tests.support.queries.sums import Row
from tests.support.values import steps_of

POLICY = parse_policy("""
epsilon_per: 1
delta: 1e-6
count_noise: gaussian
tables:
  t:
    member: member
    contributions: {bound: in_query, units: 10, min_count: 1,
                    sums: {max_members: 10000, max_rows: 100000}}
    measures: {distinct_members: true}
    columns:
      member: {type: string}
      text: {type: string, group_by: true, typical: 500, filter: [in, not_in]}
    values:
      whole: {type: int64, lower: -9, upper: 9}
      number: {type: decimal, quantum: '0.25', lower: -10, upper: 10, row_lower: -6, row_upper: 9.5}
""")
SEPARATORS = ("@", ".", "^", "]", "[", "\\", "-", "'", "$", "&", "|", " ")
TEXTS = (
    *(
        "",
        "a",
        "A",
        "azAZ09",
        "\u00c0\u00c9\u0130\u0131\u212a\u00df\u01c5",
        "ada@example.org",
        "@",
        "@@",
        "a@B@c@d",
    ),
    *(
        "\U0001f600\U0001f600\U0001f600\U0001f600",
        "a\U0001f600b\U0001f600",
        "line\nbreak@\nx",
        "x" * 1024,
        "\uffff\ud7ff",
    ),
    *(f"One{each}Two{each}{each}Four" for each in SEPARATORS),
    *("${env:HOME}@a", "%_", "e\u0301@e\u0301", "\t@\x01"),
)
WHOLES = (None, 2**63 - 1, -(2**63) + 1, 2**53 + 1, *range(-13, 13))
NUMBERS = (
    *(None, math.nan, math.inf, -math.inf, 1.7976931348623157e308, -1e300, 2.0**63, -0.0, 5e-324),
    *(0.124999, 0.125, 4.874999, 4.875, 5.0, -0.125, -0.126, -5.125, -5.126, 9.5, 9.75, 100.0, -100.0),
)


def rows() -> list[Row]:
    """Return a member for each text, whole number and number, one without any, and a row of nobody."""
    texts = [(text, 1, 1.0) for text in TEXTS]
    wholes = [("w", whole, 1.0) for whole in WHOLES]
    numbers = [("n", 1, number) for number in NUMBERS]
    found = [Row(f"m{place}", *each) for place, each in enumerate([*texts, *wholes, *numbers])]
    return [*found, Row("none", None, None, None), Row(None, "a", 1, 1.0)]


def arrow_table() -> pa.Table:
    """Return the rows as a table."""
    columns = zip(*rows(), strict=True)
    types = (pa.string(), pa.string(), pa.int64(), pa.float64())
    return pa.table(
        {name: pa.array(each, kind) for name, each, kind in zip(Row._fields, columns, types, strict=True)}
    )


def _folded(text: str, first: str, shift: int) -> str:
    return "".join(chr(ord(each) + shift) if first <= each <= chr(ord(first) + 25) else each for each in text)


def _piece(text: str, separator: str, place: int) -> str:
    return [*text.split(separator), *[""] * 10][place - 1]


def _pieces() -> Iterator[tuple[str, Callable[[str], str]]]:
    for separator, place in product(SEPARATORS, (1, 2, 4)):
        written = separator.replace("'", "''")
        yield (
            f"SPLIT_PART(text, '{written}', {place})",
            partial(_piece, separator=separator, place=place),
        )


PARTS: dict[str, Callable[[str], str]] = {
    "LOWER(text)": lambda text: _folded(text, "A", 32),
    "UPPER(text)": lambda text: _folded(text, "a", -32),
    "LEFT(text, 1)": lambda text: text[:1],
    "SUBSTR(text, 1, 3)": lambda text: text[:3],
    "LEFT(text, 100)": lambda text: text[:100],
    **dict(_pieces()),
}
EDGES: dict[str, tuple[str, list[Fraction], list[int]]] = {
    "FLOOR(number / 5) * 5": ("number", [Fraction(each) for each in (-5, 0, 5)], [-10, -5, 0, 5]),
    "FLOOR(number / 0.75)": ("number", [Fraction(3 * each, 4) for each in range(-7, 13)], [*range(-8, 13)]),
    "WIDTH_BUCKET(number, -2, 5.5, 7)": (
        "number",
        [Fraction(-2) + Fraction(15, 2) * each / 7 for each in range(8)],
        [*range(9)],
    ),
    "FLOOR(whole / 4) * 4": ("whole", [Fraction(each) for each in (-8, -4, 0, 4, 8)], [-12, -8, -4, 0, 4, 8]),
    "WIDTH_BUCKET(whole, -4, 4, 3)": (
        "whole",
        [Fraction(-4) + Fraction(8, 3) * each for each in range(4)],
        [*range(5)],
    ),
}


def resolved(function: str) -> Resolution:
    """Return a question by a function."""
    text = f"SELECT {function}, COUNT(DISTINCT member) FROM t GROUP BY 1"  # noqa: S608 - the test's own
    return resolve(parse_sql(text, POLICY), POLICY, now=0)


def expected(function: str, of: Iterable[Row] | None = None) -> Counter[object]:
    """Return the count of each value of a function, by Python alone; `of` None: of all rows.

    Over unknown values, as those of parts of texts are, counts are on the grid, and each member has one value.
    """
    held = [row for row in of or rows() if row.member is not None]
    if function in PARTS:
        values = Counter(PARTS[function](row.text) for row in held if row.text is not None)
        return Counter({value: GRID * count for value, count in values.items()})
    column, edges, labels = EDGES[function]
    found: Counter[object] = Counter()
    for row in held:
        value = row.whole if column == "whole" else row.number
        if value is None or not math.isfinite(value):
            continue
        rounded = _rounded(value) if isinstance(value, float) else value
        found[labels[sum(rounded >= edge for edge in edges)]] += 1
    return found


def _rounded(value: float) -> Fraction:
    quantum = Quantum(Fraction(1, 4))
    return quantum.value_of(steps_of(quantum, min(max(value, -1000.0), 1000.0)))


FUNCTIONS = (*PARTS, *EDGES)
