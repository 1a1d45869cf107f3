"""Checks every object that the chart makes, and every written manifest, against the schemas of Kubernetes' API.

    python -m deploy.kubernetes.validate

The schemas come with the package kubernetes-validate, so that no cluster and no network is needed. The chart is linted
and rendered where `helm` is installed.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml

from deploy.kubernetes.chart import ALL, HelmError, helm, lint, render

FOLDER = Path(__file__).resolve().parent
INSTALL_HELM = (
    "install Helm 3.12 or newer, such as by `go install helm.sh/helm/v3/cmd/helm@v3.12.3` (docs/chart.md)"
)
VERSIONS = ("1.29", "1.34")
"""The oldest version that the manifests are for, and the one that they are run on."""

# The one in C, where PyYAML was built with it: it takes a seventh of the time.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Manifest:
    """One object for the API, and where it comes from."""

    source: str
    content: Mapping[str, Any]

    @property
    def title(self) -> str:
        """Source, kind and name."""
        return f"{self.source}: {self.content.get('kind')} {self.content.get('metadata', {}).get('name')}"


def written() -> Iterator[Manifest]:
    """Yield the objects of the files in this folder."""
    for path in sorted(FOLDER.glob("*.yaml")):
        yield from manifests_in(path.name, path.read_text())


def rendered() -> Iterator[Manifest]:
    """Yield the objects that the chart makes of its examples; raises HelmError."""
    for values in ALL:
        lint(values)
        yield from manifests_in(values.name, render(values))


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
        if content is not None:
            yield Manifest(source, content)


def main() -> int:
    """Check everything and say what was checked; return 1 if something is wrong."""
    manifests = list(written())
    if helm() is None:
        print(f"the chart was not checked: {INSTALL_HELM}")
    else:
        try:
            manifests += rendered()
        except HelmError as error:
            print(f"deploy/chart: {error}", file=sys.stderr)
            return 1
    found = list(faults(manifests))
    for fault in found:
        print(fault, file=sys.stderr)
    print(f"{len(manifests)} manifests, {len(found)} faults, checked for Kubernetes {' and '.join(VERSIONS)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
