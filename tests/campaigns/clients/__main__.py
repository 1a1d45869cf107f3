"""Clients of Pinot and of PostgreSQL, as registries have them, ask a gateway: with and without TLS.

    python -m tests.campaigns clients
    python -m tests.campaigns clients --only pinotdb

Each client lives in an environment of its own below build/, which install.sh sets up. It asks from an account of its
own what a plain request asks from another one, and has to show the same; asked again, nothing more is paid.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.campaigns.clients import by_superset
from tests.campaigns.clients.clients import OF_POSTGRES, PARAMETERS, Client, clients
from tests.campaigns.clients.judging import NONE, YES, Shown, cells, shown
from tests.campaigns.clients.questions import STEPS, Expected, expected, spent, written
from tests.campaigns.clients.sales import write_sales
from tests.campaigns.superset.rest import Superset
from tests.campaigns.superset.stack import Stack, draw, running_stack, running_superset

INSTALL = Path(__file__).parent / "install.sh"
BUILD = Path(__file__).parents[3] / "build"
Row = dict[str, str]


def main() -> None:
    """Run all clients, print what was done, and exit with 1 if anything was not as it has to be."""
    parser = argparse.ArgumentParser("python -m tests.campaigns clients", description=__doc__)
    parser.add_argument(
        "--only", default="", help="a pattern of the names of the clients that are wanted; Superset is one"
    )
    options = parser.parse_args()
    has_superset = re.search(options.only, "Superset") is not None
    for each in ("clients", "superset") if has_superset else ("clients",):
        subprocess.run((INSTALL, each), check=True)
    every = list(clients(BUILD / "clients"))
    found = [each for each in every if isinstance(each, Client) and re.search(options.only, each.name)]
    skipped = [each for each in every if isinstance(each, str)]
    table: dict[str, Row] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running_stack(folder / "plain", write_sales) as stack:
            table |= rows(stack, found)
        with running_stack(folder / "tls", write_sales, with_tls=True) as stack:
            table |= rows(stack, [each for each in found if not each.is_plain])
            if has_superset:
                table |= _superset_rows(folder / "superset", stack)
    print("\n".join([*lines(table), *(f"skipped: {each}" for each in skipped)]))
    sys.exit(any(cell not in (YES, NONE) for row in table.values() for cell in row.values()))


def rows(stack: Stack, found: list[Client]) -> dict[str, Row]:
    """Run clients one after the other, and return what to say of each step, by their names."""
    wanted, tls = expected(stack), ", TLS" * stack.broker_url.startswith("https")
    table = {}
    for client in found:
        file = written(stack, client.caller, stack.credentials.parent)
        given = shown(client.printed(file, stack.trusting))
        table[client.name + tls] = _row(stack, client.caller, given, wanted, client.skips)
    return table


def _superset_rows(folder: Path, stack: Stack) -> dict[str, Row]:
    programs, chromium, table = BUILD / "superset/bin", shutil.which("chromium"), {}
    (package,) = programs.parent.glob("lib/*/site-packages/apache_superset-*.dist-info")
    with running_superset(programs, folder, stack) as url:
        for way in by_superset.ways(stack):
            superset = Superset(url, schema=way.schema)
            given, charts = by_superset.asked_by(superset, way)
            row = _row(stack, way.caller, given, expected(stack), PARAMETERS | OF_POSTGRES)
            table[f"Superset {package.stem.rpartition('-')[2]}, {way.name}, TLS"] = row
            dataset = charts["top"].dataset
            every = [*charts.values(), *by_superset.more_charts(superset, dataset)]
            if chromium is not None:
                ids = {chart.name: superset.add_chart(chart) for chart in every}
                draw(programs, Path(chromium), BUILD / "clients-pictures" / way.caller, url, ids)
            # Superset's metadata in SQLite take each name of a table once.
            superset.remove_dataset(dataset)
    return table


def _row(
    stack: Stack, caller: str, given: Mapping[str, Shown], wanted: Expected, lacks: frozenset[str]
) -> Row:
    units = spent(stack, caller)
    paid = YES if units == wanted.units else f"{units} units, not {wanted.units}"
    return {**cells(given, wanted, lacks), "paid once": paid}


def lines(table: Mapping[str, Row]) -> Iterator[str]:
    """Yield the table, and below it what was seen where something else was expected."""
    width, notes = max(map(len, table), default=0), list[str]()
    yield "  ".join(["client".ljust(width), *STEPS])
    for name, row in table.items():
        line = [name.ljust(width)]
        for step in STEPS:
            said = row[step]
            if said not in (YES, NONE):
                notes.append(f"[{len(notes) + 1}] {name}, {step}: {' '.join(said.split())[:300]}")
                said = f"[{len(notes)}]"
            line.append(said.ljust(len(step)))
        yield "  ".join(line).rstrip()
    yield from notes


if __name__ == "__main__":
    main()
