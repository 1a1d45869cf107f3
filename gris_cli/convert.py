"""`gris convert`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from gris_cli.flag_groups import flag, required, with_flags
from gris_cli.inputs import file_errors, named_by


@dataclass(frozen=True)
class ConvertFlags:
    """What is converted, and into what."""

    source: str = required(
        "CSV (.csv), TSV (.tsv), a Parquet file, or a folder or pattern of Parquet files.",
        "--input",
        metavar="PATH",
    )
    out: Path = required("The Parquet file to write, which must not exist.", metavar="FILE")
    types: list[str] = flag(
        [],
        "The type of a column: string, int64, bool, date, timestamp, or decimal for numbers that are summed. Without "
        "it a column of CSV is a text, and one of Parquet stays as it is. Repeatable.",
        "--type",
        metavar="COLUMN=TYPE",
    )
    memory: str = flag("2GB", "How much memory this may use, about; the rest goes to disk.", metavar="SIZE")


@with_flags
def convert(*, flags: ConvertFlags, as_json: bool) -> None:
    """Write one Parquet file of CSV, or of a folder of Parquet, with the types that you state. For the owner."""
    from gris_cli.terminal import grid, print_json, say, show
    from gris_data.commands import conversion
    from gris_data.converting import convert as converted
    from pinot_connector import formats

    types = _types(flags.types)
    with named_by("--input"), file_errors(flags.out, "--out"):
        done = converted(flags.source, flags.out, types, flags.memory)
    if as_json:
        print_json({**asdict(done), "written": str(flags.out)})
        return
    rows, files = formats.counted(done.rows, "row"), formats.counted(done.files, "file")
    say(
        "written",
        f"{flags.out}: {rows} of {files}; true counts, for the owner alone",
    )
    cells = [(each.given, each.name, each.type, f"{each.empty:,}") for each in done.columns]
    show(grid(("given", "column", "type", "rows without a value"), cells))
    likely = {each.given: each.likely_type for each in done.columns if each.likely_type}
    if likely:
        typer.echo(
            "\nSome texts are all numbers, days or timestamps. With types they can be summed, or be a time:"
        )
        typed = flags.out.with_stem(f"{flags.out.stem}-typed")
        typer.echo(f"  {conversion(flags.source, typed, types | likely)}")


def _types(texts: Sequence[str]) -> dict[str, str]:
    """Return the type of each column that was stated."""
    from gris_data.converting import TYPES

    found = {}
    for text in texts:
        name, equals, kind = text.rpartition("=")
        if not equals or kind not in TYPES:
            raise typer.BadParameter(f"--type expects COLUMN=TYPE with one of {', '.join(TYPES)}, got {text}")
        found[name] = kind
    return found
