"""Ask 48 questions of four tables under drafted policies; print how many answers are of use, and which ends are true.

    python -m tests.campaigns newcomers [--draws 3] [--scale 1] [--only WORD] [--policy]

A number is of use if it is within 10 % of the truth, or has a true bound within 25 %; an answer, if four of five
numbers are. The exit code is 1 if what is headed 95 % holds the truth less often than the 1 % quantile of a binomial of
.95, if fewer than 95 of 100 bounds are true, or if the text that a refusal gives is refused.
"""

# ruff: noqa: S608  (the SQL is this campaign's own)
from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
from scipy.stats import binom

from gris_cli.data.policy.draft_text import draft_text, drafted
from gris_cli.data.table_schema import file_schema
from pinot_connector import PrivateClient
from pinot_connector.coverage import Interval, Least, LeastAndMost
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import GrisError
from pinot_connector.results import PrivateResult
from tests.campaigns.newcomers.tables import TABLES, write_tables
from tests.support.embedded import UNHURRIED, embedded

_TEXTS = (Path(__file__).parent / "questions.txt").read_text().splitlines()
QUESTIONS = {name: sql for name, _, sql in (line.partition(": ") for line in _TEXTS)}

_FIRST = "(SELECT *, DATE_TRUNC('{}', MIN(ts) OVER (PARTITION BY user_id)) AS first FROM events)"
_SEEN = "(SELECT user_id, LIST(page) AS seen FROM events GROUP BY user_id)"
_STEPS = [
    f"LIST_HAS_ALL(seen, {steps})"
    for steps in (["/home"], ["/home", "/product"], ["/home", "/product", "/purchase"])
]
TRUTHS = {
    "8 retention": "SELECT first, DATE_DIFF('week', first, ts), COUNT(DISTINCT user_id) FROM "
    f"{_FIRST.format('week')} WHERE ts < '2026-04-06' AND first >= '2026-03-02' GROUP BY 1, 2",
    "12 new users by month": f"SELECT first, COUNT(DISTINCT user_id) FROM {_FIRST.format('month')} GROUP BY 1",
    "23 funnel": " UNION ALL ".join(
        f"SELECT {step}, COUNT(*) FROM {_SEEN} WHERE {has}" for step, has in enumerate(_STEPS, 1)
    ),
}
"""The SQL of the truth, where it is not the question itself."""

_KINDS = ("intervals", "bounds", "upper bounds")


def drafted_policy(paths: dict[str, Path]) -> str:
    """Return the draft of the tables with their members and public values, and nothing else changed."""
    schemas = [(file_schema(f"{name}={path}"), TABLES[name]) for name, path in paths.items()]
    text = draft_text([drafted(schema, table.member, reads_rows=True) for schema, table in schemas])
    for name, table in TABLES.items():
        before, start, rest = text.partition(f"\n  {name}:\n")
        for column, values in table.domains.items():
            entry = f"\n      {column}: {{type: string, group_by: true"
            assert entry in rest
            rest = rest.replace(entry, f"{entry}, domain: [{', '.join(values)}]", 1)
        text = before + start + rest
    return text


def truth_of(
    rows: duckdb.DuckDBPyConnection, sql: str, columns: int
) -> dict[tuple[str, ...], tuple[Any, ...]]:
    """Return the numbers of each element before noise."""
    found = rows.sql(re.sub(r" ORDER BY \w+( DESC)?( LIMIT 10)?$", "", sql)).fetchall()
    return {
        tuple(str(key).removesuffix(" 00:00:00") for key in row[:columns]): row[columns:] for row in found
    }


def numbers_of(result: PrivateResult) -> Iterator[tuple[tuple[str, ...], list[tuple[Any, Any]]]]:
    """Yield each element with the numbers that were selected and the ends beside them; None: it is not shown."""
    columns = len(result.columns)
    for row in result.rows:
        cells: list[tuple[Any, Any]] = [] if row.interval is None else [(row.noisy_count, row.interval)]
        cells += [(each and each.value, each and each.interval) for each in row.values]
        chosen = [cells[place - columns] for place in result.selected if place >= columns]
        yield tuple(map(str, row.element)), chosen if result.selected else cells


def judged(number: Any, ends: Any, true: float) -> Iterator[str]:
    """Yield what is counted of a number."""
    yield "numbers"
    if number is None:
        return
    is_good = abs(float(number) - true) <= 0.1 * abs(true)
    match ends:
        case Interval(lower, upper):
            yield from ("intervals", "true intervals") if lower <= true <= upper else ("intervals",)
        case Least(least) | LeastAndMost(least, _):
            is_good |= 0.75 * true <= least <= true
            yield from ("bounds", "true bounds") if least <= true else ("bounds",)
            if isinstance(ends, LeastAndMost):
                yield from (
                    ("upper bounds", "true upper bounds") if true <= ends.at_most else ("upper bounds",)
                )
    if is_good:
        yield "good"


def advice(client: PrivateClient, refusal: GrisError) -> str:
    """Return what becomes of the text that a refusal gives."""
    found = re.search(r"SELECT .* FROM .*", str(refusal).splitlines()[0])
    if found is None:
        return "no text"
    try:
        client.explain(found[0])
    except GrisError as error:
        return f"its text is refused: {error}"
    return "its text is accepted"


def answered(client: PrivateClient, name: str, rows: duckdb.DuckDBPyConnection, total: Counter[str]) -> str:
    """Ask a question, count its numbers, and return the line that is printed."""
    try:
        result = client.sql(QUESTIONS[name])
    except GrisError as error:
        what = advice(client, error)
        total[what.partition(":")[0]] += 1
        return f"refused; {what}; {str(error).splitlines()[0]}"
    truth = truth_of(rows, TRUTHS.get(name, QUESTIONS[name]), len(result.columns))
    tally = Counter(
        said
        for element, numbers in numbers_of(result)
        for (number, ends), true in zip(numbers, truth.get(element, (0,) * len(numbers)), strict=True)
        for said in judged(number, ends, float(true or 0))
    )
    tally["answers of use"] = int(bool(tally["numbers"]) and tally["good"] >= 0.8 * tally["numbers"])
    total.update(tally)
    ends = ", ".join(f"{tally[f'true {kind}']}/{tally[kind]} {kind}" for kind in _KINDS if tally[kind])
    return (
        f"{'of use' if tally['answers of use'] else '-':6} {tally['good']}/{tally['numbers']} numbers; {ends}"
    )


def main() -> int:
    """Ask them all, a few times each with other noise; return the exit code."""
    parser = argparse.ArgumentParser(
        "python -m tests.campaigns newcomers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--policy", action="store_true", help="print the policy as well")
    options = parser.parse_args()
    names = [name for name in QUESTIONS if options.only in name]
    total = Counter[str]()
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as rows:
        paths = write_tables(Path(folder), options.scale)
        policy = drafted_policy(paths)
        if options.policy:
            print(policy)
        for name, path in paths.items():
            rows.sql(f"CREATE VIEW {name} AS SELECT * FROM '{path}'")
        for draw in range(options.draws):
            home = Path(folder) / str(draw)
            home.mkdir()
            with embedded(home, policy) as services:
                dp, budget, engine = services.dp_address, services.budget_address, DuckDBEngine(paths)
                with PrivateClient(
                    engine=engine, dp=dp, budget=budget, account="t/a", timeouts=UNHURRIED
                ) as client:
                    for name in names:
                        print(f"{draw} {name:36}{answered(client, name, rows, total)}", flush=True)
    print(f"{total['answers of use'] / options.draws:.1f} of {len(names)} answers are of use; {dict(total)}")
    true = all(total[f"true {kind}"] >= 0.95 * total[kind] for kind in _KINDS[1:])
    holds = total["true intervals"] >= binom.ppf(0.01, total["intervals"], 0.95)
    return 0 if true and holds and not total["its text is refused"] else 1


if __name__ == "__main__":
    sys.exit(main())
