"""The ids of releases and questions, and the seed of the noise: keyed functions of exactly what they must depend on.

Source: noise.md, "Keyed, reproducible randomness" and "Ids".

- The **release specification** is the canonical question and everything that policy resolved. Two releases with
  different parameters have different seeds, so they never share random bits.
- The **seed** also takes the digest of the histogram: the same question on changed data gets new noise, and the
  difference of two answers is never the exact difference of two counts.
- `release_id` is a function of the seed alone: two releases share an id only if they share all their noise. A ledger
  charges nothing only for the very same release.
- `query_id` is known before the engine is asked: it takes everything but the digest, and the key's id, so that a
  question under another key has another id.
- Of a release that takes two looks, each look has a seed of its own, with its number; that of the second also takes all
  names and the id of the first, which is no id of a release: the second look's alone is.
- `view_id` is what a question shows of its release. It names no release, and is compared with other questions for the
  same one alone.
- With fresh consistency `release_id` and `query_id` take 32 bytes that are drawn anew at each translation: every
  question is a new one.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace

from dp_service.noise.encoding import length_prefixed
from dp_service.parameters.release import ReleaseParameters
from dp_service.releases.keys import KeyUse, NoiseKey
from dp_service.terms import Element


def release_specification(
    canonical_question: bytes, parameters: ReleaseParameters, *, drawn_by: tuple[int, int]
) -> bytes:
    """Return the canonical bytes of a release specification.

    Args:
        canonical_question: The bytes of what is asked (`canonical_bytes`).
        parameters: What policy and question fixed.
        drawn_by: The versions of the mechanism and of the sampler.
    """
    named = [
        length_prefixed(name.encode(), str(value).encode())
        for name, value in parameters.specified(drawn_by=drawn_by)
    ]
    return length_prefixed(
        b"gris/specification/v1", canonical_question, *named, _domain_digest(parameters.domain)
    )


def _domain_digest(domain: tuple[Element, ...] | None) -> bytes:
    if domain is None:
        return b""
    rows = [length_prefixed(*(f"{type(v).__name__}:{v}".encode() for v in element)) for element in domain]
    return hashlib.sha256(length_prefixed(b"gris/domain/v1", *rows)).digest()


def look_specification(
    specification: bytes, number: int, names: tuple[Element, ...] | None = None, before: str = ""
) -> bytes:
    """Return what stands for the release specification in the seed of one of two looks.

    Args:
        specification: The release specification.
        number: Which look it is, from 1.
        names: All elements that the look before named; None: there is none before.
        before: The id of the look before; empty: there is none.
    """
    return length_prefixed(
        b"gris/look/v1", specification, str(number).encode(), _domain_digest(names), before.encode()
    )


def release_seed(
    key: NoiseKey, specification: bytes, data_version: str, histogram_digest: bytes, fresh: bytes = b""
) -> bytes:
    """Return the 32-byte seed of a release's noise; `fresh` is empty, or 32 bytes from the operating system."""
    return key.authenticate(
        KeyUse.SEED, b"gris/noise/v1", specification, data_version.encode(), histogram_digest, fresh
    )


def release_id(seed: bytes) -> str:
    """Return the public name of the release that a seed makes, 64 hexadecimal characters."""
    return hmac.digest(seed, b"gris/release/v1", "sha256").hex()


def query_id(key: NoiseKey, specification: bytes, data_version: str, fresh: bytes = b"") -> str:
    """Return the public name of a question on one version of the data, 64 hexadecimal characters."""
    return key.authenticate(
        KeyUse.QUERY_ID,
        b"gris/query/v1",
        specification,
        data_version.encode(),
        key.key_id.encode(),
        fresh,
    ).hex()


def view_id(parameters: ReleaseParameters) -> str:
    """Return a name for what a question shows of its release, 64 hexadecimal characters.

    Questions for one release have the same name only if they show the same of it: also the same arithmetic, which no
    title tells apart.
    """
    # Large domains take long to write, and the release has them in its own id.
    written = repr(replace(parameters, domain=None, within=()))
    return hashlib.sha256(length_prefixed(b"gris/view/v1", written.encode())).hexdigest()


def keyed_data_version(key: NoiseKey, table: str, data_version: str) -> str:
    """Return the public name of a version of the data, 32 hexadecimal characters.

    It is keyed because a plain hash of segment checksums would let anyone verify a guess of the data.
    """
    tag = key.authenticate(
        KeyUse.DATA_VERSION, b"gris/data-version/v1", table.encode(), data_version.encode()
    )
    return tag.hex()[:32]
