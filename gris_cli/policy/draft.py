"""`gris draft`."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gris_cli.flag_groups import flag, with_flags
from gris_cli.flags import OF_PINOT_FILES, ConnectionFlags
from gris_cli.inputs import named_by

if TYPE_CHECKING:
    from gris_cli.data.engines import PinotAccess
    from gris_cli.data.table_schema import TableSchema


@dataclass(frozen=True)
class TablesFlags:
    """Of which tables a draft is made."""

    data: list[str] = flag(
        [],
        "A Parquet file or DuckDB database, whose rows are read for the draft. Repeatable.",
        metavar="[TABLE=]PATH",
    )
    pinot: str = flag("", "Instead of --data: the controller of a Pinot, for --table.", metavar="URL")
    table: list[str] = flag([], "With --pinot: a table. Repeatable.", metavar="NAME")
    member: str = flag(
        "",
        "The column of the people who are protected; by default the only one whose name says so.",
        metavar="COLUMN",
    )
    learn_before: datetime.datetime | None = flag(
        None,
        "Choose bounds by rows before this day alone, so that later rows decide none; by default by all rows.",
        formats=["%Y-%m-%d"],
        metavar="DAY",
    )
    names_only: bool = flag(
        False,
        "Read names and types of columns, and no row: a draft that anyone may see, with poorer answers.",
    )

    @property
    def reads_rows(self) -> bool:
        """Whether rows are read."""
        return not (self.names_only or self.pinot)

    def schemas(self, access: PinotAccess) -> list[TableSchema]:
        """Return the tables, of which no row is read here.

        Raises:
            typer.BadParameter: Flags that do not belong together.
            InputError: A table that cannot be read.
        """
        from gris_cli.data.table_schema import file_schema, pinot_schema

        if bool(self.data) == bool(self.pinot) or bool(self.pinot) != bool(self.table):
            raise typer.BadParameter("give --data [TABLE=]PATH, or --pinot URL with --table NAME")
        if self.learn_before and not self.reads_rows:
            raise typer.BadParameter("--learn-before needs --data without --names-only: no rows are read")
        of_pinot = [pinot_schema(self.pinot, table, access) for table in self.table]
        return [*map(file_schema, self.data), *of_pinot]


@with_flags
def draft(
    *,
    misplaced: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
    tables: TablesFlags,
    out: Path | None = flag(
        None, "The file to write, which must not exist; by default standard output.", metavar="FILE"
    ),
    connection: Annotated[ConnectionFlags, OF_PINOT_FILES],
    as_json: bool,
) -> None:
    """Write a first policy for your own tables, with a comment at each decision. For the owner of the data.

    Exit code 1 if a table has nothing that could be asked about.
    """
    if misplaced:
        raise typer.BadParameter(f"--data {misplaced[0]} names a table's file: put --data before it")
    from gris_cli.clients import pinot_access
    from gris_cli.data.policy.draft_text import draft_text, drafted
    from gris_cli.policy.drafting import print_draft, require_answers, require_files

    require_files(tables.data, as_json=as_json)
    with named_by("--pinot" if tables.pinot else "--data"):
        schemas = tables.schemas(pinot_access(connection))
        before = tables.learn_before.date() if tables.learn_before else None
        drafts = [drafted(each, tables.member, before, reads_rows=tables.reads_rows) for each in schemas]
        require_answers(drafts, as_json=as_json)
        text = draft_text(drafts, before)
        _require_sound(text)
    print_draft(text, drafts, out, as_json=as_json)


def _require_sound(text: str) -> None:
    """Refuse a draft that could not be served; names that differ only in case can lead to one."""
    from dp_service.queries.errors import PolicyError
    from dp_service.queries.policy import read_policy
    from gris_cli.data.errors import InputError

    try:
        read_policy(text.encode(), "the draft")
    except PolicyError as error:
        raise InputError(str(error.problems[0])) from None
