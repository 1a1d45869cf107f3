"""Checks every manifest, and overlays and chart as they are rendered, against the schemas of Kubernetes' API.

    python -m deploy.kubernetes.validate

The schemas come with the package kubernetes-validate, so that no cluster and no network is needed. Overlays are
rendered by `kustomize` or `kubectl`; where there is neither, their files are checked and the rendering is not. The
chart of deploy/chart is rendered and linted by `helm`, where it is installed.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml

from deploy.kubernetes.chart import HelmError, charted, helm, lint

FOLDER = Path(__file__).resolve().parent
VERSIONS = ("1.29", "1.34")
"""The oldest version that the manifests are for, and the one that they are run on."""

# The one in C, where PyYAML was built with it: it takes a seventh of the time.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Kustomize's own files, which the API never sees.
_KUSTOMIZE = "kustomize.config.k8s.io/"


@dataclass(frozen=True)
class Manifest:
    """One object for the API, and where it comes from."""

    source: str
    content: Mapping[str, Any]

    @property
    def title(self) -> str:
        """Source, kind and name."""
        return f"{self.source}: {self.content.get('kind')} {self.content.get('metadata', {}).get('name')}"


def written(folder: Path) -> Iterator[Manifest]:
    """Yield the objects that stand in files below a folder; other YAML, such as a policy, is left alone."""
    for path in sorted(folder.rglob("*.yaml")):
        yield from manifests_in(str(path.relative_to(folder)), path.read_text())


def rendered(folder: Path) -> Iterator[Manifest]:
    """Yield the objects that each overlay makes; none where there is nothing to render them with."""
    command = renderer()
    if command is None:
        return
    for overlay in sorted((folder / "overlays").iterdir()):
        made = subprocess.run([*command, str(overlay)], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise SystemExit(f"{overlay}: {made.stderr.strip()}")
        yield from manifests_in(f"rendered {overlay.name}", made.stdout)


def rendered_chart() -> Iterator[Manifest]:
    """Yield the objects that the chart makes of each set of values to start from; none without helm."""
    for source, text in charted():
        yield from manifests_in(source, text)


def renderer() -> Sequence[str] | None:
    """Return the command that renders a kustomization, if one is installed."""
    if shutil.which("kustomize"):
        return ["kustomize", "build"]
    return ["kubectl", "kustomize"] if shutil.which("kubectl") else None


def faults(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Yield what is wrong with each object, in the first version where something is."""
    for manifest in manifests:
        for version in VERSIONS:
            fault = _fault(manifest, version)
            if fault:
                yield f"{manifest.title}: Kubernetes {version}: {fault}"
                break


def _fault(manifest: Manifest, version: str) -> str:
    try:
        kubernetes_validate.validate(dict(manifest.content), version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return f"{'.'.join(map(str, error.path))}: {error.message}"
    except kubernetes_validate.SchemaNotFoundError:
        return f"there is no such kind in {manifest.content['apiVersion']}"
    return ""


def manifests_in(source: str, text: str) -> Iterator[Manifest]:
    """Yield the objects for the API in a text of YAML documents."""
    for content in yaml.load_all(text, Loader=_LOADER):
        version = str(content.get("apiVersion", "")) if isinstance(content, dict) else ""
        if version and not version.startswith(_KUSTOMIZE):
            yield Manifest(source, content)


def main() -> int:
    """Check everything and say what was checked; return 1 if something is wrong."""
    try:
        manifests = [*written(FOLDER), *rendered(FOLDER), *rendered_chart()]
        if helm() is not None:
            lint()
    except HelmError as error:
        print(f"deploy/chart: {error}", file=sys.stderr)
        return 1
    found = list(faults(manifests))
    for fault in found:
        print(fault, file=sys.stderr)
    if renderer() is None:
        print("overlays were not rendered: install kustomize or kubectl for that")
    if helm() is None:
        print("the chart was not rendered: install helm for that")
    print(f"{len(manifests)} manifests, {len(found)} faulty, checked for Kubernetes {' and '.join(VERSIONS)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
