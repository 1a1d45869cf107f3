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

from dp_service.noise.gaussian_price import rho_of_units, variance_for
from pinot_connector import PrivateClient
from pinot_connector.embedded import EmbeddedServices
from pinot_connector.engines.duckdb import DuckDBEngine
from pinot_connector.errors import ChargedUnanswered, EngineUnavailable, OutcomeUnknown, ServiceUnavailable
from pinot_connector.results import PrivateResult

EPSILON_PER = Fraction("0.15")
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
    """One look or two, in which so many elements of a member count in full, for some numbers of units; 0: UnkGumb."""

    looks: int
    typical: int = 0
    units: tuple[int, ...] = ()


COFACTS = [Asked(0), Asked(1, 32, (71, 20, 10)), Asked(2, 16, (71,)), Asked(2, 8, (20, 10, 5))]
RETAIL = [Asked(0), Asked(1, 256, (71, 20)), Asked(2, 32, (71, 20))]


@dataclass(frozen=True)
class Way:
    """A way of answering: its name, a policy's block, none for UnkGumb, and what it says of the elements' column."""

    name: str
    block: str | None
    typical: str = ""


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
PLANNED = [Asked(0), Asked(1, 512, (20, 71)), Asked(2, 64, (20, 71))]
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
    if not asked.looks:
        yield Way("UnkGumb, d_bar = 1000", None)
    for units in asked.units:
        longest = f", longest_list: {MOST_NAMES}" if asked.looks == 2 else ""
        yield Way(
            f"looks: {asked.looks}, Delta = {asked.typical}",
            f"{{bound: in_query, units: {units}, min_count: {MIN_COUNT}{longest}}}",
            f", typical: {asked.typical}",
        )


def _table(data: Data, ways: Sequence[Way], runs: int) -> None:
    counts = _true_counts(data)
    top = set(sorted(counts, key=lambda element: (-counts[element], element))[:K])
    blocks = {f"t{i}": way.block for i, way in enumerate(ways)}
    policy = HEADER
    for name, way in zip(blocks, ways, strict=True):
        columns = (
            f"      {data.member}: {{type: {data.member_type}}}\n"
            f"      {data.element}: {{type: string, group_by: true{way.typical}}}\n"
        )
        policy += _entry(name, data.member, way.block, columns)
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
        f"\nThe shift for {SHIFT_UNITS} units, {runs} runs: sigma of one look, sigma as promised, and root mean square "
        f"error\n{'d':>4} {'one look':>9} {'shift':>18} {'ratio':>6} {'(sqrt d + 1) / (2 sqrt d)':>28}"
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
    columns = (
        "      member: {type: int64}\n"
        f"      element: {{type: string, group_by: true, typical: {size}, domain: [{domain}]}}\n"
    )
    block = f"{{bound: in_query, units: {SHIFT_UNITS}}}"
    with _client(HEADER + _entry("shifted", "member", block, columns), {"shifted": path}) as client:
        found = [_repeated(partial(client.histogram, "shifted", "element")) for _ in range(runs)]
    errors = [(row.noisy_count or 0) - counts[row.element[0]] for each in found for row in each.rows]
    measured = math.sqrt(statistics.fmean(error**2 for error in errors))
    promised = float(found[0].parameters.noise_scale or 0)
    plain = math.sqrt(variance_for(size, rho_of_units(EPSILON_PER, SHIFT_UNITS)))
    print(
        f"{size:4} {plain:9.2f} {promised:8.2f} {measured:9.2f} {promised / plain:6.3f} "
        f"{(math.sqrt(size) + 1) / 2 / math.sqrt(size):28.3f}"
    )


if __name__ == "__main__":
    main()
