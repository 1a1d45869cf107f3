"""One publication, from the data to the file; in between, the price is recorded."""

from __future__ import annotations

import datetime
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from dp_service.noise.encoding import length_prefixed
from dp_service.noise.stream import SEED_BYTES
from dp_service.partitions import KeyedElementNoise, Method, Parameters, discover, rounds
from dp_service.queries.published import DomainFile, in_order
from dp_service.queries.published_files import written
from dp_service.queries.versions import is_plain_hash
from dp_service.terms import ColumnType
from gris_cli.data.domain.canonical_pairs import Source
from gris_cli.data.domain.member_data import read_pairs
from gris_cli.data.domain.price import guarantee_of

READABLE = 0o644


@dataclass(frozen=True)
class Publication:
    """What is published: a column of a table of the policy, from which data, by which method."""

    table: str
    column: str
    data_version: str
    source: Source
    parameters: Parameters

    def __post_init__(self) -> None:
        if is_plain_hash(self.data_version):
            raise ValueError(
                "data_version: expected no plain hash of the data, by which a reader of the file could verify a guess "
                "of them: use a name, such as a date, or a keyed hash, such as hmac-sha256:..."
            )

    @property
    def salt(self) -> bytes:
        """The public salt of the order in which a member's elements are kept."""
        return length_prefixed(b"gris/domain/salt/v1", self.table.encode(), self.column.encode())


@dataclass(frozen=True)
class Found:
    """The canonical texts of the released elements, and their type."""

    texts: list[str]
    type: ColumnType


def found_on_this_machine(publication: Publication) -> Found:
    """Discover with NumPy on this machine. The seed is drawn here and forgotten here.

    Raises InputError, or TooManyError if there are more members or pairs than fit.
    """
    parameters = publication.parameters
    by_frequency = parameters.method is Method.GREEDY
    with read_pairs(
        publication.source, typical=parameters.typical, salt=publication.salt, by_frequency=by_frequency
    ) as pairs:
        noise = KeyedElementNoise(secrets.token_bytes(SEED_BYTES), parameters, pairs.keys)
        return Found(pairs.named(discover(pairs.contributions, parameters, noise).elements), pairs.type)


def domain_of(publication: Publication, found: Found, now: datetime.datetime) -> DomainFile:
    """Return what the file says.

    Raises:
        PublishedFileError: No such file could be read.
    """
    parameters = publication.parameters
    guarantee = guarantee_of(parameters.rho, parameters.delta)
    return DomainFile.of(
        {
            "table": publication.table,
            "column": publication.column,
            "type": found.type,
            "data_version": publication.data_version,
            "method": parameters.method.value,
            "rho": Fraction(parameters.rho),
            "delta": Fraction(parameters.delta),
            "typical": parameters.typical,
            "iterations": len(rounds(parameters)),
            "epsilon": guarantee.epsilon,
            "dp_delta": guarantee.delta,
            "published_at": now.isoformat(timespec="seconds"),
            "elements": in_order(found.texts, found.type),
        }
    )


def write_recorded(domain: DomainFile, out: Path, pay: Callable[[], object]) -> None:
    """Write the file whole, and only once `pay` has returned.

    Space for the content is reserved in a temporary file next to it before anything is paid, so that a full disk costs
    nothing. Until `pay` has returned it holds zeros, because a process that is killed can remove nothing. If `pay`
    raises, or the process is interrupted or terminated, neither file is left, and one that was there before stays.
    """
    write_paid(written(domain), out, pay)


def write_paid(content: bytes, out: Path, pay: Callable[[], object]) -> None:
    """Write any content as `write_recorded` does."""
    with _temporary_file_for(out) as path:
        _store(path, bytes(len(content)))
        pay()
        _store(path, content)
        # Only its owner can read a temporary file; dp_service may run as another user.
        path.chmod(READABLE)
        path.replace(out)


def _store(path: Path, content: bytes) -> None:
    """Write over what a file holds, as far as the disk; it is never cut, so it keeps its room."""
    with path.open("r+b") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def _temporary_file_for(out: Path) -> Iterator[Path]:
    """Give a new file in the same directory, which is removed if it is still there at the end."""
    handle, name = tempfile.mkstemp(prefix=f".{out.name}.", dir=out.parent)
    os.close(handle)
    path = Path(name)
    try:
        yield path
    finally:
        with suppress(FileNotFoundError):
            path.unlink()
