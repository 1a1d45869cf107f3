"""An engine that costs nothing, and a gateway with it: what is left of a question is Gris.

python -m bench.at_once --config gateway.yaml    # a gateway, as `python -m gris_gateway` is one
"""

from __future__ import annotations

import sys

from gris_gateway import hosting
from gris_gateway.configuration import EngineChoice
from gris_gateway.process import main
from pinot_connector.engines.base import EngineAnswer, EngineQuery
from pinot_connector.engines.duckdb import DuckDBEngine


class AtOnce(DuckDBEngine):
    """DuckDB that answers every query as it answered the first."""

    _answer: EngineAnswer | None = None

    def run(self, query: EngineQuery, data_version: str) -> EngineAnswer:
        """Returns the first answer."""
        if self._answer is None:
            self._answer = super().run(query, data_version)
        return self._answer


def engine_of(choice: EngineChoice) -> AtOnce:
    """Returns the engine for the tables of a configuration.

    Raises:
        ValueError: it names no files.
    """
    if choice.duckdb is None:
        raise ValueError("expected engine.duckdb")
    return AtOnce(choice.duckdb)


if __name__ == "__main__":
    hosting.engine_of = engine_of
    sys.exit(main())
