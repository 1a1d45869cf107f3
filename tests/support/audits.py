"""Bundles for auditors: who exports them, and what somebody has changed in one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from gris_api.budget.v1 import budget_pb2, budget_pb2_grpc
from gris_api.common.v1 import cost_pb2

from dp_service.queries.policy import read_policy
from gris_audit.bundle import MANIFEST, SIGNATURE, Manifest, hashed, sign
from gris_cli.__main__ import main
from gris_serving.key_files import read_signing_key
from pinot_connector.channels import open_channel
from pinot_connector.endpoints import Credentials, Endpoint
from tests.support.command_line import run_json

POLICY = (Path(__file__).parents[2] / "examples" / "series" / "policy.yaml").read_text()
UNIT = read_policy(POLICY.encode(), "policy").policy.currency.unit_id


class Running(Protocol):
    """A service by its addresses."""

    @property
    def address(self) -> str:
        """Where applications call it."""

    @property
    def admin_address(self) -> str | None:
        """Where administrators do."""


@dataclass(frozen=True)
class Company:
    """A ledger, perhaps behind TLS, its administrator, and the keys of who signs bundles."""

    folder: Path
    running: Running
    ops: Credentials | None = None
    reader: Credentials | None = None

    def typed(self, *words: object, signer: str = "signer") -> list[str]:
        """Return a command line of the administrator."""
        shown = self.ops
        paths = () if shown is None else (shown.ca_file, shown.certificate_file, shown.key_file)
        flags = zip(("--ca-file", "--certificate-file", "--key-file"), paths, strict=bool(paths))
        addresses = ("--admin", self.running.admin_address)
        asked = ("--budget", self.running.address, "--signing-key", self.folder / f"{signer}.key")
        more = (*addresses, *(asked if words[1] == "export" else ()))
        stated = (word for pair in flags for word in pair)
        return [str(each) for each in (*stated, *words, *more)]

    async def charge(self, *charges: tuple[tuple[str, ...], int, str]) -> None:
        """Charge accounts."""
        address = self.running.address
        async with open_channel(Endpoint(address, self.ops) if self.ops else address) as channel:
            stub: Any = budget_pb2_grpc.BudgetServiceStub(channel)
            for path, information, name in charges:
                await stub.UpdateBudget(
                    budget_pb2.UpdateBudgetRequest(
                        account=budget_pb2.Account(path=path),
                        cost=cost_pb2.Cost(
                            information=information,
                            calls=1,
                            unit_id=UNIT,
                            purpose="payroll" * (information % 2),
                        ),
                        request_id=name,
                        release_id=name,
                    )
                )


def signer_in(folder: Path, name: str) -> Ed25519PrivateKey:
    """Write a new pair of keys, and return the private one."""
    key = Ed25519PrivateKey.generate()
    private = folder / f"{name}.key"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    private.chmod(0o600)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / f"{name}.pem").write_bytes(public)
    return key


def verified(
    capsys: pytest.CaptureFixture[str], bundle: Path, company: Company, *more: object, sound: bool = True
) -> Any:
    """Verify a bundle; return what is said of it."""
    capsys.readouterr()
    words = ("audit", "verify", bundle, "--public-key", company.folder / "signer.pem", *more)
    found = run_json(capsys, *words, code=0 if sound else 1)
    assert found["sound"] == sound == (not found["problems"])
    return found


def problems(found: Any) -> list[tuple[str, str]]:
    """Return what is wrong, by file."""
    return [(each["file"], each["problem"]) for each in found["problems"]]


def lines_of(path: Path) -> list[str]:
    """Return the lines of a file with their ends."""
    return path.read_text().splitlines(keepends=True)


def changed_in(path: Path, old: str, new: str) -> None:
    """Replace a text that is in a file, once."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def rewritten(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    """Change the lines of a file."""
    path.write_text("".join(change(lines_of(path))))


def key_of(company: Company, name: str = "signer") -> Ed25519PrivateKey:
    """Return the private key of a signer."""
    return read_signing_key(company.folder / f"{name}.key")


def signed_again(company: Company, bundle: Path, signer: str = "signer", **changed: Any) -> None:
    """Sign a bundle as it is now: what a signer could do who wants to hide something."""
    manifest = Manifest.model_validate_json((bundle / MANIFEST).read_bytes())
    for name in (MANIFEST, SIGNATURE):
        (bundle / name).unlink()
    changed["files"] = {each.name: hashed(each) for each in bundle.iterdir()}
    sign(bundle, key_of(company, signer), manifest.model_copy(update=changed))


def refused(capsys: pytest.CaptureFixture[str], words: list[str], code: int = 2) -> str:
    """Run a command that fails; return what it says."""
    capsys.readouterr()
    assert main(words) == code
    return capsys.readouterr().err
