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
    str,
    typer.Option(
        envvar="GRIS_BUDGET",
        metavar="ADDRESS",
        show_envvar=False,
        help="That of budget_service ($GRIS_BUDGET).",
    ),
]
SparkFlag = Annotated[
    str,
    typer.Option(
        envvar="GRIS_SPARK",
        metavar="URL",
        show_envvar=False,
        help="Spark, such as local[4] or sc://.. ($GRIS_SPARK).",
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
        "Group by it; repeatable.",
    )
    count: str = flag(
        "",
        "distinct_members, events or distinct:COLUMN.",
        metavar="WHAT",
    )
    where: list[str] = flag(
        [],
        "A condition in SQL; repeatable.",
        metavar="TEXT",
    )
    k: int | None = flag(None, "How many elements; by default all.")
    since: str = flag("", "The first day or time of the period.", "--from", metavar="DAY")
    until: str = flag("", "The first day or time after the period.", "--to", metavar="DAY")
    sql: str = flag("", "The question as SQL instead.", metavar="TEXT")
    max_cost: int | None = flag(
        None,
        "Refuse a question that may cost more.",
        metavar="UNITS",
    )


@dataclass(frozen=True)
class AskFlags(QuestionFlags):
    """What is asked, how sure its intervals are, and how much is said."""

    confidence: float | None = flag(
        None,
        "Of each interval; by default 0.95.",
        metavar="NUMBER",
    )
    verbose: bool = flag(False, "Say how the numbers were made, too.")


@dataclass(frozen=True)
class ConnectionFlags:
    """The account that asks, the services, and the engine with the data."""

    dp: str = flag(DEFAULT_DP, "The address of dp_service.", envvar="GRIS_DP", metavar="ADDRESS")
    budget: BudgetFlag = DEFAULT_BUDGET
    gateway: str = flag(
        "",
        "gris://HOST:PORT.",
        envvar="GRIS_GATEWAY",
        metavar="URL",
    )
    account: str = flag("", "The account that pays.", envvar="GRIS_ACCOUNT", metavar="A/B", callback=_named)
    audience: str = flag(
        "",
        "NAME[,KEY=VALUE..].",
        envvar="GRIS_AUDIENCE",
        metavar="NAME",
    )
    engine: EngineName = flag(EngineName.DUCKDB, "duckdb, pinot or spark.", metavar="NAME")
    data: list[str] = flag(
        [],
        "A file, folder or pattern; repeatable.",
        metavar="TABLE=PATH",
    )
    spark: SparkFlag = DEFAULT_SPARK
    pinot_broker: str = flag("", "Pinot's broker.", envvar="PINOT_BROKER", metavar="URL")
    pinot_controller: str = flag("", "Pinot's controller.", envvar="PINOT_CONTROLLER", metavar="URL")
    pinot_authorization_file: Path | None = flag(
        None,
        'Holds the header "Authorization" for Pinot.',
        envvar="PINOT_AUTHORIZATION_FILE",
        metavar="FILE",
    )
    pinot_ca_file: Path | None = flag(
        None, "Authority of Pinot's certificates.", envvar="PINOT_CA_FILE", metavar="PEM"
    )
    pinot_certificate_file: Path | None = flag(
        None,
        "The certificate for Pinot, with its key.",
        envvar="PINOT_CERTIFICATE_FILE",
        metavar="PEM",
    )
    pinot_server_admin: bool = flag(
        False,
        "Ask Pinot's servers whether they have loaded all segments.",
        envvar="PINOT_SERVER_ADMIN",
    )
    pinot_server_admin_port: int | None = flag(
        None,
        "Their admin port, where they have TLS alone.",
        envvar="PINOT_SERVER_ADMIN_PORT",
        metavar="PORT",
    )
    pinot_settle_seconds: float = flag(
        DEFAULT_SETTLE_SECONDS,
        "To load a segment.",
        envvar="PINOT_SETTLE_SECONDS",
        metavar="SECONDS",
    )
    releases: Path = flag(
        DEFAULT_RELEASES,
        "Keeps what was paid for.",
        envvar="GRIS_RELEASES",
        metavar="FILE",
    )
    releases_key_file: Path | None = flag(
        None,
        "Its key; by default a file beside it.",
        envvar="GRIS_RELEASES_KEY_FILE",
        metavar="FILE",
    )
    embedded: bool = flag(False, "Run both services here.")
    policy: Path | None = flag(None, "With --embedded: your policy.", metavar="FILE")
    budget_config: Path | None = flag(None, "With --embedded: your budgets.", metavar="FILE")
    directory: Path = flag(DEFAULT_DIRECTORY, "With --embedded: its files.")
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
