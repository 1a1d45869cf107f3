"""What a bundle says of files and of its service, compared with the files that it has and with when it was made."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, TypeAlias

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    Field,
    TypeAdapter,
    ValidationError,
)

from gris_audit.bundle import CONFIGURATION, SERVICE
from gris_audit.checked import Checked

SIGNATURE_BYTES = 64
"""The size of a signature of Ed25519."""
LONGEST_END = timedelta(hours=1)
"""How long before the end of an export the service was asked at most: only digests of files are made after that."""
CLOCKS = timedelta(minutes=1)
"""By how much the clock of who exports may differ from the ledger's."""
_POLICY = "policy"
_NEVER = datetime(1, 1, 1, tzinfo=UTC)


class GivenFile(BaseModel):
    """What is checked of a file of which a bundle has the digest, and of its copy, which only a policy has.

    Bundles of earlier versions have no `signature_sha256`, and a policy may have no signature.
    """

    kind: str
    name: str
    sha256: str
    copied: str = Field(default="", alias="copy")
    signature: Annotated[str, BeforeValidator(lambda found: found or "")] = ""
    signature_sha256: str = ""


class _Verified(BaseModel):
    different: int
    entries: int


def _in_our_days(time: datetime) -> datetime:
    """Return a time to which an hour may be added, in any zone."""
    if not _NEVER.year < time.year < datetime.max.year:
        raise ValueError("expected a time of our days")
    return time


_Time: TypeAlias = Annotated[AwareDatetime, AfterValidator(_in_our_days)]


class _Status(BaseModel):
    configuration_since: _Time = _NEVER


class _Service(BaseModel):
    asked_at: _Time = _NEVER
    verified: _Verified = Field(alias="VerifyLedger")
    status: _Status = Field(alias="GetStatus")


_FILES = TypeAdapter(list[GivenFile])


def read_given_files(checked: Checked) -> list[GivenFile]:
    """Return the files of which a bundle has the digest; note a problem, and return none, if they are of no form."""
    try:
        return _FILES.validate_json((checked.directory / CONFIGURATION).read_bytes())
    except ValidationError:
        checked.note(CONFIGURATION, "expected files, each with kind, name and sha256")
        return []


def check_copies(checked: Checked, given: list[GivenFile]) -> None:
    """Compare each copy of a policy, and its signature, with what is said of them."""
    files, named = checked.manifest.files, set[str]()
    for policy in (each for each in given if each.kind == _POLICY):
        copies = [(policy.copied, policy.sha256, policy.name)]
        if policy.signature:
            copies.append((policy.signature, policy.signature_sha256, f"signature of {policy.name}"))
        for name, digest, what in copies:
            named.add(name)
            if (found := files.get(name)) is None:
                checked.note(CONFIGURATION, f"names no copy of the {what} that is in the bundle")
            elif digest and found.sha256 != digest:
                checked.note(name, f"is not the {what} of which {CONFIGURATION} has the digest")
            elif name == policy.signature and found.size != SIGNATURE_BYTES:
                checked.note(name, f"is no signature: expected {SIGNATURE_BYTES} bytes")
    if checked.signers.keys:
        _check_signers(checked, [each for each in given if each.kind == _POLICY])
    for name in sorted(each for each in files.keys() - named if each.startswith(f"{_POLICY}.")):
        checked.note(name, f"is a copy that {CONFIGURATION} does not name")


def _check_signers(checked: Checked, policies: list[GivenFile]) -> None:
    """Note each policy that none of the signers has signed, and that there is none."""
    if not policies:
        checked.note(CONFIGURATION, "has no policy, of which signers were named")
    for policy in policies:
        if not policy.signature:
            checked.note(CONFIGURATION, f"names no signature of {policy.name}, of which signers were named")
        elif {policy.copied, policy.signature} <= checked.manifest.files.keys():
            content, signature = (
                (checked.directory / name).read_bytes() for name in (policy.copied, policy.signature)
            )
            if not checked.signers.have_signed(content, signature):
                checked.note(
                    policy.signature, f"is no signature of {policy.copied} by a signer who was named"
                )


def check_service(checked: Checked) -> None:
    """Note differences that the ledger has found itself, and what the service cannot have said for this bundle."""
    try:
        service = _Service.model_validate_json((checked.directory / SERVICE).read_bytes())
    except ValidationError:
        checked.note(SERVICE, "expected what GetStatus and VerifyLedger have said")
        return
    verified, entries = service.verified, sum(each.entries for each in checked.manifest.journals)
    if verified.different:
        checked.note(SERVICE, f"the ledger differs from its journal: VerifyLedger found {verified.different}")
    if verified.entries < entries:
        said = f"VerifyLedger went over {verified.entries} entries, and the journals have {entries}"
        checked.note(SERVICE, f"is older than the bundle: {said}")
    made_at = datetime.fromisoformat(checked.manifest.made_at)
    since, asked_at = service.status.configuration_since, service.asked_at
    if since > made_at + CLOCKS:
        checked.note(SERVICE, f"has a configuration since {_text(since)}, and the bundle was made before")
    if asked_at != _NEVER and not made_at - LONGEST_END <= asked_at <= made_at:
        checked.note(SERVICE, f"was asked for at {_text(asked_at)}, and not for this bundle")


def _text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="seconds")
