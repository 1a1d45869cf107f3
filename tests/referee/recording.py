"""Writes records, their digests, and what differs between two of them."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from pinot_connector import AsyncPrivateClient
from pinot_connector.engines.duckdb import DuckDBEngine
from tests.campaigns.fuzz.mutating import SOUND, UNSOUND, mutated
from tests.support.budget_process import service
from tests.support.processes import process
from tests.support.queries.policies import POLICY_TEXT

from .questions import questions
from .surfaces import KEY, Said, as_dict, desk_of, or_error, stage_of
from .worlds import WORLDS, World

SEED = 1
Record = dict[str, list[Said]]
"""What is said by part, in the order of the questions."""


@dataclass(frozen=True)
class Size:
    """How many texts are explained, and how many questions of each world are asked, by every surface or by one."""

    texts: int
    everywhere: int
    asked: int


WHOLE = Size(texts=4000, everywhere=1000, asked=3000)


def record(size: Size) -> Record:
    """Ask everything, and return what is said."""
    said = {"texts": asyncio.run(_texts(size.texts))}
    return said | {world.name: asyncio.run(_world(world, size)) for world in WORLDS}


async def _world(world: World, size: Size) -> list[Said]:
    with tempfile.TemporaryDirectory() as folder, stage_of(world, Path(folder) / world.name) as stage:
        async with desk_of(stage) as desk:
            return [
                await desk.said(asked, everywhere=number < size.everywhere)
                for number, asked in enumerate(questions(world, size.asked, SEED))
            ]


def texts(count: int) -> Iterator[str]:
    """Yield SQL texts: all that tests refuse or accept, and changed ones; first some of each."""
    random = Random(SEED)
    own = [*SOUND, *UNSOUND]
    random.shuffle(own)
    for number in range(count):
        yield own.pop() if own and number % 2 else mutated(random)


async def _texts(count: int) -> list[Said]:
    with tempfile.TemporaryDirectory() as name:
        async with AsyncExitStack() as opened:
            client = await opened.enter_async_context(_client_of_texts(Path(name), opened))
            return [
                {"asked": text, "explained": await or_error(as_dict(partial(client.explain, text)))}
                for text in texts(count)
            ]


def _client_of_texts(folder: Path, opened: AsyncExitStack) -> AsyncPrivateClient:
    (folder / "policy.yaml").write_text(POLICY_TEXT)
    (folder / "noise.key").write_text(KEY)
    (folder / "noise.key").chmod(0o600)
    words = [
        "--policy",
        folder / "policy.yaml",
        "--key-file",
        folder / "noise.key",
        "--listen",
        "127.0.0.1:0",
    ]
    dp = opened.enter_context(process("tests.referee.still_service", words, folder / "dp.log"))
    ledger = opened.enter_context(service(folder, f"sqlite:{folder / 'ledger.db'}"))
    return AsyncPrivateClient(
        dp=dp["address"], budget=ledger.address, account="acme/referee", engine=DuckDBEngine({})
    )


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
        yield place, f"{one!r}\n    -> {other!r}"
