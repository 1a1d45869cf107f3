"""`gris audit` against a real budget_service over TLS, and bundles that somebody has changed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry, generate_latest

from budget_service.ledger.state import EntryKind, JournalEntry
from budget_service.ledger.values import Account, Cost
from budget_service.ledger.verification import next_digest
from budget_service.server.archives import Chain, entry_line, last_line, read_archive, read_entries
from gris_audit.bundle import (
    LABEL,
    MANIFEST,
    NAMES,
    SERVICE,
    SIGNATURE,
    Journal,
    Manifest,
    hashed,
)
from gris_audit.checked import Checked
from gris_audit.contents import check_contents
from gris_cli.__main__ import main
from gris_serving.call_outcome import CallOutcome
from gris_serving.metrics import CallMetrics
from tests.support.audits import (
    POLICY,
    Company,
    changed_in,
    key_of,
    lines_of,
    problems,
    refused,
    rewritten,
    signed_again,
    signer_in,
    verified,
)
from tests.support.budget_process import service
from tests.support.command_line import run_json
from tests.support.dp_server import listening, servicer_of
from tests.support.pki import Authority, dns
from tests.support.rings import needs

ODD = "größe ..%2F~ 50%"
CONFIGURATION = f"""
create_at_first_use: true
administration: {{records_files: false}}
accounts:
  - path: [acme]
    limit: {{information: 2000000, calls: 2000000}}
    purposes: {{payroll: {{information: 1000000, calls: 1000000}}}}
  - {{path: [acme, "*"], limit: {{information: 1000000, calls: 1000000}}}}
  - {{path: ["{ODD}"], limit: {{information: 1000, calls: 1000}}, window: never}}
"""
ACCESS = """
certificates:
  "dns:ops.example.org": [admin, read, spend]
  "dns:reader.example.org": [read]
jwt:
  key_file: {folder}/issuer.pem
  algorithms: [EdDSA]
  issuer: https://login.example.org
  audience: gris-budget
"""


@pytest.fixture(scope="module")
@needs("process")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    """Two roots with charges, a limit that was set, an account that was closed, and one that was moved."""
    folder = tmp_path_factory.mktemp("company")
    authority = Authority.new(folder)
    certificate, key = authority.server()
    signer_in(folder, "issuer")
    (folder / "access.yaml").write_text(ACCESS.format(folder=folder))
    (folder / "archive").mkdir()
    options: list[object] = ["--tls-certificate", certificate, "--tls-key", key]
    options += ["--tls-client-ca", authority.ca_file, "--access", folder / "access.yaml"]
    options += ["--admin-listen", "127.0.0.1:0", "--archive", folder / "archive"]
    for name in ("signer", "other"):
        signer_in(folder, name)
    ops, reader = (authority.client(dns(f"{name}.example.org"), file=name) for name in ("ops", "reader"))
    with service(
        folder, f"sqlite:{folder}/ledger.db", *map(str, options), configuration=CONFIGURATION
    ) as running:
        found = Company(folder, running, ops, reader)
        asyncio.run(
            found.charge(
                (("acme", "ann"), 7, "r1"),
                (("acme", "ann"), 5, "r2"),
                (("acme", "bob"), 3, "r3"),
                ((ODD,), 2, "r4"),
            )
        )
        because = ("--reason", "because")
        limit = ("--information", 50, "--calls", 5)
        for words in (
            ("set-limit", "--account", "acme/ann", *limit, *because),
            ("move", "--account", "acme/bob", "--to", "acme/bea", *because),
            ("close", "--account", "acme/ann", *because),
            ("seal", "--root", "acme"),
        ):
            assert main(found.typed("budget", *words)) == 0
        yield found


@pytest.fixture(scope="module")
def exported(company: Company) -> Path:
    """A bundle of the whole ledger."""
    folder = company.folder
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "policy.yaml.sig").write_bytes(key_of(company, "other").sign(POLICY.encode()))
    registry = CollectorRegistry()
    CallMetrics(registry).of("gris.budget.v1.BudgetService", "ReserveBudget").failed(
        CallOutcome("RESOURCE_EXHAUSTED", "BUDGET_EXHAUSTED", 0.1)
    )
    (folder / "metrics.txt").write_bytes(generate_latest(registry))
    files = [f"{kind}={folder}/{name}" for kind, name in (
        ("policy", "policy.yaml"), ("budget", "budget.yaml"), ("access", "access.yaml"), ("metrics", "metrics.txt")
    )]  # fmt: skip
    words = [word for file in files for word in ("--file", file)]
    assert main(company.typed("audit", "export", folder / "bundle", *words)) == 0
    return folder / "bundle"


@pytest.fixture
def bundle(exported: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(exported, tmp_path / "bundle"))


JOURNAL = "journal.acme.jsonl"


def test_a_bundle_says_who_did_what_and_is_sound(
    company: Company, exported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who made it is whom the ledger has authenticated; files are their owner's alone."""
    found = verified(capsys, exported, company)
    assert ("dns:ops.example.org", True) == (found["made_by"], found["every_root"])
    # The levels above accounts are compared too, and the old name of an account, under which nothing counts.
    assert (5, 0) == (found["levels_compared"], found["levels_not_compared"])
    assert [("acme", 1, 6, 6), (ODD, 1, 1, 0)] == [
        (each["root"], each["first"], each["last"], each["checkpoint"]) for each in found["journals"]
    ]
    assert {0o600} == {each.stat().st_mode & 0o777 for each in exported.iterdir()}
    assert 0o700 == exported.stat().st_mode & 0o777
    entries = [json.loads(line) for line in lines_of(exported / JOURNAL)]
    acts = [(each["kind"], each["actor"], each["reason"]) for each in entries[:-1] if "actor" in each]
    assert [(kind, "dns:ops.example.org", "because") for kind in ("limit", "move", "close")] == acts
    assert main(["audit", "verify", str(exported), "--public-key", str(company.folder / "signer.pem")]) == 0
    assert "sound" in capsys.readouterr().out


def test_no_secret_and_no_file_of_keys_is_in_a_bundle(company: Company, exported: Path) -> None:
    """Roles are there by name; of files but the policy the digest alone."""
    said = {each["kind"]: each for each in json.loads((exported / "configuration.json").read_text())}
    assert ["policy", "budget", "access", "metrics"] == list(said)
    assert {"dns:ops.example.org": ["admin", "read", "spend"], "dns:reader.example.org": ["read"]} == (
        said["access"]["certificates"]
    )
    assert {
        "issuer": "https://login.example.org",
        "audience": "gris-budget",
        "roles_claim": "gris_roles",
    } == (said["access"]["jwt"])
    everything = b"".join(each.read_bytes() for each in exported.iterdir())
    assert b"issuer.pem" not in everything
    assert b"PRIVATE KEY" not in everything
    assert POLICY == (exported / said["policy"]["copy"]).read_text()
    signature = (company.folder / "policy.yaml.sig").read_bytes()
    assert signature == (exported / said["policy"]["signature"]).read_bytes()
    (refusals,) = json.loads((exported / "refusals.json").read_text())
    labels = {"grpc_service": "gris.budget.v1.BudgetService", "grpc_method": "ReserveBudget"}
    labels |= {"code": "RESOURCE_EXHAUSTED", "reason": "BUDGET_EXHAUSTED"}
    assert [{"counter": "gris_rpc_failures_total", "labels": labels, "count": 1.0}] == refusals["counts"]


def digest_of(path: Path, before: str, skip: int = 0) -> str:
    """Return the digest of a file's entries but the first `skip`, after others."""
    return reduce(next_digest, list(read_entries(path))[skip:], before)


def _spent_for_a_purpose(path: Path, information: str) -> None:
    """Change what purposes have spent."""
    lines = [json.loads(line) for line in lines_of(path)]
    for purpose in (purpose for line in lines for purpose in line["budget"].get("purposes", ())):
        purpose["spent"]["information"] = information
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def _windows(bundle: Path, field: str, time: str) -> None:
    found = (bundle / "accounts.jsonl").read_text()
    (bundle / "accounts.jsonl").write_text(re.sub(rf'("{field}": )"[^"]*"', rf'\1"{time}"', found))


def _said(path: Path, change: Callable[[Any], object], sig: bytes = b"") -> None:
    """Change what a file of JSON says, and perhaps the signature of the policy."""
    change(found := json.loads(path.read_text()))
    path.write_text(json.dumps(found))
    if sig:
        (path.parent / "policy.1.yaml.sig").write_bytes(sig)


def _link(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _with_hidden_act(line: str) -> str:
    """Return an entry whose act is in its holds: other fields, but the same texts in the same order."""
    entry = json.loads(line)
    if entry.get("kind") == "limit":
        entry["holds"] = [[name, entry.pop(name)] for name in ("reason", "actor", "change")]
    return json.dumps(entry) + "\n"


LENGTH = "bytes; expected"
CONTENT = "has another content than the one that was signed"
NO_SIGNATURE = "is no signature of this manifest.json by this key"
NO_FILE = "expected a regular file, and no link"
TAMPERED: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "an entry": (lambda b: changed_in(b / JOURNAL, '"information": 7', '"information": 9'), JOURNAL, CONTENT),
    "an entry dropped": (lambda b: rewritten(b / JOURNAL, lambda all_: all_[1:]), JOURNAL, LENGTH),
    "two swapped": (lambda b: rewritten(b / JOURNAL, lambda all_: [*all_[1::-1], *all_[2:]]), JOURNAL, CONTENT),
    "cut off": (lambda b: os.truncate(b / JOURNAL, 100), JOURNAL, f"has 100 {LENGTH}"),
    "a long line": (lambda b: rewritten(b / JOURNAL, lambda all_: [*all_, "x" * 2**22]), JOURNAL, LENGTH),
    "a file added": (lambda b: (b / "more.txt").touch(), "more.txt", "is not in manifest.json"),
    "a folder added": (lambda b: (b / "more").mkdir(), "more", "is not in manifest.json"),
    "an odd name": (lambda b: (b / "a\n\x1b[2Jb\u202e").touch(), "a\n\x1b[2Jb\u202e", "is not in manifest.json"),
    "no text": (lambda b: (b / os.fsdecode(b"\xff")).touch(), "?", "is not in manifest.json"),
    "a file removed": (lambda b: (b / "accounts.jsonl").unlink(), "accounts.jsonl", "is missing"),
    "a journal removed": (lambda b: (b / JOURNAL).unlink(), JOURNAL, "is missing"),
    "a link": (lambda b: _link(b / JOURNAL), JOURNAL, NO_FILE),
    "a pipe": (lambda b: _pipe(b / JOURNAL), JOURNAL, NO_FILE),
    "the manifest": (lambda b: changed_in(b / MANIFEST, '"entries": 6', '"entries": 7'), SIGNATURE, NO_SIGNATURE),
    "a linked manifest": (lambda b: _link(b / MANIFEST), MANIFEST, NO_FILE),
    "no manifest": (lambda b: (b / MANIFEST).unlink(), MANIFEST, "No such file or directory"),
    "no signature": (lambda b: (b / SIGNATURE).unlink(), SIGNATURE, "No such file or directory"),
    "an empty signature": (lambda b: (b / SIGNATURE).write_bytes(b""), SIGNATURE, NO_SIGNATURE),
    "a long signature": (lambda b: (b / SIGNATURE).write_bytes(b"x" * 65), SIGNATURE, "at most 64 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("case", TAMPERED)
def test_what_was_changed_after_it_was_signed_is_found(
    company: Company, bundle: Path, capsys: pytest.CaptureFixture[str], case: str
) -> None:
    """The one problem that is reported names the file and says what is wrong with it, and drives no terminal."""
    tamper, file, problem = TAMPERED[case]
    tamper(bundle)
    ((named, said),) = problems(verified(capsys, bundle, company, sound=False))
    assert file == named
    assert problem in said
    assert main(["audit", "verify", str(bundle), "--public-key", str(company.folder / "signer.pem")]) == 1
    assert "\x1b" not in capsys.readouterr().out


def test_no_other_signature_passes(
    company: Company, bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither by another key, nor one that the same key has made of the manifest as of a policy."""
    words = ("audit", "verify", bundle, "--public-key", company.folder / "other.pem")
    assert [(SIGNATURE, NO_SIGNATURE)] == problems(run_json(capsys, *words, code=1))
    key = key_of(company)
    (bundle / SIGNATURE).write_bytes(key.sign((bundle / MANIFEST).read_bytes()))
    assert [(SIGNATURE, NO_SIGNATURE)] == problems(verified(capsys, bundle, company, sound=False))


@needs("process")
def test_openssl_verifies_the_signature_as_the_page_says(
    company: Company, exported: Path, tmp_path: Path
) -> None:
    """Who has not got Gris can do the same."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    signed = tmp_path / "signed"
    signed.write_bytes(LABEL + (exported / MANIFEST).read_bytes())
    words = [
        "openssl",
        "pkeyutl",
        "-verify",
        "-pubin",
        "-inkey",
        str(company.folder / "signer.pem"),
        "-rawin",
    ]
    done = subprocess.run(
        [*words, "-in", signed, "-sigfile", exported / SIGNATURE], capture_output=True, check=False
    )
    assert (0, True) == (done.returncode, b"Verified" in done.stdout)


SIGNED: tuple[tuple[str, Callable[[Path], object], list[tuple[str, str]]], ...] = (
    (
        "an entry",
        lambda b: changed_in(b / JOURNAL, '"information": 7', '"information": 9'),
        [(JOURNAL, "has entries that do not have its digest")],
    ),
    (
        "an actor",
        lambda b: changed_in(b / JOURNAL, "dns:ops", "dns:eve"),
        [(JOURNAL, "has entries that do not have its digest")],
    ),
    (
        "two swapped",
        lambda b: rewritten(b / JOURNAL, lambda all_: [*all_[1::-1], *all_[2:]]),
        [(JOURNAL, "has entries that do not have its digest")],
    ),
    (
        "an entry dropped",
        lambda b: rewritten(b / JOURNAL, lambda all_: all_[1:]),
        [(JOURNAL, "needs the file that ends with entry 1 of acme")],
    ),
    (
        "no entry",
        lambda b: changed_in(b / JOURNAL, '"unit_id": "', '"unit_id": 3, "x": "'),
        [(JOURNAL, "has a line that no ledger writes")],
    ),
    (
        "a long line",
        lambda b: changed_in(b / JOURNAL, '"r1"', '"' + "x" * 2**22 + '"'),
        [(JOURNAL, "is no archive, or not a whole one")],
    ),
    (
        "deep nesting",
        lambda b: rewritten(b / JOURNAL, lambda all_: ["[" * 200_000 + "\n", *all_]),
        [(JOURNAL, "is no archive, or not a whole one")],
    ),
    (
        "an act that is moved into the holds",
        lambda b: rewritten(b / JOURNAL, lambda all_: [_with_hidden_act(each) for each in all_]),
        [(JOURNAL, "has a line that no ledger writes")],
    ),
    (
        "a segment of two",
        lambda b: changed_in(b / JOURNAL, '["acme", "~', '["acme/~'),
        [(JOURNAL, "has a line that is no entry")],
    ),
    (
        "a text for a number",
        lambda b: rewritten(b / JOURNAL, lambda all_: [re.sub(r'("time": )(\d+)', r'\1"\2"', _) for _ in all_]),
        [(JOURNAL, "has a line that no ledger writes")],
    ),
    (
        "a field twice",
        lambda b: changed_in(b / JOURNAL, '"reason": "because"', '"reason": "another", "reason": "because"'),
        [(JOURNAL, "has a line that no ledger writes")],
    ),
    (
        "an account left out",
        lambda b: rewritten(b / "accounts.jsonl", lambda all_: [each for each in all_ if '"ann"]' not in each]),
        [("accounts.jsonl", "does not have acme/ann, which is in the journal or in names.jsonl")],
    ),
    ("no accounts", lambda b: (b / "accounts.jsonl").unlink(), [(MANIFEST, "does not have accounts.jsonl")]),
    ("no refusals", lambda b: (b / "refusals.json").unlink(), [(MANIFEST, "does not have refusals.json")]),
    (
        "what was spent",
        lambda b: changed_in(b / "accounts.jsonl", '"spent": {"information": "15"', '"spent": {"information": "14"'),
        [("accounts.jsonl", "acme has spent 14 information units, and 15 by the journal")],
    ),
    (
        "what was spent for a purpose",
        lambda b: _spent_for_a_purpose(b / "accounts.jsonl", "14"),
        [("accounts.jsonl", "acme*payroll* has spent 14 information units, and 15 by the journal")],
    ),
    (
        "an account that is none",
        lambda b: rewritten(b / "accounts.jsonl", lambda all_: ["{}\n", *all_]),
        [("accounts.jsonl", "line 1: expected an account and its budget")],
    ),
    (
        "no text",
        lambda b: [(b / name).write_bytes(b"\xff\n" + (b / name).read_bytes()) for name in ("accounts.jsonl", NAMES)],
        [(NAMES, "line 1: expected the name of an account or a person, its id and its key")],
    ),
    (
        "an account that is no text",
        lambda b: (b / "accounts.jsonl").write_bytes(b"\xff\n" + (b / "accounts.jsonl").read_bytes()),
        [("accounts.jsonl", "line 1: expected an account and its budget")],
    ),
    (
        "the end of all days",
        lambda b: _said(b / SERVICE, lambda all_: all_.update(asked_at="9999-12-31T23:59:59-12:00")),
        [(SERVICE, "expected what GetStatus and VerifyLedger have said")],
    ),
    (
        "another policy",
        lambda b: changed_in(b / "policy.1.yaml", "\n", "\n\n"),
        [("policy.1.yaml", "is not the policy.yaml of which configuration.json has the digest")],
    ),
    (
        "another signature of the policy",
        lambda b: (b / "policy.1.yaml.sig").write_bytes(b"x" * 64),
        [("policy.1.yaml.sig", "is not the signature of policy.yaml of which configuration.json has the digest")],
    ),
    (
        "no signature of the policy",
        lambda b: _said(b / "configuration.json", lambda all_: all_[0].pop("signature_sha256"), sig=b"x" * 63),
        [("policy.1.yaml.sig", "is no signature: expected 64 bytes")],
    ),
    (
        "no copy",
        lambda b: (b / "policy.1.yaml").unlink(),
        [("configuration.json", "names no copy of the policy.yaml that is in the bundle")],
    ),
    (
        "no copy named",
        lambda b: _said(b / "configuration.json", lambda all_: all_[0].update(copy="", signature=None)),
        [
            ("configuration.json", "names no copy of the policy.yaml that is in the bundle"),
            ("policy.1.yaml", "is a copy that configuration.json does not name"),
            ("policy.1.yaml.sig", "is a copy that configuration.json does not name"),
        ],
    ),
    (
        "a copy of nothing",
        lambda b: (b / "policy.9.yaml").touch(),
        [("policy.9.yaml", "is a copy that configuration.json does not name")],
    ),
    (
        "a ledger that differs",
        lambda b: _said(b / SERVICE, lambda all_: all_["VerifyLedger"].update(different="7")),
        [(SERVICE, "the ledger differs from its journal: VerifyLedger found 7")],
    ),
    (
        "a verification of another day",
        lambda b: _said(b / SERVICE, lambda all_: all_["VerifyLedger"].update(entries="6")),
        [(SERVICE, "is older than the bundle: VerifyLedger went over 6 entries, and the journals have 7")],
    ),
    (
        "no verification",
        lambda b: _said(b / SERVICE, lambda all_: all_.pop("VerifyLedger")),
        [(SERVICE, "expected what GetStatus and VerifyLedger have said")],
    ),
    (
        "asked another day",
        lambda b: _said(b / SERVICE, lambda all_: all_.update(asked_at="2026-01-01T00:00:00+00:00")),
        [(SERVICE, "was asked for at 2026-01-01T00:00:00+00:00, and not for this bundle")],
    ),
    (
        "asked afterwards",
        lambda b: _said(b / SERVICE, lambda all_: all_.update(asked_at="2250-01-01T00:00:00Z")),
        [(SERVICE, "was asked for at 2250-01-01T00:00:00+00:00, and not for this bundle")],
    ),
    (
        "a configuration to come",
        lambda b: _said(b / SERVICE, lambda all_: all_["GetStatus"].update(configuration_since="2250-01-01T00:00:00Z")),
        [(SERVICE, "has a configuration since 2250-01-01T00:00:00+00:00, and the bundle was made before")],
    ),
    (
        "a window to come",
        lambda b: _windows(b, "window_start", "2999-01-01T00:00:00Z"),
        [("accounts.jsonl", "acme has a window that the export is not in")],
    ),
    (
        "a window that is over",
        lambda b: _windows(b, "window_end", "2000-01-01T00:00:00Z"),
        [("accounts.jsonl", "acme has a window that the export is not in")],
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "expected"), [case[1:] for case in SIGNED], ids=[case[0] for case in SIGNED]
)
def test_what_a_signer_has_changed_is_found_where_digests_and_sums_show_it(
    company: Company,
    bundle: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[Path], object],
    expected: list[tuple[str, str]],
) -> None:
    """The signature is right, and the content contradicts itself."""
    change(bundle)
    signed_again(company, bundle)
    found = problems(verified(capsys, bundle, company, sound=False))
    assert len(expected) <= len(found)
    for file, problem in expected:
        assert any(file == name and problem in said for name, said in found), found


def test_policies_are_signed_by_who_is_named(
    company: Company, bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of several signers is enough; neither another one's signature, nor none, nor no policy at all is."""
    other, another = (("--policy-signer", company.folder / f"{name}.pem") for name in ("other", "signer"))
    verified(capsys, bundle, company, *another, *other)
    found = problems(verified(capsys, bundle, company, *another, sound=False))
    assert found == [("policy.1.yaml.sig", "is no signature of policy.1.yaml by a signer who was named")]
    (bundle / "policy.1.yaml.sig").unlink()
    _said(bundle / "configuration.json", lambda all_: all_[0].update(signature=None))
    signed_again(company, bundle)
    verified(capsys, bundle, company)
    unsigned = "names no signature of policy.yaml, of which signers were named"
    found = problems(verified(capsys, bundle, company, *other, sound=False))
    assert found == [("configuration.json", unsigned)]
    (bundle / "policy.1.yaml").unlink()
    _said(bundle / "configuration.json", lambda all_: all_.pop(0))
    signed_again(company, bundle)
    found = problems(verified(capsys, bundle, company, *other, sound=False))
    assert found == [("configuration.json", "has no policy, of which signers were named")]


def test_a_journal_that_was_made_anew_contradicts_its_checkpoint(
    company: Company, bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Anyone can compute digests of other entries; those of a checkpoint and an earlier bundle stay."""
    earlier = Path(shutil.copytree(bundle, bundle.parent / "earlier"))
    changed_in(bundle / JOURNAL, '"information": 7', '"information": 9')
    digest = digest_of(bundle / JOURNAL, "")
    assert 6 == len(list(read_entries(bundle / JOURNAL)))
    rewritten(bundle / JOURNAL, lambda all_: [*all_[:-1], last_line(6, digest)])
    manifest = json.loads((bundle / MANIFEST).read_text())
    journals = [Journal(**each) for each in manifest["journals"]]
    anew = journals[0].model_copy(update={"digest": digest})
    signed_again(company, bundle, journals=[anew, *journals[1:]])
    found = problems(verified(capsys, bundle, company, sound=False))
    assert [
        (JOURNAL, "its checkpoint at entry 6 of acme has another digest than its entries up to there")
    ] == found
    anew = anew.model_copy(update={"checkpoint_digest": digest})
    signed_again(company, bundle, journals=[anew, *journals[1:]])
    found = problems(verified(capsys, bundle, company, "--before", earlier, sound=False))
    wrong = "the earlier bundle's end at entry 6 of acme has another digest than its entries up to there"
    assert (JOURNAL, wrong) in found


def test_a_manifest_names_journals_that_are_signed_with_it(
    company: Company, bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file elsewhere is not read, and neither none nor two journals of a root are a ledger's."""
    manifest = Manifest.model_validate_json((bundle / MANIFEST).read_bytes())
    first, *others = manifest.journals
    shutil.copy(bundle / JOURNAL, bundle.parent / JOURNAL)
    signed_again(company, bundle, journals=[first.model_copy(update={"file": f"../{JOURNAL}"}), *others])
    assert (MANIFEST, f"does not have ../{JOURNAL}") in problems(
        verified(capsys, bundle, company, sound=False)
    )
    for journals in ([], [first, first, *others]):
        signed_again(company, bundle, journals=journals)
        found = problems(verified(capsys, bundle, company, sound=False))
        assert [(MANIFEST, "has no journal, or two of one root account")] == found


def test_what_is_archived_is_believed_to_the_checkpoint_alone(
    company: Company, bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Entries that begin behind it, and an earlier bundle that nothing ties to them, are not sound without archives."""
    earlier = Path(shutil.copytree(bundle, bundle.parent / "earlier"))
    first, *others = Manifest.model_validate_json((bundle / MANIFEST).read_bytes()).journals

    def found(number: int, checkpoint: int, *more: object) -> list[tuple[str, str]]:
        last = number + 3
        digest = digest_of(bundle / JOURNAL, checkpointed, skip=max(checkpoint - number + 1, 0))
        rewritten(bundle / JOURNAL, lambda all_: [*all_[:-1], last_line(last, digest)])
        said = {"first": number, "entries": last, "digest": digest, "checkpoint_entries": checkpoint}
        changed = first.model_copy(update={**said, "checkpoint_digest": checkpointed})
        signed_again(company, bundle, journals=[changed, *others])
        sound = verified(capsys, bundle, company, "--without-archives", *more, sound=not expected)
        return problems(sound)

    checkpointed = "b" * 64
    _said(bundle / SERVICE, lambda all_: all_["VerifyLedger"].update(entries="504"))
    rewritten(bundle / JOURNAL, lambda all_: [*all_[2:]])
    expected: list[tuple[str, str]] = []
    for number, checkpoint in ((500, 499), (500, 501)):
        assert expected == found(number, checkpoint)
    expected = [(JOURNAL, "needs the file that ends with entry 499 of acme")]
    assert expected == found(500, 0)
    expected = [(JOURNAL, "begins at entry 500 of acme: nothing ties it to the earlier bundle")]
    assert expected == found(500, 499, "--before", earlier)


def test_later_bundles_go_on_from_earlier_ones(
    company: Company, exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not the other way round, and a root that is gone is missed."""
    asyncio.run(company.charge(((ODD,), 1, "later")))
    later, of_one = tmp_path / "later", tmp_path / "one"
    assert main(company.typed("audit", "export", later)) == 0
    assert main(company.typed("audit", "export", of_one, "--root", "acme")) == 0
    assert 5 == verified(capsys, later, company, "--before", exported)["levels_compared"]
    manifest = Manifest.model_validate_json((later / MANIFEST).read_bytes())
    signed_again(company, later, made_at="2999-01-01T00:00:00+00:00")
    found = verified(capsys, exported, company, "--before", later, sound=False)
    order, fewer = problems(found)
    assert (MANIFEST, f"has 1 entries of {ODD}, and the earlier bundle 2") == fewer
    assert (MANIFEST, "before the one of 2999-01-01T00:00:00+00:00") == (order[0], order[1].split(", ")[1])
    signed_again(company, later, made_at=manifest.made_at)
    found = verified(capsys, of_one, company, "--before", later, sound=False)
    assert [(MANIFEST, f"has 0 entries of {ODD}, and the earlier bundle 2")] == problems(found)
    assert not verified(capsys, of_one, company)["every_root"]
    itself = verified(capsys, later, company, "--before", later, sound=False)
    assert [
        (MANIFEST, "is that of the earlier bundle itself: expected one that was made before")
    ] == problems(itself)
    (later / "x").touch()
    found = verified(capsys, exported, company, "--before", later, sound=False)
    assert [("before: x", "is not in manifest.json")] == problems(found)


def test_an_earlier_bundle_may_have_been_signed_by_another_key(
    company: Company, exported: Path, bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the one that is named for it, which signs nothing else."""
    signed_again(company, bundle, "other", made_at="2000-01-01T00:00:00+00:00")
    new = ("--before-key", company.folder / "other.pem")
    found = verified(capsys, exported, company, "--before", bundle, sound=False)
    assert [(f"before: {SIGNATURE}", NO_SIGNATURE)] == problems(found)
    verified(capsys, exported, company, "--before", bundle, *new)
    found = verified(capsys, bundle, company, "--before", exported, *new, sound=False)
    assert [(SIGNATURE, NO_SIGNATURE), (f"before: {SIGNATURE}", NO_SIGNATURE)] == problems(found)
    words = ["audit", "verify", exported, "--public-key", company.folder / "signer.pem", *new]
    assert "--before names it" in refused(capsys, [str(each) for each in words])


@pytest.fixture
def other_ledger(company: Company, tmp_path: Path) -> Iterator[Company]:
    """A ledger of its own, without TLS, whose bundles the same key signs."""
    (tmp_path / "archive").mkdir()
    options = ("--admin-listen", "127.0.0.1:0", "--archive", str(tmp_path / "archive"))
    with service(tmp_path, f"sqlite:{tmp_path}/ledger.db", *options, configuration=CONFIGURATION) as running:
        yield Company(company.folder, running)


@needs("process")
def test_what_was_archived_before_is_read_from_its_files(
    other_ledger: Company, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without them the bundle is not sound, and says which entries are missing, unless they may be."""
    company, bundles = other_ledger, [tmp_path / f"bundle{number}" for number in range(4)]
    seal = company.typed("budget", "seal", "--root", "acme", "--archive")
    for number, bundle in enumerate(bundles):
        if number < 3:
            asyncio.run(
                company.charge((("acme", "ann"), 1, f"r{number}"), (("acme", "bob"), 1, f"s{number}"))
            )
        assert main(company.typed("audit", "export", bundle)) == 0
        if number > 0:
            assert main(seal) == 0
    archives = [("--archive", path) for path in sorted((tmp_path / "archive").iterdir())]
    assert 2 == len(archives)
    whole, _, later, nothing = bundles
    for bundle, name, first in ((later, JOURNAL, 5), (nothing, MANIFEST, 7)):
        missing = f"needs the file that ends with entry {first - 1} of acme"
        assert [(name, missing)] == problems(verified(capsys, bundle, company, sound=False))
        found = verified(capsys, bundle, company, "--without-archives")
        assert (0, 3) == (found["levels_compared"], found["levels_not_compared"])
        assert first - 1 == found["entries_not_given"]
        found = verified(capsys, bundle, company, *archives[0], *archives[1])
        assert (first, 6) == (found["journals"][0]["first"], found["journals"][0]["last"])
        assert (3, 0) == (found["levels_compared"], found["levels_not_compared"])
        assert 0 == found["entries_not_given"]
    # Entries of an archive behind the end of the bundle count nowhere.
    assert 3 == verified(capsys, whole, company, *archives[0])["levels_compared"]
    # An earlier bundle has what was archived since.
    assert 3 == verified(capsys, later, company, "--before", bundles[1])["levels_compared"]
    all_of_it = (*archives[0], *archives[1], "--before", whole)
    assert 3 == verified(capsys, nothing, company, *all_of_it)["levels_compared"]
    found = verified(capsys, later, company, *archives[1], sound=False)
    missing = "needs the file that ends with entry 4 of acme"
    wrong = [(archives[1][1].name, missing), (JOURNAL, missing)]
    assert wrong == problems(found)
    # One that has nothing any more is missing too, and no forgery.
    emptied, whole_text = read_archive(archives[0][1]), archives[0][1].read_text()
    archives[0][1].write_text(last_line(emptied.last, emptied.digest, "acme"))
    found = verified(capsys, later, company, *archives[0], *archives[1], sound=False)
    assert [
        (emptied.path.name, "has no entries any more: they were older than archives keep them")
    ] == problems(found)
    found = verified(capsys, later, company, "--without-archives", *archives[0], *archives[1])
    assert (5, 6) == (found["journals"][0]["first"], found["journals"][0]["last"])
    archives[0][1].write_text(whole_text)
    changed_in(archives[0][1], "r0", "r9")
    found = verified(capsys, later, company, *archives[0], sound=False)
    assert [(archives[0][1].name, "has entries that do not have its digest")] == problems(found)
    signed_again(company, later)
    changed_in(later / JOURNAL, "r2", "r9")
    signed_again(company, later)
    found = verified(capsys, later, company, "--without-archives", sound=False)
    assert [(JOURNAL, "has entries that do not have its digest")] == problems(found)


@needs("process")
def test_an_archive_of_another_past_is_not_added_up(
    other_ledger: Company, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is sound by itself, and so is the journal, which continues the other one."""
    company, bundle, archive = other_ledger, tmp_path / "bundle", tmp_path / "archive"
    asyncio.run(company.charge((("acme", "ann"), 9, "r1"), (("acme", "ann"), 9, "r2")))
    assert main(company.typed("budget", "seal", "--root", "acme", "--archive")) == 0
    asyncio.run(company.charge((("acme", "ann"), 1, "r3")))
    assert main(company.typed("budget", "seal", "--root", "acme")) == 0
    assert main(company.typed("audit", "export", bundle)) == 0
    (real,) = archive.iterdir()
    entries = [replace(each, cost=Cost(1, 1)) for each in read_entries(real)]
    forged = tmp_path / "acme.1-2.forged.jsonl"
    forged.write_text("".join(map(entry_line, entries)) + last_line(2, reduce(next_digest, entries, "")))
    assert verified(capsys, bundle, company, "--archive", real)["levels_compared"]
    found = verified(capsys, bundle, company, "--archive", forged, "--archive", real, sound=False)
    problem = "has other entries of acme than a file that was given: leave out those of another past"
    assert (JOURNAL, problem) in problems(found)


@needs("process")
@pytest.mark.parametrize("changed", [{"actor": ""}, {"account": Account(("else", "ann"))}])
def test_a_journal_has_entries_that_its_ledger_can_have_written(
    other_ledger: Company, tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, Any]
) -> None:
    """Who signs may give them any digest."""
    company, bundle = other_ledger, tmp_path / "bundle"
    limit = ("--information", "5", "--calls", "5")
    assert main(company.typed("budget", "set-limit", "--account", "acme/ann", *limit)) == 0
    assert main(company.typed("audit", "export", bundle, "--root", "acme")) == 0
    (entry,) = read_entries(bundle / JOURNAL)
    entries = [replace(entry, **changed), entry]
    end = reduce(next_digest, entries, "")
    (bundle / JOURNAL).write_text("".join(map(entry_line, entries)) + last_line(2, end))
    (journal,) = Manifest.model_validate_json((bundle / MANIFEST).read_bytes()).journals
    changed = {"entries": 2, "digest": end, "checkpoint_entries": 0, "checkpoint_digest": ""}
    signed_again(company, bundle, journals=[journal.model_copy(update=changed)])
    found = verified(capsys, bundle, company, sound=False)
    assert (JOURNAL, "has an entry that no ledger can have") in problems(found)


@needs("process")
def test_a_ledger_is_exported_while_it_is_charged(
    other_ledger: Company, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was charged meanwhile is either in the journal or not compared; each bundle continues the one before."""
    company, bundles = other_ledger, [tmp_path / f"busy{number}" for number in range(3)]

    async def export_all() -> None:
        for bundle in bundles:
            words = [sys.executable, "-m", "gris_cli", *company.typed("audit", "export", bundle)]
            exporting = await asyncio.create_subprocess_exec(*words, stdout=subprocess.DEVNULL)
            assert await exporting.wait() == 0

    async def busy() -> None:
        await company.charge(*((("acme", f"quiet{number}"), 1, f"q{number}") for number in range(300)))
        exporting, number = asyncio.create_task(export_all()), 0
        while not exporting.done():
            await company.charge((("acme", f"u{number % 7}"), 1, f"busy-{number}"))
            number += 1
        await exporting
        assert number > 10

    asyncio.run(busy())
    for before, bundle in zip([None, *bundles], bundles, strict=False):
        found = verified(capsys, bundle, company, *(() if before is None else ("--before", before)))
        assert found["levels_compared"] >= 300
        entries = len(lines_of(bundle / JOURNAL)) - 1
        assert entries == found["journals"][0]["last"] >= 300


@needs("process")
def test_a_bundle_has_what_the_service_says_of_itself(other_ledger: Company, tmp_path: Path) -> None:
    """Its own comparison of the ledger, since when its configuration is in force, and which requests wait."""
    company, target = other_ledger, tmp_path / "bundle"
    asyncio.run(company.charge((("acme", "ann"), 1, "r1")))
    words = ["--budget", company.running.address, "--information", "2000000", "--calls", "2000000"]
    assert main(["budget", "request", *words, "--account", "acme/ann", "--reason", "a quarter's report"]) == 0
    assert main(company.typed("audit", "export", target)) == 0
    said = json.loads((target / SERVICE).read_text())
    (waiting,) = said["ListLimitRequests"]["requests"]
    assert ["acme", "ann"] == waiting["account"]["path"]
    assert "a quarter's report" == waiting["reason"]
    assert "0" == said["VerifyLedger"]["different"]
    assert "T" in said["GetStatus"]["configuration_since"]


@pytest.mark.parametrize(
    ("recorded", "in_force", "count"),
    [
        (((5, "old"), (6, "new")), "new", 0),
        (((5, "old"), (6, "new")), "old", 1),
        # The clock of one root was years ahead: what it recorded then is older than all else.
        (((10**18, "old"), (6, "new")), "new", 0),
        (((10**18, "old"), (6, "new")), "old", 1),
        (((10**18, "old"),), "new", 1),
    ],
)
def test_of_all_journals_the_newest_record_counts(
    tmp_path: Path, recorded: Sequence[tuple[int, str]], in_force: str, count: int
) -> None:
    """By the name that a journal can have for a file."""
    digests = {each: hashlib.sha256(each.encode()).hexdigest() for each in ("old", "new")}
    said = [{"kind": "budget", "name": "größe budget.yaml", "sha256": digests[in_force]}]
    (tmp_path / "configuration.json").write_text(json.dumps(said))
    (tmp_path / "names.jsonl").touch()
    (tmp_path / "accounts.jsonl").touch()
    journals = list[Journal]()
    for number, (time, content) in enumerate(recorded):
        root = f"root-{number}"
        entry = JournalEntry(
            kind=EntryKind.FILE, account=Account((root,)), cost=Cost(0, 0), unit_id="", request_id="r",
            release_id="", query_id="", time=time, holds=(), actor="local:gris",
            change=f"budget:{digests[content]}:gr__e_budget.yaml",
        )  # fmt: skip
        digest = next_digest("", entry)
        (tmp_path / f"journal.{root}.jsonl").write_text(entry_line(entry) + last_line(1, digest))
        journals.append(
            Journal(
                root=root, file=f"journal.{root}.jsonl", first=1, entries=1, digest=digest,
                checkpoint_entries=0, checkpoint_digest="",
            )
        )  # fmt: skip
    manifest = Manifest(
        format="gris-audit-1", gris="", made_at="2026-11-01T00:00:00+00:00", made_by="", every_root=True,
        journals=journals, files={},
    )  # fmt: skip
    checked = Checked(tmp_path, manifest)
    check_contents(checked, Chain(tmp_path / each.file for each in journals))
    found = [(file, problem) for file, problem in checked.problems if file == "configuration.json"]
    assert (count, 1, 0, 0) == (
        len(found), checked.recorded, checked.not_recorded, checked.recorded_elsewhere
    )  # fmt: skip


@needs("process")
def test_a_file_that_was_changed_after_it_was_recorded_is_found(
    other_ledger: Company, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of all journals the last record of its kind and name counts; without one nobody says that it is in force."""
    company, policy = other_ledger, tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    files = [word for kind in ("policy", "budget") for word in ("--file", f"{kind}={tmp_path}/{kind}.yaml")]

    def found(name: str, *, sound: bool = True) -> Any:
        assert main(company.typed("audit", "export", tmp_path / name, *files)) == 0
        return verified(capsys, tmp_path / name, company, sound=sound)

    def record(*more: str) -> Any:
        capsys.readouterr()
        return run_json(capsys, *company.typed("audit", "record", *files[:2], *more))["recorded"]

    asyncio.run(company.charge((("acme", "ann"), 1, "r1"), ((ODD,), 1, "r2")))
    before = found("before")
    assert (0, 2) == (before["files_recorded"], before["files_not_recorded"])
    digest = hashed(policy).sha256
    assert [("policy", "policy.yaml", digest, 2)] == [
        tuple(each.values()) for each in record("--reason", "reviewed by two")
    ]
    policy.write_text(POLICY + "\n")
    problem = "policy.yaml is not what was recorded last as this policy, in the journal of "
    ((place, said_of),) = problems(found("changed", sound=False))
    assert "configuration.json" == place
    assert said_of in {problem + root for root in ("acme", ODD)}
    said = json.loads(lines_of(tmp_path / "changed" / JOURNAL)[-2])
    assert ("file", "reviewed by two", f"policy:{digest}:policy.yaml") == (
        said["kind"],
        said["reason"],
        said["change"],
    )
    assert 1 == record("--root", "acme")[0]["journals"]
    found("one")
    policy.write_text(POLICY)
    assert [("configuration.json", f"{problem}acme")] == problems(found("back", sound=False))
    record()
    after = found("after")
    assert (1, 1, 0) == tuple(
        after[f"files_{each}"] for each in ("recorded", "not_recorded", "not_in_bundle")
    )
    del files[:2]
    left_out = found("left-out")
    assert (0, 1, 1) == tuple(
        left_out[f"files_{each}"] for each in ("recorded", "not_recorded", "not_in_bundle")
    )
    (tmp_path / "left-out" / "configuration.json").write_text("{}")
    signed_again(company, tmp_path / "left-out")
    said = verified(capsys, tmp_path / "left-out", company, sound=False)
    assert [("configuration.json", "expected files, each with kind, name and sha256")] == problems(said)
    capsys.readouterr()
    assert main(company.typed("budget", "journal", "--root", "acme")) == 0
    assert "file recorded" in capsys.readouterr().out


def test_no_file_is_recorded_that_a_service_would_refuse(
    company: Company, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor one that no service decides by; where one of several is refused, none is recorded."""
    (tmp_path / "a b.yaml").write_text(POLICY)
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "metrics.txt").touch()
    good = ("--file", f"policy={tmp_path}/policy.yaml")
    for wrong, said in (
        (f"metrics={tmp_path}/metrics.txt", "no service decides by metrics"),
        (f"policy={company.folder}/access.yaml", "access.yaml"),
        (f"policy={tmp_path}/a b.yaml", "--file: file.name must have 1 to 128 letters"),
        (f"policy={tmp_path}/a b.yaml", "got a b.yaml"),
        (good[1], "two files are policy policy.yaml"),
        ("policy=/dev/zero", "/dev/zero: expected a file of at most 67108864 bytes"),
    ):
        typed = company.typed("audit", "record", *good, "--file", wrong)
        assert said in " ".join(refused(capsys, typed).split())
    assert main(company.typed("budget", "journal", "--root", "acme")) == 0
    assert "file recorded" not in capsys.readouterr().out


@needs("process")
async def test_a_bundle_says_what_is_guaranteed_to_each_account(
    other_ledger: Company, tmp_path: Path
) -> None:
    """To more than are asked at once."""
    company, target, names = other_ledger, tmp_path / "bundle", [f"u{number}" for number in range(70)]
    await company.charge(*((("acme", name), 1, name) for name in names))
    async with listening(servicer_of(POLICY)) as dp:
        words = company.typed("audit", "export", target, "--dp", dp)
        assert await asyncio.to_thread(main, words) == 0
    said = [json.loads(line) for line in lines_of(target / "guarantees.jsonl")]
    assert [["acme"], *(["acme", name] for name in sorted(names))] == sorted(each["account"] for each in said)
    assert all(each["guarantee"]["own"]["guarantee"]["epsilon"] > 1 for each in said)


@needs("process")
def test_an_export_that_is_killed_leaves_nothing_that_verifies(
    other_ledger: Company, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whenever it is: the bundle has its name only once it is whole."""
    company, target = other_ledger, tmp_path / "killed"
    asyncio.run(company.charge(*((("acme", f"u{number}"), 1, f"r{number}") for number in range(400))))
    words = [sys.executable, "-m", "gris_cli", *company.typed("audit", "export", target)]
    begun: list[Path] = []
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and not begun:
            # A file has another name until it is whole.
            with suppress(FileNotFoundError):
                begun = [each for each in tmp_path.glob(".killed.*/*") if each.stat().st_size]
        process.send_signal(signal.SIGKILL)
    assert begun
    assert not target.exists()
    assert [(MANIFEST, "No such file or directory")] == problems(
        verified(capsys, begun[0].parent, company, sound=False)
    )
    assert main(company.typed("audit", "export", target)) == 0
    verified(capsys, target, company)


def test_nothing_is_written_over_and_a_failed_export_leaves_nothing(
    company: Company, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither a file nor a directory that holds something; an empty directory becomes the bundle."""
    (used := tmp_path / "used").mkdir()
    (used / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for target in (used, used / "file", tmp_path / "link"):
        assert "expected a directory that is not, or an empty one" in refused(
            capsys, company.typed("audit", "export", target)
        )
    new = tmp_path / "new"
    assert "new: No such file or directory" in refused(
        capsys, company.typed("audit", "export", tmp_path / "not" / "new")
    )
    nobody = company.typed("audit", "export", new, "--root", "nobody")
    assert "--root: nobody: expected a root account with a journal" in refused(capsys, nobody)
    for file, said in (
        ("policy", "--file: expected KIND=FILE, where KIND is policy, budget, console, "),
        ("secret=x", "--file: expected KIND=FILE"),
        (f"policy={tmp_path}/none", "none: No such file or directory"),
        (f"policy={company.folder}/signer.key", "signer.key"),
        (f"access={company.folder}/signer.key", "signer.key"),
        (f"gateway={company.folder}/access.yaml", "dp: "),
        (f"metrics={company.folder}/signer.key", "signer.key: expected metrics"),
        (f"budget={company.folder}/access.yaml", "access.yaml: accounts: "),
        (f"console={company.folder}/access.yaml", "access.yaml: "),
        (f"budget={company.folder}", "Is a directory"),
    ):
        assert said in refused(capsys, [*nobody, "--file", file])
    assert {"used", "link"} == {each.name for each in tmp_path.iterdir()}
    new.mkdir()
    assert main(company.typed("audit", "export", new)) == 0
    verified(capsys, new, company)


def test_keys_are_checked_before_anything_else(
    company: Company, exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of both kinds: what they hold, and that nobody else can read the private one."""
    shutil.copy(company.folder / "signer.pem", tmp_path / "public.key")
    shutil.copy(company.folder / "server.key", tmp_path / "curve.key")
    for name in ("public", "curve"):
        (tmp_path / f"{name}.key").chmod(0o600)
    signer_in(tmp_path, "open")
    (tmp_path / "open.key").chmod(0o644)
    known = Company(tmp_path, company.running, company.ops)
    for signer, said in (
        ("public", "expected a private key of Ed25519 in PEM"),
        ("curve", "expected a private key of Ed25519 in PEM"),
        ("open", "others may read it"),
        ("none", "No such file or directory"),
    ):
        words = known.typed("audit", "export", tmp_path / "new", signer=signer)
        assert said in (found := refused(capsys, words))
        assert "--signing-key" in found
    assert not (tmp_path / "new").exists()
    words = ["audit", "verify", str(exported), "--public-key", str(tmp_path / "open.key")]
    assert "--public-key: key of a signer" in refused(capsys, words)


def test_only_an_administrator_exports(
    company: Company, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A role that reads budgets gets no part of a journal."""
    words = Company(company.folder, company.running, company.reader).typed(
        "audit", "export", tmp_path / "new"
    )
    assert "ROLE_MISSING" in refused(capsys, words, code=1)
    assert [] == list(tmp_path.iterdir())
