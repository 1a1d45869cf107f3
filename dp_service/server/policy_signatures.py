"""Signatures of policies: where keys of signers are configured, a policy is served only if one of them has signed it.

So who can change the policy file alone changes nothing. A signature is 64 bytes of Ed25519 over the content of the
file, as `openssl pkeyutl -sign -rawin` makes, in a file beside it. Files that the policy names by their hash are signed
with it; the manifest of a pairs copy is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dp_service.queries.errors import PolicyError, Problem
from gris_serving.key_files import read_public_key

SIGNATURE_SUFFIX = ".sig"
"""How the name of the file with a policy's signature ends, behind that of the policy."""


@dataclass(frozen=True)
class PolicySigners:
    """Who may sign policies; nobody: policies need no signature."""

    keys: tuple[Ed25519PublicKey, ...] = ()

    def have_signed(self, content: bytes, signature: bytes) -> bool:
        """Return whether one of them has made this signature of the content of a policy's file."""
        return any(_has_signed(key, content, signature) for key in self.keys)

    def require(self, content: bytes, signature: bytes | None, source: str) -> None:
        """Make sure that a policy is signed.

        Args:
            content: What the policy's file holds.
            signature: What the file beside it holds; None: it cannot be read.
            source: The name of the policy's file, for errors.

        Raises:
            PolicyError: No signer has signed this content.
        """
        if not self.keys or (signature is not None and self.have_signed(content, signature)):
            return
        found = "that file cannot be read" if signature is None else "what it holds is none"
        expected = (
            f"expected a signature of this content by a key of --policy-signer in {source}{SIGNATURE_SUFFIX}"
        )
        raise PolicyError((Problem(source, 1, "", f"{expected}; {found}"),))


ANYBODY = PolicySigners()
"""Policies need no signature."""


def _has_signed(key: Ed25519PublicKey, content: bytes, signature: bytes) -> bool:
    try:
        key.verify(signature, content)
    except InvalidSignature:
        return False
    return True


def signature_file(policy: Path) -> Path:
    """Return the file with the signature of a policy."""
    return policy.with_name(policy.name + SIGNATURE_SUFFIX)


def read_signers(paths: Sequence[Path]) -> PolicySigners:
    """Read the public keys of signers.

    Raises:
        KeyFileError: A file cannot be read, or holds no public key of Ed25519 in PEM.
    """
    return PolicySigners(tuple(map(read_public_key, paths)))
