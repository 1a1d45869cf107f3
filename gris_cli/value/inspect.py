"""`gris value inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gris_cli.flag_groups import with_flags
from gris_cli.inputs import file_errors


@with_flags
def inspect(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file of a bound.")],
    *,
    as_json: bool,
) -> None:
    """Show what the file of a bound holds, and check that it is intact."""
    from dp_service.queries.published_bounds import BoundFile
    from dp_service.queries.published_files import PublishedFileError
    from gris_cli.value.reports import print_bound

    try:
        with file_errors(file):
            content = file.read_bytes()
        bound = BoundFile.read(content)
    except PublishedFileError as error:
        raise typer.BadParameter(f"{file}: {error}") from None
    print_bound(bound, content, None, as_json=as_json)
