"""What was found of a bundle, as tables."""

from __future__ import annotations

from typing import Any

from gris_audit.checked import Checked
from gris_data.sheets import Column, Sheet


def sheets(checked: Checked) -> dict[str, Sheet]:
    """Return the journals of a bundle whose signature is right, and every problem."""
    columns = (
        Column("root", "root", is_text=True), Column("first", "first entry"), Column("last", "last entry"),
        Column("digest", "digest", is_text=True, is_copied=True), Column("checkpoint", "checkpoint at"),
    )  # fmt: skip
    rows = [
        (each.root, each.first, each.entries, each.digest, each.checkpoint_entries)
        for each in checked.manifest.journals
    ]
    problems = (Column("file", "file", is_text=True), Column("problem", "problem", is_text=True))
    return {
        "journals": Sheet(columns, rows),
        "problems": Sheet(problems, checked.problems, tuple(_notes(checked))),
    }


def _notes(checked: Checked) -> list[tuple[str, str]]:
    said = checked.manifest
    made = f"{said.made_at} by {said.made_by}, with Gris {said.gris}" if said.made_at else ""
    compared = f"{checked.compared} levels with their charges; {checked.not_compared} could not be"
    return [
        ("made", made),
        ("compared", compared),
        (
            "files",
            f"{checked.recorded} are recorded in the journals as they are; {checked.not_recorded} are not; "
            f"{checked.recorded_elsewhere} are recorded and not in the bundle",
        ),
        (
            "not checked",
            f"{checked.not_given} entries, which are archived: accounts, names, limits and sums of these alone"
            if checked.not_given
            else "",
        ),
        ("bundle", f"not sound: {len(checked.problems)} problems" if checked.problems else "sound"),
    ]


def facts(checked: Checked) -> dict[str, Any]:
    """Return what the notes say, for JSON."""
    said = checked.manifest
    return {
        "sound": not checked.problems,
        "made_at": said.made_at,
        "made_by": said.made_by,
        "gris": said.gris,
        "every_root": said.every_root,
        "entries_not_given": checked.not_given,
        "levels_compared": checked.compared,
        "levels_not_compared": checked.not_compared,
        "files_recorded": checked.recorded,
        "files_not_recorded": checked.not_recorded,
        "files_not_in_bundle": checked.recorded_elsewhere,
    }
