"""What was found of a bundle."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from dp_service.server.policy_signatures import ANYBODY, PolicySigners
from gris_audit.bundle import NO_MANIFEST, Manifest


@dataclass
class Checked:
    """What was found: problems, each with the file it is in, and the manifest, if it can be believed.

    With `signers`, each policy of the bundle has to be signed by one of them. `not_given` is how many entries are
    archived and in no file that was given: nothing of them could be checked.
    """

    directory: Path
    manifest: Manifest = NO_MANIFEST
    problems: list[tuple[str, str]] = field(default_factory=list)
    signers: PolicySigners = ANYBODY
    not_given: int = 0
    compared: int = 0
    not_compared: int = 0
    recorded: int = 0
    not_recorded: int = 0
    recorded_elsewhere: int = 0

    def note(self, file: str, problem: str) -> None:
        """Keep a problem, if there is one."""
        if problem:
            self.problems.append((file, problem))
