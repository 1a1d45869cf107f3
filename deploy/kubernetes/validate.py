"""Checks every manifest against the schemas of Kubernetes' API, and that the chart still makes those that it wrote.

    python -m deploy.kubernetes.validate

The schemas come with the package kubernetes-validate, so that no cluster and no network is needed. The chart is linted
and compared where `helm` is installed.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml

from deploy.kubernetes.chart import ALL, HelmError, helm, lint
from deploy.kubernetes.manifests import FOLDER, INSTALL_HELM, outdated

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


def written(folder: Path) -> Iterator[Manifest]:
    """Yield the objects of the files in a folder."""
    for path in sorted(folder.glob("*.yaml")):
        yield from manifests_in(path.name, path.read_text())


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


def chart_faults() -> Iterator[str]:
    """Yield what is wrong with the chart: what helm says of it, and files that it would write otherwise."""
    try:
        for values in ALL:
            lint(values)
        for path in outdated():
            yield f"{path.name} is not what the chart makes: run `make manifests`"
    except HelmError as error:
        yield f"deploy/chart: {error}"


def main() -> int:
    """Check everything and say what was checked; return 1 if something is wrong."""
    manifests = list(written(FOLDER))
    found = list(faults(manifests))
    if helm() is not None:
        found += chart_faults()
    else:
        print(f"the chart was not checked: {INSTALL_HELM}")
    for fault in found:
        print(fault, file=sys.stderr)
    print(f"{len(manifests)} manifests, {len(found)} faults, checked for Kubernetes {' and '.join(VERSIONS)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
