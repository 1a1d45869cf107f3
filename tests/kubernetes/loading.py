"""The data of the questions."""

from __future__ import annotations

from tests.kubernetes.cluster import Namespace

PINOT = ("http://pinot:9000", "http://pinot:8000")


def loaded(gris: Namespace, application: str) -> None:
    """Have the example tables in Pinot; twice is as good as once."""
    controller, broker = PINOT
    gris.python(
        application, "-m", "examples.load", "--controller", controller, "--broker", broker, "--wait", "120"
    )
