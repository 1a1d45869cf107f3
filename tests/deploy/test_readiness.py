"""What a release lacks is said before anything is built, in one line each."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from deploy.release.project import CheckFailedError, Project, require_clean, require_free_tag, run
from deploy.release.readiness import (
    main,
    require_docker,
    require_helm,
    require_key,
    require_one_platform,
)

pytestmark = pytest.mark.usefixtures("starts_processes")
PROJECT = Project("gris-dp", "1.2.3", {"Source": "https://example.org"}, frozenset({"dp_service"}))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Make a repository with one commit."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    run("git", "init", "--quiet", folder=folder)
    commit(folder, "first")
    return folder


def commit(folder: Path, text: str) -> None:
    """Commit a file."""
    (folder / "file").write_text(text)
    run("git", "add", "file", folder=folder)
    who = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false")
    run("git", *who, "commit", "--quiet", "--message", text, folder=folder)


def test_a_key_that_cannot_sign_is_refused_in_one_line(tmp_path: Path) -> None:
    """Not there, no key, a public one whose private key is not held, or one that others may read; a good one passes."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed: openssh-client has it")
    key, text = tmp_path / "key", tmp_path / "text"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
    require_key(key)
    text.write_text("no key\n")
    text.chmod(0o600)
    alone = Path(shutil.copy(f"{key}.pub", tmp_path / "alone"))
    for bad in (tmp_path / "none", tmp_path, text, alone):
        with pytest.raises(CheckFailedError, match=str(bad)) as caught:
            require_key(bad)
        assert "\n" not in str(caught.value)
    key.chmod(0o644)
    with pytest.raises(CheckFailedError, match=r"^ssh-keygen cannot sign with [^\n@]* too open[^\n@]*$"):
        require_key(key)


def test_programs_that_are_not_here_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by a traceback."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CheckFailedError, match=r"^docker cannot be run: No such file or directory$"):
        require_docker()
    with pytest.raises(CheckFailedError, match=r"^helm cannot be run: No such file or directory$"):
        require_helm()


def test_docker_without_its_daemon_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Docker says it."""
    if shutil.which("docker") is None:
        pytest.skip("docker is not installed")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(CheckFailedError, match=r"^[^\n]*none\.sock[^\n]*$"):
        require_docker()


def test_images_that_would_be_pushed_unseen_are_refused() -> None:
    """Those of several platforms are; none is published by `make release`."""
    require_one_platform("")
    require_one_platform("linux/arm64")
    with pytest.raises(CheckFailedError, match="linux/amd64,linux/arm64"):
        require_one_platform("linux/amd64,linux/arm64")


def test_a_checkout_with_other_files_is_refused(checkout: Path) -> None:
    """Changed, or new."""
    require_clean(checkout)
    (checkout / "new").write_text("")
    (checkout / "file").write_text("changed")
    with pytest.raises(CheckFailedError, match=r"^commit or remove: file, new$"):
        require_clean(checkout)


def test_a_tag_of_another_commit_is_refused(checkout: Path) -> None:
    """A release is never changed; the tag of this commit is no fault."""
    require_free_tag(PROJECT, checkout)
    run("git", "tag", "v1.2.3", folder=checkout)
    require_free_tag(PROJECT, checkout)
    commit(checkout, "second")
    with pytest.raises(CheckFailedError, match=r"^v1\.2\.3 is another commit: raise the version$"):
        require_free_tag(PROJECT, checkout)


def test_everything_that_is_missing_is_said_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line for each thing, and the exit code tells `make release` to stop."""
    assert main(str(tmp_path / "none"), "linux/amd64,linux/arm64") == 1
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("FAIL  ") for line in lines)
    assert sum("SIGNING_KEY" in line or "IMAGE_PLATFORMS" in line for line in lines) == 2
