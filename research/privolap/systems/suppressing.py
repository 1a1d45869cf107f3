"""A rule instead of noise: numbers of fewer than 50 members are hidden, all others exact."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import duckdb

from research.privolap.questions import Answer, Budget, Data, Kind, Question, System, version_of


class Suppressing(System):
    """Shows exact numbers of at least so many members; 0 shows all."""

    def __init__(self, least: int = 50) -> None:
        self.name = f"k >= {least}"
        self._least = least

    def version(self) -> str:
        """Return that of DuckDB, which counts."""
        return version_of("duckdb")

    @contextmanager
    def open(self, data: Data, budget: Budget, state: Path) -> Iterator[_Session]:
        """Open data; there is no budget, and nothing is kept."""
        del budget, state
        with duckdb.connect() as connection:
            yield _Session(data, self._least, connection)


class _Session:
    def __init__(self, data: Data, least: int, connection: duckdb.DuckDBPyConnection) -> None:
        self._data, self._least, self._connection = data, least, connection

    def price(self, question: Question) -> float:
        del question
        return 0.0

    def left(self) -> float:
        return 1.0

    def ask(self, question: Question) -> Answer:
        connection = self._connection.cursor()
        answer = question.answer_in_the_clear(self._data, connection)
        if question.kind in (Kind.ROWS, Kind.SUM):
            members = replace(question, kind=Kind.MEMBERS).answer_in_the_clear(self._data, connection)[0]
            return answer if members >= self._least else {}
        return {key: number for key, number in answer.items() if number >= self._least}
