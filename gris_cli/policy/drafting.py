"""What `gris draft` shows of a policy."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import typer

from gris_cli.data.policy.draft import Role
from gris_cli.data.policy.draft_text import Drafted
from gris_cli.failures import EXIT_UNEXPECTED
from gris_cli.inputs import file_errors
from gris_cli.terminal import print_json, say


def print_draft(text: str, drafts: Sequence[Drafted], out: Path | None, *, as_json: bool) -> None:
    """Write the policy, and tell its owner what it offers.

    Raises:
        typer.BadParameter: The file is there already, or cannot be written.
    """
    if out is not None:
        _write(text, out)
    if as_json:
        written = {} if out is None else {"written": str(out)}
        print_json({"policy": text, **written, "tables": [_plain(each) for each in drafts]})
        return
    if out is None:
        sys.stdout.write(text)
        return
    say("written", str(out))
    for draft in drafts:
        _print_decisions(draft)
    typer.echo("\nRead it, decide where it says DECIDE, and go on with:")
    for command in _next(drafts, out):
        # Not by the console, which would break a line that is to be copied.
        typer.echo(f"  {command}")


def require_files(locations: Sequence[str], *, as_json: bool) -> None:
    """End the command if a location is a folder without data, of which nothing could be asked.

    Raises:
        typer.Exit: With code 1.
    """
    for text in locations:
        folder = Path(text.partition("=")[2] or text)
        if folder.is_dir() and not any(folder.rglob("*.*")):
            _end(f"nothing of {folder} could be asked about: it has no files", as_json=as_json)


def require_answers(drafts: Sequence[Drafted], *, as_json: bool) -> None:
    """End the command if a table has nothing that could be asked about, and say why.

    Raises:
        typer.Exit: With code 1.
    """
    for each in drafts:
        if each.draft.answers_nothing:
            reasons = [
                f"{column.column.name}: {column.reason}" for column in each.draft.columns if column.reason
            ]
            why = "; ".join(reasons) or f"it has no column beside the member {each.draft.member.name}"
            _end(f"nothing of {each.draft.table.name} could be asked about. {why}", as_json=as_json)


def _end(message: str, *, as_json: bool) -> NoReturn:
    if as_json:
        print_json({"error": {"code": "nothing_to_ask", "message": message}})
    else:
        typer.echo(message, err=True)
    raise typer.Exit(EXIT_UNEXPECTED)


def _write(text: str, out: Path) -> None:
    with file_errors(out, "--out"):
        try:
            # What an owner has decided in an earlier draft is never written over.
            # Its comments tell of rows: only the owner may read it.
            with open(out, "x", encoding="utf-8", opener=_private) as stream:
                stream.write(text)
        except FileExistsError:
            raise typer.BadParameter(f"--out: {out} is there already; it may hold your decisions") from None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _print_decisions(drafted: Drafted) -> None:
    draft = drafted.draft
    how = "as you say" if draft.is_member_named else "by its name: is it the person?"
    say("table", draft.table.name)
    say("member", f"{draft.member.name}, {how}")
    asked = [each.column.name for each in draft.columns if each.role is Role.ASKED]
    say("asked about", ", ".join(asked) or "nothing")
    say("summed", ", ".join(each.name for each in drafted.values))
    times = [each.name for each in draft.times]
    say(
        "time",
        times[0] + (f"; {', '.join(times[1:])} could be it too" if times[1:] else "") if times else "none",
    )
    for each in draft.columns:
        if each.reason:
            say("left out", f"{each.column.name}: {each.reason}")


def _next(drafts: Sequence[Drafted], out: Path) -> Iterator[str]:
    policy = shlex.quote(str(out))
    located = [each.draft.table for each in drafts if each.draft.table.location]
    data = "".join(f" --data {shlex.quote(f'{each.name}={each.location}')}" for each in located)
    yield f"gris check {policy}{data}"
    yield f"gris serve --policy {policy}{data}"


def _plain(drafted: Drafted) -> dict[str, Any]:
    draft = drafted.draft
    return {
        "name": draft.table.name,
        "member": draft.member.name,
        "member_named": draft.is_member_named,
        "time": draft.times[0].name if draft.times else None,
        "times": [each.name for each in draft.times],
        "summed": [each.name for each in drafted.values],
        "rows_read": bool(drafted.shapes),
        "columns": [
            {
                "name": each.column.name,
                "role": each.role.value,
                "reason": each.reason,
                "kind": each.kind.value if each.kind else "",
            }
            for each in draft.columns
        ],
    }
