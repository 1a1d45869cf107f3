"""Asks the questions of a file by psql; prints a line of JSON for each step. Parameters are psql's own variables."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def main(psql: str, file: str) -> None:
    """Ask everything."""
    asked = json.loads(Path(file).read_text())

    def step(name: str, sql: str, who: str = "", *, place: int | None = None, **variables: str) -> None:
        named = [f"--set={key}={value}" for key, value in variables.items()]
        command = [psql, "--no-psqlrc", "--csv", "--tuples-only", *named, asked[f"{who}postgres_dsn"]]
        run = subprocess.run(command, input=sql, capture_output=True, text=True, check=False)
        rows = [[_plain(each) for each in row] for row in csv.reader(io.StringIO(run.stdout))]
        said = {"rows": rows if place is None else [[row[place]] for row in rows]}
        # An error has ERROR in it, where notices have NOTICE.
        print(
            json.dumps({"step": name} | ({"error": run.stderr} if "ERROR" in run.stderr else said)),
            flush=True,
        )

    step("connect", "SELECT 1")
    step("tables", r"\dt", place=1)
    step("columns", rf"\d {asked['table']}", place=0)
    for name in ("top", "series", "sum", "refused"):
        step(name, asked[name])
    step("exhausted", asked["top"], "poor_")
    step("again", asked["top"])
    value = asked["value"]
    step("parameter", asked["prepared"].replace("?", ":'value'"), value=value)
    step("list", asked["listed"].replace("?", "ARRAY[:'value']"), value=value)
    days = asked["between"].replace("?", ":'first'::timestamptz", 1).replace("?", ":'end'::date")
    step("days", days, first="2025-01-01 00:00:00+00", end="2026-01-01")


def _plain(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


if __name__ == "__main__":
    main(*sys.argv[1:])
