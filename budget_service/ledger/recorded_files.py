"""Files by which services decide, as the journal has them: of what kind, with which content, and under which name."""

from __future__ import annotations

import re

from msgspec import Struct

from budget_service.ledger.values import InvalidFieldError

_FIELDS = {
    "kind": (re.compile("[a-z]{1,32}"), "must be 1 to 32 lower-case letters"),
    "sha256": (re.compile("[0-9a-f]{64}"), "must be 64 hexadecimal digits in lower case"),
    "name": (
        re.compile("[A-Za-z0-9._-]{1,128}"),
        "must have 1 to 128 letters, digits, dots, hyphens and underscores",
    ),
}


def journal_name(name: str) -> str:
    """Return the name of a file as the journal may have it."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)[:128]


class RecordedFile(Struct, frozen=True, gc=False):
    """A kind that the ledger knows nothing of, the SHA-256 of the content, and the name without a path."""

    kind: str
    sha256: str
    name: str

    @property
    def text(self) -> str:
        """What the journal has of it."""
        return ":".join((self.kind, self.sha256, self.name))

    @staticmethod
    def parse(kind: str, sha256: str, name: str) -> RecordedFile:
        """Return a file. Raises InvalidFieldError."""
        found = RecordedFile(kind, sha256, name)
        for field, (form, problem) in _FIELDS.items():
            if not form.fullmatch(getattr(found, field)):
                raise InvalidFieldError(f"file.{field}", problem)
        return found

    @staticmethod
    def of_text(text: str) -> RecordedFile:
        """Return the file of an entry. Raises ValueError if it is none."""
        kind, sha256, name = text.split(":", 2)
        return RecordedFile.parse(kind, sha256, name)
