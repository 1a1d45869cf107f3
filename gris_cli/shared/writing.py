"""Writes the files of a first shared answer into a folder, each with a comment where its owner has to decide."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gris_cli.local_services import ADMIN_PORT, BUDGET_PORT, CONSOLE_PORT, DP_PORT, FACE_PORTS, GATEWAY_PORT
from gris_cli.shared.documents import (
    BUDGET,
    CONSOLE,
    GATEWAY,
    POLICY,
    Ports,
    Shared,
    Upstream,
    console_text,
    gateway_text,
)
from gris_cli.shared.identity import ANALYST, OWNER, Identity, Person, make_identity
from gris_cli.shared.running import possible_faces
from gris_data.policy.draft_text import draft_text
from gris_data.private_files import private_directory, require_private, write_new
from gris_data.table_schema import TableSchema
from gris_lab.bound.drafting import drafted
from gris_serving.key_files import KEY_BYTES
from pinot_connector.embedded import KEY_FILE, RELEASES_KEY_FILE

DAYS = 90
TEAM = "team"
_UPSTREAM = Upstream(*(f"127.0.0.1:{port}" for port in (DP_PORT, BUDGET_PORT, ADMIN_PORT)))
_PORTS = Ports(GATEWAY_PORT, CONSOLE_PORT, FACE_PORTS)
# The largest number of analysts whose budgets the team's holds in whole.
_WHOLE = 3

_GATEWAY_HEAD = f"""\
# The gateway: who may ask, of which data, and whose budget pays; docs/gateway-reference.md has every key. `gris serve
# --from` and this folder start it with all else. Names of files are relative to this folder.
# DECIDE: whose tokens count. issuer.pem verifies those in credentials/, which `gris init` has signed for {DAYS} days.
# Each analyst gets ca.pem and a token. Once your organisation has an issuer, name it below and in console.yaml, and
# remove issuer.key: anyone who has that is everybody.
# DECIDE: who else works on this machine. The services below have no TLS, so everybody on it can call them.
"""
_CONSOLE_HEAD = """\
# The web pages; docs/console.md has every key. The token in credentials/admin.token shows the owner's pages, too.
# DECIDE: whose tokens count, and who is an owner, as in gateway.yaml.
"""


@dataclass(frozen=True)
class Answers:
    """What `gris init` asks.

    Attributes:
        tables: The tables; their locations are files.
        member: The column of the members; empty: the one whose name says so.
        analysts: The names of those who ask.
        information: What each may spend in a month, in information units ...
        calls: ... and in calls.
        host: The name under which others reach this machine.
    """

    tables: Sequence[TableSchema]
    member: str
    analysts: Sequence[str]
    information: int
    calls: int
    host: str


@dataclass
class Outcome:
    """Which files were written, and which were there."""

    written: list[Path] = field(default_factory=list)
    there: list[Path] = field(default_factory=list)


def write_all(directory: Path, answers: Answers) -> Outcome:
    """Write what is not there; nothing is written over, so that a second run makes what is missing.

    Raises:
        InputError: No policy can be drafted, or something in the directory cannot be used.
    """
    # Before anything is written.
    policy = draft_text([drafted(each, answers.member, reads_rows=True) for each in answers.tables])
    private_directory(directory)
    people = (*(Person(name, name) for name in answers.analysts), Person(OWNER, OWNER, (ANALYST, OWNER)))
    outcome = Outcome(*make_identity(Identity(directory), answers.host, people, DAYS))
    tables = {each.name: Path(each.location).resolve() for each in answers.tables}
    shared = Shared(answers.host, tables, (TEAM,), each=True, faces=possible_faces())
    texts = {
        KEY_FILE: secrets.token_hex(KEY_BYTES),
        RELEASES_KEY_FILE: secrets.token_hex(KEY_BYTES),
        POLICY: policy,
        BUDGET: _budget(answers),
        GATEWAY: gateway_text(_GATEWAY_HEAD, shared, _UPSTREAM, _PORTS),
        CONSOLE: console_text(_CONSOLE_HEAD, shared, _UPSTREAM, _PORTS, f"gris://localhost:{GATEWAY_PORT}"),
    }
    for name, text in texts.items():
        is_new = write_new(directory / name, text)
        if name in (KEY_FILE, RELEASES_KEY_FILE):
            require_private(directory / name)
        (outcome.written if is_new else outcome.there).append(directory / name)
    return outcome


def _budget(answers: Answers) -> str:
    information, calls = answers.information, answers.calls
    return f"""\
# Who may spend how much; docs/budget.md has every key, and `gris plan guarantee` says what a budget promises.
# An analyst's account is made at the first question: the signed token says whose it is.
create_at_first_use: true
accounts:
  # DECIDE: all analysts together. This is what all of them could learn of anybody if they shared what they are shown.
  - path: [{TEAM}]
    limit: {{information: {_WHOLE * information}, calls: {_WHOLE * calls}}}
  # DECIDE: each of them, in each month. policy.yaml says what a question costs, and `gris explain` of each.
  - path: [{TEAM}, "*"]
    limit: {{information: {information}, calls: {calls}}}
    window: month
    zone: UTC
"""
