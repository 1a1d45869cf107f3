"""Signed policies: where signers are configured, nothing is served that none of them has signed."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dp_service.queries.errors import PolicyError
from dp_service.server.policy_signatures import PolicySigners, read_signers
from dp_service.server.served_policy import PolicyFileWatch, ServedPolicy, usable_policy
from gris_serving.key_files import KeyFileError
from tests.support.dp_questions import KEY, POLICY

SIGNER, OTHER_SIGNER, STRANGER = (
    Ed25519PrivateKey.from_private_bytes(bytes([each]) * 32) for each in (1, 2, 3)
)
SIGNERS = PolicySigners((SIGNER.public_key(), OTHER_SIGNER.public_key()))
CHANGED = POLICY.replace("tau: 3", "tau: 4")


def written(path: Path, text: str, signature: bytes | None) -> Path:
    """Write a policy and its signature; return the policy's path."""
    path.write_text(text)
    beside = path.with_name(path.name + ".sig")
    beside.unlink(missing_ok=True)
    if signature is not None:
        beside.write_bytes(signature)
    return path


def pem(folder: Path, name: str, key: Ed25519PrivateKey) -> Path:
    """Write the public key of a signer."""
    path = folder / name
    path.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return path


@pytest.mark.parametrize("signer", [SIGNER, OTHER_SIGNER])
def test_a_policy_that_one_signer_has_signed_is_taken(signer: Ed25519PrivateKey) -> None:
    """Any of them, and exactly this content."""
    SIGNERS.require(POLICY.encode(), signer.sign(POLICY.encode()), "policy.yaml")


@pytest.mark.parametrize(
    ("signature", "found"),
    [
        (None, "that file cannot be read"),
        (b"", "what it holds is none"),
        (SIGNER.sign(CHANGED.encode()), "what it holds is none"),
        (STRANGER.sign(POLICY.encode()), "what it holds is none"),
        (SIGNER.sign(POLICY.encode())[:-1], "what it holds is none"),
        (SIGNER.sign(POLICY.encode()) + b"\n", "what it holds is none"),
    ],
)
def test_any_other_policy_is_refused(signature: bytes | None, found: str) -> None:
    """None, of other content, by somebody else, or not whole."""
    with pytest.raises(PolicyError, match=r"by a key of --policy-signer in policy\.yaml\.sig") as error:
        SIGNERS.require(POLICY.encode(), signature, "policy.yaml")
    assert str(error.value).endswith(found)


def test_without_signers_no_signature_is_needed() -> None:
    """The rule holds where it is configured."""
    PolicySigners().require(POLICY.encode(), None, "policy.yaml")


def test_a_change_is_served_once_it_is_signed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Until then the policy before it is, and the log says why; the signature may come after the policy."""
    path = written(tmp_path / "policy.yaml", POLICY, SIGNER.sign(POLICY.encode()))
    served = ServedPolicy(usable_policy(POLICY.encode(), str(path), KEY))
    watch = PolicyFileWatch(path, served, POLICY.encode(), KEY, SIGNERS)
    before = served.content
    written(path, CHANGED, SIGNER.sign(POLICY.encode()))
    with caplog.at_level(logging.ERROR):
        assert [False, True, False] == [watch.poll() for _ in range(3)]
    assert "expected a signature" in caplog.records[0].__dict__["fields"]["problem"]
    assert served.content is before
    assert not watch.is_served
    written(path, CHANGED, OTHER_SIGNER.sign(CHANGED.encode()))
    assert [False, True] == [watch.poll() for _ in range(2)]
    assert served.content.text == CHANGED
    assert watch.is_served


def test_only_public_keys_of_ed25519_are_signers(tmp_path: Path) -> None:
    """A key of another kind, something else, or no file is named."""
    key = tmp_path / "key.pem"
    curve = generate_private_key(SECP256R1()).public_key()
    for content in (curve.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), b"no key"):
        key.write_bytes(content)
        with pytest.raises(KeyFileError, match=r"key\.pem: expected a public key of Ed25519 in PEM"):
            read_signers([key])
    with pytest.raises(KeyFileError, match=r"absent\.pem: No such file"):
        read_signers([tmp_path / "absent.pem"])
    assert (SIGNER.public_key(),) == read_signers([pem(tmp_path, "signer.pem", SIGNER)]).keys


@pytest.mark.usefixtures("starts_processes")
@pytest.mark.parametrize(("signer", "code"), [(SIGNER, 0), (STRANGER, 2)])
def test_the_service_begins_with_a_signed_policy_alone(
    tmp_path: Path, signer: Ed25519PrivateKey, code: int
) -> None:
    """Exit code 2 and one line otherwise."""
    path = written(tmp_path / "policy.yaml", POLICY, signer.sign(POLICY.encode()))
    key = tmp_path / "noise.key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o400)
    options = ["--policy", str(path), "--key-file", str(key), "--validate"]
    command = [
        sys.executable,
        "-m",
        "dp_service",
        *options,
        "--policy-signer",
        str(pem(tmp_path, "s.pem", SIGNER)),
    ]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert finished.returncode == code
    assert ("expected a signature" in finished.stderr) is (code == 2)
