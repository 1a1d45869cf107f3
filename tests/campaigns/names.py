"""Every campaign by its name."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

JAVA = ("Java", "Maven")


@dataclass(frozen=True)
class Campaign:
    """A program, and the options of its smallest form, which only shows that it runs.

    Attributes:
        says: What it does, in a line.
        smallest: Options of the smallest form.
        module: What `python -m` runs, with its first arguments; by default the module of the campaign's name.
        needs: What a machine must have for it, of `NEEDS` in smoke.py.
        settings: Variables that are set for it.
    """

    says: str
    smallest: str = ""
    module: str = "tests.campaigns.{}"
    needs: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    def command(self, name: str) -> tuple[str, ...]:
        """Return the command without options; `name` is the campaign's."""
        return (sys.executable, "-m", *self.module.format(name).split())

    def environment(self) -> dict[str, str]:
        """Return the environment in which the command is run."""
        return {**os.environ, **dict(self.settings)}


CAMPAIGNS = {
    "smoke": Campaign("all of these, all benchmarks and other commands, each in its smallest form"),
    "agents": Campaign(
        "a hostile agent asks 500 questions at a gateway; agents spend whole budgets on one member",
        "--questions 20 --games 50",
    ),
    "audit": Campaign(
        "two neighbouring tables are asked the same 10,000 times, which bounds the privacy loss",
        "--asks 100 --only ^UnkGumb$",
    ),
    "bounded": Campaign(
        "the worst of every mechanism for bounded contributions over all small data, beside its promise",
        "--every 20",
        "tests.unit.dp_service.mechanisms.bounded",
    ),
    "chaos": Campaign(
        "the budget service and its store are killed 60 times under load, for every store",
        "--store sqlite --charges 100 --kills 2",
    ),
    "clients": Campaign(
        "clients of Pinot and PostgreSQL, and Superset as both, ask a gateway",
        "--only pinotdb",
        needs=("npm",),
    ),
    "exploration": Campaign(
        "every interleaving of small worlds of the ledger, by the real rules",
        "--depth 3",
        "tests.unit.budget_service.ledger.exploration",
    ),
    "fuzz": Campaign("100,000 mutated SQL texts mean nothing but their structured form", "--texts 500"),
    "kills": Campaign(
        "gateways, services and stores are killed for ten minutes under questions on changing rows",
        "--store sqlite --minutes .2 --kills 2",
    ),
    "newcomers": Campaign(
        "48 questions of four tables under drafted policies: how many answers are of use, which ends are true",
        "--draws 1 --scale .2",
    ),
    "nightly": Campaign(
        "the tests that `make test-all` leaves out, but those of a real Pinot",
        "-x tests/unit/dp_service/mechanisms/test_count_noise.py",
        "pytest -m nightly --ignore=tests/engines/pinot",
    ),
    "mutants": Campaign("the product is changed in hundreds of ways; a test of each must fail", "--check"),
    "one_row": Campaign(
        "every form of condition beside one odd row at a time, on DuckDB, Spark and Pinot",
        "--engine duckdb --together --every 20",
    ),
    "pinot_check": Campaign(
        "a table of what holds on your Pinot, or on one that is started for it", "--only settings", needs=JAVA
    ),
    "pinot_failures": Campaign(
        "tests of a real Pinot that `make test-all` leaves out: servers load, lag, are replaced or die",
        "-x -k lowered_limit",
        "pytest -m nightly tests/engines/pinot",
        needs=JAVA,
    ),
    "pinot_stream": Campaign(
        "a server of Pinot is killed again and again under thousands of questions",
        "--answers 20 --kills 1",
        needs=JAVA,
    ),
    "properties": Campaign(
        "every property test on ten times as many examples as `make test`, and on others in every run",
        "tests/unit/dp_service/accounting/test_rounding.py",
        "pytest -m hypothesis",
        settings=(("GRIS_TEST_EXAMPLES", "10"),),
    ),
    "regions": Campaign(
        "histories of three regions and a home, with cuts, crashes, pauses and skewed clocks", "--seeds 4"
    ),
    "rolling": Campaign("two replicas of each service are restarted in turn under load", "--rounds 1"),
    "sensitivity": Campaign(
        "60,000 questions of 10,000 random tables: one member changes no more than is charged",
        "--worlds 5",
    ),
    "superset": Campaign("a real Apache Superset asks a gateway: database, charts, refusals, pictures"),
    "tenants": Campaign("100,000 questions of 50 tenants, who learn nothing of each other", "--questions 50"),
    "wires": Campaign(
        "100,000 mutated messages of PostgreSQL and requests of HTTP at a real gateway", "--messages 200"
    ),
}
