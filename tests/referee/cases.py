"""Cases that stand in full beside the tests: one file of text for each surface, and digests of the whole record."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path
from typing import Any

from .recording import Case, Record, parted, read, record, write
from .surfaces import Said

FOLDER = Path(__file__).parent / "cases"
QUESTIONS, DIGESTS = FOLDER / "questions.json", Path(__file__).parent / "digests.json"
Texts = dict[str, dict[str, list[str]]]
"""By surface, and by the name of a case: lines."""
_WIDTH = 240
_REPEATED = 40
_SHORT = 60
_LONG = 500
_HEAD = "## "
_MARK = re.compile("&[0-9a-f]{8} |\\*[0-9a-f]{8}$")
_BY_CLIENT = ("asked", "sql", "explained", "plan", "released")


def cases() -> list[Case]:
    """Return the questions that stand in full."""
    return [Case(**each | {"sharpen": tuple(each.get("sharpen", ()))}) for each in read(QUESTIONS)]


def found() -> Texts:
    """Ask them, and return what is said."""
    return texts_of(cases(), record(cases()))


def texts_of(asked: list[Case], said: Record) -> Texts:
    """Return what is said by surface; `asked` are the cases of each part in the order of the record."""
    texts: Texts = {}
    rest = {part: iter(each) for part, each in said.items()}
    for case in asked:
        for surface, one in _surfaces(case, next(rest[case.part])):
            lines = list(_lines("", one))
            texts.setdefault(surface, {})[f"{case.part}: {case.name}"] = lines
    return texts


def _surfaces(case: Case, said: Said) -> Iterator[tuple[str, Any]]:
    for name, each in said.items():
        if name == "sql":
            yield from ((f"sql_{dialect}", _sql(case, sql)) for dialect, sql in each.items() if sql)
        elif name != "asked":
            yield name, each if name != "plan" or _is_full(case, each) else _digest(each)


def _sql(case: Case, texts: list[str]) -> list[str]:
    # What Pinot is set to before a query is the same for many.
    parts = [part for each in texts for part in each.rpartition("; ")[::2] if part]
    return [part if part.startswith("SET") or _is_full(case, part) else _digest(part) for part in parts]


def _is_full(case: Case, value: Any) -> bool:
    """Whether a case stands with its plan and long SQL, and not with digests of them."""
    return case.everywhere or len(str(value)) <= _LONG


def _lines(place: str, value: Any) -> Iterator[str]:
    """Yield lines of a value of JSON: one of many fields or values has several."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) or len(text) <= _WIDTH or not value:
        line = f"{place} = {text}".replace("\n", "\\n").replace("\r", "\\r")
        # Half of a character is written as JSON writes it.
        yield line.encode(errors="backslashreplace").decode()
    elif isinstance(value, dict):
        short = {name: each for name, each in value.items() if len(str(each)) <= _SHORT}
        if len(short) < len(value):
            yield from _lines(place, short) if short else ()
        else:
            yield f"{place} = {text}"
        for name, each in value.items():
            if name not in short:
                yield from _lines(f"{place}.{name}", each)
    else:
        for each in value:
            yield from _lines(f"{place}[]", each)


def write_texts(texts: Texts) -> None:
    """Write what is said, a file for each surface; what is said more than once in a file is written once."""
    for old in FOLDER.glob("*.txt"):
        old.unlink()
    for surface, by_case in texts.items():
        often = Counter(value for each in by_case.values() for line in each if (value := _value(line)))
        known: set[str] = set()
        lines: list[str] = []
        for name, each in by_case.items():
            lines.append(f"{_HEAD}{name}")
            for line in each:
                value = _value(line)
                mark = _digest(value) if often[value] > 1 else ""
                new = f"&{mark} {value}" if mark not in known else f"*{mark}"
                known.add(mark)
                lines.append(line if not mark else line.removesuffix(value) + new)
        content = "\n".join(lines) + "\n"
        (FOLDER / f"{surface}.txt").write_bytes(content.encode())


def _value(line: str) -> str:
    """Return the value of a line if it is long."""
    value = line.partition(" = ")[2]
    return value if len(value) >= _REPEATED else ""


def read_texts() -> Texts:
    """Return what was written."""
    return {path.stem: _read_text(path.read_bytes().decode()) for path in sorted(FOLDER.glob("*.txt"))}


def _read_text(content: str) -> dict[str, list[str]]:
    by_case: dict[str, list[str]] = {}
    known: dict[str, str] = {}
    lines: list[str] = []
    for line in content.removesuffix("\n").split("\n"):
        place, is_line, value = line.partition(" = ")
        if line.startswith(_HEAD):
            lines = by_case.setdefault(line.removeprefix(_HEAD), [])
        elif _MARK.match(value):
            mark, _, text = value.partition(" ")
            lines.append(place + is_line + known.setdefault(mark[1:], text))
        else:
            lines.append(line)
    return by_case


def changes(old: Texts, new: Texts) -> list[str]:
    """Return what differs, by surface and case, the place where two lines part."""
    return [
        f"{surface}, {name}\n{change}"
        for surface in sorted({*old, *new})
        for name in {**old.get(surface, {}), **new.get(surface, {})}
        for change in _changed(old.get(surface, {}).get(name, []), new.get(surface, {}).get(name, []))
    ]


def _changed(old: list[str], new: list[str]) -> Iterator[str]:
    for kind, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone, come = old[first:last], new[start:end]
        if kind == "replace" and len(gone) == len(come):
            pairs = [parted(*pair) for pair in zip(gone, come, strict=True)]
            yield "\n".join(f"  - {one}\n  + {other}" for one, other in pairs)
        elif kind != "equal":
            lines = [*(f"  - {_short(one)}" for one in gone), *(f"  + {_short(one)}" for one in come)]
            yield "\n".join(lines)


def _short(line: str) -> str:
    return line if len(line) <= 2 * _WIDTH else f"{line[: 2 * _WIDTH]}.."


def digests(said: Record) -> dict[str, dict[str, Any]]:
    """Return digests of a record by part: of each surface, and of each ten cases by the client and by the others."""
    return {
        part: {
            "surfaces": {name: _digest([case.get(name) for case in each]) for name in _names(each)},
            "by the client": _tens([{name: case.get(name) for name in _BY_CLIENT} for case in each]),
            "by all others": _tens(
                [
                    {name: one for name, one in case.items() if name not in _BY_CLIENT}
                    for case in each
                    if "gateway" in case
                ]
            ),
        }
        for part, each in said.items()
    }


def _names(said: list[Said]) -> list[str]:
    return sorted({name for case in said for name in case})


def _tens(each: list[Said]) -> list[str]:
    return [_digest(each[start : start + 10]) for start in range(0, len(each), 10)]


def _digest(value: Any) -> str:
    # Nobody looks for another value with the same digest, so few letters are enough.
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]


def kept_digests() -> dict[str, Any]:
    """Return the digests of the whole record."""
    kept: dict[str, Any] = read(DIGESTS) if DIGESTS.exists() else {}
    return kept


def moved(kept: Mapping[str, Any], said: Record) -> list[str]:
    """Return which cases do not have the digests that are kept, of those that were asked, from the first."""
    found = []
    for part, each in digests(said).items():
        for who in ("by the client", "by all others"):
            pairs = zip_longest(kept.get(part, {}).get(who, [])[: len(each[who])], each[who])
            places = [
                f"{10 * place} to {10 * place + 9}" for place, (was, one) in enumerate(pairs) if was != one
            ]
            if places:
                found.append(f"{part} {who}: cases {', '.join(places[:20])}{', ..' * (len(places) > 20)}")
    return found


def accept() -> None:
    """Write what is said now to the questions that stand in full."""
    write_texts(found())


def accept_whole(said: Record) -> None:
    """Write the digests of a whole record."""
    write(DIGESTS, digests(said))
