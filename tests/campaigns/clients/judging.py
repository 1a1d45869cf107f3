"""What a client has shown, beside what it has to show."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.campaigns.clients.questions import Expected
from tests.campaigns.clients.sales import COLUMNS, TABLE

YES, NONE = "yes", "-"


@dataclass(frozen=True)
class Shown:
    """What one step gave: rows, or the text of an error."""

    rows: list[list[Any]]
    error: str = ""


def shown(printed: str) -> dict[str, Shown]:
    """Return what a client gave at each step, of the lines of JSON that it printed."""
    lines = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return {line["step"]: _shown(line) for line in lines}


def _shown(line: dict[str, Any]) -> Shown:
    if "answer" not in line:
        return Shown(line.get("rows", []), line.get("error", ""))
    answer = line["answer"]
    if "resultTable" in answer:
        texts = [each["message"] for each in answer["exceptions"]]
        return Shown(answer["resultTable"]["rows"], "\n".join(texts))
    if "schemaName" in answer:
        specs = [each for key, found in answer.items() if key.endswith("FieldSpecs") for each in found]
        return Shown([[each["name"]] for each in specs])
    # Of tables: a list, or their brokers by their names.
    return Shown([[name] for name in answer.get("tables", answer)])


def cells(found: Mapping[str, Shown], wanted: Expected, lacks: frozenset[str]) -> dict[str, str]:
    """Return what to say of each step: `yes`, `-` where there is no call for it, or what was seen instead."""
    known: dict[str, list[list[Any]]] = {
        "connect": [[1]],
        "tables": [[TABLE]],
        "columns": [[name] for name in COLUMNS],
        **wanted.rows,
        "again": wanted.rows["top"],
        "parameter": wanted.rows["top"],
        "list": wanted.rows["top"],
        "days": wanted.rows["series"],
    }
    ranked = ("top", "again", "parameter", "list")
    of_rows = {
        step: _of_rows(found.get(step), rows, is_ranked=step in ranked) for step, rows in known.items()
    }
    of_texts = {step: _of_text(found.get(step), text) for step, text in wanted.texts.items()}
    return {step: NONE if step in lacks else said for step, said in (of_rows | of_texts).items()}


def _of_rows(found: Shown | None, rows: list[list[Any]], *, is_ranked: bool) -> str:
    if found is None:
        return "nothing"
    if found.error:
        return found.error
    shown_rows, wanted_rows = _plain(found.rows), _plain(rows)
    if not is_ranked:
        # Superset orders a series by its counts.
        shown_rows, wanted_rows = sorted(shown_rows, key=str), sorted(wanted_rows, key=str)
    return YES if shown_rows == wanted_rows else f"rows {found.rows}"


def _plain(rows: list[list[Any]]) -> list[list[Any]]:
    """Return rows whose times are without what some clients leave out: the fraction, and midnight."""
    return [[_day(each) if isinstance(each, str) else each for each in row] for row in rows]


def _day(text: str) -> str:
    return text.removesuffix(".0").removesuffix(" 00:00:00")


def _of_text(found: Shown | None, text: str) -> str:
    if found is None:
        return "nothing"
    if _characters(text) in _characters(found.error):
        return YES
    return found.error or f"rows {found.rows}"


def _characters(text: str) -> str:
    """Return the letters and digits of a text, which some clients break into lines or quote."""
    return re.sub(r"\\n|\W", "", text)
