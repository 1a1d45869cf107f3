"""Parameters of a release, and keys, for tests of identities and plans."""

from __future__ import annotations

from fractions import Fraction

from dp_service.parameters.release import ReleaseParameters
from dp_service.releases.keys import NoiseKey
from dp_service.terms import Consistency, CountNoise, MechanismName

KEY = NoiseKey(b"k" * 32)
OTHER_KEY = NoiseKey(b"o" * 32)
GUMBEL = ReleaseParameters(
    mechanism=MechanismName.UNK_GUMB,
    epsilon_per=Fraction("0.15"),
    delta=Fraction("1e-10"),
    tau=1,
    delta_l0=None,
    d_bar=1000,
    k=10,
    with_counts=True,
    count_noise=CountNoise.LAPLACE,
    consistency=Consistency.KEYED,
    domain=None,
)
