"""Makes a table of synthetic engagement: members read articles, as in the use case that Gris was built for.

    python -m examples.generate --events 1000000 --seed 7 --output engagement.parquet

Popularity of articles follows a Zipf law, activity of members is uneven, and each member has one job title and one
region. The same numbers give the same bytes with the same releases of numpy and DuckDB. A run that was interrupted
goes on where it stopped: parts of a million events are kept next to the output until it is whole. All members are
synthetic.
"""

import argparse
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray
from rich.progress import track

EVENTS_PER_PART = 1_000_000
MAX_EVENTS = 100_000_000
DAYS = 90
FIRST_DAY = "2026-01-01"
TITLES = (
    "accountant", "analyst", "architect", "chemist", "consultant", "data scientist", "designer", "developer advocate",
    "director", "editor", "electrician", "engineer", "founder", "lawyer", "librarian", "manager", "marketer", "nurse",
    "physician", "pilot", "product manager", "professor", "recruiter", "researcher", "salesperson", "software engineer",
    "student", "teacher", "translator", "writer",
)  # fmt: skip
REGIONS = (
    "AU",
    "BR",
    "CA",
    "CN",
    "DE",
    "ES",
    "FR",
    "GB",
    "IN",
    "IT",
    "JP",
    "MX",
    "NL",
    "PL",
    "SE",
    "US",
    "ZA",
)

_MEMBERS_STREAM = 2**32


@dataclass(frozen=True)
class Engagement:
    """What a table is made of: `zipf` is the exponent of the articles' popularity, and a part has `part` events."""

    events: int
    members: int
    articles: int
    zipf: float
    seed: int
    part: int = EVENTS_PER_PART

    def __post_init__(self) -> None:
        for name, most in (("events", MAX_EVENTS), ("members", 2**31), ("articles", 2**31)):
            if not 1 <= getattr(self, name) <= most:
                raise ValueError(f"{name} must be from 1 to {most}, got {getattr(self, name)}")
        if not 0 < self.zipf <= 10:
            raise ValueError(f"zipf must be above 0 and at most 10, got {self.zipf}")
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"seed must be from 0 to 2^63 - 1, got {self.seed}")

    @property
    def parts(self) -> range:
        """The numbers of the parts."""
        return range(-(-self.events // self.part))

    def events_in(self, part: int) -> int:
        """Return how many events a part has."""
        return min(self.part, self.events - part * self.part)


class AnotherTableError(Exception):
    """Next to the output are the parts of another table than was asked for."""


def generate(engagement: Engagement, output: Path) -> None:
    """Write the table to a Parquet file: member_id, article_id, job_title, region, day.

    Raises AnotherTableError, and leaves everything as it is, if an interrupted run of other numbers lies there.
    """
    folder = output.with_suffix(".parts")
    folder.mkdir(parents=True, exist_ok=True)
    _require_same_table(engagement, folder)
    sources = _Sources.of(engagement)
    with duckdb.connect(config={"threads": 1}) as connection:
        for part in track(engagement.parts, "Making events", disable=len(engagement.parts) == 1):
            target = _part_file(folder, part)
            if not target.exists():
                _write(connection, sources.events(part), target)
        parts = [str(_part_file(folder, part)) for part in engagement.parts]
        _copy(connection, "SELECT * FROM read_parquet(?)", output, [parts])
    shutil.rmtree(folder)


def _require_same_table(engagement: Engagement, folder: Path) -> None:
    note = folder / "table.json"
    wanted = json.dumps(asdict(engagement))
    if note.exists() and note.read_text() != wanted:
        raise AnotherTableError(
            f"{folder} holds parts of another table; finish that one, or remove the folder"
        )
    note.write_text(wanted)


def _part_file(folder: Path, part: int) -> Path:
    return folder / f"part-{part:04d}.parquet"


@dataclass(frozen=True)
class _Sources:
    """What the events are drawn from: each member's title and region, and the articles' distribution."""

    engagement: Engagement
    titles: NDArray[np.int16]
    regions: NDArray[np.int16]
    popularity: NDArray[np.float64]

    @classmethod
    def of(cls, engagement: Engagement) -> "_Sources":
        random = _stream(engagement.seed, _MEMBERS_STREAM)
        titles = _skewed(random, engagement.members, len(TITLES)).astype(np.int16)
        regions = _skewed(random, engagement.members, len(REGIONS)).astype(np.int16)
        weights = np.arange(1, engagement.articles + 1, dtype=np.float64) ** -engagement.zipf
        return cls(engagement, titles, regions, np.cumsum(weights) / weights.sum())

    def events(self, part: int) -> dict[str, NDArray[np.int64]]:
        """Return the events of a part, column by column, as numbers."""
        random = _stream(self.engagement.seed, part)
        size = self.engagement.events_in(part)
        members = _skewed(random, size, self.engagement.members)
        articles = np.searchsorted(self.popularity, random.random(size), side="right")
        return {
            "member": members,
            "article": np.minimum(articles, self.engagement.articles - 1),
            "title": self.titles[members].astype(np.int64),
            "region": self.regions[members].astype(np.int64),
            "day": random.integers(0, DAYS, size),
        }


def _stream(seed: int, number: int) -> np.random.Generator:
    """Return random numbers that belong to one seed and number; parts can be made in any order."""
    return np.random.Generator(np.random.Philox(key=[seed, number]))


def _skewed(random: np.random.Generator, size: int, below: int) -> NDArray[np.int64]:
    """Return integers from 0 to below - 1, the small ones oftener."""
    return np.minimum((random.random(size) ** 1.5 * below).astype(np.int64), below - 1)


def _write(connection: duckdb.DuckDBPyConnection, events: dict[str, NDArray[np.int64]], target: Path) -> None:
    connection.register("events", events)
    query = f"""
        SELECT member AS member_id, format('article-{{:07d}}', article) AS article_id,
               {list(TITLES)}[title + 1] AS job_title, {list(REGIONS)}[region + 1] AS region,
               DATE '{FIRST_DAY}' + day::INTEGER AS day
        FROM events ORDER BY ALL
    """  # noqa: S608 - constants of this file
    _copy(connection, query, target, [])
    connection.unregister("events")


def _copy(connection: duckdb.DuckDBPyConnection, query: str, target: Path, values: list[list[str]]) -> None:
    """Write a query's rows; a reader sees the whole file or none."""
    unfinished = target.with_suffix(".unfinished")
    connection.execute(f"COPY ({query}) TO '{unfinished}' (FORMAT parquet, COMPRESSION zstd)", values or None)
    unfinished.replace(target)


def main(arguments: Sequence[str] | None = None) -> None:
    """Generate the table that the command line asks for."""
    parser = argparse.ArgumentParser(description="Make a table of made-up engagement, for trying out size.")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--members", type=int, help="default: a tenth of the events")
    parser.add_argument("--articles", type=int, default=100_000)
    parser.add_argument("--zipf", type=float, default=1.1, help="exponent of the articles' popularity")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("engagement.parquet"), metavar="PARQUET")
    chosen = parser.parse_args(arguments)
    try:
        members = max(1, chosen.events // 10) if chosen.members is None else chosen.members
        engagement = Engagement(chosen.events, members, chosen.articles, chosen.zipf, chosen.seed)
        generate(engagement, chosen.output)
    except (ValueError, AnotherTableError) as error:
        parser.error(str(error))
    print(f"{chosen.output}: {engagement.events} events of {engagement.members} members")


if __name__ == "__main__":
    main()
