"""Writes records, and what differs between two of them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from pinot_connector import AsyncPrivateClient
from pinot_connector.dp_service_client import DpServiceClient
from pinot_connector.engines.duckdb import DuckDBEngine
from tests.campaigns.fuzz.mutating import SOUND, UNSOUND, mutated
from tests.support.budget_process import service
from tests.support.queries.policies import POLICY_TEXT

from .questions import Asked, questions
from .surfaces import KEY, UNHURRIED, Said, desk_of, explained, stage_of, still_service
from .worlds import WORLDS

SEED = 1
TEXTS = "texts"
ROOT = Path(__file__).parents[2]
_PROCESSES, _MANY = 2, 500
Record = dict[str, list[Said]]
"""What is said by part, in the order of the questions."""


@dataclass(frozen=True)
class Case:
    """A question of a part: a world, or texts that are explained and not asked."""

    part: str
    name: str
    sql: str
    sharpen: tuple[int, ...] = ()
    everywhere: bool = False

    @property
    def asked(self) -> Asked:
        """The question."""
        return Asked(self.sql, self.sharpen)


def whole(*, texts: int = 4000, asked: int = 3000, everywhere: int = 1000) -> Iterator[Case]:
    """Yield all cases: so many texts, and questions of each world, of which the first are asked by every surface."""
    for number, text in enumerate(_texts(texts)):
        yield Case(TEXTS, str(number), text)
    for world in WORLDS:
        for number, each in enumerate(questions(world, asked, SEED)):
            yield Case(world.name, str(number), each.sql, each.sharpen, number < everywhere)


def record(cases: Iterable[Case]) -> Record:
    """Ask everything, in processes that run this checkout's code and no other, and return what is said."""
    by_part: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        by_part[case.part].append(case)
    # Services take seconds to start.
    steps = {part: _PROCESSES if len(each) > _MANY else 1 for part, each in by_part.items()}
    places = [(part, slice(start, None, step)) for part, step in steps.items() for start in range(step)]
    found: Record = {part: [{}] * len(each) for part, each in by_part.items()}
    with ThreadPoolExecutor(_PROCESSES) as pool:
        said = pool.map(_answered_elsewhere, [by_part[part][place] for part, place in places])
        for (part, place), answers in zip(places, said, strict=True):
            found[part][place] = answers
    return found


def _answered_elsewhere(cases: Sequence[Case]) -> list[Said]:
    paths = [str(ROOT), str(ROOT / "protos" / "generated"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    with tempfile.TemporaryDirectory() as name:
        asked, said = Path(name) / "asked", Path(name) / "said"
        asked.write_text(json.dumps([asdict(case) for case in cases]))
        command = [sys.executable, "-m", "tests.referee", "answer", str(asked), str(said)]
        subprocess.run(command, env=environment, cwd=ROOT, check=True)
        answers: list[Said] = json.loads(said.read_text())
        return answers


def answer(asked: Path, said: Path) -> None:
    """Ask the cases of one part, from a file, and write what is said into another."""
    read = [Case(**each) for each in json.loads(asked.read_text())]
    cases = [Case(each.part, each.name, each.sql, tuple(each.sharpen), each.everywhere) for each in read]
    said.write_text(json.dumps(asyncio.run((_explained if cases[0].part == TEXTS else _asked)(cases))))


async def _asked(cases: Sequence[Case]) -> list[Said]:
    world = next(each for each in WORLDS if each.name == cases[0].part)
    with tempfile.TemporaryDirectory() as folder, stage_of(world, Path(folder) / world.name) as stage:
        async with desk_of(stage) as desk:
            return [_headed(case, await desk.said(case.asked, everywhere=case.everywhere)) for case in cases]


def _headed(case: Case, said: Said) -> Said:
    return {"asked": f"{case.sql} {list(case.sharpen)}" if case.sharpen else case.sql} | said


async def _explained(cases: Sequence[Case]) -> list[Said]:
    with tempfile.TemporaryDirectory() as name:
        async with AsyncExitStack() as opened:
            client, noise = await _client_of_texts(Path(name), opened)
            return [_headed(case, await explained(client, noise, case.asked)) for case in cases]


async def _client_of_texts(
    folder: Path, opened: AsyncExitStack
) -> tuple[AsyncPrivateClient, DpServiceClient]:
    (folder / "policy.yaml").write_text(POLICY_TEXT)
    (folder / "noise.key").write_text(KEY)
    (folder / "noise.key").chmod(0o600)
    dp = opened.enter_context(still_service(folder))
    ledger = opened.enter_context(service(folder, f"sqlite:{folder / 'ledger.db'}"))
    client = AsyncPrivateClient(
        dp=dp, budget=ledger.address, account="acme/referee", engine=DuckDBEngine({}), timeouts=UNHURRIED
    )
    noise = DpServiceClient(dp, UNHURRIED)
    opened.push_async_callback(noise.close)
    return await opened.enter_async_context(client), noise


def _texts(count: int) -> Iterator[str]:
    """Yield SQL texts: all that tests refuse or accept, and changed ones; first some of each."""
    random = Random(SEED)
    own = [*SOUND, *UNSOUND]
    random.shuffle(own)
    for number in range(count):
        yield own.pop() if own and number % 2 else mutated(random)


def write(path: Path, content: Any) -> None:
    """Write a record as lines that can be compared; half of a character is written as JSON writes it."""
    text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def read(path: Path) -> Any:
    """Return what `write` has written."""
    return json.loads(path.read_text(encoding="utf-8"))


def differences(old: Record, new: Record) -> list[str]:
    """Return what differs: for each part, surface and place how often, with the first case."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for part in sorted(old.keys() | new.keys()):
        before, after = old.get(part, []), new.get(part, [])
        if len(before) != len(after):
            found[part, "cases"].append(f"{len(before)} cases -> {len(after)} cases")
        for number, (one, other) in enumerate(zip(before, after, strict=False)):
            for place, change in _changes(one, other, ""):
                found[part, re.sub(r"\[\d+\]", "[]", place)].append(
                    f"case {number}: {one['asked']}\n    {change}"
                )
    return [f"{len(cases)} x {part}{place}\n  {cases[0]}" for (part, place), cases in sorted(found.items())]


def _changes(one: Any, other: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in [*one, *(name for name in other if name not in one)]:
            yield from _changes(one.get(name), other.get(name), f"{place}.{name}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (before, after) in enumerate(zip(one, other, strict=True)):
            yield from _changes(before, after, f"{place}[{number}]")
    elif one != other:
        yield place, "\n    -> ".join(parted(repr(one), repr(other)))


def parted(one: str, other: str, around: int = 60) -> tuple[str, str]:
    """Return where two texts differ, with so many letters around it."""
    shorter = min(len(one), len(other))
    start = next((place for place in range(shorter) if one[place] != other[place]), shorter)
    # What ends both does not reach into what begins both.
    rest = shorter - start
    end = next((place for place in range(rest) if one[-1 - place] != other[-1 - place]), rest)
    first, last = max(0, start - around), max(0, end - around)
    return _cut(one, first, last), _cut(other, first, last)


def _cut(text: str, first: int, last: int) -> str:
    return f"{'..' * bool(first)}{text[first : len(text) - last]}{'..' * bool(last)}"
