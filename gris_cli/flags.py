"""The flags that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gris_cli.flag_groups import flag

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


BudgetFlag = Annotated[
    str, typer.Option(envvar="GRIS_BUDGET", metavar="ADDRESS", help="The address of budget_service.")
]
SparkFlag = Annotated[
    str,
    typer.Option(
        envvar="GRIS_SPARK", metavar="URL", help="Spark: local[4], spark://.., yarn, or sc://.. for Connect."
    ),
]


class EngineName(StrEnum):
    """Where the data are."""

    DUCKDB = "duckdb"
    PINOT = "pinot"
    SPARK = "spark"


@dataclass(frozen=True)
class QuestionFlags:
    """A question: structured, or as SQL."""

    table: str = flag("", "A table of the policy.")
    by: list[str] = flag(
        [],
        "Group by this column, or by a function in SQL, such as a funnel or retention: `gris catalog` has examples. "
        "Repeatable; without it one total.",
        asks="dimensions",
    )
    k: int | None = flag(None, "How many elements; by default all that may be shown.")
    where: list[str] = flag(
        [],
        "A condition, repeatable: value in JSON, a list for any of several; != for none of them.",
        metavar="COLUMN=VALUE",
        asks="filters",
    )
    condition: str = flag("", "One more condition, in SQL, as behind WHERE.", metavar="SQL")
    since: str = flag("", "The first day or time of the period.", "--from", metavar="DAY", asks="time_range")
    until: str = flag("", "The first day or time after the period.", "--to", metavar="DAY", asks="time_range")
    measure: str = flag(
        "",
        "What is counted: distinct_members (the default), events, or the distinct values of a column.",
        metavar="distinct_members|events|distinct:COLUMN",
    )
    no_counts: bool = flag(False, "Return only the order, which is cheaper.", asks="omit_counts")
    sums: list[str] = flag(
        [],
        "Sum members' totals of this value column, too, with --measure events rows; repeatable.",
        "--sum",
        metavar="COLUMN",
        asks="aggregates",
    )
    averages: list[str] = flag(
        [],
        "Average members' totals of this value column, too, with --measure events rows; repeatable.",
        "--avg",
        metavar="COLUMN",
        asks="aggregates",
    )
    numbers: list[str] = flag(
        [],
        "A number in SQL, as behind SELECT, or of some rows: members, rows, sum:COLUMN or avg:COLUMN; repeatable.",
        "--number",
        metavar="SQL|'NUMBER where SQL'",
        asks="aggregates",
    )
    quantiles: list[str] = flag(
        [],
        "Instead of counts: quantiles of this column, such as amount:0.25,0.5,0.75; also min and max.",
        metavar="COLUMN:Q,Q,..",
    )
    order_by: str = flag(
        "",
        "Rank by this sum, average or number, which is asked for, instead of by the count.",
        metavar="sum:COLUMN|avg:COLUMN",
        asks="ordered_by",
    )
    bucket: str = flag(
        "",
        "Count by the day, week, month, quarter or year of the time column, in the order of time.",
        metavar="LENGTH:COLUMN",
        asks="dimensions",
    )
    ranked: bool = flag(False, "Rank a list by functions of time by the count instead.", asks="ranked")
    having: list[str] = flag(
        [],
        "Show only what meets this, such as 'count >= 100' or 'sum:amount < 2500.50'; repeatable.",
        metavar="CONDITION",
    )
    totals: str = flag(
        "",
        "With two columns of --by: totals by this one, too, and what the list leaves of each.",
        metavar="COLUMN",
        asks="totals_by",
    )
    error: str = flag(
        "",
        "How far a count may be off on average by its noise, as 16 or 10%: the lowest price that the policy allows "
        "with which that is expected. What bounds cut of a count is not in it. In SQL, OPTION(max_error=16).",
        metavar="COUNTS|PART%",
        asks="max_error",
    )
    sql: str = flag("", "The question as SQL instead.", metavar="TEXT")
    max_cost: int | None = flag(
        None,
        "Refuse the question, before anything is asked, if it may cost more information units; explain, too.",
        metavar="UNITS",
    )


@dataclass(frozen=True)
class AskFlags(QuestionFlags):
    """What is asked, and what becomes of the answer."""

    plot: Path | None = flag(
        None,
        "Draw the answer, too: bars with their intervals, or a line with a band for a series (.png, .svg).",
        metavar="FILE",
    )
    confidence: float | None = flag(
        None,
        "Of each interval, between 0.5 and 1; without it 0.95. Of a paid answer another one is free.",
        metavar="NUMBER",
    )


@dataclass(frozen=True)
class ConnectionFlags:
    """The account that asks, the services, and the engine with the data."""

    dp: str = flag(DEFAULT_DP, "The address of dp_service.", envvar="GRIS_DP", metavar="ADDRESS")
    budget: BudgetFlag = DEFAULT_BUDGET
    gateway: str = flag(
        "",
        "Ask a gateway, gris://HOST:PORT, instead of the services; it identifies the caller.",
        envvar="GRIS_GATEWAY",
        metavar="URL",
    )
    account: str = flag("", "The account that pays.", envvar="GRIS_ACCOUNT", metavar="A/B", callback=_named)
    audience: str = flag(
        "",
        "As which audience of the policy, where it states some; KEY=VALUE for each value that it leaves open.",
        envvar="GRIS_AUDIENCE",
        metavar="NAME[,KEY=VALUE..]",
    )
    engine: EngineName = flag(EngineName.DUCKDB, "The engine that holds the data.")
    data: list[str] = flag(
        [],
        "A file, folder or pattern for DuckDB (of a pairs copy manifest.json); for Spark a path, or catalog:NAME. "
        "Repeatable.",
        metavar="TABLE=PATH",
    )
    spark: SparkFlag = DEFAULT_SPARK
    pinot_broker: str = flag("", "Pinot's broker.", envvar="PINOT_BROKER", metavar="URL")
    pinot_controller: str = flag("", "Pinot's controller.", envvar="PINOT_CONTROLLER", metavar="URL")
    pinot_authorization_file: Path | None = flag(
        None,
        'Holds the header "Authorization" for Pinot, such as "Basic ..." or "Bearer ...".',
        envvar="PINOT_AUTHORIZATION_FILE",
        metavar="FILE",
    )
    pinot_ca_file: Path | None = flag(
        None, "The authority that signs Pinot's certificates.", envvar="PINOT_CA_FILE", metavar="PEM"
    )
    pinot_certificate_file: Path | None = flag(
        None,
        "The certificate to show to Pinot, with its key.",
        envvar="PINOT_CERTIFICATE_FILE",
        metavar="PEM",
    )
    pinot_server_admin: bool = flag(
        False,
        "Ask each Pinot server, at its admin port, whether it has loaded all new segments.",
        envvar="PINOT_SERVER_ADMIN",
    )
    pinot_server_admin_port: int | None = flag(
        None,
        "That port, for servers with TLS alone, whose port Pinot does not report.",
        envvar="PINOT_SERVER_ADMIN_PORT",
        metavar="PORT",
    )
    pinot_settle_seconds: float = flag(
        DEFAULT_SETTLE_SECONDS,
        "The longest time that a Pinot server takes to load a segment.",
        envvar="PINOT_SETTLE_SECONDS",
        metavar="SECONDS",
    )
    releases: Path = flag(
        DEFAULT_RELEASES,
        "What was paid for is kept here, encrypted, and given again for nothing.",
        envvar="GRIS_RELEASES",
        metavar="FILE",
    )
    releases_key_file: Path | None = flag(
        None,
        "The key of --releases; by default a file .key beside it, made with it.",
        envvar="GRIS_RELEASES_KEY_FILE",
        metavar="FILE",
    )
    embedded: bool = flag(
        False, "Run both services on this machine: on the example data, or with --policy on yours."
    )
    policy: Path | None = flag(
        None, "With --embedded: your policy, instead of that of the examples.", metavar="FILE"
    )
    budget_config: Path | None = flag(
        None, "With --embedded: your budgets, instead of those of the examples.", metavar="FILE"
    )
    directory: Path = flag(DEFAULT_DIRECTORY, "Where --embedded keeps noise key, ledger and logs.")
    examples: Path | None = flag(None, "The directory of the examples.")

    def require_used(self, context: typer.Context, names: Collection[str]) -> None:
        """Refuse flags of the command line that the others leave without a meaning: none is ignored in silence.

        Args:
            context: The command's; it knows which flags were typed. What the environment says is not refused, for it is
                there for other commands too.
            names: The flags that the command has.

        Raises:
            typer.BadParameter: It names the flag, and the one that it does not go with.
        """
        for unused, without in self._unused(names):
            for name in (each for each in unused if each in names):
                # By its name: typer brings a click of its own, or takes the one that is installed.
                source = context.get_parameter_source(name)
                if source is not None and source.name == "COMMANDLINE":
                    raise typer.BadParameter(f"--{name.replace('_', '-')} has no meaning {without}")

    def _unused(self, names: Collection[str]) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield flags that have no meaning, and the reason."""
        if self.gateway:
            services = (*_OF_SERVICES, *OF_EMBEDDED, "audience", "engine", *_OF_FILES, *_OF_SPARK, *_OF_PINOT)
            yield services, "with --gateway or GRIS_GATEWAY: a gateway has its own services and data"
            return
        if self.embedded:
            yield _OF_SERVICES, "with --embedded, which runs services of its own"
        elif "embedded" in names:
            yield OF_EMBEDDED, "without --embedded: services that run already have their own"
        if "engine" not in names:
            return
        if self.engine is not EngineName.PINOT:
            yield _OF_PINOT, f"with --engine {self.engine.value}; it is of --engine pinot"
        if self.engine is not EngineName.SPARK:
            yield _OF_SPARK, f"with --engine {self.engine.value}; it is of --engine spark"
        if self.engine is EngineName.PINOT:
            yield _OF_FILES, "with --engine pinot, which has the tables itself"


# Parts of `ConnectionFlags`, for commands that have only some of them.
OF_EMBEDDED = ("policy", "budget_config", "directory", "examples")
OF_CATALOG = ("dp", "gateway", "audience", "embedded", *OF_EMBEDDED)
OF_GUARANTEE = ("budget", "account", *OF_CATALOG)
OF_REMAINING = ("budget", "gateway", "account", "embedded", *OF_EMBEDDED)
OF_ENGINE = (
    *("engine", "spark", "pinot_broker", "pinot_controller"),
    *("pinot_server_admin", "pinot_server_admin_port", "pinot_settle_seconds"),
)
OF_PINOT_FILES = ("pinot_authorization_file", "pinot_ca_file", "pinot_certificate_file")
_OF_SERVICES = ("dp", "budget", "releases", "releases_key_file")
_OF_FILES = ("data",)
_OF_SPARK = ("spark",)
_OF_PINOT = tuple(each.name for each in fields(ConnectionFlags) if each.name.startswith("pinot_"))
