"""The worst hockey-stick divergence of every mechanism beside its promise: `python -m tests.mechanisms`.

Upper and lower end differ by what lies beyond the radius of the enumeration; deltas are rounded up in the promise.
"""

from .promises import DELTA, PROMISES
from .zcdp import KNOWN, SLACKS, UNKNOWN, GaussianPromise


def main() -> None:
    """Print one line for each promise."""
    print(f"{'mechanism':30}{'tau':>4}{'epsilon':>9}{'delta':>10}  worst found")
    for promise in PROMISES:
        delta = promise.mechanism.guarantee().delta
        found = f"{max(0.0, promise.proven_delta()):.2e} to {promise.worst_delta():.2e}"
        print(
            f"{promise.mechanism.label:30}{promise.tau:4}{promise.epsilon:9.3g}{delta:10.3g}  {found}",
            flush=True,
        )
    print(f"\n{'with Gaussian counts':44}{'rho':>9}{'delta':>10}  worst found")
    for gaussian in KNOWN:
        _print_gaussian(gaussian, 0.0, f"rho {gaussian.worst_rho():.4g}")
    for gaussian in UNKNOWN:
        for slack in SLACKS:
            promised = float(DELTA) + slack
            _print_gaussian(
                gaussian, promised, f"{gaussian.worst_excess((slack,)) + slack:.2e} at the epsilon of rho"
            )


def _print_gaussian(promise: GaussianPromise, delta: float, found: str) -> None:
    print(f"{promise!s:44}{promise.rho:9.3g}{delta:10.3g}  {found}", flush=True)


if __name__ == "__main__":
    main()
