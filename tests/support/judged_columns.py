"""The columns and tables of the drafts' judged.yaml, filled as it says, and what was judged of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import yaml

from tests.support.paths import ROOT

FILE = ROOT / "tests" / "unit" / "gris_cli" / "policy" / "drafts" / "judged.yaml"
_MACROS = """
CREATE MACRO uniform(i, salt) AS (hash(i * 2654435761 + salt) % 1000003) / 1000003.0;
CREATE MACRO zipf(u, n) AS least(floor(pow(n + 1.0, u) - 1.0), n - 1)::BIGINT;
CREATE MACRO uuid_of(text) AS regexp_replace(md5(text), '(.{8})(.{4})(.{4})(.{4})(.{12})', '\\1-\\2-\\3-\\4-\\5');
CREATE MACRO syllables(n) AS
    ['Ba', 'Co', 'De', 'Fa', 'Gi', 'Ho', 'Ja', 'Ki', 'Lo', 'Mu'][1 + n % 10]
    || ['ren', 'lan', 'dis', 'mor', 'tek', 'nau', 'vin', 'sol', 'ber', 'gust'][1 + n // 10 % 10]
    || ['', 'a', 'o', 'son', 'ez', 'ski', 'ini', 'er'][1 + n // 100 % 8];
CREATE MACRO first_name(n) AS syllables(n::BIGINT);
CREATE MACRO last_name(n) AS syllables(n::BIGINT + 400);
CREATE MACRO sentence(i, n) AS
    array_to_string(list_transform(range(n), lambda w: lower(syllables((hash(i * 1000 + w) % 800)::BIGINT))), ' ');
"""


@dataclass(frozen=True)
class JudgedTable:
    """A table in a file.

    Attributes:
        path: The file.
        member: The column of its members.
        judged: What every other column was judged to be.
    """

    path: Path
    member: str
    judged: dict[str, str]


def usual_names(folder: Path) -> JudgedTable:
    """Write a table that has all 126 names."""
    found = _read()
    columns = {
        name: (content, judged) for judged, of in found["columns"].items() for name, content in of.items()
    }
    return _written(folder / "usual.parquet", {"member_id": "the member's number"}, columns, 30000, 3000)


def table(folder: Path, name: str) -> JudgedTable:
    """Write one of the ten tables."""
    found = _read()["tables"][name]
    columns = {each["name"]: (each["content"], each["judged"]) for each in found["columns"]}
    return _written(folder / f"{name}.parquet", found["member"], columns, found["rows"], found["members"])


def tables() -> list[str]:
    """Return the names of the ten tables."""
    return list(_read()["tables"])


def _read() -> Any:
    return yaml.safe_load(FILE.read_text())


def _written(
    path: Path, member: Mapping[str, str], columns: Mapping[str, tuple[str, str]], rows: int, members: int
) -> JudgedTable:
    contents = _read()["contents"]
    ((member_name, held),) = member.items()
    selected = [f"{contents[held]} AS {member_name}"]
    for place, (name, (content, _)) in enumerate(columns.items()):
        # Each column has draws of its own.
        source = f"({contents[content]})"
        for number in (1, 2, 3):
            source = source.replace(f"u{number}", f"uniform(i, {97 * place + number})")
        selected.append(f'{source} AS "{name}"')
    with duckdb.connect() as connection:
        connection.execute(_MACROS)
        connection.execute(
            f"COPY (SELECT {', '.join(selected)} FROM (SELECT i, "  # noqa: S608
            f"floor(pow(uniform(i, 1001), 1.6) * {members})::BIGINT AS m, "
            f"floor(pow(uniform(i, 1002), 1.6) * {members})::BIGINT AS other FROM range({rows}) AS given(i))) "
            f"TO '{path}' (FORMAT parquet)"
        )
    return JudgedTable(path, member_name, {name: judged for name, (_, judged) in columns.items()})
