"""`gris policy draft`: from flags to a policy that can be served, and what its owner is shown of it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from dp_service.queries.errors import PolicyError
from dp_service.queries.policy import read_policy
from gris_cli.inputs import named_by
from gris_cli.printing import console_of_width, print_json, say
from gris_data.engines import PinotAccess
from gris_data.policy.draft import Draft, DraftError, Role, draft_of
from gris_data.policy.draft_text import draft_text
from gris_data.table_schema import TableSchema, file_schema, pinot_schema


@dataclass(frozen=True)
class DraftSource:
    """The flags that say of which tables a draft is made; `files` are those for Pinot's authorisation and TLS."""

    data: tuple[str, ...]
    pinot: str
    tables: tuple[str, ...]
    member: str
    files: tuple[Path | None, Path | None, Path | None]


@dataclass(frozen=True)
class Drafted:
    """The text of a policy, and what it was made of."""

    text: str
    drafts: tuple[Draft, ...]


def drafted(source: DraftSource) -> Drafted:
    """Return a first policy for the tables that the flags name.

    Raises:
        typer.BadParameter: Flags that do not belong together, a table that cannot be read, or one whose member or
            name is to be said.
    """
    try:
        with named_by("--pinot" if source.pinot else "--data"):
            drafts = tuple(draft_of(table, source.member) for table in _tables(source))
            text = draft_text(drafts)
            _require_sound(text)
    except DraftError as error:
        raise typer.BadParameter(str(error)) from None
    return Drafted(text, drafts)


def _tables(source: DraftSource) -> Iterator[TableSchema]:
    if bool(source.data) == bool(source.pinot) or bool(source.pinot) != bool(source.tables):
        raise typer.BadParameter("give --data [TABLE=]PATH, or --pinot URL with --table NAME")
    yield from map(file_schema, source.data)
    for table in source.tables:
        yield pinot_schema(source.pinot, table, PinotAccess(*source.files))


def _require_sound(text: str) -> None:
    """Refuse a draft that could not be served; names that differ only in case can lead to one."""
    try:
        read_policy(text.encode(), "the draft")
    except PolicyError as error:
        raise DraftError(str(error.problems[0])) from None


def print_draft(made: Drafted, out: Path | None, *, as_json: bool) -> None:
    """Write the policy, and tell its owner what it offers.

    Raises:
        typer.BadParameter: The file is there already, or cannot be written.
    """
    if out is not None:
        _write(made.text, out)
    if as_json:
        written = {} if out is None else {"written": str(out)}
        print_json({"policy": made.text, **written, "tables": [_plain(each) for each in made.drafts]})
        return
    if out is None:
        sys.stdout.write(made.text)
        return
    console = console_of_width()
    say(console, "written", str(out))
    for draft in made.drafts:
        _print_decisions(console, draft)
    typer.echo("\nRead it, decide where it says DECIDE, and go on with:")
    for command in _next(made, out):
        # Not by the console, which would break a line that is to be copied.
        typer.echo(f"  {command}")


def _write(text: str, out: Path) -> None:
    try:
        # What an owner has decided in an earlier draft is never written over.
        with out.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise typer.BadParameter(f"--out: {out} is there already; it may hold your decisions") from None
    except OSError as error:
        raise typer.BadParameter(f"--out: {out}: {error.strerror}") from None


def _print_decisions(console: Console, draft: Draft) -> None:
    how = "as you say" if draft.is_member_named else "by its name: is it the person?"
    say(console, "table", draft.table.name)
    say(console, "member", f"{draft.member.name}, {how}")
    asked = [each.column.name for each in draft.columns if each.role is Role.ASKED]
    say(console, "asked about", ", ".join(asked) or "nothing")
    for each in draft.columns:
        if each.reason:
            say(console, "left out", f"{each.column.name}: {each.reason}")


def _next(made: Drafted, out: Path) -> Iterator[str]:
    policy = shlex.quote(str(out))
    located = [draft.table for draft in made.drafts if draft.table.location]
    data = "".join(f" --data {shlex.quote(f'{each.name}={each.location}')}" for each in located)
    yield f"gris policy check {policy}{data}"
    yield f"gris serve --policy {policy}{data}"


def _plain(draft: Draft) -> dict[str, Any]:
    return {
        "name": draft.table.name,
        "member": draft.member.name,
        "member_named": draft.is_member_named,
        "time": None if draft.time is None else draft.time.name,
        "columns": [
            {"name": each.column.name, "role": each.role.value, "reason": each.reason}
            for each in draft.columns
        ],
    }
