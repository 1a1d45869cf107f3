"""Private domain discovery: which elements of a column are safe to name.

The input are pairs of member and element; the output are elements, such that adding or removing one member changes the
output little: delta-approximate rho-zCDP. All methods make a weighted histogram of bounded sensitivity, add noise to
every weight, and release the elements whose noisy weight exceeds a threshold.

From the bottom up: ``parameters`` has the method and its numbers; ``grid`` is the integer grid of weights;
``element_noise`` and ``noisy_comparison`` compare a weight and its noise with a cut, exactly; ``threshold`` finds T;
``adaptive`` and ``sequential`` are weightings that depend on other members; ``schedule`` fixes budget, noise and cuts
of every round; ``weighting`` and ``discovery`` run it on arrays. docs/domains.md defines every step, so that another
engine with the same seed releases the same elements.

Papers, as the modules name them: Canonne, Kamath and Steinke 2020 (arXiv:2004.00010); Chen, Cohen-Addad, Epasto and
Zadimoghaddam 2025 (arXiv:2502.08878); Gopi et al. 2020 (arXiv:2002.09745); Swanberg et al. 2023 (arXiv:2301.01998).
"""

from dp_service.partitions.discovery import Discovery, KeyedElementNoise, discover
from dp_service.partitions.parameters import Method, Parameters
from dp_service.partitions.schedule import Round, rounds

__all__ = ["Discovery", "KeyedElementNoise", "Method", "Parameters", "Round", "discover", "rounds"]
