"""The worst hockey-stick divergence of every mechanism beside its promise: `python -m tests.mechanisms`.

Upper and lower end differ by what lies beyond the radius of the enumeration; deltas are rounded up in the promise.
"""

from .promises import PROMISES


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


if __name__ == "__main__":
    main()
