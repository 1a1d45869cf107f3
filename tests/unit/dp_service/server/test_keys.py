"""Keys: sub-keys are apart, and a key never shows itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from dp_service.releases.keys import KeyUse, NoiseKey
from dp_service.server.key_file import read_key_file
from gris_serving.key_files import KeyFileError
from tests.unit.dp_service.key_files import key_file

SECRET = bytes(range(32))


def test_every_use_has_a_subkey_of_its_own() -> None:
    """No two uses share a sub-key, and none is the secret itself."""
    subkeys = {NoiseKey(SECRET).subkey(use) for use in KeyUse}
    assert len(KeyUse) == len(subkeys)
    assert SECRET not in subkeys


def test_subkeys_are_fixed_by_a_test_vector() -> None:
    """Another version or another language can derive the same seed sub-key."""
    expected = "3848a778797962a3e90fd31a2973831d397b8057f1dca541396991b63f3dc6da"
    assert expected == NoiseKey(SECRET).subkey(KeyUse.SEED).hex()


def test_a_key_does_not_show_its_secret() -> None:
    """Printing a key, by accident or in a traceback, shows nothing of it."""
    shown = repr(NoiseKey(SECRET))
    assert SECRET.hex() not in shown
    assert "\\x00" not in shown


@pytest.mark.parametrize("length", [0, 16, 31, 33, 64])
def test_a_secret_of_another_length_is_refused(length: int) -> None:
    """Only 32 bytes make a key."""
    with pytest.raises(ValueError, match="secret: expected 32 bytes"):
        NoiseKey(b"x" * length)


@pytest.mark.parametrize("content", [SECRET, SECRET.hex().encode(), SECRET.hex().encode() + b"\n"])
def test_a_key_file_holds_raw_or_hexadecimal_bytes(tmp_path: Path, content: bytes) -> None:
    """Both forms of a key file give the same key."""
    assert NoiseKey(SECRET) == read_key_file(key_file(tmp_path, content))


@pytest.mark.parametrize("content", [b"", b"short", SECRET[:31], b"zz" * 32, SECRET.hex().encode()[:-2]])
def test_a_key_file_of_another_length_is_refused(tmp_path: Path, content: bytes) -> None:
    """A short key file is a start-up error that does not print what the file holds."""
    with pytest.raises(KeyFileError, match="expected 32 bytes") as caught:
        read_key_file(key_file(tmp_path, content))
    assert not content or content.decode() not in str(caught.value).replace(str(tmp_path), "")


@pytest.mark.parametrize(
    ("mode", "allowed"), [(0o400, True), (0o600, True), (0o440, True), (0o644, False), (0o660, False)]
)
def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path, mode: int, allowed: bool) -> None:
    """Owner and reading group are allowed, as Kubernetes mounts secrets; everybody else is not."""
    path = key_file(tmp_path, SECRET, mode)
    if allowed:
        assert NoiseKey(SECRET) == read_key_file(path)
        return
    with pytest.raises(KeyFileError, match="0440"):
        read_key_file(path)


def test_a_missing_key_file_is_refused(tmp_path: Path) -> None:
    """No key, no service: there is no default key."""
    with pytest.raises(KeyFileError, match="No such file"):
        read_key_file(tmp_path / "absent.key")
