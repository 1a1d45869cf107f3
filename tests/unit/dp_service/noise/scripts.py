"""Uniform numbers that a test has written out by hand."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


class ScriptedUniforms:
    """Uniform numbers given by leading words and, for some of them, the words that follow; the rest is zeros."""

    def __init__(self, leading: list[int], following: dict[int, list[int]] | None = None) -> None:
        self._leading = leading
        self._following = following or {}
        self.extended: set[int] = set()

    def __len__(self) -> int:
        return len(self._leading)

    def leading_blocks(self) -> Iterator[tuple[int, NDArray[np.uint64]]]:
        """Yield all leading words at once."""
        yield 0, np.array(self._leading, dtype=np.uint64)

    def words_at(self, level: int, indices: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return word `level` of the numbers `indices`, and remember whose further words were asked for."""
        if level:
            self.extended.update(indices.tolist())
        return np.array([self._word(level, index) for index in indices.tolist()], dtype=np.uint64)

    def _word(self, level: int, index: int) -> int:
        words = [self._leading[index], *self._following.get(index, [])]
        return words[level] if level < len(words) else 0
