"""Charge tickets and the file of their key."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from budget_service.ledger.values import Cost
from budget_service.server.tickets import Release, TicketVerifier
from dp_service.mechanisms.parameters import Cost as ReleaseCost
from dp_service.releases.keys import NoiseKey
from dp_service.releases.ticket import charge_ticket, ticket_key
from gris_serving.key_files import KeyFileError
from tests.support.budget_samples import OTHER_UNIT, UNIT

KEY = bytes(range(32))
RELEASE = Release("rel-\u00e9", "query", Cost(3, 1), UNIT)


def key_file(tmp_path: Path, content: bytes, mode: int = 0o440) -> Path:
    """Write a key file."""
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("blocks", [(), ("00000000000000aa", "0123456789abcdef")])
@pytest.mark.parametrize("stated", ["", "domain \u00e9"])
def test_a_ticket_is_what_the_format_says(stated: str, blocks: tuple[str, ...]) -> None:
    """Spelt out here byte by byte, because dp_service makes tickets on its own."""
    release = replace(RELEASE, policy_statement=stated, blocks=blocks)

    def part(content: bytes) -> bytes:
        return len(content).to_bytes(8, "big") + content

    said = part(b"gris/ticket/v1") + part("rel-\u00e9".encode()) + part(b"query")
    said += part((3).to_bytes(8, "big")) + part((1).to_bytes(8, "big")) + part(UNIT.encode())
    said += part(stated.encode()) + part(",".join(blocks).encode())
    key_id = hashlib.sha256(part(b"gris/ticket-key/v1") + part(KEY)).digest()[:8]
    expected = key_id + hmac.new(KEY, said, "sha256").digest()
    verifier = TicketVerifier(KEY)
    assert expected == verifier.ticket(release)
    assert verifier.is_authentic(expected, release)
    for other in {(), blocks[:1], blocks[1:], (*blocks, "f" * 16)} - {blocks}:
        assert not verifier.is_authentic(expected, replace(release, blocks=other))
    for statement in {"", "domain", "domain \u00e9"} - {stated}:
        assert not verifier.is_authentic(expected, replace(release, policy_statement=statement))


@pytest.mark.parametrize("blocks", [(), ("00000000000000aa",), ("00000000000000aa", "0123456789abcdef")])
@pytest.mark.parametrize("stated", ["", "domain \u00e9"])
def test_both_services_make_the_same_tickets(blocks: tuple[str, ...], stated: str) -> None:
    """Of every form, from the same noise key; for fewer blocks it is another one."""
    key = NoiseKey(KEY)
    fields: dict[str, Any] = {"release_id": "rel-\u00e9", "query_id": "query", "unit_id": UNIT}
    fields |= {"cost": ReleaseCost(3, 1), "policy_statement": stated, "blocks": blocks}
    ticket = charge_ticket(key, **fields)
    assert (ticket == charge_ticket(key, **fields | {"blocks": blocks[1:]})) == (not blocks)
    release = replace(RELEASE, policy_statement=stated, blocks=blocks)
    assert TicketVerifier(ticket_key(key)).is_authentic(ticket, release)


@pytest.mark.parametrize(
    "other",
    [
        replace(RELEASE, release_id="rel"),
        replace(RELEASE, query_id="query2"),
        replace(RELEASE, cost=Cost(2, 1)),
        replace(RELEASE, cost=Cost(3, 0)),
        replace(RELEASE, unit_id=OTHER_UNIT),
        replace(RELEASE, policy_statement="s"),
    ],
)
def test_a_ticket_speaks_of_one_release_only(other: Release) -> None:
    """No field of it can be changed."""
    verifier = TicketVerifier(KEY)
    assert not verifier.is_authentic(verifier.ticket(RELEASE), other)


def test_a_forged_ticket_is_not_authentic() -> None:
    """Of another key, with a flipped bit, cut short, or missing."""
    verifier = TicketVerifier(KEY)
    ticket = verifier.ticket(RELEASE)
    forged = [TicketVerifier(KEY[::-1]).ticket(RELEASE), ticket[:-1], b"", ticket + b"\0"]
    forged += [bytes([*ticket[:at], ticket[at] ^ 1, *ticket[at + 1 :]]) for at in range(len(ticket))]
    assert not any(verifier.is_authentic(each, RELEASE) for each in forged)


@pytest.mark.parametrize("content", [KEY, KEY.hex().encode(), KEY.hex().upper().encode() + b"\n"])
def test_a_key_is_raw_or_hexadecimal(tmp_path: Path, content: bytes) -> None:
    """32 bytes, or 64 characters with or without the end of the line."""
    assert TicketVerifier(KEY) == TicketVerifier.from_file(key_file(tmp_path, content))


@pytest.mark.parametrize("content", [b"", KEY[:-1], KEY.hex().encode()[:-2], b"z" * 64, KEY + b"\xff"])
def test_a_key_that_is_too_short_or_garbled_is_refused(tmp_path: Path, content: bytes) -> None:
    """The service does not start with it."""
    with pytest.raises(KeyFileError, match="32 bytes"):
        TicketVerifier.from_file(key_file(tmp_path, content))


@pytest.mark.parametrize("mode", [0o444, 0o441, 0o660, 0o602])
def test_a_key_that_others_can_read_or_write_is_refused(tmp_path: Path, mode: int) -> None:
    """The group may read, nobody else."""
    with pytest.raises(KeyFileError, match="0440"):
        TicketVerifier.from_file(key_file(tmp_path, KEY, mode))


def test_a_missing_key_is_refused_by_name(tmp_path: Path) -> None:
    """The error names the file."""
    with pytest.raises(KeyFileError, match="no-key"):
        TicketVerifier.from_file(tmp_path / "no-key")


def test_a_key_is_not_shown() -> None:
    """Not in a log, not in a traceback."""
    assert "ticket_key" not in repr(TicketVerifier(KEY))


def test_during_a_rotation_tickets_of_every_key_that_is_named_are_authentic(tmp_path: Path) -> None:
    """Those of the current key and of the other one, and no others."""
    keys = [bytes([each] * 32) for each in range(3)]
    paths = [tmp_path / str(index) for index in range(3)]
    for path, key in zip(paths, keys, strict=True):
        path.write_bytes(key)
        path.chmod(0o440)
    both = TicketVerifier.from_files(paths[0], [paths[1]])
    tickets = [TicketVerifier(key).ticket(RELEASE) for key in keys]
    assert [True, True, False] == [both.is_authentic(ticket, RELEASE) for ticket in tickets]
    with pytest.raises(KeyFileError, match="no-such-key"):
        TicketVerifier.from_files(paths[0], [tmp_path / "no-such-key"])
