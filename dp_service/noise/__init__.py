"""Keyed randomness and exact samplers.

Every draw here follows its stated law exactly, given perfect random bits: no floating-point number
decides an outcome. The package is pure. It imports nothing of the project, reads no clock and generates
no randomness; the caller passes in the seed.

From the bottom up: ``encoding`` and ``stream`` turn a seed into labelled random words, and ``uniforms``
these into endless uniform numbers; ``interval_arithmetic`` computes with bounds; ``inverse_transform`` inverts
distribution functions; ``discrete_laplace``, ``discrete_gaussian``, ``gumbel`` (with ``gumbel_keys`` and
``weights``) and ``random_order`` are the samplers; ``distribution`` holds the closed forms of their laws;
``source`` is the interface through which mechanisms draw. docs/noise.md defines every draw, down to the byte.

Paper: Canonne, Kamath and Steinke 2020 (arXiv:2004.00010); Durfee and Rogers 2019 (arXiv:1905.04273).
"""

from dp_service.noise.source import SAMPLER_VERSION, KeyedNoise, NoiseSource
from dp_service.noise.stream import KeyedStream
from dp_service.noise.weights import LogWeights

__all__ = ["SAMPLER_VERSION", "KeyedNoise", "KeyedStream", "LogWeights", "NoiseSource"]
