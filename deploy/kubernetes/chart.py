"""Renders the Helm chart of deploy/chart, with values to start from, and lints it.

`python -m deploy.kubernetes.validate` checks what is rendered here. Where there is no `helm`, nothing is rendered.
"""

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "chart"
NAMESPACE = "gris"
# The version of Kubernetes that the chart is rendered for; helm without a cluster assumes one of its own age.
_KUBERNETES = "1.34.0"
_PRODUCTION = ROOT / "deploy" / "kubernetes" / "overlays" / "production"


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


TRIAL = Values(
    "chart trial",
    [CHART / "examples" / "trial.yaml"],
    {
        "policy.text": ROOT / "examples" / "policy.yaml",
        "budget.text": ROOT / "examples" / "budget.yaml",
    },
)
PRODUCTION = Values(
    "chart production",
    [CHART / "examples" / "production.yaml"],
    {
        "policy.text": _PRODUCTION / "policy.yaml",
        "budget.text": _PRODUCTION / "budget.yaml",
        "gateway.identity.jwt.keys": _PRODUCTION / "issuer.jwks",
        "transport.tls.access": _PRODUCTION / "access.yaml",
    },
)
SEVERAL = Values(
    "chart several-gateways",
    [*PRODUCTION.files, CHART / "examples" / "several-gateways.yaml"],
    PRODUCTION.texts,
)
# What none of them has: a ledger in a file, and whatever else is off by default.
EVERYTHING = Values(
    "chart everything",
    [*PRODUCTION.files, CHART / "examples" / "everything.yaml"],
    PRODUCTION.texts,
)


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


def charted() -> Iterator[tuple[str, str]]:
    """Yield what the chart makes of each set of values to start from, by its name; nothing without helm."""
    if helm() is not None:
        for values in (TRIAL, PRODUCTION, SEVERAL, EVERYTHING):
            yield values.name, render(values)


def lint() -> None:
    """Have helm look the chart over, where warnings count as faults; raises HelmError."""
    for values in (TRIAL, PRODUCTION, SEVERAL, EVERYTHING):
        run("lint", "--strict", str(CHART), *values.arguments())
