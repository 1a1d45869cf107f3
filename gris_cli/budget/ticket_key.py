"""`gris budget ticket-key`."""

from __future__ import annotations

import os
from pathlib import Path

import typer

from gris_cli.flag_groups import required, with_flags


@with_flags
def ticket_key(
    *,
    key_file: Path = required("The noise key of dp_service."),
    out: Path = required("The file to write the ticket key to. It must not exist yet."),
    as_json: bool,
) -> None:
    """Write the key with which budget_service verifies charge tickets. It reveals nothing about the noise key."""
    from dp_service.releases.ticket import ticket_key as derived
    from dp_service.server.key_file import read_key_file
    from gris_cli.printing import print_written
    from gris_serving.key_files import KeyFileError

    try:
        secret = derived(read_key_file(key_file))
        # Nobody else may ever be able to read it, not even between creating it and changing its mode.
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except KeyFileError as error:
        raise typer.BadParameter(f"--key-file: {error}") from None
    except OSError as error:
        raise typer.BadParameter(f"--out: {out}: {error.strerror}") from None
    with os.fdopen(descriptor, "w") as stream:
        stream.write(secret.hex())
    print_written(out, as_json=as_json)
