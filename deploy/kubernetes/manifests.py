"""Writes the plain manifests of deploy/kubernetes from the chart: one file for each example of values.

python -m deploy.kubernetes.manifests
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap

from deploy.kubernetes.chart import ALL, ROOT, HelmError, Values, helm, render

FOLDER = Path(__file__).resolve().parent
INSTALL_HELM = (
    "install Helm 3.12 or newer, such as by `go install helm.sh/helm/v3/cmd/helm@v3.12.3` (docs/chart.md)"
)
_WIDTH = 110
_SECRET = re.compile(r"secretName: ([\w-]+)")


def manifests_of(values: Values) -> str:
    """Return the file of an example: what it is, which Secrets it needs, and its objects; raises HelmError."""
    objects = render(values)
    sources = " and ".join(str(each.relative_to(ROOT)) for each in values.files)
    lines = [
        f"Gris on Kubernetes with the values of {sources}.",
        "`make manifests` wrote this file from the chart: change those, and not this one.",
        'What a deployment of your own has to change is marked "yours" (docs/deploying.md).',
        f"Secrets that you make: {', '.join(sorted(set(_SECRET.findall(objects))))}.",
    ]
    header = [f"# {each}" for line in lines for each in wrap(line, _WIDTH, break_on_hyphens=False)]
    return "".join(f"{line.rstrip()}\n" for line in [*header, *objects.splitlines()])


def path_of(values: Values) -> Path:
    """Return where the file of an example is."""
    return FOLDER / f"{values.name}.yaml"


def outdated() -> Iterator[Path]:
    """Yield the files that are not what the chart makes; raises HelmError."""
    for values in ALL:
        path = path_of(values)
        if not path.is_file() or path.read_text() != manifests_of(values):
            yield path


def main() -> int:
    """Write every file that is not what the chart makes, and say which."""
    if helm() is None:
        print(INSTALL_HELM, file=sys.stderr)
        return 1
    try:
        for values in ALL:
            path_of(values).write_text(manifests_of(values))
            print(path_of(values).relative_to(ROOT))
    except HelmError as error:
        print(f"deploy/chart: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
