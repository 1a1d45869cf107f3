"""`gris init`."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gris_cli.flag_groups import flag, with_flags
from gris_cli.inputs import named_by, parts_of

if TYPE_CHECKING:
    from gris_cli.shared.pasting import Pasted
    from gris_cli.shared.serving import Written
    from gris_cli.shared.writing import Answers, Outcome
    from gris_data.table_schema import TableSchema

# A name is a segment of an account and a file's name.
_NAME = re.compile(r"\w[\w.-]{0,63}")
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_THIS_MACHINE = ("localhost", "127.0.0.1")
_LARGEST = 10**9


@dataclass(frozen=True)
class InitFlags:
    """The five answers."""

    data: list[str] = flag(
        [], "A table's file, Parquet or DuckDB. Repeatable.", metavar="[TABLE=]PATH", show_default=False
    )
    member: str = flag("", "The column of the people who are protected.", metavar="COLUMN")
    analyst: list[str] = flag([], "Somebody who may ask; repeatable.", metavar="NAME", show_default=False)
    budget: str = flag(
        "", "What each of them may spend in a month, such as 3000:300.", metavar="INFORMATION:CALLS"
    )
    host: str = flag(
        "", "The name under which others reach this machine; localhost: nobody else does.", metavar="NAME"
    )


@with_flags
def init(
    directory: Annotated[Path, typer.Argument(help="Where the files are written; made if it is not there.")],
    *,
    flags: InitFlags,
    as_json: bool,
) -> None:
    """Write policy, budgets, gateway, console, keys and tokens of a first shared answer; asks for what is not given."""
    from gris_cli.shared.running import require_gateway
    from gris_cli.shared.writing import write_all

    require_gateway()
    answers = _answers(flags, asks=sys.stdin.isatty() and not as_json)
    outcome = write_all(directory, answers)
    _report(directory, outcome, answers.analysts[0], as_json=as_json)


def _answers(flags: InitFlags, *, asks: bool) -> Answers:
    """Return the five answers, each from its flag or else from the terminal.

    Raises:
        typer.BadParameter: One is missing and there is nobody to ask, or is of another form.
        InputError: A table cannot be read.
    """
    from gris_cli.shared.writing import Answers

    asking = _Asking(asks)
    tables = _schemas(flags.data or [asking.text("--data", "The table's file (Parquet or DuckDB)")])
    member = flags.member or asking.text(
        "--member", "The column of the people who are protected", _guess(tables)
    )
    names = flags.analyst or asking.text("--analyst", "Who may ask (names, with commas)", "ana").split(",")
    budget = flags.budget or asking.text(
        "--budget", "What each may spend in a month, INFORMATION:CALLS", "3000:300"
    )
    host = flags.host or asking.text("--host", "The name under which others reach this machine", "localhost")
    return Answers(tables, member, _names(names), *_limits(budget), _host(host))


@dataclass(frozen=True)
class _Asking:
    """Asks at the terminal, if there is one."""

    may: bool

    def text(self, name: str, question: str, default: str | None = None) -> str:
        """Return an answer.

        Raises:
            typer.BadParameter: There is nobody to ask.
        """
        if not self.may:
            raise typer.BadParameter(
                f"{name} is missing: {question[0].lower()}{question[1:]}; without a terminal to ask at, give all of "
                "--data, --member, --analyst, --budget and --host"
            )
        return str(typer.prompt(question, default=default)).strip()


def _schemas(texts: list[str]) -> list[TableSchema]:
    from gris_data.table_schema import file_schema

    with named_by("--data"):
        return [file_schema(text) for text in texts]


def _guess(tables: list[TableSchema]) -> str | None:
    """Return the column that names say is the member; None: they leave a doubt."""
    from gris_data.errors import InputError
    from gris_data.policy.draft import member_of

    try:
        return member_of(tables[0]).name
    except InputError:
        return None


def _names(texts: list[str]) -> list[str]:
    from gris_cli.shared.identity import OWNER
    from gris_gateway.accounts import AccountError, checked_segment

    names = list(dict.fromkeys(text.strip() for text in texts))
    for name in names:
        try:
            checked_segment(name)
        except AccountError:
            name = ""  # noqa: PLW2901 - refused like any other
        if not _NAME.fullmatch(name) or name == OWNER:
            raise typer.BadParameter(
                f"--analyst: expected names of letters, digits, dots and dashes, other than {OWNER}"
            )
    return names


def _limits(text: str) -> tuple[int, int]:
    parts = parts_of("--budget", "INFORMATION:CALLS, such as 3000:300", text)
    if not all(part.isascii() and part.isdigit() and 0 < int(part) <= _LARGEST for part in parts):
        raise typer.BadParameter(f"--budget expects two numbers from 1 on, such as 3000:300, got {text}")
    information, calls = map(int, parts)
    return information, calls


def _host(text: str) -> str:
    host = text.lower()
    if not _HOST.fullmatch(host):
        raise typer.BadParameter(
            f"--host expects a name such as gris.example.org, without a port, got {text}"
        )
    return "localhost" if host in _THIS_MACHINE else host


def _report(directory: Path, outcome: Outcome, analyst: str, *, as_json: bool) -> None:
    from gris_cli.shared.serving import Written
    from gris_cli.terminal import print_json, say_all

    start = f"gris serve --from {_word(directory)}"
    pasted = _pasted(Written.read(directory), analyst)
    if as_json:
        files: dict[str, Any] = {
            "written": list(map(str, outcome.written)),
            "there": list(map(str, outcome.there)),
        }
        print_json({**files, "start": start, **pasted.plain()})
        return
    say_all("written", (str(path.relative_to(directory)) for path in outcome.written))
    say_all("not changed", (f"{path.relative_to(directory)} is there already" for path in outcome.there))
    typer.echo(f"\nRead policy.yaml, decide where a file says DECIDE, and start all of it with:\n  {start}")
    pasted.print()


def _pasted(written: Written, analyst: str) -> Pasted:
    """Return what an analyst pastes once it is started."""
    from gris_cli.shared.running import has_console

    gateway, console = written.gateway, written.console
    url = console.public_url or f"http://{console.listen}" if console and has_console() else ""
    tables = {name: Path(path) for name, path in (gateway.engine.duckdb or {}).items()}
    return written.pasted(analyst, tables, {}, url)


def _word(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))
