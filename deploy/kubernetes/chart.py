"""Renders the Helm chart of deploy/chart, with the values of its examples or with others, and lints it."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "chart"
EXAMPLES = CHART / "examples"
NAMESPACE = "gris"
# The version of Kubernetes that the chart is rendered for; helm without a cluster assumes one of its own age.
_KUBERNETES = "1.34.0"


class HelmError(RuntimeError):
    """Helm refused; the text is what it says."""


@dataclass(frozen=True)
class Values:
    """What a chart is installed with: files of values, texts that are read from files by their keys, and single values.

    `name` says where the result comes from.
    """

    name: str
    files: Sequence[Path] = ()
    texts: Mapping[str, Path] = field(default_factory=dict)
    settings: Sequence[str] = ()

    def arguments(self) -> list[str]:
        """Return the options of helm that say the same."""
        named = [f"--values={path}" for path in self.files]
        named += [f"--set-file={key}={path}" for key, path in self.texts.items()]
        return named + [f"--set={each}" for each in self.settings]

    def but(self, *settings: str, name: str = "changed") -> "Values":
        """Return these values with some set to something else (KEY=VALUE), also where a file's text was."""
        keys = [each.partition("=")[0] for each in settings]
        texts = {
            text: path
            for text, path in self.texts.items()
            if not any(f"{text}.".startswith(f"{key}.") for key in keys)
        }
        return Values(name, self.files, texts, [*self.settings, *settings])


def _example(name: str, *below: Path, texts: Mapping[str, Path] | None = None) -> Values:
    return Values(name, [*below, EXAMPLES / f"{name}.yaml"], texts or {})


TRIAL = _example(
    "trial",
    texts={
        "policy.text": ROOT / "examples" / "policy.yaml",
        "budget.text": ROOT / "examples" / "budget.yaml",
    },
)
PRODUCTION = _example("production")
SEVERAL = _example("several-gateways", *PRODUCTION.files)
CLIENTS = _example("clients", *PRODUCTION.files)
REGIONS = _example("regions", *PRODUCTION.files)
ONE_REGION = _example("one-region", *PRODUCTION.files)
ALL = (TRIAL, PRODUCTION, SEVERAL, CLIENTS, REGIONS, ONE_REGION)
"""The examples of values, each on top of the values that it says."""


def helm() -> str | None:
    """Return the command helm, if it is installed."""
    return shutil.which("helm")


def run(*arguments: str) -> str:
    """Run helm and return what it prints; raises HelmError."""
    done = subprocess.run([helm() or "helm", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HelmError(done.stderr.strip() or done.stdout.strip())
    return done.stdout


def render(values: Values) -> str:
    """Return the objects that the chart makes of values, as YAML; raises HelmError."""
    return run(
        *("template", "gris", str(CHART), f"--namespace={NAMESPACE}", f"--kube-version={_KUBERNETES}"),
        *values.arguments(),
    )


def lint(values: Values) -> None:
    """Have helm look the chart over, where warnings count as faults; raises HelmError."""
    run("lint", "--strict", str(CHART), *values.arguments())
