"""What the calls of a budget add to its guarantee: k ln(1 + delta) to epsilon, and l delta by the argument below.

The claim. Let a budget pay for k information units and l calls, spent by an analyst who chooses every question by the
answers so far, and let (epsilon, slack) be a guarantee of k adaptively chosen mechanisms of one unit each. Then
everything together is (epsilon + k ln(1 + delta), l delta + slack)-DP.

One question. Fix neighbours, and let P and P' be the laws of its answer. There are laws Q and Q' that belong to u
mechanisms of one unit each, u being the information that the answer costs, and functions 0 <= g <= 1 and c <= u, with

    (1)  P(o) <= g(o) Q(o) + b(o)    where b >= 0 has a mass of at most delta for a call, and 0 without one;
    (2)  P'(o) >= g(o) Q'(o) / (1 + delta)^c(o).

- KnownLap, KnownGumb, QuantileGumb: Q = P, Q' = P', g = 1, b = 0, c = 0.
- UnkLap is (e/2, delta)-DP in both directions. Every such pair is P = (1 - delta) Q + delta J and
  P' = (1 - delta) Q' + delta J' with an (e/2)-DP pair Q, Q' (Kairouz, Oh and Viswanath 2017: it is a function of their
  canonical pair), which is e-bounded-range. So g = 1 - delta, b = delta J, c = 0. The same holds for a published
  domain, by the definition of approximate zCDP.
- BoundGauss over an unknown domain is delta-approximate rho-zCDP and sqrt(2 rho)-GDP, with u units of e^2/8 each: by
  definition P = (1 - delta) Q + delta J and P' = (1 - delta) Q' + delta J', with Q and Q' as far apart as over a known
  domain. So g = 1 - delta, b = delta J, c = 0. Over a known domain g = 1, b = 0. Where a policy has Gaussian noise,
  (epsilon, slack) is of a bound that covers it. The same holds for BoundMoments.
- UnkGumb. The threshold index is one unit, and counts have fresh noise, one unit each. Given the index, let C be the
  candidates of both neighbours, and N those of the first alone. Q peels C and bottom: one unit for each element met,
  and for bottom. P peels C, N and bottom. Let w be bottom's weight and W that of all of N: W <= delta w, as the
  mechanism shows (at most k_bar newcomers, each of at most delta / k_bar of bottom's weight). Let b be P on the answers
  that hold an element of N: one is met before bottom with probability W / (W + w) <= delta. On all other answers P(o)
  is Q(o) times the product over the choices of R / (R + W) <= 1, where R is the weight that is left of C and bottom:
  (1) with g = 1. For the second neighbour it is the same with its own newcomers, W' and w'. Bottom is left at every
  choice, so R' >= w' and every factor is at least 1 / (1 + delta): (2) with c the number of choices.

All questions. Multiply along a transcript: let Q, Q', G, c be the products of the Qs, Q's and gs and the sum of the cs.
Transcripts in which some question's answer falls to its b have together at most the mass l delta, since at most l
questions are calls. For any set S of transcripts

    P(S) <= sum_S G Q + l delta                                        by (1)
         <= e^epsilon sum_S G Q' + sum_S G (Q - e^epsilon Q')_+ + l delta
         <= e^epsilon sum_S G Q' + slack + l delta                     as G <= 1, and Q, Q' are at most k units
         <= e^epsilon (1 + delta)^k P'(S) + slack + l delta            by (2), as c <= k.

Pay what you get. The u units of an answer are not known beforehand, but they are drawn one after the other, and each is
known to be a unit before it is drawn: UnkGumb's index, each choice, each count. What an answer costs is how many were
drawn, and the ledger reserves the most that can be. So Q and Q' are a strategy of at most k units in the sense of
`docs/proofs/calls.md`, which writes this proof out in full.

`tests/unit/dp_service/accounting/test_calls.py` enumerates compositions of the real mechanisms: l delta is kept, and
nearly reached.
"""

from __future__ import annotations

from fractions import Fraction

from dp_service.accounting.rounding import INTERVALS, interval, rounded_up


def delta_of_calls(delta: Fraction, calls: int) -> Fraction:
    """Return what all calls together add to delta, exactly: 2 l delta, which is more than the argument needs.

    Source: Rogers et al. 2020, theorem 2; Durfee and Rogers 2019, lemmas 7.2 and 7.3. Their argument adds nothing to
    epsilon, and has a gap (`docs/proofs/calls.md`).
    """
    return 2 * calls * delta


def epsilon_with_calls(epsilon: float, delta: Fraction, *, information: int, calls: int) -> float:
    """Return the epsilon of the units with what calls add to it, k ln(1 + delta) if there are any; rounded up."""
    if calls == 0:
        return epsilon
    return rounded_up(interval(Fraction(epsilon)) + information * INTERVALS.log(1 + interval(delta)))
