"""Private domain discovery: which elements of a column are safe to name.

Input are pairs of member and element; output are elements, such that adding or removing one member changes what comes
out little: delta-approximate rho-zCDP. All methods make a weighted histogram of bounded sensitivity, add noise to
every weight, and release the elements whose noisy weight exceeds a threshold.

From the bottom up: ``parameters`` says what is wanted; ``grid`` is the integer grid of weights; ``element_noise`` and
``exceeding`` compare a weight and its noise with a cut, exactly; ``threshold`` finds T; ``adaptive`` and
``sequential`` are weightings that depend on other members; ``schedule`` settles budget, noise and cuts of every round;
``weighting`` and ``discovery`` run it on arrays. docs/domains.md defines every step, so that another engine with the
same seed releases the same elements.
"""

from dp_service.partitions.discovery import Discovery, KeyedElementNoise, discover
from dp_service.partitions.parameters import Method, Parameters
from dp_service.partitions.schedule import Round, rounds

__all__ = ["Discovery", "KeyedElementNoise", "Method", "Parameters", "Round", "discover", "rounds"]
