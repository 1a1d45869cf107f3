"""The worst divergence of every mechanism with Gaussian counts beside its promise: `python -m tests.mechanisms`."""

from .zcdp import DELTA, KNOWN, SLACKS, UNKNOWN, GaussianPromise


def main() -> None:
    """Print one line for each promise."""
    print(f"{'with Gaussian counts':44}{'rho':>9}{'delta':>10}  worst found")
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
