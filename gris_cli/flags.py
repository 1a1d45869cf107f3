"""The flags that several commands share, each declared once."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

DEFAULT_DIRECTORY = Path(".gris")
DEFAULT_DP = "localhost:50051"
DEFAULT_BUDGET = "localhost:50052"
DEFAULT_SPARK = "local[*]"
DEFAULT_SETTLE_SECONDS = 60.0
# As `embedded` names it below its directory, so that both give the same releases.
DEFAULT_RELEASES = DEFAULT_DIRECTORY / "releases.sqlite"


def _named(context: typer.Context, parameter: typer.CallbackParam, account: str) -> str:
    """Refuse an empty account that was given: a script's unset variable must not let another account pay."""
    source = context.get_parameter_source(parameter.name or "")
    if not account and source is not None and source.name == "COMMANDLINE":
        raise typer.BadParameter("--account: expected an account such as acme/ana, got an empty text")
    return account


JsonFlag = Annotated[bool, typer.Option("--json", help="Print only JSON on standard output, errors too.")]
BudgetFlag = Annotated[
    str, typer.Option(envvar="GRIS_BUDGET", metavar="ADDRESS", help="The address of budget_service.")
]
SparkFlag = Annotated[
    str,
    typer.Option(
        envvar="GRIS_SPARK", metavar="URL", help="Spark: local[4], spark://.., yarn, or sc://.. for Connect."
    ),
]


class MeasureName(StrEnum):
    """What is counted, as `Measure` in `question.proto` calls it, which takes too long to load for `gris --help`."""

    DISTINCT_MEMBERS = "distinct_members"
    EVENTS = "events"


class EngineName(StrEnum):
    """Where the data are."""

    DUCKDB = "duckdb"
    PINOT = "pinot"
    SPARK = "spark"


@dataclass(frozen=True)
class Asks:
    """Beside a flag: the field of the question that it stands for, where that has another name."""

    field: str


@dataclass(frozen=True)
class QuestionFlags:
    """A question: structured, or as SQL."""

    table: Annotated[str, typer.Option(help="A table of the policy.")] = ""
    by: Annotated[
        list[str],
        typer.Option(help="Group by this column; repeatable. Without it: one total."),
        Asks("dimensions"),
    ] = field(default_factory=list)
    k: Annotated[int | None, typer.Option(help="How many elements; by default all that may be shown.")] = None
    where: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN=VALUE",
            help="A condition, repeatable: value in JSON, a list for any of several; != for none of them.",
        ),
        Asks("filters"),
    ] = field(default_factory=list)
    since: Annotated[
        str,
        typer.Option("--from", metavar="DAY", help="The first day or time of the period."),
        Asks("time_range"),
    ] = ""
    until: Annotated[
        str,
        typer.Option("--to", metavar="DAY", help="The first day or time after the period."),
        Asks("time_range"),
    ] = ""
    measure: Annotated[
        MeasureName | None, typer.Option(help="What is counted; by default distinct_members.")
    ] = None
    no_counts: Annotated[
        bool,
        typer.Option("--no-counts", help="Return only the order, which is cheaper."),
        Asks("omit_counts"),
    ] = False
    sums: Annotated[
        list[str],
        typer.Option(
            "--sum",
            metavar="COLUMN",
            help="Sum members' totals of this value column, too, with --measure events rows; repeatable.",
        ),
        Asks("aggregates"),
    ] = field(default_factory=list)
    averages: Annotated[
        list[str],
        typer.Option(
            "--avg",
            metavar="COLUMN",
            help="Average members' totals of this value column, too, with --measure events rows; repeatable.",
        ),
        Asks("aggregates"),
    ] = field(default_factory=list)
    quantiles: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN:Q,Q,..",
            help="Instead of counts: quantiles of this column, such as amount:0.25,0.5,0.75; also min and max.",
        ),
    ] = field(default_factory=list)
    order_by: Annotated[
        str,
        typer.Option(
            metavar="sum:COLUMN|avg:COLUMN",
            help="Rank by this sum or average, which is asked for, instead of by the count.",
        ),
        Asks("ordered_by"),
    ] = ""
    bucket: Annotated[
        str,
        typer.Option(
            metavar="LENGTH:COLUMN",
            help="Count by the day, week, month, quarter or year of the time column, in the order of time.",
        ),
    ] = ""
    ranked: Annotated[
        bool,
        typer.Option("--ranked", help="With --bucket: rank by the count instead."),
        Asks("bucket.ranked"),
    ] = False
    having: Annotated[
        list[str],
        typer.Option(
            metavar="CONDITION",
            help="Show only what meets this, such as 'count >= 100' or 'sum:amount < 2500.50'; repeatable.",
        ),
    ] = field(default_factory=list)
    totals: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="With two columns of --by: totals by this one, too, and what the list leaves of each.",
        ),
        Asks("totals_by"),
    ] = ""
    sql: Annotated[str, typer.Option(metavar="TEXT", help="The question as SQL instead.")] = ""
    sharpen: Annotated[
        list[int],
        typer.Option(
            metavar="UNITS",
            help="Count the elements of this question's paid release again with so many units, and combine the counts; "
            "repeated for each sharpening after the first.",
        ),
        Asks("sharpening"),
    ] = field(default_factory=list)
    planned: Annotated[
        bool,
        typer.Option(
            "--planned",
            help="All units of --sharpen were decided on before any count was seen: intervals of the combined counts.",
        ),
        Asks("sharpening.planned"),
    ] = False


@dataclass(frozen=True)
class AskFlags(QuestionFlags):
    """What is asked, and what becomes of the answer."""

    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw the answer, too: bars with their intervals, or a line with a band for a series (.png, .svg).",
        ),
    ] = None
    confidence: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            help="Of each interval, between 0.5 and 1; without it 0.95. Of a paid answer another one is free.",
        ),
    ] = None


@dataclass(frozen=True)
class ConnectionFlags:
    """The account that asks, the services, and the engine with the data."""

    dp: Annotated[
        str, typer.Option(envvar="GRIS_DP", metavar="ADDRESS", help="The address of dp_service.")
    ] = DEFAULT_DP
    budget: BudgetFlag = DEFAULT_BUDGET
    gateway: Annotated[
        str,
        typer.Option(
            envvar="GRIS_GATEWAY",
            metavar="URL",
            help="Ask a gateway, gris://HOST:PORT, instead of the services; it identifies the caller.",
        ),
    ] = ""
    account: Annotated[
        str,
        typer.Option(envvar="GRIS_ACCOUNT", metavar="A/B", help="The account that pays.", callback=_named),
    ] = ""
    engine: Annotated[EngineName, typer.Option(help="The engine that holds the data.")] = EngineName.DUCKDB
    data: Annotated[
        list[str],
        typer.Option(
            metavar="TABLE=PATH",
            help="A file for DuckDB (of a pairs copy manifest.json); for Spark a path, or catalog:NAME. Repeatable.",
        ),
    ] = field(default_factory=list)
    spark: SparkFlag = DEFAULT_SPARK
    pinot_broker: Annotated[
        str, typer.Option(envvar="PINOT_BROKER", metavar="URL", help="Pinot's broker.")
    ] = ""
    pinot_controller: Annotated[
        str, typer.Option(envvar="PINOT_CONTROLLER", metavar="URL", help="Pinot's controller.")
    ] = ""
    pinot_authorization_file: Annotated[
        Path | None,
        typer.Option(
            envvar="PINOT_AUTHORIZATION_FILE",
            metavar="FILE",
            help='Holds the header "Authorization" for Pinot, such as "Basic ..." or "Bearer ...".',
        ),
    ] = None
    pinot_ca_file: Annotated[
        Path | None,
        typer.Option(
            envvar="PINOT_CA_FILE", metavar="PEM", help="The authority that signs Pinot's certificates."
        ),
    ] = None
    pinot_certificate_file: Annotated[
        Path | None,
        typer.Option(
            envvar="PINOT_CERTIFICATE_FILE",
            metavar="PEM",
            help="The certificate to show to Pinot, with its key.",
        ),
    ] = None
    pinot_server_admin: Annotated[
        bool,
        typer.Option(
            "--pinot-server-admin",
            envvar="PINOT_SERVER_ADMIN",
            help="Ask each Pinot server, at its admin port, whether it has loaded all new segments.",
        ),
    ] = False
    pinot_server_admin_port: Annotated[
        int | None,
        typer.Option(
            envvar="PINOT_SERVER_ADMIN_PORT",
            metavar="PORT",
            help="That port, for servers with TLS alone, whose port Pinot does not report.",
        ),
    ] = None
    pinot_settle_seconds: Annotated[
        float,
        typer.Option(
            envvar="PINOT_SETTLE_SECONDS",
            metavar="SECONDS",
            help="The longest time that a Pinot server takes to load a segment.",
        ),
    ] = DEFAULT_SETTLE_SECONDS
    releases: Annotated[
        Path,
        typer.Option(
            envvar="GRIS_RELEASES",
            metavar="FILE",
            help="What was paid for is kept here, encrypted, and given again for nothing.",
        ),
    ] = DEFAULT_RELEASES
    releases_key_file: Annotated[
        Path | None,
        typer.Option(
            envvar="GRIS_RELEASES_KEY_FILE",
            metavar="FILE",
            help="The key of --releases; by default a file .key beside it, made with it.",
        ),
    ] = None
    embedded: Annotated[
        bool,
        typer.Option(
            "--embedded",
            help="Run both services on this machine: on the example data, or with --policy on yours.",
        ),
    ] = False
    policy: Annotated[
        Path | None,
        typer.Option(
            "--policy",
            metavar="FILE",
            help="With --embedded: your policy, instead of that of the examples.",
        ),
    ] = None
    budget_config: Annotated[
        Path | None,
        typer.Option(
            "--budget-config",
            metavar="FILE",
            help="With --embedded: your budgets, instead of those of the examples.",
        ),
    ] = None
    directory: Annotated[Path, typer.Option(help="Where --embedded keeps noise key, ledger and logs.")] = (
        DEFAULT_DIRECTORY
    )
    examples: Annotated[Path | None, typer.Option(help="The directory of the examples.")] = None


# Parts of `ConnectionFlags`, for commands that have only some of them.
OF_EMBEDDED = ("policy", "budget_config", "directory", "examples")
OF_CATALOG = ("dp", "gateway", "embedded", *OF_EMBEDDED)
OF_GUARANTEE = ("budget", "account", *OF_CATALOG)
OF_ENGINE = (
    *("engine", "spark", "pinot_broker", "pinot_controller"),
    *("pinot_server_admin", "pinot_server_admin_port", "pinot_settle_seconds"),
)
OF_PINOT_FILES = ("pinot_authorization_file", "pinot_ca_file", "pinot_certificate_file")
