"""Images that cannot be had: a failure where they must be, and elsewhere one line that says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.containers.images import build_image, require_image

_DOCKER = """#!/bin/sh
[ "$2" = inspect ] && exit 1
echo "step 1" >&2
echo "registry.example: no such host" >&2
echo >&2
exit 1
"""


@pytest.fixture(autouse=True)
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a Docker in front that reaches no registry."""
    program = tmp_path / "docker"
    program.write_text(_DOCKER)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("GRIS_TEST_IMAGE_BUILDER", raising=False)
    return program


@pytest.mark.usefixtures("starts_processes")
def test_without_a_registry_what_needs_an_image_is_skipped(tmp_path: Path) -> None:
    """The reason ends with the last thing that Docker said."""
    with pytest.raises(pytest.skip.Exception, match="gris:none could not be built: registry"):
        build_image("gris:none", tmp_path)
    with pytest.raises(pytest.skip.Exception, match="redis:none could not be pulled: registry"):
        require_image("redis:none")


@pytest.mark.usefixtures("starts_processes")
def test_where_a_builder_is_named_a_missing_image_is_a_failure(
    tmp_path: Path, docker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There, skipping would hide that nothing is tested any more."""
    monkeypatch.setenv("GRIS_TEST_IMAGE_BUILDER", str(docker))
    with pytest.raises(pytest.fail.Exception, match="no such host"):
        build_image("gris:none", tmp_path)
    with pytest.raises(pytest.fail.Exception, match="no such host"):
        require_image("redis:none")
