"""Whose budget pays: the account of the caller and, where a rule allows it, accounts below it."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field

from pinot_connector.audiences import Audience

MAX_SEGMENTS = 4
MAX_SEGMENT_BYTES = 128


class AccountError(ValueError):
    """A segment that no account can have; the message says what was expected and shows nothing of it."""


class OutOfReachError(Exception):
    """An account that is not the caller's own, nor one below it that a rule lets the caller name."""


@dataclass(frozen=True)
class Caller:
    """A caller: a name that is unique among all callers, the account, from the root on, and the audience of the policy.

    Only with `accounts_below` may a caller name accounts below the own one: where the ledger creates accounts at first
    use, each would be a fresh budget for anyone who may choose its name.
    """

    name: str
    own: tuple[str, ...]
    accounts_below: bool = False
    audience: Audience | None = None

    def account(self, named: Sequence[str]) -> tuple[str, ...]:
        """Return the account that pays: the named one, or the caller's own if none is named.

        Segments are compared unchanged, whole and one by one, so no text can lead out of the account.

        Raises:
            AccountError: It cannot be an account.
            OutOfReachError: The caller may not name it.
        """
        if not named:
            return self.own
        if len(named) > MAX_SEGMENTS:
            raise AccountError(f"expected at most {MAX_SEGMENTS} segments")
        path = tuple(checked_segment(segment) for segment in named)
        reached = path[: len(self.own)] if self.accounts_below else path
        if reached != self.own:
            raise OutOfReachError
        return path


def checked_segment(text: object) -> str:
    """Return a segment of an account unchanged, if it can be one.

    Raises:
        AccountError: It is no text, empty, too long, not in NFC, a step of a path, or has a slash, a star or an
            invisible character.
    """
    if not isinstance(text, str) or not 1 <= len(text.encode("utf-8", "replace")) <= MAX_SEGMENT_BYTES:
        raise AccountError(f"expected segments of 1 to {MAX_SEGMENT_BYTES} bytes")
    # In the ledger's configuration a star stands for every name, and no account has one in its own.
    if "/" in text or "*" in text or text in (".", ".."):
        raise AccountError('expected segments without "/" and "*" that are not "." or ".."')
    # Invisible characters (category C) would let two accounts look alike.
    if not unicodedata.is_normalized("NFC", text) or any(
        unicodedata.category(each)[0] == "C" for each in text
    ):
        raise AccountError("expected segments in NFC without control or invisible characters")
    return text


Prefix = Annotated[
    list[Annotated[str, AfterValidator(checked_segment)]], Field(min_length=1, max_length=MAX_SEGMENTS)
]
"""An account of the configuration, from the root on."""
