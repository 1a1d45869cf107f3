"""A release is refused for what would be wrong in it."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from deploy.release.project import (
    ROOT,
    UNSET_HOST,
    CheckFailedError,
    Project,
    read_project,
    require_changelog,
    require_one_version,
    require_urls,
    run,
)
from deploy.release.signing import NAMESPACE, SUMS, package_chart, sign

PROJECT = Project("gris-dp", "1.2.3", {"Source": "https://example.org"}, frozenset({"dp_service"}))


def test_the_wheel_has_every_package_that_import_rules_are_for() -> None:
    """A package that pyproject.toml does not include would be missed after the release and not before."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(document["tool"]["importlinter"]["root_packages"]) < read_project().packages


def test_every_file_states_the_version_of_pyproject() -> None:
    """Of this checkout, at any time."""
    require_one_version(read_project())


def test_another_version_in_a_manifest_is_refused(tmp_path: Path) -> None:
    """The image that a manifest names would be that of another release."""
    chart = tmp_path / "deploy" / "chart" / "Chart.yaml"
    chart.parent.mkdir(parents=True)
    chart.write_text('version: 1.2.3\nappVersion: "1.2.2"\n')
    with pytest.raises(CheckFailedError, match=r"Chart\.yaml says .*1\.2\.2"):
        require_one_version(PROJECT, tmp_path)
    chart.write_text('version: 1.2.3\nappVersion: "1.2.3"\n')
    require_one_version(PROJECT, tmp_path)


@pytest.mark.parametrize(
    "changelog",
    [
        "## [Unreleased]\n- New.\n",
        "## 1.2.3 (unreleased)\n- New.\n",
        "## [1.2.30] - 2026-01-02\n- New.\n",
        "## [1.2.3] - 2026-01-02\n\n## [1.2.2] - 2026-01-01\n- Old.\n",
    ],
)
def test_a_changelog_without_the_version_is_refused(changelog: str, tmp_path: Path) -> None:
    """Undated, of another version, or empty."""
    (tmp_path / "CHANGELOG.md").write_text(changelog)
    with pytest.raises(CheckFailedError):
        require_changelog(PROJECT, tmp_path)


def test_a_missing_heading_says_who_writes_it(tmp_path: Path) -> None:
    """It is no fault of the repository before the day of the release."""
    (tmp_path / "CHANGELOG.md").write_text("## [Unreleased]\n- New.\n")
    with pytest.raises(CheckFailedError, match="who releases writes it, with the day of the release"):
        require_changelog(PROJECT, tmp_path)


def test_a_changelog_with_the_version_passes(tmp_path: Path) -> None:
    """With a date, and something in it."""
    (tmp_path / "CHANGELOG.md").write_text("## [1.2.3] - 2026-01-02\n\n### Added\n\n- New.\n")
    require_changelog(PROJECT, tmp_path)


def test_addresses_that_nobody_has_set_are_refused() -> None:
    """By the names of those that are not, and none at all is not enough either."""
    urls = {"Source": f"https://gris{UNSET_HOST}/source", "Issues": "https://example.org"}
    with pytest.raises(CheckFailedError, match="set Source in"):
        require_urls(Project("gris-dp", "1.2.3", urls, frozenset()))
    with pytest.raises(CheckFailedError):
        require_urls(Project("gris-dp", "1.2.3", {}, frozenset()))
    require_urls(PROJECT)


@pytest.mark.usefixtures("starts_processes")
def test_a_chart_is_of_the_source_distribution(tmp_path: Path) -> None:
    """The checkout may have more beside it."""
    if shutil.which("helm") is None:
        pytest.skip("helm is not installed")
    chart = tmp_path / "gris_dp-1.2.3" / "deploy" / "chart"
    chart.mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: gris\nversion: 1.2.3\n")
    (chart / "values.yaml").write_text("only: here\n")
    run("tar", "-czf", "gris_dp-1.2.3.tar.gz", "gris_dp-1.2.3", folder=tmp_path)
    package_chart(PROJECT, tmp_path)
    listed = run("tar", "-tzf", "gris-1.2.3.tgz", folder=tmp_path).split()
    assert sorted(listed) == ["gris/Chart.yaml", "gris/values.yaml"]


@pytest.mark.usefixtures("starts_processes")
def test_what_is_published_is_signed_file_by_file(tmp_path: Path) -> None:
    """As anybody verifies it, by ssh-keygen and sha256sum; a signature of another use, or another file, fails."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed: openssh-client has it")
    folder, key = tmp_path / "dist", tmp_path / "key"
    folder.mkdir()
    (folder / "gris-1.2.3.tgz").write_bytes(b"chart")
    (folder / "images.txt").write_text("sha256:0  gris-gateway:1.2.3\n")
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
    for _ in range(2):
        sign(key, folder)
    assert [line.split()[1] for line in (folder / SUMS).read_text().splitlines()] == [
        "gris-1.2.3.tgz",
        "images.txt",
    ]
    run("sha256sum", "--check", "--strict", SUMS, folder=folder)
    (tmp_path / "allowed").write_text(f"releases {key.with_suffix('.pub').read_text()}")

    def is_signed(namespace: str) -> bool:
        verify = ["ssh-keygen", "-Y", "verify", "-f", str(tmp_path / "allowed"), "-I", "releases"]
        verify += ["-n", namespace, "-s", str(folder / f"{SUMS}.sig")]
        listed = (folder / SUMS).read_bytes()
        return subprocess.run(verify, input=listed, capture_output=True, check=False).returncode == 0

    assert is_signed(NAMESPACE)
    assert not is_signed("file")
    (folder / SUMS).write_text("")
    assert not is_signed(NAMESPACE)
    with pytest.raises(CheckFailedError, match="ssh-keygen"):
        sign(tmp_path / "none", folder)


def test_an_image_has_no_secret_that_git_ignores() -> None:
    """A key beside the examples would otherwise be in an image of a checkout that git calls clean."""
    ignored = (ROOT / ".gitignore").read_text().partition("# Secrets and ledgers")[2].partition("#")[0]
    secrets = ignored.splitlines()[1:]
    assert "noise.key" in secrets
    assert {f"**/{name}" for name in secrets} < set((ROOT / ".dockerignore").read_text().splitlines())
