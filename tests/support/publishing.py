"""Data and a policy of which a command publishes something, and policies that name what was published."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import duckdb

from dp_service.queries.published import DomainFile
from dp_service.queries.published_files import integrity_of, written
from dp_service.terms import ColumnType
from gris_cli.__main__ import main

HEADER = "epsilon_per: 0.15\ndelta: 1e-10\n"


def write_data(folder: Path, table: str, rows: str, policy: str) -> Path:
    """Write what a query selects as the data of a table, and a policy beside it; return the folder."""
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({rows}) TO '{folder / f'{table}.parquet'}'")
    (folder / "policy.yaml").write_text(policy)
    return folder


def publish(command: str, folder: Path, table: str, column: str, *more: str, out: str) -> int:
    """Run `gris domain publish` on such a folder, into a file there."""
    data = ["--data", folder / f"{table}.parquet", "--table", table, "--column", column]
    files = ["--policy", folder / "policy.yaml", "--out", folder / out, "--data-version", "v1"]
    return main([command, "publish", *map(str, (*data, *files)), *more])


def domain_file(column: str, rho: str, delta: str, *, table: str = "t", refresh: int = 1) -> DomainFile:
    """Return the domain of a column as it was published for a price; each refresh is a publication of its own."""
    return DomainFile(
        table=table,
        column=column,
        type=ColumnType.STRING,
        data_version=f"v{refresh}",
        method="sips",
        rho=Fraction(rho),
        delta=Fraction(delta),
        typical=100,
        iterations=3,
        epsilon=1.0,
        dp_delta=2e-9,
        published_at="2026-01-01T00:00:00+00:00",
        elements=("a", "b", "c"),
    )


def policy_of(folder: Path, *domains: DomainFile, header: str = HEADER) -> Path:
    """Write a policy that names each domain for its column, beside the files, and return its path."""
    by_table: dict[str, list[DomainFile]] = {}
    for domain in domains:
        by_table.setdefault(domain.table, []).append(domain)
    lines = [header + "tables:"]
    for table, published in by_table.items():
        lines += [f"  {table}:", "    member: m", "    measures: {distinct_members: true}", "    columns:"]
        lines += [f"      {domain.column}: {_column(folder, domain)}" for domain in published]
    path = folder / "policy.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path


def publication_text(domain: DomainFile) -> str:
    """Return what a policy statement says of a domain."""
    return f"{integrity_of(written(domain))[7:23]}:{domain.rho}:{domain.delta}"


def _column(folder: Path, domain: DomainFile) -> str:
    content = written(domain)
    name = f"{domain.table}.{domain.column}.{domain.data_version}.json"
    (folder / name).write_bytes(content)
    named = f"{{published: {name}, integrity: '{integrity_of(content)}'}}"
    return f"{{type: string, group_by: true, filter: [in], domain: {named}}}"
