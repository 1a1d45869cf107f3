"""Reads keys from their files. No message shows what a file holds."""

from __future__ import annotations

import stat
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

KEY_BYTES = 32


class KeyFileError(Exception):
    """A key file that cannot be used."""


def read_key(path: Path) -> bytes:
    """Read 32 bytes, raw or as 64 hexadecimal characters.

    Raises:
        KeyFileError: The file is missing, has another length, can be read by others than owner and group, or can be
            written by the group.
    """
    return _secret(path, _read_private(path))


def _read_private(path: Path) -> bytes:
    """Return what a file holds that is secret.

    Raises:
        KeyFileError: The file is missing, can be read by others than owner and group, or can be written by the group.
    """
    try:
        mode = path.stat().st_mode
        content = path.read_bytes()
    except OSError as error:
        raise KeyFileError(f"key file {path}: {error.strerror}") from None
    if mode & (stat.S_IRWXO | stat.S_IWGRP):
        raise KeyFileError(
            f"key file {path}: others may read it or the group may write it; use mode 0400 or 0440"
        )
    return content


def read_public_key(path: Path) -> Ed25519PublicKey:
    """Read the public key of who signs. Raises KeyFileError."""
    try:
        key = load_pem_public_key(path.read_bytes())
    except OSError as error:
        raise KeyFileError(f"key of a signer {path}: {error.strerror}") from None
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise KeyFileError(f"key of a signer {path}: expected a public key of Ed25519 in PEM")
    return key


def read_signing_key(path: Path) -> Ed25519PrivateKey:
    """Read the private key of who signs.

    Raises:
        KeyFileError: The file cannot be read, or by too many, or holds no private key of Ed25519 in PEM.
    """
    try:
        key = load_pem_private_key(_read_private(path), password=None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyFileError(f"{path}: expected a private key of Ed25519 in PEM, without a password")
    return key


def _secret(path: Path, content: bytes) -> bytes:
    if len(content) == KEY_BYTES:
        return content
    try:
        secret = bytes.fromhex(content.decode("ascii").strip())
    except ValueError:
        secret = b""
    if len(secret) != KEY_BYTES:
        raise KeyFileError(
            f"key file {path}: expected {KEY_BYTES} bytes, or {2 * KEY_BYTES} hexadecimal characters"
        )
    return secret
