"""Policies in files."""

from __future__ import annotations

from pathlib import Path

from dp_service.queries.errors import PolicyError
from dp_service.queries.policy import read_policy
from dp_service.queries.tables import Policy
from gris_cli.data.errors import InputError


def policy_of(path: Path) -> Policy:
    """Return the policy in a file, with what it has published.

    Raises:
        InputError: There is no such file, or it is no policy.
    """
    try:
        return read_policy(path.read_bytes(), str(path)).policy
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", "policy") from None
    except PolicyError as error:
        raise InputError(str(error), "policy") from None
