"""The flags that several commands share, each declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

DEFAULT_DIRECTORY = Path(".gris")

DpFlag = Annotated[str, typer.Option(envvar="GRIS_DP", metavar="ADDRESS", help="The address of dp_service.")]
BudgetFlag = Annotated[
    str, typer.Option(envvar="GRIS_BUDGET", metavar="ADDRESS", help="The address of budget_service.")
]


def _named(context: typer.Context, parameter: typer.CallbackParam, account: str) -> str:
    """Refuse an empty account that was given: a script's unset variable must not let another account pay."""
    source = context.get_parameter_source(parameter.name or "")
    if not account and source is not None and source.name == "COMMANDLINE":
        raise typer.BadParameter("--account: expected an account such as acme/ana, got an empty text")
    return account


AccountFlag = Annotated[
    str,
    typer.Option(envvar="GRIS_ACCOUNT", metavar="A/B", help="The account that pays.", callback=_named),
]
SparkFlag = Annotated[
    str,
    typer.Option(
        envvar="GRIS_SPARK", metavar="URL", help="Spark: local[4], spark://.., yarn, or sc://.. for Connect."
    ),
]
DEFAULT_SPARK = "local[*]"
GatewayFlag = Annotated[
    str,
    typer.Option(
        envvar="GRIS_GATEWAY",
        metavar="URL",
        help="Ask a gateway, gris://HOST:PORT, instead of the services; it identifies the caller.",
    ),
]
DEFAULT_DP = "localhost:50051"
DEFAULT_BUDGET = "localhost:50052"
PinotAuthorizationFlag = Annotated[
    Path | None,
    typer.Option(
        envvar="PINOT_AUTHORIZATION_FILE",
        metavar="FILE",
        help='Holds the header "Authorization" for Pinot, such as "Basic ..." or "Bearer ...".',
    ),
]
PinotCaFlag = Annotated[
    Path | None,
    typer.Option(
        envvar="PINOT_CA_FILE", metavar="PEM", help="The authority that signs Pinot's certificates."
    ),
]
PinotCertificateFlag = Annotated[
    Path | None,
    typer.Option(
        envvar="PINOT_CERTIFICATE_FILE",
        metavar="PEM",
        help="The certificate to show to Pinot, with its key.",
    ),
]
PinotServerAdminFlag = Annotated[
    bool,
    typer.Option(
        "--pinot-server-admin",
        envvar="PINOT_SERVER_ADMIN",
        help="Ask each Pinot server, at its admin port, whether it has loaded all new segments.",
    ),
]
PinotServerAdminPortFlag = Annotated[
    int | None,
    typer.Option(
        envvar="PINOT_SERVER_ADMIN_PORT",
        metavar="PORT",
        help="That port, for servers with TLS alone, whose port Pinot does not report.",
    ),
]
PinotSettleSecondsFlag = Annotated[
    float,
    typer.Option(
        envvar="PINOT_SETTLE_SECONDS",
        metavar="SECONDS",
        help="The longest time that a Pinot server takes to load a segment.",
    ),
]
DEFAULT_SETTLE_SECONDS = 60.0
ReleasesFlag = Annotated[
    Path,
    typer.Option(
        envvar="GRIS_RELEASES",
        metavar="FILE",
        help="What was paid for is kept here, encrypted, and given again for nothing.",
    ),
]
# As `embedded` names it below its directory, so that both give the same releases.
DEFAULT_RELEASES = DEFAULT_DIRECTORY / "releases.sqlite"
ReleasesKeyFlag = Annotated[
    Path | None,
    typer.Option(
        envvar="GRIS_RELEASES_KEY_FILE",
        metavar="FILE",
        help="The key of --releases; by default a file .key beside it, made with it.",
    ),
]
EmbeddedFlag = Annotated[
    bool,
    typer.Option(
        "--embedded",
        help="Run both services on this machine: on the example data, or with --policy on yours.",
    ),
]
OwnPolicyFlag = Annotated[
    Path | None,
    typer.Option(
        "--policy", metavar="FILE", help="With --embedded: your policy, instead of that of the examples."
    ),
]
OwnBudgetsFlag = Annotated[
    Path | None,
    typer.Option(
        "--budget-config",
        metavar="FILE",
        help="With --embedded: your budgets, instead of those of the examples.",
    ),
]
DirectoryFlag = Annotated[Path, typer.Option(help="Where --embedded keeps noise key, ledger and logs.")]
ExamplesFlag = Annotated[Path | None, typer.Option(help="The directory of the examples.")]
JsonFlag = Annotated[bool, typer.Option("--json", help="Print only JSON on standard output, errors too.")]


class MeasureName(StrEnum):
    """What is counted."""

    DISTINCT_MEMBERS = "distinct_members"
    EVENTS = "events"


class EngineName(StrEnum):
    """Where the data are."""

    DUCKDB = "duckdb"
    PINOT = "pinot"
    SPARK = "spark"


@dataclass(frozen=True)
class QuestionFlags:
    """A question: structured, or as SQL."""

    table: Annotated[str, typer.Option(help="A table of the policy.")] = ""
    by: Annotated[
        list[str], typer.Option(help="Group by this column; repeatable. Without it: one total.")
    ] = field(default_factory=list)
    k: Annotated[int | None, typer.Option(help="How many elements; by default all that may be shown.")] = None
    where: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN=VALUE",
            help="A condition, repeatable: value in JSON, a list for any of several; != for none of them.",
        ),
    ] = field(default_factory=list)
    since: Annotated[
        str, typer.Option("--from", metavar="DAY", help="The first day or time of the period.")
    ] = ""
    until: Annotated[
        str, typer.Option("--to", metavar="DAY", help="The first day or time after the period.")
    ] = ""
    measure: Annotated[
        MeasureName | None, typer.Option(help="What is counted; by default distinct_members.")
    ] = None
    no_counts: Annotated[
        bool, typer.Option("--no-counts", help="Return only the order, which is cheaper.")
    ] = False
    sums: Annotated[
        list[str],
        typer.Option(
            "--sum",
            metavar="COLUMN",
            help="Sum members' totals of this value column, too, with --measure events rows; repeatable.",
        ),
    ] = field(default_factory=list)
    averages: Annotated[
        list[str],
        typer.Option(
            "--avg",
            metavar="COLUMN",
            help="Average members' totals of this value column, too, with --measure events rows; repeatable.",
        ),
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
    ] = ""
    bucket: Annotated[
        str,
        typer.Option(
            metavar="LENGTH:COLUMN",
            help="Count by the day, week, month, quarter or year of the time column, in the order of time.",
        ),
    ] = ""
    ranked: Annotated[bool, typer.Option("--ranked", help="With --bucket: rank by the count instead.")] = (
        False
    )
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
    ] = ""
    sql: Annotated[str, typer.Option(metavar="TEXT", help="The question as SQL instead.")] = ""
    sharpen: Annotated[
        list[int],
        typer.Option(
            metavar="UNITS",
            help="Count the elements of this question's paid release again with so many units, and combine the counts; "
            "repeated for each sharpening after the first.",
        ),
    ] = field(default_factory=list)
    planned: Annotated[
        bool,
        typer.Option(
            "--planned",
            help="All units of --sharpen were decided on before any count was seen: intervals of the combined counts.",
        ),
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

    dp: DpFlag = DEFAULT_DP
    budget: BudgetFlag = DEFAULT_BUDGET
    gateway: GatewayFlag = ""
    account: AccountFlag = ""
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
    pinot_authorization_file: PinotAuthorizationFlag = None
    pinot_ca_file: PinotCaFlag = None
    pinot_certificate_file: PinotCertificateFlag = None
    pinot_server_admin: PinotServerAdminFlag = False
    pinot_server_admin_port: PinotServerAdminPortFlag = None
    pinot_settle_seconds: PinotSettleSecondsFlag = DEFAULT_SETTLE_SECONDS
    releases: ReleasesFlag = DEFAULT_RELEASES
    releases_key_file: ReleasesKeyFlag = None
    embedded: EmbeddedFlag = False
    policy: OwnPolicyFlag = None
    budget_config: OwnBudgetsFlag = None
    directory: DirectoryFlag = DEFAULT_DIRECTORY
    examples: ExamplesFlag = None


def with_flags(command: Callable[[QuestionFlags, ConnectionFlags, bool], None]) -> Callable[..., None]:
    """Turn a command on flag groups into one that typer can read: one parameter for each flag, and `--json`."""
    return _with_question(command, QuestionFlags)


def with_ask_flags(command: Callable[[AskFlags, ConnectionFlags, bool], None]) -> Callable[..., None]:
    """Turn the command that asks into one that typer can read, as `with_flags` does."""
    return _with_question(command, AskFlags)


def _with_question(
    command: Callable[[Any, ConnectionFlags, bool], None], kind: type[Any]
) -> Callable[..., None]:
    def flat(context: typer.Context, **values: Any) -> None:
        connection = _group(ConnectionFlags, values)
        require_used(context, connection)
        command(_group(kind, values), connection, values["as_json"])

    return _flattened(flat, command.__doc__, [*_parameters(kind), *_parameters(ConnectionFlags)])


def with_connection_flags(command: Callable[[ConnectionFlags, bool], None]) -> Callable[..., None]:
    """Turn a command on the flags of a connection into one that typer can read, as `with_flags` does."""

    def flat(context: typer.Context, **values: Any) -> None:
        connection = _group(ConnectionFlags, values)
        require_used(context, connection)
        command(connection, values["as_json"])

    return _flattened(flat, command.__doc__, _parameters(ConnectionFlags))


def _flattened(
    flat: Callable[..., None], doc: str | None, flags: list[inspect.Parameter]
) -> Callable[..., None]:
    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    parameters = [context, *flags, _parameter("as_json", JsonFlag, default=False)]
    flat.__doc__ = doc
    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return flat


_OF_SERVICES = ("dp", "budget", "releases", "releases_key_file")
_OF_EMBEDDED = ("policy", "budget_config", "directory", "examples")
_OF_FILES = ("data",)
_OF_SPARK = ("spark",)
_OF_PINOT = tuple(each.name for each in fields(ConnectionFlags) if each.name.startswith("pinot_"))


def require_used(context: typer.Context, flags: ConnectionFlags) -> None:
    """Refuse flags of the command line that the others leave without a meaning: none is ignored in silence.

    Args:
        context: The command's; it knows which flags were typed. What the environment says is not refused, for it is
            there for other commands too.
        flags: Their values.

    Raises:
        typer.BadParameter: It names the flag, and the one that it does not go with.
    """
    for names, without in _unused(flags):
        for name in names:
            # By its name: typer brings a click of its own, or takes the one that is installed.
            source = context.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                raise typer.BadParameter(f"--{name.replace('_', '-')} has no meaning {without}")


def _unused(flags: ConnectionFlags) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield flags that have no meaning, and the reason."""
    if flags.gateway:
        services = (*_OF_SERVICES, *_OF_EMBEDDED, "engine", *_OF_FILES, *_OF_SPARK, *_OF_PINOT)
        yield services, "with --gateway or GRIS_GATEWAY: a gateway has its own services and data"
        return
    if flags.embedded:
        yield _OF_SERVICES, "with --embedded, which runs services of its own"
    else:
        yield _OF_EMBEDDED, "without --embedded: services that run already have their own"
    if flags.engine is not EngineName.PINOT:
        yield _OF_PINOT, f"with --engine {flags.engine.value}; it is of --engine pinot"
    if flags.engine is not EngineName.SPARK:
        yield _OF_SPARK, f"with --engine {flags.engine.value}; it is of --engine spark"
    if flags.engine is EngineName.PINOT:
        yield _OF_FILES, "with --engine pinot, which has the tables itself"


def _group(kind: type[Any], values: dict[str, Any]) -> Any:
    return kind(**{each.name: values[each.name] for each in fields(kind)})


def _parameters(kind: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        _parameter(each.name, hints[each.name], default=getattr(kind, each.name, [])) for each in fields(kind)
    ]


def _parameter(name: str, annotation: Any, *, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
