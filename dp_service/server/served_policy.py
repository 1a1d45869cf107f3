"""The policy that is served, and how a changed policy file replaces it without a restart.

A request reads the policy once and keeps what it has read. Plans are complete, so AddNoise accepts plans that were made
under an earlier policy. The header never changes while the service runs: `epsilon_per`, `delta` and `count_noise` are
the currency of the ledgers. Changing them needs a restart.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

from dp_service.queries.audience_terms import AskedAs
from dp_service.queries.audiences import seen_by
from dp_service.queries.errors import PolicyError
from dp_service.queries.policy import Policy, read_policy
from dp_service.releases.keys import KeyUse, NoiseKey
from dp_service.releases.kinds import UnusableParametersError, require_usable
from gris_serving.yaml_texts import changed_keys

MAX_VIEWS = 1024
"""How many audiences' policies are kept, by what they were made for; they share all that does not differ."""

_POLICY_ID_CHARACTERS = 16
_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class PolicyContent:
    """A policy that can be served, and the public name of the file content that it was read from.

    The name is keyed: a policy may state a hash of the data as their version, and then a plain hash of the policy would
    let anyone who knows the rest of it verify a guess of the data. `text` is what it was read from. It is
    equal to itself alone, so that what is made of it can be kept.
    """

    policy: Policy
    policy_id: str
    text: str

    def seen_by(self, asked: AskedAs | None) -> PolicyContent:
        """Return the policy as an audience sees it, the same each time.

        Raises:
            RefusedByPolicyError: As `audiences.seen_by`.
        """
        return self._views(asked)

    @cached_property
    def _views(self) -> Callable[[AskedAs | None], PolicyContent]:
        def view(asked: AskedAs | None) -> PolicyContent:
            seen = seen_by(self.policy, asked)
            return self if seen is self.policy else replace(self, policy=seen)

        return lru_cache(MAX_VIEWS)(view)


def usable_policy(content: bytes, source: str, key: NoiseKey) -> PolicyContent:
    """Read a policy and make sure that it can be served.

    Args:
        content: The content of the policy file.
        source: The name of the file in errors.
        key: The key that the policy's public name is derived from.

    Raises:
        PolicyError: The policy has faults.
        UnusableParametersError: No noise can be drawn for some table.
    """
    policy = read_policy(content, source).policy
    require_usable(policy)
    name = key.authenticate(KeyUse.POLICY_ID, content).hex()[:_POLICY_ID_CHARACTERS]
    return PolicyContent(policy, name, content.decode())


class ServedPolicy:
    """The current policy. It is replaced as a whole, so a request that has read it keeps a consistent one."""

    def __init__(self, content: PolicyContent) -> None:
        self._content = content

    @property
    def content(self) -> PolicyContent:
        """The current policy and its name."""
        return self._content

    def replace(self, content: PolicyContent) -> None:
        """Serve another policy from now on."""
        self._content = content


class PolicyFileWatch:
    """Checks the policy file regularly, and serves its content once it is valid and no longer changing.

    It compares contents, not modification times: Kubernetes replaces a ConfigMap by swapping a symbolic link, and
    copies can keep old times. If the content cannot be served, the previous policy stays in force.
    """

    def __init__(
        self,
        path: Path,
        served: ServedPolicy,
        content: bytes,
        key: NoiseKey,
    ) -> None:
        """Watch a file whose current `content` is served; names of policies are derived from `key`."""
        self._path = path
        self._key = key
        self._served = served
        self._decided: bytes | None = content
        self._waiting: bytes | None = content
        self._is_served = True

    @property
    def is_served(self) -> bool:
        """Whether the served policy is the file's last content that was decided on."""
        return self._is_served

    def poll(self) -> bool:
        """Check the file once, and return whether a new content was accepted or rejected.

        A content is decided on when two checks in a row find it: a file that is written in place may be incomplete, and
        half a policy can be a valid policy with another guarantee.
        """
        content, problem = self._read()
        if content == self._decided or content != self._waiting:
            self._waiting = content
            return False
        self._decided, self._is_served = content, False
        self._is_served = problem is None and content is not None and self._is_taken(content)
        if problem is not None:
            self._log_refusal(problem)
        return True

    def _read(self) -> tuple[bytes | None, str | None]:
        try:
            return self._path.read_bytes(), None
        except OSError as error:
            return None, error.strerror or "cannot be read"

    def _is_taken(self, content: bytes) -> bool:
        """Serve a content if it can be served; otherwise log what is wrong with it."""
        try:
            found = usable_policy(content, str(self._path), self._key)
        except PolicyError as error:
            for problem in error.problems:
                self._log_refusal(str(problem))
            return False
        except UnusableParametersError as error:
            self._log_refusal(str(error))
            return False
        if found.policy.currency != self._served.content.policy.currency:
            self._log_refusal("another epsilon_per, delta, count_noise or blocks needs a restart")
            return False
        changed = changed_keys(self._served.content.text, found.text)
        self._served.replace(found)
        fields = {"policy_id": found.policy_id, "changed": changed}
        _log.info("A new policy is served.", extra={"event": "policy.served", "fields": fields})
        return True

    def _log_refusal(self, problem: str) -> None:
        _log.error(
            "The policy file cannot be used; the policy stays as it was.",
            extra={"event": "policy.refused", "fields": {"path": str(self._path), "problem": problem}},
        )
