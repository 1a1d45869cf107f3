"""Random words and uniform numbers that a test has written out by hand."""

import numpy as np
from numpy.typing import NDArray


class ScriptedWords:
    """Hands out given words and fails when they run out."""

    def __init__(self, *script: int) -> None:
        self._script = list(script)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next `count` words of the script."""
        taken, self._script = self._script[:count], self._script[count:]
        assert len(taken) == count, "the sampler asked for more words than the script has"
        return np.array(taken, dtype=np.uint64)

    @property
    def left(self) -> int:
        """How many words nobody has asked for."""
        return len(self._script)


class ScriptedUniforms:
    """Uniform numbers given by leading words and, for some of them, the words that follow; the rest is zeros."""

    def __init__(self, leading: list[int], following: dict[int, list[int]] | None = None) -> None:
        self.leading_words = np.array(leading, dtype=np.uint64)
        self._following = following or {}
        self.extended: set[int] = set()

    def prefix(self, index: int, words: int) -> int:
        """Return the first 64 * `words` bits of number `index`."""
        self.extended.add(index)
        following = [*self._following.get(index, []), *([0] * words)][: words - 1]
        value = int(self.leading_words[index])
        for word in following:
            value = value << 64 | word
        return value
