"""A gateway whose engine costs nothing: what is left of a question is Gris.

python -m bench.stub_gateway --config gateway.yaml    # a gateway, as `python -m gris_gateway` is one
"""

from __future__ import annotations

import sys

from bench.new_questions import StubEngine
from gris_gateway import hosting
from gris_gateway.configuration import EngineChoice
from gris_gateway.process import main


def engine_of(choice: EngineChoice) -> StubEngine:
    """Returns the engine for the tables of a configuration.

    Raises:
        ValueError: it names no files.
    """
    if choice.duckdb is None:
        raise ValueError("expected engine.duckdb")
    return StubEngine(choice.duckdb)


if __name__ == "__main__":
    hosting.engine_of = engine_of
    sys.exit(main())
