"""How many useful answers an analyst gets in a month, at the default promise.

    python -m bench answers [--data FOLDER] [--only "Cofacts"] [--most 100]

Three workloads are asked until the ledger refuses: an audience (top 10 and 50, of which 80 % are about one slice), a
dashboard of twelve panels that is refreshed every day, and a shop (revenue, averages, quantiles, top products). Each
question goes through policy, query on DuckDB, reservation, noise and charge, and is about other days than those before,
so that none is free. A useful answer has

- for lists, 95 % of the names right, in whole names (9 of 10, 47 of 50), and counts that are off by 10 % on average;
- for series, totals, sums and averages, numbers that are off by 10 % on average, over all numbers that it should show;
- for quantiles, ranks that are off by at most 2 % of the members, each of them.

What is right is the answer of all rows, before bounds and noise. Each line has one thing more than the one before, and
the guarantee that the services tell for the account; the last one has cheaper lists and cheaper numbers. What is
refused of one slice, or of lists, may not be of others: a month ends when 20 questions in a row are refused.

Bounds of lists are those that `research/lab/bound` proposes, of the same rows; those of numbers are powers of two that
leave nearly all as it is. FOLDER has Parquet files with the columns member,
item, slice (one of a member), tag, day and amount. Such numbers tell of the data: they are for the owner.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from random import Random

import duckdb
import numpy as np

from bench.workloads import MONTHS, WEEKS, WORKLOADS, Asked, Rows, workloads_for
from dp_service.mechanisms import Currency
from dp_service.queries.errors import PolicyError
from dp_service.queries.policy import read_policy
from gris_cli.data.bound.source import Columns
from pinot_connector import PrivateClient
from pinot_connector.embedded import KEY_FILE, EmbeddedServices
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import BudgetExhausted
from research.lab.bound.contributions import DataFile, counts_of_file
from research.lab.bound.looks import Question
from research.lab.bound.proposal import policy_block, proposal, trade_off
from research.lab.simulation import Draws

EXAMPLES = Path(__file__).parent.parent / "examples"
EPSILON_PER = Fraction("0.15")
UNITS, PAPERS_CALLS = 3000, 30
IN_A_ROW = 20
K, D_BAR, TRIALS = 50, 1000, 20
CHEAPER = (1, 2, 3, 5, 7, 10, 14, 20)
BUCKETS = max(MONTHS, WEEKS)

COFACTS = (
    "SELECT member_id AS member, article_id AS item, year(since) || ' ' || (month(since) + 5) // 6 AS slice, "
    "CASE score WHEN 1 THEN 'useful' ELSE 'not' END AS tag, day, (score = 1)::BIGINT AS amount "
    "FROM (SELECT *, min(day) OVER (PARTITION BY member_id) AS since FROM '{}')",
    EXAMPLES / "cofacts" / "feedback.parquet",
)
RETAIL = (
    "SELECT member_id AS member, stock_code AS item, year(since) || ' ' || quarter(since) AS slice, "
    "CASE country WHEN 'United Kingdom' THEN 'home' ELSE 'abroad' END AS tag, day, quantity AS amount "
    "FROM (SELECT *, min(day) OVER (PARTITION BY member_id) AS since FROM '{}')",
    EXAMPLES / "online_retail" / "purchases.parquet",
)


@dataclass(frozen=True)
class Setting:
    """What a line measures: a currency, an account, and what its policy says; `list_units` are those to choose from."""

    name: str
    delta: str
    calls: int
    information: int = UNITS
    list_units: tuple[int, ...] = (20,)
    number_units: int = 5
    has_blocks: bool = False


@dataclass(frozen=True)
class Month:
    """What an account was answered in a window, what it paid, and what was missing in the end."""

    answers: int
    useful: int
    information: int
    calls: int
    ran_out: str


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each data set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="a folder of further data, which nothing was chosen for")
    parser.add_argument("--only", nargs="+", help="names of data sets")
    parser.add_argument("--asking", nargs="+", choices=WORKLOADS, default=[*WORKLOADS], help="workloads")
    parser.add_argument("--most", type=int, default=10_000, help="how many questions are asked at most")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        for title, path in _files(Path(directory), options.data):
            if not options.only or title in options.only:
                table(Rows.of(title, path), options.most, options.seed, asking=options.asking)


def _files(folder: Path, further: Path | None) -> Iterator[tuple[str, Path]]:
    for title, (query, path) in {"Cofacts": COFACTS, "Online Retail": RETAIL}.items():
        made = folder / f"{path.stem}.parquet"
        duckdb.sql(f"COPY ({query.format(path)}) TO '{made}'")
        yield title, made
    if further is not None:
        yield from ((path.stem, path) for path in sorted(further.glob("*.parquet")))


def settings() -> Iterator[Setting]:
    """Yield what is measured, each with one thing more."""
    yield Setting("the paper's pair", "1e-10", PAPERS_CALLS)
    more = Setting("300 calls", "1e-11", 300)
    yield more
    more = replace(more, name="and blocks", has_blocks=True)
    yield more
    yield replace(more, name="and cheaper settings", list_units=CHEAPER, number_units=2)


def table(rows: Rows, most: int, seed: int, *, asking: Sequence[str]) -> None:
    """Print what each setting answers of each workload."""
    print(f"\n{rows.title}: {rows.items:,} items, {len(rows.slices)} slices")
    heading = f"{'answers':>8} {'useful':>7} {'units':>6} {'calls':>6}  ran out"
    print(f"{'':34} {heading}      guarantee")
    without_blocks = False
    for stated in settings():
        setting = replace(stated, has_blocks=False) if without_blocks else stated
        policy = policy_of(rows, setting)
        try:
            read_policy(policy.encode(), "policy")
        except PolicyError:
            if not setting.has_blocks:
                raise
            print(f"{setting.name}: this version's policies have none")
            without_blocks = True
            continue
        for workload, month, guarantee in months(rows, setting, policy, most, seed, asking=asking):
            print(f"{setting.name:24} {workload:9} {_line(month)} {guarantee}", flush=True)


def _line(month: Month) -> str:
    each = max(month.answers, 1)
    return (
        f"{month.answers:8} {month.useful:7} {month.information / each:6.1f} {month.calls / each:6.2f}"
        f"  {month.ran_out:12}"
    )


def months(
    rows: Rows, setting: Setting, policy: str, most: int, seed: int, *, asking: Sequence[str]
) -> Iterator[tuple[str, Month, str]]:
    """Ask every workload, each by an account of its own; yield what it was answered, and the guarantee that it has."""
    names = [each for each in workloads_for(rows) if each in asking]
    with _services(policy, setting, names, seed) as services, duckdb.connect() as truth:
        for name in ("lists", "numbers"):
            truth.read_parquet(str(rows.path)).create_view(name)
        engine = DuckDBEngine({"lists": rows.path, "numbers": rows.path})
        for name in names:
            with PrivateClient(
                dp=services.dp_address, budget=services.budget_address, account=name, engine=engine
            ) as client:
                asked = islice(WORKLOADS[name](rows, Random(seed)), most)  # noqa: S311
                month = _month(client, asked, truth)
                guarantee = client.guarantee()
            yield name, month, f"({float(guarantee.epsilon):.2f}, {float(guarantee.delta):.1g})"
        engine.close()


def _month(client: PrivateClient, asked: Iterator[Asked], truth: duckdb.DuckDBPyConnection) -> Month:
    found: Counter[str] = Counter()
    missing: set[str] = set()
    refused = 0
    for question in asked:
        try:
            result = client.sql(question.text)
        except BudgetExhausted as error:
            refused += 1
            missing |= {each.unit for each in error.shortfalls}
            if refused == IN_A_ROW:
                break
            continue
        refused = 0
        if not result.charged.information:
            continue
        found["answers"] += 1
        found["useful"] += question.is_useful(result, truth)
        found["information"] += result.charged.information
        found["calls"] += result.charged.calls
    ran_out = ", ".join(sorted(missing)) or "nothing"
    return Month(found["answers"], found["useful"], found["information"], found["calls"], ran_out)


@contextmanager
def _services(
    policy: str, setting: Setting, accounts: Sequence[str], seed: int
) -> Iterator[EmbeddedServices]:
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        folder = Path(directory)
        (folder / "policy.yaml").write_text(policy)
        (folder / "budget.yaml").write_text(_budget(setting, accounts))
        # A noise key that follows from the seed: the same run again prints the same.
        state = folder / "state"
        state.mkdir(mode=0o700)
        (state / KEY_FILE).touch(mode=0o600)
        (state / KEY_FILE).write_bytes(seed.to_bytes(32, "big"))
        yield stack.enter_context(
            EmbeddedServices(
                policy=folder / "policy.yaml",
                budget_config=folder / "budget.yaml",
                directory=state,
            )
        )


def _budget(setting: Setting, accounts: Sequence[str]) -> str:
    limit = f"{{information: {setting.information}, calls: {setting.calls}}}"
    return "accounts:\n" + "".join(f"  - {{path: [{name}], limit: {limit}}}\n" for name in accounts)


def policy_of(rows: Rows, setting: Setting) -> str:
    """Return a policy with two tables of the same rows: one for lists of items, one for numbers."""
    slices, tags = (
        "[" + ", ".join(f"'{each}'" for each in known) + "]" for known in (rows.slices, rows.tags)
    )
    blocks = f"blocks: {{name: slice, values: {slices}}}\n" if setting.has_blocks else ""
    shared = (
        "    member: member\n"
        + ("    block: slice\n" if setting.has_blocks else "")
        + f"    time: {{column: day, type: date, buckets: {{week: {BUCKETS}, month: {BUCKETS}}}}}\n"
        "    data_version: bench\n"
    )
    columns = (
        "    columns:\n"
        "      member: {{type: string}}\n"
        "      item: {{type: string, group_by: true, typical: {typical}}}\n"
        f"      slice: {{{{type: string, group_by: true, typical: {{typical}}, filter: [in], domain: {slices}}}}}\n"
        f"      tag: {{{{type: string, group_by: true, typical: {{typical}}, filter: [in], domain: {tags}}}}}\n"
        "      day: {{type: date, filter: [range]}}\n"
    )
    lists, typical = _lists(rows, setting)
    return (
        f"epsilon_per: {float(EPSILON_PER)}\ndelta: {setting.delta}\ncount_noise: gaussian\n{blocks}tables:\n"
        f"  lists:\n{shared}    {lists}\n    measures: {{distinct_members: true}}\n{columns.format(typical=typical)}"
        f"  numbers:\n{shared}{_of_numbers(rows, setting)}{columns.format(typical=2)}"
    )


def _lists(rows: Rows, setting: Setting) -> tuple[str, int]:
    """Return how lists bound members, and how many items are typical."""
    question = Question(Currency(EPSILON_PER, Fraction(setting.delta)), min(K, rows.items), 1, D_BAR)
    data = DataFile(rows.path, Columns("member", ("item",)), drops_nulls=True, memory="2GB")
    counts = counts_of_file(data, question.k, question.most_names)
    made = trade_off(counts, question, setting.list_units, TRIALS, Draws(1), seed=1)
    return policy_block(proposal(made, counts, question).proposed.look, question)


def _of_numbers(rows: Rows, setting: Setting) -> str:
    """Return what the second table has instead of names, with bounds in powers of two."""
    with duckdb.connect() as connection:
        connection.read_parquet(str(rows.path)).create_view("rows")
        low, row, tau, largest = connection.execute(
            "SELECT min(amount), quantile_cont(amount, .999), (SELECT quantile_cont(n, .98) FROM "
            "(SELECT count(*) n FROM rows GROUP BY member)), (SELECT max(n) FROM "
            "(SELECT sum(amount) n FROM rows GROUP BY member)) FROM rows"
        ).fetchall()[0]
        upper = _upper(connection, setting)
    row, tau, largest = (_power(each) for each in (row, tau, largest))
    rows_within = f"row_lower: {-row if low < 0 else 0}, row_upper: {row}"
    grid = f"{{scale: geometric, from: 1, to: {largest}, cells: 400}}"
    return (
        f"    contributions: {{bound: in_query, units: {setting.number_units}, "
        "sums: {max_members: 1000000, max_rows: 100000000}}\n"
        f"    measures: {{distinct_members: true, rows: {2 * tau}}}\n"
        f"    values: {{amount: {{type: int64, lower: 0, upper: {upper}, {rows_within}, grid: {grid}}}}}\n"
    )


def _upper(connection: duckdb.DuckDBPyConnection, setting: Setting) -> int:
    """Return the bound of a member's total under which the sum of a month is least off, by its cut and by noise."""
    found = connection.execute(
        "SELECT greatest(sum(amount), 0)::DOUBLE AS total, date_trunc('month', day) AS month FROM rows "
        "GROUP BY member, month"
    ).fetchnumpy()
    totals, count = found["total"], np.unique(found["month"]).size
    # Half of the units are for counts, and a centred total is within half of the bound.
    noise = math.sqrt(BUCKETS / float(setting.number_units * EPSILON_PER**2 / 8)) / 2

    def off_by(bound: int) -> float:
        return float(totals.sum() - totals.clip(max=bound).sum()) + noise * bound * count

    return min((1 << power for power in range(24)), key=off_by)


def _power(number: float) -> int:
    return 1 << int(max(number, 1) - 1).bit_length()


if __name__ == "__main__":
    main()
