"""A policy beside the data that it is about: in files, on a Spark, or in a Pinot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dp_service.queries.policy import Policy
from dp_service.queries.tables import Table
from gris_cli.clients import data_files
from gris_cli.data.engines import PinotAccess, PinotLoading, pinot_engine, spark_engine
from gris_cli.data.policy.promises import Promise, PromiseReport, counted, require_columns
from gris_cli.examples import locations_of
from gris_cli.flags import DEFAULT_SETTLE_SECONDS
from gris_cli.inputs import named_by
from gris_cli.policy.flags import DataFlags
from pinot_connector.errors import EngineRefused

if TYPE_CHECKING:
    from gris_cli.data.policy.data import DataReport


@dataclass(frozen=True)
class Compared:
    """What was counted in files and by engines, and the tables whose columns were compared with the policy."""

    files: tuple[DataReport, ...] = ()
    engines: tuple[PromiseReport, ...] = ()
    tables: frozenset[str] = frozenset()

    @property
    def promises(self) -> Iterator[Promise]:
        """What the policy promises of the data that were read."""
        yield from (promise for report in self.files for promise in report.promises)
        yield from (promise for report in self.engines for promise in report.promises)


def compared_with(policy: Policy, flags: DataFlags, access: PinotAccess) -> Compared:
    """Compare a policy with the data that flags name.

    Raises:
        typer.BadParameter: Flags that do not belong together, or columns that are not as the policy says.
        GrisError: An engine is not available, or refuses.
    """
    if flags.pinot_broker and not flags.pinot:
        raise typer.BadParameter("--pinot-broker needs --pinot, the controller of the same cluster")
    engines: list[PromiseReport] = []
    if flags.pinot:
        _require_schemas(policy, flags.pinot, access)
    if flags.pinot_broker:
        engines += _counted_on_pinot(policy, flags, access)
    named = _named_tables(policy, flags.data)
    if flags.spark:
        engines += _counted_on_spark(policy, flags.spark, named)
    files = () if flags.spark else _examined(policy, named)
    engines += _together(policy, named) if named and policy.currency.blocks and not flags.spark else []
    tables = frozenset(table.name for table in policy.tables if flags.pinot) | named.keys()
    return Compared(tuple(files), tuple(engines), tables)


def _require_schemas(policy: Policy, controller: str, access: PinotAccess) -> None:
    """Refuse a policy that says of Pinot's tables what their schemas do not."""
    from gris_cli.data.policy.on_pinot import faults_of_schemas

    with named_by("--pinot"):
        faults = list(faults_of_schemas(policy, controller, access))
    if faults:
        raise typer.BadParameter(f"--pinot: {'; '.join(faults)}")


def _counted_on_pinot(policy: Policy, flags: DataFlags, access: PinotAccess) -> list[PromiseReport]:
    """Return whether the rows of Pinot's tables keep the policy's promises."""
    loading = PinotLoading(DEFAULT_SETTLE_SECONDS)
    with closing(pinot_engine(flags.pinot_broker, flags.pinot, loading, access)) as engine:
        return [counted(engine, table, policy.currency) for table in policy.tables]


def _counted_on_spark(policy: Policy, url: str, named: dict[str, str]) -> list[PromiseReport]:
    """Return whether the rows that a Spark reads keep the policy's promises; refuse columns that they lack."""
    if not named:
        raise typer.BadParameter("--spark needs --data TABLE=PATH or TABLE=catalog:NAME")
    tables = [_table(policy, name) for name in named]
    with closing(spark_engine(url, named)) as engine:
        for table in tables:
            try:
                require_columns(engine, table)
            except EngineRefused as error:
                raise typer.BadParameter(f"--data {table.name}: {error}") from None
        return [counted(engine, table, policy.currency) for table in tables]


def _examined(policy: Policy, named: dict[str, str]) -> Iterator[DataReport]:
    if not named:
        return
    from gris_cli.data.policy.data import examined

    for name, path in data_files(named).items():
        with named_by(f"--data {name}"):
            yield examined(_table(policy, name), path, policy.currency.blocks)


def _together(policy: Policy, named: dict[str, str]) -> list[PromiseReport]:
    """Return whether members are of one block in all files together, where several say it."""
    from gris_cli.data.policy.blocks import kept_together

    found = kept_together(policy, data_files(named))
    return [] if found is None else [PromiseReport("all tables", (found,))]


def _table(policy: Policy, name: str) -> Table:
    return next(table for table in policy.tables if table.name == name)


def _named_tables(policy: Policy, data: list[str]) -> dict[str, str]:
    """Return the locations of the tables that --data names."""
    tables = [table.name for table in policy.tables]
    # A path may hold an equals sign itself.
    return locations_of(
        text if text.partition("=")[0] in tables else _with_table(text, tables) for text in data
    )


def _with_table(text: str, tables: list[str]) -> str:
    """Return `TABLE=PATH` for a location alone, which is enough where a policy has one table."""
    if len(tables) == 1 and (":" in text or Path(text).exists()):
        return f"{tables[0]}={text}"
    alone = " or a path alone that exists," if len(tables) == 1 else ""
    raise typer.BadParameter(
        f"--data expects TABLE=PATH with a table of the policy ({', '.join(tables)}),{alone} got {text}"
    )
