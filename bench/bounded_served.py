"""What is found of a top 50 by the services themselves, asked again and again with fresh noise; and the shift's errors.

    python -m bench bounded_served [--runs 20] [--only cofacts retail irc irc_half shift]

Every number is of results that a client has paid for: policy, query on DuckDB, reservation, noise and charge. The
settings were found on Cofacts and Online Retail, so there they flatter two looks. Nothing was tuned on Ubuntu IRC:
`irc` has the settings of the others, and `irc_half` those that were chosen for one half of the members, asked about the
other half. The error is the mean absolute distance of the shown counts from the counts before bounding; all of that
tells of the data, and is for their owner.

Of the shift, the root mean square of the errors of counts, beside one look for the same units, on made-up members who
have a random part of d elements.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TypeVar

import duckdb

from pinot_connector import PrivateClient
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import ChargedUnanswered, EngineUnavailable, OutcomeUnknown, ServiceUnavailable
from pinot_connector.results import PrivateResult

HEADER = "epsilon_per: 0.15\ndelta: 1e-11\ncount_noise: gaussian\ntables:\n"
BUDGET = """
accounts:
  - path: [bench]
    limit: {information: 1000000000, calls: 1000000}
"""
K, MIN_COUNT = 50, 1
MOST_NAMES = 3 * K // 2
EXAMPLES = Path(__file__).parent.parent / "examples"
TRIES = 10
SHIFT_SIZES = (4, 10, 50)
SHIFT_UNITS, SHIFT_MEMBERS = 20, 20_000

_Done = TypeVar("_Done")


@dataclass(frozen=True)
class Asked:
    """Bounds for some numbers of units; no bound stands for UnkGumb, and one for one look.

    `names_share` is the share of the units that the first of two looks gets.
    """

    bounds: tuple[int, ...]
    units: tuple[int, ...] = ()
    names_share: Fraction = Fraction(35, 100)


COFACTS = [
    Asked(()),
    Asked((32,), (71, 20, 10)),
    Asked((8, 16), (71,)),
    Asked((4, 8), (20, 10)),
    Asked((4, 8), (5,), Fraction(1, 2)),
]
RETAIL = [Asked(()), Asked((256,), (71, 20)), Asked((32, 32), (71,)), Asked((48, 32), (20,), Fraction(3, 5))]


@dataclass(frozen=True)
class Way:
    """A way of answering: its name, and the block of a policy; none stands for UnkGumb."""

    name: str
    block: str | None


@dataclass(frozen=True)
class Data:
    """A file with members and elements; `where` leaves out rows."""

    title: str
    path: Path
    member: str
    member_type: str
    element: str
    where: str = "true"


DATA = {
    "cofacts": Data(
        "Cofacts articles",
        EXAMPLES / "cofacts" / "feedback.parquet",
        "member_id",
        "string",
        "article_id",
    ),
    "retail": Data(
        "Online Retail products",
        EXAMPLES / "online_retail" / "purchases.parquet",
        "member_id",
        "string",
        "stock_code",
    ),
    "irc": Data("Ubuntu IRC words", EXAMPLES / "ubuntu_irc" / "words.parquet", "member_id", "int64", "word"),
}
DATA["irc_half"] = replace(
    DATA["irc"], title="Ubuntu IRC words, one half of the members", where="hash(member_id) % 2 = 1"
)
# As planned on the other half, for 20 and 71 units.
PLANNED = [
    Asked(()),
    Asked((512,), (20, 71)),
    Asked((64, 64), (20,), Fraction(1, 8)),
    Asked((8, 64), (71,), Fraction(1, 8)),
]
ASKED = {"cofacts": COFACTS, "retail": RETAIL, "irc": [*COFACTS, *RETAIL[1:]], "irc_half": PLANNED}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each data set, and one for the shift."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", nargs="+", choices=[*DATA, "shift"], default=[*DATA, "shift"])
    options = parser.parse_args(arguments)
    for name in options.only:
        if name == "shift":
            _shift_table(options.runs)
        else:
            with tempfile.TemporaryDirectory() as directory:
                data = _chosen(DATA[name], Path(directory) / "chosen.parquet")
                _table(data, [way for each in ASKED[name] for way in _ways(each)], options.runs)


def _chosen(data: Data, path: Path) -> Data:
    """Return the data with the rows that are not left out."""
    duckdb.sql(f"COPY (SELECT * FROM read_parquet('{data.path}') WHERE {data.where}) TO '{path}'")  # noqa: S608
    return replace(data, path=path)


def _ways(asked: Asked) -> Iterator[Way]:
    """Yield what a policy says for the bounds."""
    if not asked.bounds:
        yield Way("UnkGumb, d_bar = 1000", None)
    for units in asked.units:
        stated = f"bound: in_query, units: {units}, min_count: {MIN_COUNT}"
        match asked.bounds:
            case (typical,):
                yield Way(f"one look, Delta = {typical}", f"{{{stated}, typical: {typical}}}")
            case (delta_1, delta_2):
                share = asked.names_share
                names = f"{{typical: {delta_1}, share: {share}, max_names: {MOST_NAMES}}}"
                yield Way(
                    f"two looks, {delta_1} and {delta_2}, {float(share):.0%} for names",
                    f"{{{stated}, typical: {delta_2}, names: {names}}}",
                )


def _table(data: Data, ways: Sequence[Way], runs: int) -> None:
    counts = _true_counts(data)
    top = set(sorted(counts, key=lambda element: (-counts[element], element))[:K])
    blocks = {f"t{i}": way.block for i, way in enumerate(ways)}
    columns = (
        f"      {data.member}: {{type: {data.member_type}}}\n"
        f"      {data.element}: {{type: string, group_by: true}}\n"
    )
    policy = HEADER + "".join(_entry(name, data.member, block, columns) for name, block in blocks.items())
    print(
        f"\n{data.title}, {runs} runs\n{'':40} {'units':>6} {'elements':>9} {'of the top':>11} {'error':>7}"
    )
    with _client(policy, dict.fromkeys(blocks, data.path)) as client:
        for name, way in zip(blocks, ways, strict=True):
            found = [_repeated(partial(client.top_k, name, data.element, K)) for _ in range(runs)]
            print(f"{way.name:40} {_worth(found, counts, top)}", flush=True)


def _repeated(work: Callable[[], _Done]) -> _Done:
    """Try again if a service does not answer: on a machine that is busy with other work its heartbeat may be late."""
    for _ in range(TRIES - 1):
        try:
            return work()
        except (ServiceUnavailable, EngineUnavailable, OutcomeUnknown, ChargedUnanswered):
            time.sleep(1)
    return work()


def _worth(found: Sequence[PrivateResult], counts: Mapping[object, int], top: set[object]) -> str:
    units = statistics.fmean(each.charged.information for each in found)
    shown = statistics.fmean(len(each.rows) for each in found)
    of_top = statistics.fmean(sum(row.element[0] in top for row in each.rows) for each in found)
    errors = [abs((row.noisy_count or 0) - counts[row.element[0]]) for each in found for row in each.rows]
    error = statistics.fmean(errors) if errors else math.nan
    return f"{units:6.1f} {shown:9.1f} {of_top:11.1f} {error:7.1f}"


def _true_counts(data: Data) -> dict[object, int]:
    sql = (
        f"SELECT {data.element}, COUNT(DISTINCT {data.member}) FROM read_parquet('{data.path}') "  # noqa: S608
        f"WHERE {data.member} IS NOT NULL AND {data.element} IS NOT NULL GROUP BY 1"
    )
    with duckdb.connect() as connection:
        return dict(connection.execute(sql).fetchall())


def _entry(name: str, member: str, block: str | None, columns: str) -> str:
    bounded = "" if block is None else f"    contributions: {block}\n"
    return (
        f"  {name}:\n    member: {member}\n    consistency: fresh\n{bounded}"
        f"    measures: {{distinct_members: true}}\n    columns:\n{columns}"
    )


@contextmanager
def _client(policy: str, tables: Mapping[str, Path]) -> Iterator[PrivateClient]:
    """Run both services, and give a client that asks DuckDB."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        folder = Path(directory)
        (folder / "policy.yaml").write_text(policy)
        (folder / "budget.yaml").write_text(BUDGET)
        services = _repeated(lambda: stack.enter_context(_services(folder)))
        engine = DuckDBEngine(dict(tables))
        stack.callback(engine.close)
        client = PrivateClient(
            dp=services.dp_address, budget=services.budget_address, account="bench", engine=engine
        )
        yield stack.enter_context(client)


def _services(folder: Path) -> EmbeddedServices:
    return EmbeddedServices(
        policy=folder / "policy.yaml", budget_config=folder / "budget.yaml", directory=folder / "state"
    )


def _shift_table(runs: int) -> None:
    print(
        f"\nThe shift for {SHIFT_UNITS} units, {runs} runs: sigma as promised, and root mean square error\n"
        f"{'d':>4} {'one look':>18} {'shift':>18} {'ratio':>12} {'(sqrt d + 1) / (2 sqrt d)':>28}"
    )
    with tempfile.TemporaryDirectory() as directory:
        for size in SHIFT_SIZES:
            _shift_row(size, Path(directory) / f"{size}.parquet", runs)


def _shift_row(size: int, path: Path, runs: int) -> None:
    # A member has each element with its own chance; the hash is DuckDB's, so that runs are the same.
    duckdb.sql(
        f"COPY (SELECT m AS member, 'e' || lpad(e::VARCHAR, 2, '0') AS element FROM range({SHIFT_MEMBERS}) a(m), "  # noqa: S608
        f"range({size}) b(e) WHERE hash(m, e) % 100 < 30 + hash(m) % 70) TO '{path}'"
    )
    data = Data("", path, "member", "int64", "element")
    counts = _true_counts(data)
    domain = ", ".join(sorted(map(str, counts)))
    columns = f"      member: {{type: int64}}\n      element: {{type: string, group_by: true, domain: [{domain}]}}\n"
    block = f"{{bound: in_query, typical: {size}, units: {SHIFT_UNITS}"
    blocks = {"plain": f"{block}}}", "shifted": f"{block}, shift: true}}"}
    policy = HEADER + "".join(_entry(name, "member", each, columns) for name, each in blocks.items())
    promised, measured = {}, {}
    with _client(policy, dict.fromkeys(blocks, path)) as client:
        for name in blocks:
            found = [_repeated(partial(client.histogram, name, "element")) for _ in range(runs)]
            errors = [(row.noisy_count or 0) - counts[row.element[0]] for each in found for row in each.rows]
            measured[name] = math.sqrt(statistics.fmean(error**2 for error in errors))
            promised[name] = float(found[0].parameters.noise_scale or 0)
    cells = [f"{promised[name]:8.2f} {measured[name]:9.2f}" for name in blocks]
    ratio = f"{promised['shifted'] / promised['plain']:.3f} {measured['shifted'] / measured['plain']:.3f}"
    print(
        f"{size:4} {cells[0]:>18} {cells[1]:>18} {ratio:>12} {(math.sqrt(size) + 1) / 2 / math.sqrt(size):28.3f}"
    )


if __name__ == "__main__":
    main()
