"""`gris domain publish`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from gris_cli.domain.flags import (
    ITERATIONS,
    TYPICAL,
    MemberFlag,
    RowsFlags,
    TypicalFlag,
    delta_flag,
    method_of,
)
from gris_cli.flag_groups import flag, required, with_flags
from gris_cli.flags import DEFAULT_SPARK, SparkFlag
from gris_cli.inputs import named_errors, number
from gris_cli.publishing_flags import DataVersionFlag, PriceFlags, TableFlag

if TYPE_CHECKING:
    from dp_service.partitions import Parameters
    from gris_cli.data.domain.publishing import Found, Publication

RHO = Fraction(1, 10)
DELTA = Fraction(1, 10**9)


class PublishingEngine(StrEnum):
    """Where the computation runs: on this machine, or on Spark."""

    DUCKDB = "duckdb"
    SPARK = "spark"


@dataclass(frozen=True)
class EngineFlags:
    """Where the computation runs."""

    engine: PublishingEngine = flag(PublishingEngine.DUCKDB, "Where the computation runs.")
    spark: SparkFlag = DEFAULT_SPARK

    @property
    def is_spark(self) -> bool:
        """Whether Spark reads the data."""
        return self.engine is PublishingEngine.SPARK

    def discovery(self) -> Callable[[Publication], Found]:
        """Return the function that finds elements."""
        if self.is_spark:
            from gris_cli.data.domain.on_spark import found_on_spark

            return partial(found_on_spark, url=self.spark)
        from gris_cli.data.domain.publishing import found_on_this_machine

        return found_on_this_machine


@dataclass(frozen=True)
class MethodFlags:
    """How elements are found, and for which guarantee."""

    method: str = flag("sips", "gaussian, sips, dpsu, gw, mad or mad2r.")
    rho: Annotated[Fraction, number("The price in zCDP.", default="0.1")] = RHO
    delta: Annotated[Fraction, delta_flag("1e-9")] = DELTA
    typical: TypicalFlag = TYPICAL
    iterations: int = flag(ITERATIONS, "The number of rounds of sips.")

    def parameters(self) -> Parameters:
        """Return the parameters of the method."""
        from dp_service.partitions import Parameters

        return Parameters(method_of(self.method), self.rho, self.delta, self.typical, self.iterations)


@with_flags
def publish(
    *,
    data: str = required(
        "Parquet, CSV, or a DuckDB database; on Spark Parquet or catalog:NAME.", metavar="FILE"
    ),
    table: TableFlag,
    column: str = required("The column whose elements are to be named."),
    member: MemberFlag,
    data_version: DataVersionFlag,
    policy: Path = required("The policy, for its currency.", metavar="FILE"),
    out: Path = required("The domain file to write.", metavar="FILE", dir_okay=False),
    price: PriceFlags,
    engine: EngineFlags,
    rows: RowsFlags,
    method: MethodFlags,
    as_json: bool,
) -> None:
    """Publish the elements of a column that are safe to name, and record the price for everyone who sees them."""
    from gris_cli.data.domain.canonical_pairs import Source
    from gris_cli.data.domain.publishing import Publication
    from gris_cli.data.domain.publishing_flow import Request, published
    from gris_cli.domain.reports import print_domain

    payer = price.payer()
    path = data if engine.is_spark else Path(data)
    source = Source(path, member, column, table=rows.source_table, drops_nulls=rows.drop_nulls)
    with named_errors():
        publication = Publication(table, column, data_version, source, method.parameters())
    made = published(Request(publication, engine.discovery(), policy, out, payer))
    print_domain(made.domain, made.price, made.integrity, as_json=as_json)
