"""A random order to work in, so that timing does not reveal the original order.

Entry i is given the word w_i, the first of U_i, with its last b bits replaced by i, where b is the number of bits
of size - 1; the entries are listed by ascending value. Two entries whose words agree in the first 64 - b bits
stand in the order of their indices, so the law is uniform up to a probability of size^2 / 2^(65 - b). That is
enough for this purpose; all guarantees hold for any order.

Words and indices fit one integer, so sorting compares different integers in random order: the time it takes is
that of random words, which do not depend on the data.
"""

import numpy as np
from numpy.typing import NDArray

from dp_service.noise.uniforms import UniformBits


def random_order(uniforms: UniformBits) -> NDArray[np.int64]:
    """Return the numbers 0..n-1 in a random order, n = len(uniforms), shape (n,)."""
    indices = np.arange(len(uniforms), dtype=np.uint64)
    index_bits = np.uint64(2 ** max(0, len(uniforms) - 1).bit_length() - 1)
    keys = np.empty(len(uniforms), dtype=np.uint64)
    for start, words in uniforms.leading_blocks():
        keys[start : start + words.size] = words
    keys &= ~index_bits
    keys |= indices
    keys.sort()
    keys &= index_bits
    return keys.astype(np.int64)
